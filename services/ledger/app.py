"""The ledger process: put together, run, and taken apart in order."""

import asyncio
import contextlib
import gc
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry

from services.ledger import ratings
from services.ledger.archive import Archive
from services.ledger.archiver import Archiver, ArchiverMetrics, note_closed
from services.ledger.config import LedgerConfig
from services.ledger.consumer import Applier, Consumer
from services.ledger.database import Database, DatabaseAway
from services.ledger.holding import Holding
from services.ledger.metrics import LedgerMetrics
from services.ledger.restoring import restore
from services.ledger.servicer import BURST_S, LedgerServicer, limits
from services.ledger.unfunded import Unfunded
from services.pb.ledger.v1.ledger_service_pb2 import DESCRIPTOR
from services.rules.options import RULES_VERSION
from services.shell import server
from services.shell.broker import Broker
from services.shell.channel import open_channel
from services.shell.keys import signing_key
from services.shell.limits import Buckets
from services.shell.log_jetstream import JetStreamLog
from services.shell.logs import Log, fault_of
from services.shell.metrics import RpcMetrics, build_info, export
from services.shell.process import distribution_version, tls_of
from services.shell.rpc import Guard
from services.shell.tokens import Verifier
from services.shell.trust import SERVICE_ISSUER, trusted

SERVICE: Final = DESCRIPTOR.services_by_name["LedgerService"]
DOMAIN: Final = "shengji.ledger"
SCOPE: Final = "ledger"
"""What a token's scope must name."""
_DATABASE_S: Final = 1.0
"""Between two attempts to reach a database at the start."""


class LedgerService:
    """The working parts of a ledger service.

    Attributes:
        database: the database, migrated.
        holding: holds and grants, for calls.
        registry: the metrics.
        consumer: applies the log, or stands by.
        running: the server, while it serves.
    """

    def __init__(self, config: LedgerConfig, database: Database, broker: Broker, log: Log) -> None:
        """Put them together; nothing runs yet.

        Raises:
            ConfigError: an address or a certificate that cannot be used.
            KeyFileError: a key cannot be used.
        """
        self._config = config
        self._log = log
        self.database = database
        self.registry = CollectorRegistry()
        build_info(
            self.registry,
            version=distribution_version(),
            rules_version=str(RULES_VERSION),
            database=database.dialect,
            python=sys.version.split()[0],
        )
        self.metrics = LedgerMetrics(self.registry)
        self.holding = Holding(database, config.opening_grant)
        projections = (ratings.project, note_closed)
        applier = Applier(database, config.opening_grant, self.metrics, log, projections)
        archive = Archive(config.data / "archive")
        self.consumer = Consumer(
            database,
            broker,
            applier,
            self.holding,
            self.metrics,
            log,
            before=partial(restore, database, archive, applier.apply, log),
        )
        self._channel = open_channel(config.table, config.table_ca)
        key = signing_key(config.data, SERVICE_ISSUER)
        self._unfunded = Unfunded(
            database, self._channel, key, self.consumer, applier.unfunded, self.metrics, log
        )
        self._archiver = Archiver(
            database,
            JetStreamLog(broker),
            archive,
            ArchiverMetrics(self.registry),
            log,
            may_run=lambda: self.consumer.leading,
        )
        guard = Guard(
            DOMAIN,
            Verifier(trusted(config.data, config.issuers, (), config.service_issuers), SCOPE),
            RpcMetrics(self.registry, SERVICE.methods_by_name),
            log,
            Buckets(config.stranger_rate, config.stranger_rate * BURST_S),
        )
        servicer = LedgerServicer(database, archive, self.holding)
        self._handlers = [guard.handlers(SERVICE, servicer, limits(config.query_rate))]
        self.running: server.Running | None = None

    async def start(self) -> server.Running:
        """Begin to serve, and to apply the log or stand by.

        Raises:
            ConfigError: the address or the certificate cannot be used.
        """
        tls = tls_of(self._config.tls_cert, self._config.tls_key)
        self.running = await server.start(self._handlers, [SERVICE.full_name], self._config.listen, tls)
        self.consumer.start()
        self._unfunded.start()
        self._archiver.start()
        return self.running

    async def stop(self, *, wait_s: float = server.NOT_SERVING_S, grace_s: float = server.GRACE_S) -> None:
        """Stop in order: another process takes over the log, then callers go."""
        await self._archiver.stop()
        await self._unfunded.stop()
        await self.consumer.stop()
        if self.running is not None:
            running, self.running = self.running, None
            await running.drain(lambda: None, wait_s=wait_s, grace_s=grace_s)
        await self._channel.close()


async def serve(config: LedgerConfig, ready: Callable[[int], None] | None = None) -> None:
    """Run the ledger service until SIGTERM or SIGINT.

    Args:
        config: the settings.
        ready: called with the port once calls are served.

    Raises:
        ConfigError: a setting that cannot be.
        KeyFileError: a key that cannot be used.
        BrokerError: NATS cannot be used.
    """
    log = Log("ledger", config.log_level).adopt_libraries()
    stopped = server.stop_signals(log, supervised=config.supervised)
    database = Database(config.database_url)
    try:
        if not await _migrated(database, stopped, log):
            return
        broker = await Broker.connect(config.nats, "ledger")
        try:
            await _serve(config, database, broker, log, stopped, ready)
        finally:
            await broker.close()
    finally:
        await database.close()
        log.info("stopped")


async def _serve(
    config: LedgerConfig,
    database: Database,
    broker: Broker,
    log: Log,
    stopped: asyncio.Event,
    ready: Callable[[int], None] | None,
) -> None:
    service = LedgerService(config, database, broker, log)
    metrics_port = export(service.registry, config.metrics)
    running = await service.start()
    host = config.listen.rpartition(":")[0]
    log.info("serving", address=f"{host}:{running.port}", metrics_port=metrics_port or 0)
    if ready is not None:
        ready(running.port)
    try:
        await _until(stopped, broker, service.consumer, log)
    finally:
        await service.stop()


async def _migrated(database: Database, stopped: asyncio.Event, log: Log) -> bool:
    """Wait for the database for as long as it takes; False when told to stop before."""
    told = False
    while not stopped.is_set():
        try:
            await database.migrate()
        except DatabaseAway as error:
            if not told:
                log.warning("database_away", fault=fault_of(error))
                told = True
        else:
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DATABASE_S):
                await stopped.wait()
    return False


async def _until(stopped: asyncio.Event, broker: Broker, consumer: Consumer, log: Log) -> None:
    """Wait for a signal, or for what ends the process: a connection or a consumer that will not come back."""
    while not stopped.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await stopped.wait()
        if broker.closed:
            log.error("nats closed")
            return
        consumer.check()


def spare_the_collector() -> None:
    """Look for circles of garbage seldom: a batch makes hundreds of thousands of objects and no circles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 50)


def run(config: LedgerConfig) -> None:
    """Run the service in an event loop of its own, uvloop's where it exists."""
    spare_the_collector()
    if sys.platform == "win32":
        asyncio.run(serve(config))
        return
    import uvloop  # noqa: PLC0415 - there is none for Windows

    uvloop.run(serve(config))
