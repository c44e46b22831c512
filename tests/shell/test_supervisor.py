import json
import sys

from services.shell.supervisor import Supervisor

PRINT = "import json, os; print(json.dumps(dict(os.environ)))"


async def test_settings_that_the_user_exported_do_not_reach_a_child(tmp_path, monkeypatch):
    for name in ("SHENGJI_LISTEN", "SHENGJI_TLS_CERT", "SHENGJI_DATA", "PYTHONHASHSEED"):
        monkeypatch.setenv(name, "7")
    monkeypatch.setenv("SHENGJI_LOG_LEVEL", "debug")
    async with Supervisor(tmp_path) as supervisor:
        child = await supervisor.start("one", [sys.executable, "-c", PRINT], {"SHENGJI_DATA": "given"})
        assert await child.process.wait() == 0
        found = json.loads(child.log.read_text())
    assert {name: value for name, value in found.items() if name.startswith("SHENGJI_")} == {
        "SHENGJI_LOG_LEVEL": "debug",
        "SHENGJI_DATA": "given",
    }
    assert found["PYTHONHASHSEED"] == "7"
