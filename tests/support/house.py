"""The whole house as processes of its own, to be killed and started again: nats-server, services, bots.

Ports are chosen once, so whatever is started again is found where it was. What the services print is kept
below DATA/logs.
"""

import asyncio
import contextlib
import multiprocessing.process
import os
import random
import signal
import socket
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from services.game.verify import Report, verify
from services.shell.broker import Broker
from services.shell.key_ring import KeyRing
from services.shell.keys import master_keys, signing_key
from services.shell.log_jetstream import JetStreamLog
from services.shell.nats_server import NatsServer
from services.shell.nats_users import passwords, url_as
from services.shell.tokens import sign
from services.shell.trust import LOBBY_ISSUER
from support.forks import be_service, fork

RESUME_S = 2.0
"""ARCHITECTURE §7: play goes on within 2 s of a restart."""
READY_S = 120.0
"""In this time a process serves, however slow the machine is."""
COMES_S = 60.0
"""In this time comes what comes at all."""
SLACK = 5.0
UNLIMITED = {
    "SHENGJI_COMMAND_RATE": "0",
    "SHENGJI_VIEW_RATE": "0",
    "SHENGJI_WATCH_RATE": "0",
    "SHENGJI_CREATE_RATE": "0",
    "SHENGJI_CALL_RATE": "0",
    "SHENGJI_SIGN_IN_RATE": "0",
}
"""For tests in which a few players do what thousands do in life."""
_PORTS = range(10_000, 32_000)
"""No system gives these to outgoing connections."""
_given: set[int] = set()


def patience(seconds: float) -> float:
    """A promised time as a test should take it: far longer, and the more the machine has to do besides.

    Whether a promise is kept to the second is for `shengji bench` to say.
    """
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    return seconds * float(os.environ.get("SHENGJI_TEST_SLACK", max(SLACK, 2 * busy)))


