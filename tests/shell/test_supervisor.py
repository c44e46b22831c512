import asyncio
import json
import sys

import psutil
from support.broker import until

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
        "SHENGJI_SUPERVISED": "true",
    }
    assert found["PYTHONHASHSEED"] == "7"


SERVICE = """
import asyncio
from services.shell.config import ServiceConfig, load
from services.shell.logs import Log
from services.shell.server import stop_signals

async def serve():
    stopped = stop_signals(Log("one", "info"), supervised=load(ServiceConfig, {}).supervised)
    print("serving", flush=True)
    await stopped.wait()
    print("drained", flush=True)

asyncio.run(serve())
"""
SUPERVISING = """
import asyncio, sys
from pathlib import Path
from services.shell.supervisor import Supervisor

async def supervise(folder, service):
    async with Supervisor(Path(folder)) as supervisor:
        child = await supervisor.start("one", [sys.executable, "-c", service])
        print(child.process.pid, flush=True)
        await asyncio.sleep(3600)

asyncio.run(supervise(*sys.argv[1:]))
"""


async def test_a_service_drains_when_its_supervisor_is_killed(tmp_path):
    supervising = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SUPERVISING, str(tmp_path), SERVICE), stdout=asyncio.subprocess.PIPE
    )
    service = psutil.Process(int(await supervising.stdout.readline()))
    log = tmp_path / "logs" / "one.log"
    await until(lambda: "serving" in log.read_text(), within_s=60)
    assert service.is_running()
    supervising.kill()
    await supervising.wait()
    await until(lambda: "drained" in log.read_text(), within_s=60)
    await until(lambda: not service.is_running() or service.status() == psutil.STATUS_ZOMBIE, within_s=60)
