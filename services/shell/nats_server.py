"""A nats-server as a child process on a data folder: for ``shengji up``, and for tests on the real thing.

The folder gets ``nats.conf``, ``nats.log``, ``nats.pid`` and ``jetstream/``. Every write is synced before it
is acknowledged, and the store is limited below the disk, since a disk that is really full freezes a stream
until the server restarts.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from services.shell.nats_users import authorization

STORE_SHARE: Final = 0.8
"""Share of the disk, counting what the store already holds, that the store may take."""
STORE_LEAST: Final = 64 * 1024 * 1024
"""Bytes without which a server is not started."""
_HOST: Final = "127.0.0.1"
_PORT_TRIES: Final = 3


class NatsServerError(Exception):
    """The server cannot be run; the message says why and ends with its last words."""


@dataclass(frozen=True, slots=True)
class ClusterPlace:
    """Where a server stands in a cluster on this machine."""

    port: int
    """Its own port for the other servers."""
    routes: Sequence[int]
    """The cluster ports of all servers."""


def find_nats_server() -> Path:
    """The nats-server of this Python environment, else the one on PATH.

    Raises:
        NatsServerError: there is none.
    """
    here = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    found = here or shutil.which("nats-server")
    if found is None:
        raise NatsServerError("there is no nats-server beside this Python nor on PATH")
    return Path(found)


def free_port() -> int:
    """A port of the loopback interface that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def store_limit(folder: Path) -> int:
    """How many bytes a store in the folder may take.

    Raises:
        NatsServerError: the disk has too little room.
    """
    held = sum(file.stat().st_size for file in folder.rglob("*.blk"))
    limit = int((shutil.disk_usage(folder).free + held) * STORE_SHARE)
    if limit < STORE_LEAST:
        raise NatsServerError(f"the disk of {folder} has no room for a log")
    return limit


