"""How late the ledger posts, through a real NATS: from a commit's publishing to its transaction's end."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from prometheus_client import CollectorRegistry

from services.bench.figures import Bar, Figure, percentile
from services.bench.ledger_logs import Message
from services.game.ids import subject
from services.ledger import ratings
from services.ledger.archiver import note_closed
from services.ledger.consumer import Applier, Consumer
from services.ledger.database import Database, opened
from services.ledger.folding import Entry
from services.ledger.holding import Holding
from services.ledger.metrics import LedgerMetrics
from services.shell.broker import Broker, ensure_streams
from services.shell.logs import Log
from services.shell.nats_server import NatsServer

_APART_S: Final = 0.01
"""Between two commits: a hundred a second, far more of kind ``d`` than 200 plays a second bring."""
_WARM: Final = 50
"""Commits at the beginning that are not counted: connections are opened, statements prepared."""
_LEADING_S: Final = 20.0


class _Timed(Applier):
    """Notes when commits had their effect."""

    def __init__(self, database: Database, grant: int, metrics: LedgerMetrics, log: Log) -> None:
        super().__init__(database, grant, metrics, log, (ratings.project, note_closed))
        self.sent: dict[tuple[str, int], float] = {}
        self.lags_ms: list[float] = []
        self.all_done = asyncio.Event()
        self.wanted = 0

    async def apply(self, entries: Sequence[Entry]) -> None:
        """See ``Applier.apply``."""
        await super().apply(entries)
        now = time.perf_counter()
        for one in entries:
            if one.commit is not None:
                self.lags_ms.append((now - self.sent[one.table_id, one.commit.version]) * 1000)
        if len(self.lags_ms) >= self.wanted:
            self.all_done.set()


async def live_lag(
    line: str, kind: str, url: str, nats: NatsServer, messages: Sequence[Message], grant: int
) -> Figure:
    """The posting lag's 99th percentile, with reader, merge and consumer as in the service."""
    broker = await Broker.connect(nats.url, "ledger")
    try:
        await ensure_streams(broker)
        async with opened(url) as database:
            lags = await _lags(broker, database, messages, grant)
    finally:
        await broker.close()
    return Figure(
        line,
        f"posting through NATS, from publishing to its effect, {kind}, p99",
        "ms",
        (percentile(lags, 0.99),),
        Bar("<=", 50),
        note=f"{len(lags)} commits, {1 / _APART_S:.0f} a second, median {percentile(lags, 0.5):.1f} ms",
    )


async def _lags(
    broker: Broker, database: Database, messages: Sequence[Message], grant: int
) -> Sequence[float]:
    """Milliseconds from publishing to effect of each message."""
    metrics, log = LedgerMetrics(CollectorRegistry()), Log("bench", "error")
    applier = _Timed(database, grant, metrics, log)
    applier.wanted = len(messages)
    consumer = Consumer(database, broker, applier, Holding(database, grant), metrics, log)
    consumer.start()
    try:
        async with asyncio.timeout(_LEADING_S):
            while not consumer.leading:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)
        for message in messages:
            applier.sent[message.table_id, message.commit.version] = time.perf_counter()
            await broker.js.publish(subject(message.table_id, "d"), message.stored)
            await asyncio.sleep(_APART_S)
        async with asyncio.timeout(_LEADING_S):
            await applier.all_done.wait()
    finally:
        await consumer.stop()
    return applier.lags_ms[_WARM:]
