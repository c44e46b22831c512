from pathlib import Path

import pytest
from click.testing import CliRunner

from services.cli.data import default_data
from services.cli.main import main


def test_commands_and_services_take_the_same_folder(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/x")
    monkeypatch.setenv("SHENGJI_DATA", "/y")
    assert default_data() == Path("/y")
    monkeypatch.delenv("SHENGJI_DATA")
    assert default_data() == Path("/x/shengji")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_data() == Path.home() / ".local" / "share" / "shengji"


@pytest.mark.parametrize(
    "command",
    [
        ["verify"],
        ["replay"],
        ["operator", "list"],
        ["operator", "add", "acme"],
        ["keys", "list"],
        ["keys", "rotate"],
        ["token", "--player", "ply_anna"],
    ],
    ids=" ".join,
)
def test_a_mistyped_folder_is_refused_and_not_made(command, tmp_path):
    mistyped = tmp_path / "mistyped"
    result = CliRunner().invoke(main, [*command, "--data", str(mistyped)])
    assert result.exit_code == 1
    assert f"there is no data folder at {mistyped}" in result.output
    assert not mistyped.exists()


@pytest.mark.parametrize("command", ["verify", "replay"])
def test_readers_make_nothing_in_a_folder_of_something_else(command, tmp_path):
    (tmp_path / "letters").mkdir()
    assert CliRunner().invoke(main, [command, "--data", str(tmp_path)]).exit_code == 1
    assert [each.name for each in tmp_path.iterdir()] == ["letters"]


def test_makers_make_the_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("SHENGJI_DATA", str(tmp_path / "new"))
    assert CliRunner().invoke(main, ["token", "--player", "ply_anna"]).exit_code == 0
    assert (tmp_path / "new" / "keys").is_dir()
