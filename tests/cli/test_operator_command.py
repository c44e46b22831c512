"""`shengji operator` and `shengji keys`, on a data folder with and without a house on it."""

import asyncio
import re
import stat
from pathlib import Path

from click.testing import CliRunner

from services.cli.data import Running, announce, held
from services.cli.main import main
from services.cli.operator import operators_of
from services.lobby.operators import Operators
from services.shell.nats_server import NatsServer
from services.shell.nats_users import passwords, url_as


def run(data: Path, *arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, [*arguments, "--data", str(data)])
    assert result.exit_code == code, result.output
    return result.output


def test_operators_are_managed_without_a_house(tmp_path: Path) -> None:
    key = run(tmp_path, "operator", "add", "acme").strip()
    assert re.fullmatch(r"opk_acme_[0-9a-f]{8}\.[A-Za-z0-9_-]{43}", key)
    assert "already" in run(tmp_path, "operator", "add", "acme", code=1)
    assert "2 to 32" in run(tmp_path, "operator", "add", "A", code=1)
    second = run(tmp_path, "operator", "new-key", "acme").strip()
    ids = [text.removeprefix("opk_").partition(".")[0] for text in (key, second)]
    run(tmp_path, "operator", "suspend", "acme")
    assert re.fullmatch(
        rf"acme  since [0-9-]{{10}}  suspended  {ids[0]} {ids[1]}\n", run(tmp_path, "operator", "list")
    )
    run(tmp_path, "operator", "suspend", "acme", "--undo")
    run(tmp_path, "operator", "drop-key", "acme", ids[0])
    listed = run(tmp_path, "operator", "list")
    assert "serving" in listed
    assert ids[0] not in listed
    assert key.partition(".")[2] not in listed
    for command in (["suspend", "nobody"], ["new-key", "nobody"], ["drop-key", "nobody", "x"]):
        assert "no operator nobody" in run(tmp_path, "operator", *command, code=1)


def test_operators_are_managed_while_a_house_runs(tmp_path: Path) -> None:
    known = passwords(tmp_path)
    server = NatsServer(tmp_path / "nats", passwords=known)
    asyncio.run(server.start(60))
    try:
        with held(tmp_path):
            reader = url_as(server.url, "reader", known)
            announce(tmp_path, Running(1, "up", reader, "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"))
            run(tmp_path, "operator", "add", "acme")
            assert [record.name for record in asyncio.run(_listed(tmp_path))] == ["acme"]
    finally:
        server.kill()


async def _listed(data: Path) -> list:
    async with operators_of(data) as operators:
        assert isinstance(operators, Operators)
        return await operators.list()


def test_keys_change_and_are_listed(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir(mode=0o700)
    (first,) = run(tmp_path, "keys", "list").splitlines()
    assert first.endswith("signs")
    assert "signs in 60 s" in run(tmp_path, "keys", "rotate")
    lines = run(tmp_path, "keys", "list").splitlines()
    assert lines[0] == first
    assert lines[1].endswith("to come")
    assert stat.S_IMODE((tmp_path / "keys/lobby.keys").stat().st_mode) == 0o600
