"""The README's client, as printed, and the worked one play against `shengji up`."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORKED = ROOT / "tests" / "lobby" / "worked_client.py"
SHENGJI = [sys.executable, "-c", "from services.cli.main import main; main()"]
FREE = "127.0.0.1:0"


async def run(*command: str | Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *map(str, command), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


@asynccontextmanager
async def running_house(data: Path) -> AsyncIterator[tuple[str, str]]:
    """`shengji up`; the addresses of the lobby and of the tables, as it prints them."""
    listening = ("--listen", FREE, "--lobby-listen", FREE, "--ledger-listen", FREE)
    up = await asyncio.create_subprocess_exec(
        *SHENGJI, "up", "--data", data, *listening, "--think-ms", "0", stdout=asyncio.subprocess.PIPE
    )
    assert up.stdout is not None
    try:
        line = await asyncio.wait_for(up.stdout.readline(), 120)
        served = re.search(rb"The lobby is served at (\S+), tables at (\S+) ", line)
        assert served is not None
        yield served[1].decode(), served[2].decode()
    finally:
        up.send_signal(signal.SIGINT)
        await up.communicate()
    assert up.returncode == 0


async def test_the_clients_play_against_a_house(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert code is not None
    client = tmp_path / "client.py"
    client.write_text(code[1])
    short = ("classic-1d", "deals=2")
    async with running_house(tmp_path / "data") as (lobby, table):
        readme, worked = await asyncio.gather(
            run(sys.executable, client, lobby, table), run(sys.executable, WORKED, lobby, table, *short)
        )
    assert "attackers:" in readme
    assert "match over after" in worked


def test_the_worked_client_is_short() -> None:
    assert len(WORKED.read_text().splitlines()) < 150
