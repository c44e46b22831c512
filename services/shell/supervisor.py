"""Starting the house on one machine: nats-server and the services, each a process of its own."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from services.shell.config import PREFIX

SUPERVISED: Final = {f"{PREFIX}SUPERVISED": "true"}
"""Tells a service that it is to stop when its standard input ends."""
_GRACE_SECONDS: Final = 16.0
"""A service has promised to be gone 15 s after SIGTERM."""


class ChildDied(Exception):
    """A service ended although nobody asked it to."""

    def __init__(self, name: str, status: int, log: Path) -> None:
        super().__init__(f"{name} ended with status {status}: {_last_line(log)} ({log})")


def _last_line(log: Path) -> str:
    """What a service said last, which tells why it ended when it ended early."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return "it said nothing"
    return lines[-1][:200] if lines else "it said nothing"


@dataclass(frozen=True, slots=True)
class Child:
    """One running service."""

    name: str
    process: asyncio.subprocess.Process
    log: Path


class Supervisor:
    """Keeps child processes, with logs below DATA/logs, and stops them in reverse order."""

    def __init__(self, data: Path) -> None:
        self._logs = data / "logs"
        self._children: list[Child] = []
        self._stopping = False

    async def __aenter__(self) -> Self:
        self._logs.mkdir(parents=True, exist_ok=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> Child:
        """Start a service; its output goes to DATA/logs/<name>.log.

        Args:
            name: what it is called here.
            command: the program and its arguments.
            env: its settings. Of the user's own ``SHENGJI_*`` variables only the log level reaches it.
        """
        log = self.log_of(name)
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *command,
                # Nothing is ever written; it ends with this process, even a killed one (``SUPERVISED``).
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
                env={**_inherited(os.environ), **SUPERVISED, **(env or {})},
                # Ctrl-C at the terminal must reach this process alone, which then drains its children.
                start_new_session=True,
            )
        child = Child(name, process, log)
        self._children.append(child)
        return child

    def log_of(self, name: str) -> Path:
        """Where a service's output goes."""
        return self._logs / f"{name}.log"

    async def watch(self) -> None:
        """Wait until a service ends unasked.

        Raises:
            ChildDied: always, unless cancelled.
        """
        waits = {asyncio.create_task(child.process.wait()): child for child in self._children}
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
        child = waits[done.pop()]
        raise ChildDied(child.name, child.process.returncode or 0, child.log)

    async def stop(self) -> None:
        """Drain all services, the last started first; who does not go in time is killed."""
        while self._children:
            child = self._children.pop()
            if child.process.returncode is not None:
                continue
            with contextlib.suppress(ProcessLookupError):
                child.process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(child.process.wait(), _GRACE_SECONDS)
            except TimeoutError:
                child.process.kill()
                await child.process.wait()


def _inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment without settings of services, which were meant for one that is started by hand."""
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(PREFIX) or name == f"{PREFIX}LOG_LEVEL"
    }


def service_command(module: str, *arguments: str) -> list[str]:
    """How to run a service of this installation: ``python -m services.<module>``.

    With -P the folder that the user stands in, perhaps an uncompiled checkout, is not searched for it.
    """
    return [sys.executable, "-P", "-m", f"services.{module}", *arguments]
