"""Pruning: the log drops what was archived long ago and nobody needs any more.

A table's commits go only when its archive verifies once more, everybody who keeps a place in the stream is
past it, and so is the ledger's database. The last commit stays, so that a table is never founded again; the
archive is named by its hash.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.game.errors import BadId
from services.game.ids import STREAMS, every_subject, parse_subject
from services.ledger.archive import Archive, ArchiveDamaged, fault_in
from services.ledger.archiver import settled_of
from services.ledger.database import Database
from services.ledger.schema import archives, positions
from services.shell.broker import Broker
from services.shell.js_api import ask, refusal
from services.shell.log_jetstream import JetStreamLog

_PURGE_TIMEOUT_S: Final = 10.0
_US: Final = 1_000_000
_EVERYTHING: Final = 1 << 62


class Outcome(Enum):
    """What came of one table."""

    PRUNED = "pruned"
    BEHIND = "a reader has not got past it yet"
    DAMAGED = "its archive does not verify"


class Pruned(NamedTuple):
    """One table that was looked at."""

    table_id: str
    outcome: Outcome
    detail: str = ""
    """Who is behind, or what is wrong."""


class Pruner:
    """Takes archived tables out of the log."""

    def __init__(self, database: Database, broker: Broker, archive: Archive) -> None:
        """Nothing happens yet.

        Args:
            database: the ledger's.
            broker: a connection as the user ``archiver``.
            archive: where the logs are.
        """
        self._database = database
        self._broker = broker
        self._archive = archive
        self._store = JetStreamLog(broker)

    async def prune(self, older_than_s: float) -> AsyncIterator[Pruned]:
        """Prune every table that was archived longer ago than that, telling of each.

        Raises:
            DatabaseAway, Unavailable, nats.errors.Error: not now; what was pruned stays so.
        """
        before_us = int((time.time() - older_than_s) * _US)
        for stream in range(STREAMS):
            there = await self._tables(stream)
            kept = await self._database.read(partial(_archived, there, before_us))
            if not kept:
                continue
            reached = await self._reached(stream)
            for table_id, place in kept.items():
                yield await self._prune_one(stream, table_id, place, reached)

    async def _tables(self, stream: int) -> set[str]:
        """Tables of which a stream has more than the last commit."""
        info = await self._broker.js.stream_info(f"SJ_TABLES_{stream}", subjects_filter=">")
        counts: dict[str, int] = {}
        for name, count in (info.state.subjects or {}).items():
            try:
                table_id = parse_subject(name).table_id
            except BadId:
                continue
            counts[table_id] = counts.get(table_id, 0) + count
        return {table_id for table_id, count in counts.items() if count > 1}

    async def _reached(self, stream: int) -> dict[str, int]:
        """How far everybody who keeps a place in a stream has got."""
        found: dict[str, int] = {}
        for consumer in await self._broker.js.consumers_info(f"SJ_TABLES_{stream}"):
            if not consumer.config.durable_name:
                continue
            floor = consumer.ack_floor.stream_seq if consumer.ack_floor is not None else 0
            if not consumer.num_pending and not consumer.num_ack_pending:
                # It has seen all that it asks for; what it does not ask for moves no floor.
                floor = _EVERYTHING
            found[f"consumer {consumer.config.durable_name}"] = floor
        query = select(positions.c.sequence).where(positions.c.stream == stream)
        sequence = await self._database.read(lambda connection: connection.scalar(query))
        found["the ledger's database"] = int(sequence or 0)
        return found

    async def _prune_one(self, stream: int, table_id: str, place: str, reached: Mapping[str, int]) -> Pruned:
        last = (await self._store.last([table_id])).get(table_id, 0)
        for who, sequence in reached.items():
            if sequence < last:
                return Pruned(table_id, Outcome.BEHIND, who)
        settled = await self._database.read(lambda connection: settled_of(connection, table_id))
        try:
            commits = await asyncio.to_thread(self._archive.read, place)
            fault = await asyncio.to_thread(fault_in, table_id, commits, settled)
        except ArchiveDamaged as error:
            fault = str(error)
        if fault:
            return Pruned(table_id, Outcome.DAMAGED, fault)
        answer = await ask(
            self._broker.inbox,
            f"$JS.API.STREAM.PURGE.SJ_TABLES_{stream}",
            json.dumps({"filter": every_subject(table_id), "keep": 1}).encode(),
            _PURGE_TIMEOUT_S,
        )
        if "error" in answer:
            raise refusal(answer["error"])
        return Pruned(table_id, Outcome.PRUNED)


async def _archived(tables: set[str], before_us: int, connection: AsyncConnection) -> dict[str, str]:
    """The places of those tables that were archived before a time."""
    rows = await connection.execute(
        select(archives.c.table_id, archives.c.place).where(
            archives.c.archived_at_us > 0, archives.c.archived_at_us < before_us, archives.c.fault == ""
        )
    )
    return {row.table_id: row.place for row in rows if row.table_id in tables}
