"""A nats-server, table services and floors as processes of their own, on a folder that goes away again."""

import asyncio
import secrets
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import psutil

from services.bench.matches import PLAYERS
from services.game.keys import Keyring
from services.shell.keys import signing_key
from services.shell.nats_server import NatsServer, free_port
from services.shell.supervisor import Child, Supervisor, service_command
from services.shell.tokens import sign

ISSUER: Final = "local"
ENTROPY: Final = "bench"
"""All cards of the benchmarks follow from this text."""
_KEY_ID: Final = "bench"
_READY_S: Final = 20.0
_TOKEN_S: Final = 3600
_METHOD: Final = "/shengji.table.v1.TableService/"

Metadata = tuple[tuple[str, str], ...]


class NotServing(Exception):
    """A process that was started does not serve; the message has its last words."""

    def __init__(self, module: str, log: Path) -> None:
        words = log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
        super().__init__(f"{module} does not serve: {' / '.join(words) or 'it says nothing'}")


@dataclass(frozen=True, slots=True)
class Service:
    """A running process that serves gRPC."""

    child: Child
    channel: grpc.aio.Channel

    def call(self, method: str) -> Any:
        """A call of a method of the table service, or of a path, that takes and gives bytes as they are."""
        return self.channel.unary_unary(method if method.startswith("/") else _METHOD + method)

    def stream(self, method: str) -> Any:
        """A streaming call of the table service that takes and gives bytes as they are."""
        return self.channel.unary_stream(_METHOD + method)

    @property
    def process(self) -> psutil.Process:
        """The process, to ask what it uses."""
        return psutil.Process(self.child.process.pid)

    def cpu_s(self) -> float:
        """CPU seconds that it has used so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    async def stop(self) -> None:
        """End it at once; nothing of it is needed afterwards."""
        await self.channel.close()
        self.child.process.kill()
        await self.child.process.wait()


class Rig:
    """What a benchmark runs on.

    Attributes:
        nats: the nats-server.
        keyring: the master key that the table services get.
        metadata: what callers 0..3, the ``PLAYERS``, show.
    """

    def __init__(self, folder: Path, supervisor: Supervisor) -> None:
        self.nats = NatsServer(folder / "nats")
        master = secrets.token_bytes(32)
        self.keyring = Keyring({_KEY_ID: master}, _KEY_ID)
        key = signing_key(folder, ISSUER)
        self.metadata: tuple[Metadata, ...] = tuple(
            (("authorization", f"Bearer {sign(key, ISSUER, player, lifetime_s=_TOKEN_S)}"),)
            for player in PLAYERS
        )
        self._supervisor = supervisor
        self._folder = folder
        self._secrets = {"SHENGJI_MASTER_KEYS": f"{_KEY_ID}:{master.hex()}"}
        self._started = 0

    async def table(self, **settings: object) -> Service:
        """Start a table service without rate limits.

        Args:
            settings: more of its settings, by name.

        Raises:
            NotServing: it does not serve in time.
        """
        unlimited = dict.fromkeys(
            ("command_rate", "view_rate", "watch_rate", "create_rate", "stranger_rate"), 0
        )
        env = {f"SHENGJI_{name.upper()}": str(value) for name, value in {**unlimited, **settings}.items()}
        env |= {
            "SHENGJI_DEVELOPMENT": "true",
            "SHENGJI_INSECURE_ENTROPY": ENTROPY,
            "SHENGJI_LOG_LEVEL": "warning",
            "SHENGJI_METRICS": "",
        }
        return await self._start("table", env | self._secrets)

    async def floor(self) -> Service:
        """Start the bare handler that the table service is held against.

        Raises:
            NotServing: it does not serve in time.
        """
        return await self._start("bench.floor_server", {})

    async def _start(self, module: str, env: dict[str, str]) -> Service:
        address = f"127.0.0.1:{free_port()}"
        env |= {"SHENGJI_DATA": str(self._folder), "SHENGJI_NATS": self.nats.url, "SHENGJI_LISTEN": address}
        self._started += 1
        child = await self._supervisor.start(f"{module}-{self._started}", service_command(module), env)
        service = Service(child, grpc.aio.insecure_channel(address))
        serving = asyncio.create_task(service.channel.channel_ready())
        ended = asyncio.create_task(child.process.wait())
        await asyncio.wait({serving, ended}, timeout=_READY_S, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not serving.done():
            serving.cancel()
            raise NotServing(module, child.log)
        return service


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    """A rig with its nats-server running; everything is stopped and deleted at the end.

    Raises:
        NatsServerError: nats-server cannot run.
    """
    with tempfile.TemporaryDirectory(prefix="shengji-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        async with Supervisor(folder) as supervisor:
            made = Rig(folder, supervisor)
            await made.nats.start()
            try:
                yield made
            finally:
                await supervisor.stop()
                await made.nats.stop()
