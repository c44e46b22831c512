"""The table process: put together, run, and taken apart in order."""

import asyncio
import gc
import sys
import time
from typing import Final

from prometheus_client import CollectorRegistry

import engine_ext
from services.game.keys import Keyring
from services.pb.table.v1.table_service_pb2 import DESCRIPTOR
from services.rules.options import RULES_VERSION
from services.shell import process, server
from services.shell.broker import Broker, ensure_streams
from services.shell.bus import NatsBus
from services.shell.config import ConfigError
from services.shell.keys import master_keys
from services.shell.limits import Buckets
from services.shell.live import LiveFeed
from services.shell.log_jetstream import JetStreamLog
from services.shell.logs import Log
from services.shell.metrics import RpcMetrics, build_info
from services.shell.process import distribution_version, tls_of
from services.shell.renewals import Renewals
from services.shell.rpc import Guard
from services.shell.snapshots import JetStreamSnapshots
from services.shell.timers_jetstream import JetStreamTimers
from services.shell.tokens import Verifier
from services.shell.trust import trusted
from services.table.cache import TableCache
from services.table.config import BURST_S, TableConfig
from services.table.deadlines import Deadlines
from services.table.deps import Deps
from services.table.keeper import Keeper
from services.table.metrics import TableMetrics
from services.table.servicer import TableServicer, limits
from services.table.tables import Tables
from services.table.watch import Watches

SERVICE: Final = DESCRIPTOR.services_by_name["TableService"]
DOMAIN: Final = "shengji.table"
SCOPE: Final = "table"
"""What a token's scope must name."""
RENEWALS: Final = "watches"
"""The bus topic on which replicas tell each other that a player's watches live longer."""


def clock_us() -> int:
    """Microseconds of Unix time."""
    return time.time_ns() // 1000


class TableService:
    """The working parts of a table service, on a connection to NATS.

    Attributes:
        cache: the tables in memory.
        watches: the watches.
        registry: the metrics.
        running: the server, while it serves.
    """

    def __init__(self, config: TableConfig, broker: Broker, log: Log) -> None:
        """Put them together; nothing runs yet.

        Raises:
            ConfigError: an issuer that is not name=file.
            KeyFileError: a key cannot be used.
        """
        self._config = config
        self._broker = broker
        self._log = log
        self.registry = CollectorRegistry()
        build_info(
            self.registry,
            version=distribution_version(),
            rules_version=str(RULES_VERSION),
            engine=engine_ext.IMPLEMENTATION,
            python=sys.version.split()[0],
        )
        masters = master_keys(config.data, config.master_keys)
        log_store = JetStreamLog(broker)
        self._feed = LiveFeed(log_store)
        self._timers = JetStreamTimers(broker, clock_us)
        deps = Deps(
            log_store=log_store,
            feed=self._feed,
            timers=self._timers,
            snapshots=JetStreamSnapshots(broker),
            keyring=Keyring(masters, list(masters)[-1]),
            metrics=TableMetrics(self.registry),
            log=log,
            now_us=clock_us,
        )
        self.cache = TableCache(deps, config.open_tables)
        tables = Tables(self.cache)
        self._deadlines = Deadlines(tables)
        self._renewals = Renewals(NatsBus(broker), RENEWALS)
        self.watches = Watches(self.cache, config.watchers, self._renewals)
        self._keeper = Keeper(self.cache, self.watches, config.idle_s)
        servicer = TableServicer(
            tables,
            self.watches,
            config.insecure_entropy,
            services_found=config.founders == "services",
        )
        metrics = RpcMetrics(self.registry, SERVICE.methods_by_name)
        strangers = Buckets(config.stranger_rate, config.stranger_rate * BURST_S)
        issuers = trusted(config.data, config.issuers, config.bot_issuers, config.service_issuers)
        verifier = Verifier(issuers, SCOPE)
        guard = Guard(DOMAIN, verifier, metrics, log, strangers)
        self._handlers = guard.handlers(SERVICE, servicer, limits(config))
        self.running: server.Running | None = None

    async def start(self) -> server.Running:
        """Begin to serve.

        Raises:
            ConfigError: the address or the certificate cannot be used.
            Unavailable: NATS cannot be used.
        """
        try:
            self._broker.on_reconnect(self._feed.poke)
            await self._feed.start()
            await self._renewals.start()
            await self._timers.start(self._deadlines.on_due)
            self._keeper.start()
            self.running = await server.start(
                [self._handlers],
                [SERVICE.full_name],
                self._config.listen,
                tls_of(self._config.tls_cert, self._config.tls_key),
            )
        except BaseException:
            await self.stop()
            raise
        return self.running

    async def stop(self, *, wait_s: float = server.NOT_SERVING_S, grace_s: float = server.GRACE_S) -> None:
        """Stop in order: clients first, then what works behind them."""
        if self.running is not None:
            running, self.running = self.running, None
            await running.drain(self.watches.drain, wait_s=wait_s, grace_s=grace_s)
        await self._timers.stop()
        await self._keeper.stop()
        await self._feed.stop()


async def serve(config: TableConfig) -> None:
    """Run the table service until SIGTERM or SIGINT; see ``process.serve``."""
    if config.insecure_entropy and not config.development:
        raise ConfigError("--insecure-entropy lets anybody foresee every card; it needs --development")

    async def put_together(broker: Broker, log: Log) -> TableService:
        await ensure_streams(broker, config.nats_replicas)
        if config.insecure_entropy:
            log.warning("insecure entropy: every card of a new table can be foreseen")
        return TableService(config, broker, log)

    await process.serve("table", config, config.listen, put_together)


def run(config: TableConfig) -> None:
    """Run the service in an event loop of its own, uvloop's where it exists."""
    # States are many, live long and refer to no one in circles: looking through them all often is of no use.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    if sys.platform == "win32":
        asyncio.run(serve(config))
        return
    import uvloop  # noqa: PLC0415 - there is none for Windows

    uvloop.run(serve(config))
