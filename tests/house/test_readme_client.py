"""The README's client, as printed, plays a deal against `shengji up`."""

import asyncio
import re
import signal
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
SHENGJI = [sys.executable, "-c", "from services.cli.main import main; main()"]


async def run(*command: str | Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *map(str, command), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def test_the_readmes_client_plays_a_deal(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", README.read_text(), re.S)
    assert code is not None
    client = tmp_path / "client.py"
    client.write_text(code[1])
    data = tmp_path / "data"
    up = await asyncio.create_subprocess_exec(
        *SHENGJI,
        "up",
        "--data",
        data,
        "--listen",
        "127.0.0.1:0",
        "--lobby-listen",
        "127.0.0.1:0",
        "--think-ms",
        "0",
        stdout=asyncio.subprocess.PIPE,
    )
    assert up.stdout is not None
    try:
        line = await asyncio.wait_for(up.stdout.readline(), 30)
        served = re.search(rb"The lobby is served at (\S+), tables at (\S+) ", line)
        assert served is not None
        output = await run(sys.executable, client, served[1].decode(), served[2].decode())
    finally:
        up.send_signal(signal.SIGINT)
        await up.communicate()
    assert "attackers:" in output
    assert up.returncode == 0
