from pathlib import Path

from services.cli.data import default_data


def test_commands_and_services_take_the_same_folder(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/x")
    monkeypatch.setenv("SHENGJI_DATA", "/y")
    assert default_data() == Path("/y")
    monkeypatch.delenv("SHENGJI_DATA")
    assert default_data() == Path("/x/shengji")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_data() == Path.home() / ".local" / "share" / "shengji"