def own_port() -> int:
    """A port that nobody listens on, and that nobody takes while whoever listens there is down.

    Each worker of a test run chooses from ports of its own; an outgoing connection gets none of them.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    while True:
        # Not by the common generator, which a test may have seeded.
        port = random.SystemRandom().choice(_PORTS[worker::workers])
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            if port not in _given:
                _given.add(port)
                return port


class Service:
    """One service process, as ``python -m services.<module>``.

    Attributes:
        module: which service.
        address: where it answers, host:port.
        log: the file that gets its output.
        env: its environment, read at each start.
    """

    def __init__(self, module: str, folder: Path, env: Mapping[str, str], number: int = 0) -> None:
        self.module = module
        self.address = f"127.0.0.1:{own_port()}"
        self.log = folder / "logs" / f"{module}-{number}.log"
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SHENGJI_")},
            "SHENGJI_DATA": str(folder),
            "SHENGJI_LISTEN": self.address,
            "SHENGJI_METRICS": "",
            **env,
        }
        self._child: multiprocessing.process.BaseProcess | None = None

    @property
    def pid(self) -> int:
        """The process, running or not."""
        assert self._child is not None, f"{self.module} was never started"
        pid = self._child.pid
        assert pid is not None
        return pid

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._child is not None and self._child.is_alive()

    def start(self) -> None:
        """Start the process; it is not ready yet."""
        assert not self.running
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._child = fork(be_service, self.module, dict(self.env), str(self.log))

    def signal(self, number: int) -> None:
        """Send a signal, if it is there."""
        if self.running:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self._child is not None:
            self._child.kill()
            self._child.join()

    async def wait(self, within_s: float) -> int:
        """Wait for its end and answer its status.

        Raises:
            TimeoutError: it does not end in that time.
        """
        assert self._child is not None
        async with asyncio.timeout(within_s):
            while self._child.is_alive():  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.02)
        assert self._child.exitcode is not None
        return self._child.exitcode

    async def end_at_once(self) -> int:
        """End it by a second signal while the first one drains it; its status."""
        # Whoever watches its health holds up its orderly end.
        async with self.healths() as healths:
            assert (await healths.read()).status == HealthCheckResponse.SERVING
            self.signal(signal.SIGTERM)
            assert (await healths.read()).status == HealthCheckResponse.NOT_SERVING
            self.signal(signal.SIGTERM)
            return await self.wait(patience(1))

    async def stop(self) -> int:
        """End it in order."""
        if self.running:
            self.signal(signal.SIGTERM)
        return await self.wait(patience(20))

    @asynccontextmanager
    async def healths(self) -> AsyncIterator[grpc.aio.UnaryStreamCall]:
        """A stream of what its health service says; it holds up an orderly end until it is closed."""
        async with grpc.aio.insecure_channel(self.address) as channel:
            watch = channel.unary_stream(
                "/grpc.health.v1.Health/Watch",
                request_serializer=HealthCheckRequest.SerializeToString,
                response_deserializer=HealthCheckResponse.FromString,
            )
            stream = watch(HealthCheckRequest())
            try:
                yield stream
            finally:
                stream.cancel()

    async def health(self) -> int | None:
        """What its health service says; None when nobody answers."""
        async with grpc.aio.insecure_channel(self.address) as channel:
            check = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                request_serializer=HealthCheckRequest.SerializeToString,
                response_deserializer=HealthCheckResponse.FromString,
            )
            try:
                return (await check(HealthCheckRequest(), timeout=10)).status
            except grpc.aio.AioRpcError:
                return None

    async def ready(self, within_s: float = READY_S) -> None:
        """Wait until it serves.

        Raises:
            TimeoutError: it does not, or has ended.
        """
        give_up = time.monotonic() + within_s
        while await self.health() != HealthCheckResponse.SERVING:
            if not self.running or time.monotonic() > give_up:
                raise TimeoutError(f"{self.module} does not serve: {self.log.read_text()[-2000:]}")
            await asyncio.sleep(0.05)


class House:
    """A nats-server, table and lobby replicas and a bot service on one data folder.

    Attributes:
        nats: the nats-server.
        replicas: the table services.
        lobbies: the lobby services.
        bots: the bot service, which calls all replicas in turn.
        keys: the private keys of the issuers, by their names.
        passwords: of NATS' users.
    """

    def __init__(
        self,
        folder: Path,
        replicas: int = 1,
        env: Mapping[str, str] | None = None,
        think_ms: int = 0,
        *,
        nats_users: bool = True,
        lobbies: int = 0,
    ) -> None:
        """Describe a house; nothing is started.

        Args:
            folder: its data folder.
            replicas: how many table services.
            env: settings of the table and lobby services, by their variables.
            think_ms: how long bots think.
            nats_users: whether each service has its own user at NATS; else anybody may do anything there.
            lobbies: how many lobby services.
        """
        self.folder = folder
        self.passwords = passwords(folder) if nats_users else None
        self.nats = NatsServer(
            folder / "nats", port=own_port(), http_port=own_port(), passwords=self.passwords
        )
        self.keys = {name: signing_key(folder, name) for name in ("local", "bots", "services")}
        master_keys(folder)
        self.env = dict(env or {})
        env_of_tables = {"SHENGJI_NATS": self.nats_url("table"), **self.env}
        self.replicas = [Service("table", folder, env_of_tables, number) for number in range(replicas)]
        tables = ",".join(replica.address for replica in self.replicas)
        env_of_lobbies = {"SHENGJI_NATS": self.nats_url("lobby"), "SHENGJI_TABLE": tables, **self.env}
        self.lobbies = [Service("lobby", folder, env_of_lobbies, number) for number in range(lobbies)]
        if lobbies:
            self.ring = KeyRing(folder, LOBBY_ISSUER, time.time)
        env_of_bots = {
            "SHENGJI_NATS": self.nats_url("bot"),
            "SHENGJI_TABLE": tables,
            "SHENGJI_THINK_MS": str(think_ms),
        }
        self.bots = Service("bot", folder, env_of_bots)
        self._tokens: dict[str, str] = {}

    def nats_url(self, user: str, port: int = 0) -> str:
        """Where a user reaches NATS, directly or through another port."""
        url = f"nats://127.0.0.1:{port or self.nats.port}"
        return url if self.passwords is None else url_as(url, user, self.passwords)

    def token(self, player_id: str) -> str:
        """A token of this house for a player, a bot or a service; the same one each time."""
        if player_id not in self._tokens:
            self._tokens[player_id] = self.sign(player_id)
        return self._tokens[player_id]

    def sign(self, player_id: str, **claims: object) -> str:
        """A new token; claims as ``tokens.sign`` takes them."""
        issuer = {"bot": "bots", "svc": "services"}.get(player_id.partition(":")[0], "local")
        return sign(self.keys[issuer], issuer, player_id, **claims)  # type: ignore[arg-type]

    def lobby_token(self, player_id: str, lifetime_s: int) -> str:
        """A token as the lobby signs it for a player of the house, but with a lifetime of one's own."""
        kid, key, _ = self.ring.current()
        return sign(key, LOBBY_ISSUER, player_id, kid=kid, lifetime_s=lifetime_s)

    async def start(self, *, bots: bool = False) -> None:
        """Start everything and wait until it serves."""
        await self.nats.start(within_s=READY_S)
        for service in (*self.replicas, *self.lobbies):
            service.start()
        await asyncio.gather(*(service.ready() for service in (*self.replicas, *self.lobbies)))
        if bots:
            self.bots.start()
            await self.bots.ready()

    def kill(self) -> None:
        """End everything at once."""
        for service in (self.bots, *self.lobbies, *self.replicas):
            service.kill()
        self.nats.thaw()
        self.nats.kill()

    async def stored(self, table_ids: Iterable[str]) -> dict[str, list[bytes]]:
        """The stored bytes of tables' commits, as the server has them now."""
        broker = await Broker.connect(self.nats_url("reader"), "reader")
        try:
            log = JetStreamLog(broker)
            newest = await log.last(table_ids)
            return {
                table_id: [commit.payload for commit in await log.read(table_id, min_sequence=sequence)]
                for table_id, sequence in newest.items()
            }
        finally:
            await broker.close()

    async def sound(self, table_id: str) -> Report:
        """The report on a table's log, which must be sound."""
        report = verify(table_id, (await self.stored([table_id]))[table_id])
        assert report.ok, f"{table_id} at version {report.problem}"
        return report

    def printed(self) -> str:
        """All that the services have printed."""
        return "\n".join(
            path.read_text(errors="replace") for path in sorted((self.folder / "logs").glob("*"))
        )


@asynccontextmanager
async def opened_house(
    folder: Path,
    replicas: int = 1,
    *,
    bots: bool = False,
    env: Mapping[str, str] | None = None,
    think_ms: int = 0,
    lobbies: int = 0,
) -> AsyncIterator[House]:
    """A house for the length of a block."""
    house = House(folder, replicas, env, think_ms, lobbies=lobbies)
    try:
        await house.start(bots=bots)
        yield house
    finally:
        house.kill()


@contextmanager
def running_house(
    folder: Path,
    replicas: int = 1,
    *,
    bots: bool = False,
    env: Mapping[str, str] | None = None,
    lobbies: int = 0,
) -> Iterator[House]:
    """A house for the length of a block; usable from fixtures without a loop."""
    house = House(folder, replicas, env, lobbies=lobbies)
    try:
        asyncio.run(house.start(bots=bots))
        yield house
    finally:
        house.kill()
