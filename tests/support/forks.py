"""Services and commands as processes of their own, forked from one that has imported what they need.

To import it takes most of a second of each process's life, so it is done once for all that a test run starts.
"""

import asyncio
import multiprocessing
import multiprocessing.process
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

COMMAND_S = 240.0
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "uvloop",
        *(f"services.{name}.app" for name in ("table", "lobby", "bot", "ledger")),
        *(
            f"services.cli.{name}"
            for name in ("main", "audit", "demo", "log", "prune", "token", "up", "verifying")
        ),
    ]
)


def fork(target: Callable[..., None], *arguments: Any) -> multiprocessing.process.BaseProcess:
    """Start a process that does this."""
    process = _CONTEXT.Process(target=target, args=arguments)
    process.start()
    return process


def be_service(module: str, env: Mapping[str, str], log: str) -> None:
    """Be ``python -m services.<module>`` in a session of its own."""
    _be(env, log, log)
    sys.argv = [f"services.{module}"]
    runpy.run_module(f"services.{module}", run_name="__main__", alter_sys=True)


def _be_command(arguments: list[str], env: Mapping[str, str], out: str, err: str, before: str) -> None:
    _be(env, out, err)
    exec(before, {})  # a test's own text
    from services.cli.main import main

    main(arguments, prog_name="shengji")


def _be(env: Mapping[str, str], out: str, err: str) -> None:
    os.setsid()
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), number)
    os.environ.clear()
    os.environ.update(env)


class Command:
    """The ``shengji`` command as a process; ``finish`` or ``end`` it."""

    def __init__(self, *arguments: str, env: Mapping[str, str] | None = None, before: str = "") -> None:
        """Start it.

        Args:
            arguments: what it is given.
            env: its environment; by default ours without any settings.
            before: Python text that is run before it.
        """
        ours = {name: value for name, value in os.environ.items() if not name.startswith("SHENGJI_")}
        self.arguments = arguments
        self._out, self._err = (Path(self._file()) for _ in range(2))
        told = {**(ours if env is None else env), "COLUMNS": "80", "NO_COLOR": "1"}
        self._process = fork(_be_command, list(arguments), told, str(self._out), str(self._err), before)

    @staticmethod
    def _file() -> str:
        number, path = tempfile.mkstemp(prefix="shengji-")
        os.close(number)
        return path

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.is_alive()

    @property
    def said(self) -> str:
        """What it has printed so far."""
        return self._out.read_text()

    def signal(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    async def says(self, text: str) -> None:
        """Wait until it has printed this.

        Raises:
            TimeoutError: it has ended, or takes too long.
        """
        async with asyncio.timeout(COMMAND_S):
            while text not in self.said:
                if not self.running:
                    raise TimeoutError(f"it ended: {self.said}{self._err.read_text()}")
                await asyncio.sleep(0.05)

    def finish(self, within_s: float = COMMAND_S) -> subprocess.CompletedProcess[str]:
        """Wait for its end; kill it if it takes too long."""
        self._process.join(within_s)
        status = self._process.exitcode
        out, err = self.said, self._err.read_text()
        self.end()
        if status is None:
            raise TimeoutError(f"{self.arguments} did not end: {out}{err}")
        return subprocess.CompletedProcess(self.arguments, status, out, err)

    def end(self) -> None:
        """Kill it, if it still runs, and what it started."""
        if self.running:
            for child in [*psutil.Process(self.pid).children(recursive=True), psutil.Process(self.pid)]:
                child.kill()
            self._process.join()
        for file in (self._out, self._err):
            file.unlink(missing_ok=True)
