"""Doorbells: every commit of every table, delivered at least once to one of the bot processes.

A table whose process died is looked at by another. Consumers that do not exist yet begin with the newest
commit of each table, so tables that were waiting for bots are looked at as well.
"""

import time
from typing import Final

from services.bot.metrics import BotMetrics
from services.bot.tables import Tables
from services.shell.broker import Broker
from services.shell.deliveries import Deliveries, Delivery, Durable
from services.shell.logs import Log

DURABLE: Final = Durable("bots", "doorbells of the bots", "sj.v1.table.>", ack_wait_s=1.5, waiting=4096)
_CROWD: Final = 4096
"""Tables being served at which no more doorbells are fetched."""


class Doorbells:
    """Fetches doorbells and rings them at the tables."""

    def __init__(self, broker: Broker, tables: Tables, metrics: BotMetrics, log: Log) -> None:
        self._tables = tables
        self._metrics = metrics
        self._deliveries = Deliveries(broker, DURABLE, log, self._ring, lambda: tables.room(_CROWD))

    def start(self) -> None:
        """Begin to fetch."""
        self._deliveries.start()

    async def stop(self) -> None:
        """Fetch no more; what was fetched is with the tables, what still comes is given back."""
        await self._deliveries.stop()

    async def _ring(self, table_id: str, bell: Delivery) -> None:
        self._metrics.lag_messages[str(bell.stream)].set(bell.pending)
        self._metrics.lag_seconds.observe(max(0.0, time.time() - bell.commit.recorded_at_us / 1e6))
        self._tables.ring(table_id, bell)