class NatsServer:
    """One nats-server on the loopback interface; every later start is on the same ports.

    Attributes:
        folder: its data folder.
        port: its port for clients, 0 until it is first started.
        http_port: its port for monitoring, likewise.
    """

    def __init__(
        self,
        folder: Path,
        *,
        name: str = "shengji",
        port: int = 0,
        http_port: int = 0,
        store_max: int | None = None,
        cluster: ClusterPlace | None = None,
        passwords: Mapping[str, str] | None = None,
    ) -> None:
        """Describe a server; nothing is started.

        Args:
            folder: the data folder, made if need be.
            name: the server's name, one of its own in a cluster.
            port: the port for clients, 0 for a free one.
            http_port: the port for monitoring, 0 for a free one.
            store_max: most bytes of the store; by default ``STORE_SHARE`` of the disk.
            cluster: its place in a cluster, None for a server alone.
            passwords: of the users of ``nats_users``; None lets anybody in.
        """
        self.folder = folder.resolve()
        self.port = port
        self.http_port = http_port
        self._name = name
        self._store_max = store_max
        self._cluster = cluster
        self._passwords = passwords
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"nats://{_HOST}:{self.port}"

    @property
    def running(self) -> bool:
        """The process is there, be it healthy or not."""
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int | None:
        """Its process id while it is running."""
        return self._child.pid if self._child is not None and self.running else None

    async def start(self, within_s: float = 10.0) -> None:
        """Start it and wait until it says that it is healthy.

        Raises:
            NatsServerError: it ends, or is not healthy in that time; it is stopped then.
        """
        if self.running:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        await self._stop_orphan()
        chosen = (self.port, self.http_port)
        for tries in range(1, _PORT_TRIES + 1):
            self.port = chosen[0] or free_port()
            self.http_port = chosen[1] or free_port()
            self._spawn()
            try:
                await self._wait_until_healthy(within_s)
            except NatsServerError as error:
                # Somebody else took a port between its choice and its use.
                if "address already in use" not in str(error) or all(chosen) or tries == _PORT_TRIES:
                    raise
            else:
                return

    def _spawn(self) -> None:
        config = self.folder / "nats.conf"
        config.touch(mode=0o600)
        config.write_text(self._config(), encoding="utf-8")
        # A session of its own, so that Ctrl-C reaches it only after the services have stopped.
        self._child = subprocess.Popen(
            [find_nats_server(), "-c", config],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _config(self) -> str:
        limit = self._store_max if self._store_max is not None else store_limit(self.folder)
        lines = [
            f"server_name: {json.dumps(self._name)}",
            f'listen: "{_HOST}:{self.port}"',
            f'http: "{_HOST}:{self.http_port}"',
            f"log_file: {json.dumps(str(self.folder / 'nats.log'))}",
            "logfile_size_limit: 16MB",
            "logfile_max_num: 4",
            f"pid_file: {json.dumps(str(self.folder / 'nats.pid'))}",
            "jetstream {",
            f"  store_dir: {json.dumps(str(self.folder))}",  # the server adds "jetstream"
            "  sync_interval: always",
            "  max_memory_store: 64MB",
            f"  max_file_store: {limit}",
            "}",
        ]
        if self._cluster is not None:
            routes = ", ".join(f'"nats://{_HOST}:{port}"' for port in self._cluster.routes)
            lines += [
                "cluster {",
                "  name: shengji",
                f'  listen: "{_HOST}:{self._cluster.port}"',
                f"  routes: [{routes}]",
                "}",
            ]
        if self._passwords is not None:
            lines.append(authorization(self._passwords))
        return "\n".join(lines) + "\n"

    async def _wait_until_healthy(self, within_s: float) -> None:
        loop = asyncio.get_running_loop()
        give_up = loop.time() + within_s
        while not await self.healthy():
            if not self.running:
                raise NatsServerError(f"nats-server ended at its start: {self._last_words()}")
            if loop.time() > give_up:
                self.kill()
                raise NatsServerError(f"nats-server is not healthy in {within_s} s: {self._last_words()}")
            await asyncio.sleep(0.01)

    async def healthy(self) -> bool:
        """Whether it serves and its streams can be written; False also when it does not answer."""
        try:
            async with asyncio.timeout(1.0):
                reader, writer = await asyncio.open_connection(_HOST, self.http_port)
                try:
                    writer.write(b"GET /healthz HTTP/1.0\r\n\r\n")
                    status = await reader.readline()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False
        return b" 200 " in status

    async def stop(self, within_s: float = 10.0) -> None:
        """Stop it in order: it hands leaderships over and writes its indexes. Killed if it takes too long."""
        if self._child is None or not self.running:
            return
        self._child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._child.wait, within_s)
        self.kill()

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self._child is not None and self.running:
            self._child.kill()
            self._child.wait()

    def freeze(self) -> None:
        """Stop it from running, as a paused machine does, until ``thaw``: when this returns, it is still."""
        self._signal(signal.SIGSTOP)
        if self._child is not None and self.running:
            # The signal reaches one thread; the others run, and answer, until each has seen the stop.
            os.waitid(os.P_PID, self._child.pid, os.WSTOPPED)

    def thaw(self) -> None:
        """Let it run on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._child is not None and self.running:
            self._child.send_signal(number)

    async def _stop_orphan(self) -> None:
        """Stop a server that outlived whoever started it: two on one store would destroy it."""
        pid_file = self.folder / "nats.pid"
        try:
            orphan = psutil.Process(int(pid_file.read_text(encoding="ascii")))
            if str(self.folder / "nats.conf") not in orphan.cmdline():
                return
            orphan.terminate()
            await asyncio.to_thread(orphan.wait, 10)
        except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
            return
        except psutil.TimeoutExpired as error:
            raise NatsServerError(f"nats-server {error.pid} on {self.folder} does not stop") from error

    def _last_words(self) -> str:
        log = self.folder / "nats.log"
        if not log.exists():
            return "no log"
        return " / ".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:])
