"""Restoring: what the log has dropped is applied from the archive: a new database becomes the old one.

It is the same log in another place: the same commits in the order of their recording, to the same fold.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.game.decide import kind_of
from services.game.ids import STREAMS, partition
from services.ledger.archive import Archive, ArchiveDamaged
from services.ledger.bulk import chunks
from services.ledger.database import Database
from services.ledger.folding import Entry, entry
from services.ledger.schema import archives, positions
from services.shell.logs import Log

BATCH: Final = 2000
Apply = Callable[[Sequence[Entry]], Awaitable[None]]
"""Applies messages of the log."""


async def restore(database: Database, archive: Archive, apply: Apply, log: Log) -> int:
    """Apply the archived tables that a database does not have to their ends.

    To be done before the streams are read, since what players have depends on the order. Nothing is looked
    for unless a stream was never read; what is there already changes nothing.

    Args:
        database: the ledger's.
        archive: the logs.
        apply: applies a batch.
        log: gets a line for every archive that is damaged.

    Returns:
        How many tables.

    Raises:
        DatabaseAway: not now; what was applied stays so.
    """
    if not await database.read(_is_new):
        return 0
    there = await asyncio.to_thread(archive.tables)
    missing: list[str] = []
    for some in chunks(there):
        known = await database.read(partial(_known, some))
        missing += [table_id for table_id in some if table_id not in known]
    batch: list[Entry] = []
    async for message in _merged(archive, missing, log):
        batch.append(message)
        if len(batch) == BATCH:
            await apply(batch)
            batch = []
    if batch:
        await apply(batch)
    if missing:
        log.info("restored", count=len(missing))
    return len(missing)


async def _is_new(connection: AsyncConnection) -> bool:
    unread = select(positions.c.stream).where(positions.c.sequence == 0).limit(1)
    return await connection.scalar(unread) is not None


async def _known(tables: Sequence[str], connection: AsyncConnection) -> set[str]:
    """Those of which the end was applied."""
    rows = await connection.execute(select(archives.c.table_id).where(archives.c.table_id.in_(tables)))
    return set(rows.scalars())


async def _merged(archive: Archive, tables: Sequence[str], log: Log) -> AsyncIterator[Entry]:
    """The commits of kind `d` of all tables in the order of their recording.

    Tables come in the order of their founding, so only those that overlap are in memory.
    """
    waiting: list[tuple[int, str, int, Entry]] = []
    for table_id in tables:
        entries = await asyncio.to_thread(_entries, archive, table_id, log)
        while entries and waiting and waiting[0][0] < entries[0].at_us:
            yield heapq.heappop(waiting)[3]
        for number, message in enumerate(entries):
            heapq.heappush(waiting, (message.at_us, table_id, number, message))
    while waiting:
        yield heapq.heappop(waiting)[3]


def _entries(archive: Archive, table_id: str, log: Log) -> list[Entry]:
    place = archive.find(table_id)
    try:
        commits = [] if place is None else archive.read(place)
    except ArchiveDamaged:
        log.error("archive_damaged", table_id=table_id)
        return []
    stream = partition(table_id) % STREAMS
    made = [entry(stream, 0, table_id, stored) for stored in commits]
    return [one for one in made if one.commit is not None and kind_of(tuple(one.commit.events)) == "d"]
