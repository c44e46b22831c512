"""One batch of the log in one transaction: load what it needs, fold it, write what came of it.

Postings, books, projections, what is kept aside and how far the streams were read are committed together, so
that whatever happens in between, each commit has its effect exactly once.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.ledger import books
from services.ledger.books import BOTS, FEES, GRANTS, TableBook
from services.ledger.bulk import delete_among, insert_rows, rows_among, run_many, upsert_rows
from services.ledger.folding import Entry, Fold, Parked, entry
from services.ledger.moving import Why
from services.ledger.posting import load_balances, load_transfers
from services.ledger.schema import (
    applied,
    deals,
    holds,
    match_players,
    matches,
    parked,
    positions,
    stats,
    unapplied,
)

Projection = Callable[[AsyncConnection, Fold], Awaitable[None]]
"""Writes what else follows from a batch, in its transaction; it may run again when the batch does."""

_DROP_KEPT: Final = "DELETE FROM unapplied WHERE table_id = :1 AND version = :2"
_SET_POSITION: Final = "UPDATE positions SET sequence = :2 WHERE stream = :1"


async def apply_batch(
    connection: AsyncConnection,
    entries: Sequence[Entry],
    *,
    grant: int,
    now_us: int,
    retry: Collection[str] = (),
    projections: Iterable[Projection] = (),
) -> Fold:
    """Apply a batch in a transaction of its own.

    Args:
        connection: in that transaction.
        entries: messages of the log in the order to be applied; those of one stream in its order.
        grant: the opening grant.
        now_us: the clock, for the record of what is kept aside since when.
        retry: parked tables to be tried again first.
        projections: what else to write.

    Returns:
        The fold, as it was written.

    Raises:
        IntegrityError: somebody else wrote at the same time, or a transfer is there with other content.
    """
    batch = await _load(connection, entries, retry, grant)
    for table_id in retry:
        batch.fold.retry(table_id)
    for new in entries:
        batch.fold.apply(new, now_us)
    await _save(connection, batch, entries, projections)
    return batch.fold


async def apply_carefully(
    connection: AsyncConnection,
    new: Entry,
    *,
    grant: int,
    now_us: int,
    projections: Iterable[Projection] = (),
) -> Fold:
    """Apply one message that could not be written: what it wants to post is compared with what is there.

    The same transfer is not made again; another one under its id parks the table, and so does whatever else
    cannot be written.
    """
    tried = await _load(connection, [new], (), grant)
    tried.fold.apply(new, now_us)
    existing = await load_transfers(connection, tried.fold.journal.posted)
    batch = await _load(connection, [new], (), grant)
    if existing:
        batch.fold.existing = existing
        batch.fold.apply(new, now_us)
    else:
        batch.fold.refuse(new, Why.POISON)
    await _save(connection, batch, [new], projections)
    return batch.fold


class _Batch(NamedTuple):
    """A fold, and what of it was there before."""

    fold: Fold
    bound: dict[str, str]
    parked: dict[str, Parked]
    kept: dict[tuple[str, int], bytes]
    reached: dict[int, int]
    """How far the streams were read."""


async def _load(
    connection: AsyncConnection, entries: Sequence[Entry], retry: Collection[str], grant: int
) -> _Batch:
    """A fold that knows all that the batch can touch."""
    # Two writers at once, by whatever mishap, take turns here.
    rows = await connection.execute(
        select(positions.c.stream, positions.c.sequence).order_by(positions.c.stream).with_for_update()
    )
    reached = dict(rows.all())
    tables = {new.table_id for new in entries} | set(retry)
    were_parked = await _load_parked(connection, tables)
    tables |= were_parked.keys()
    were_kept = await _load_kept(connection, were_parked.keys())
    known = await _load_books(connection, tables)
    all_ = [*entries, *(entry(0, 0, table_id, stored) for (table_id, _), stored in were_kept.items())]
    people = {player for one in all_ for player in one.people}
    for book in known.values():
        people.update(book.people())
    if tables:
        people.update(await _bound_to(connection, tables))
    fold = Fold(grant, await load_balances(connection, people, _others(known, all_)))
    fold.books = known
    fold.parked = dict(were_parked)
    for (table_id, version), stored in were_kept.items():
        fold.kept[table_id][version] = stored
    bound = "SELECT player_id, table_id FROM holds WHERE player_id {among}"
    for player, table_id in await rows_among(connection, bound, people):
        fold.bind(player, table_id)
    await _load_hashes(connection, fold, entries)
    return _Batch(fold, dict(fold.bound), were_parked, were_kept, reached)


async def _load_parked(connection: AsyncConnection, tables: Collection[str]) -> dict[str, Parked]:
    """Which of the tables are parked, and all that wait for one of them, or for one that waits."""
    found: dict[str, Parked] = {}
    wanted = set(tables)
    while wanted:
        new = set()
        for column in ("table_id", "waits_for"):
            statement = f"SELECT table_id, why, waits_for, since_us FROM parked WHERE {column} {{among}}"
            for table_id, why, waits_for, since_us in await rows_among(connection, statement, wanted):
                if table_id not in found:
                    found[table_id] = Parked(Why(why), waits_for, since_us)
                    new.add(table_id)
        wanted = new - wanted
    return found


async def _load_kept(connection: AsyncConnection, tables: Collection[str]) -> dict[tuple[str, int], bytes]:
    statement = "SELECT table_id, version, stored FROM unapplied WHERE table_id {among}"
    rows = await rows_among(connection, statement, tables)
    return {(table_id, version): stored for table_id, version, stored in rows}


async def _load_books(connection: AsyncConnection, tables: Collection[str]) -> dict[str, TableBook]:
    rows = await rows_among(connection, "SELECT table_id, book FROM matches WHERE table_id {among}", tables)
    return {table_id: books.decode(book) for table_id, book in rows}


async def _bound_to(connection: AsyncConnection, tables: Collection[str]) -> list[str]:
    rows = await rows_among(connection, "SELECT player_id FROM holds WHERE table_id {among}", tables)
    return [player for (player,) in rows]


async def _load_hashes(connection: AsyncConnection, fold: Fold, entries: Sequence[Entry]) -> None:
    """The hashes of the commits that come again."""
    again: dict[str, list[int]] = {}
    for new in entries:
        book = fold.books.get(new.table_id)
        if book is not None and new.commit is not None and new.commit.version <= book.version:
            again.setdefault(new.table_id, []).append(new.commit.version)
    for table_id, versions in again.items():
        rows = await connection.execute(
            select(applied.c.version, applied.c.hash).where(
                applied.c.table_id == table_id,
                applied.c.version.between(min(versions), max(versions)),
            )
        )
        for version, digest in rows:
            fold.hashes[table_id, version] = digest


def _others(known: Mapping[str, TableBook], entries: Iterable[Entry]) -> set[str]:
    """The accounts of the house and of operators that the batch can touch."""
    names = {GRANTS, FEES, BOTS} | {book.house for book in known.values()}
    for commit in (one.commit for one in entries):
        if commit is not None and commit.version == 1 and commit.events[0].table_opened.operator:
            names.add(f"operator:{commit.events[0].table_opened.operator}")
    return names


async def _save(
    connection: AsyncConnection, batch: _Batch, entries: Sequence[Entry], projections: Iterable[Projection]
) -> None:
    """Write everything that came of a batch."""
    await _save_tables(connection, batch.fold)
    await _save_holds(connection, batch)
    await _save_parked(connection, batch)
    for projection in projections:
        await projection(connection, batch.fold)
    last: dict[int, int] = {}
    for new in entries:
        before = last.get(new.stream, batch.reached.get(new.stream, 0))
        last[new.stream] = max(new.sequence, before)
    await run_many(connection, _SET_POSITION, sorted(last.items()))


async def _save_tables(connection: AsyncConnection, fold: Fold) -> None:
    """Money, books, deals and statistics."""
    await fold.journal.save(connection)
    await insert_rows(connection, applied, fold.applied)
    changed = [fold.books[table_id] for table_id in sorted(fold.changed)]
    await upsert_rows(
        connection,
        matches,
        [
            (
                book.table_id,
                books.encode(book),
                book.state,
                bool(book.unfunded),
                book.opened_at_us,
                book.ended_at_us,
                book.rated,
            )
            for book in changed
        ],
    )
    await insert_rows(
        connection,
        deals,
        [
            (table_id, deal, points, side, levels, *won, at_us, version)
            for table_id, (deal, points, side, levels, won, at_us, version) in fold.deals
        ],
    )
    await upsert_rows(
        connection, stats, [(*key, *sums) for key, sums in sorted(fold.stats.items())], add=True
    )
    await _save_people(connection, fold)


async def _save_holds(connection: AsyncConnection, batch: _Batch) -> None:
    """Who is bound to which table."""
    before, now = batch.bound, batch.fold.bound
    gone = [player for player, table_id in before.items() if now.get(player) != table_id]
    await delete_among(connection, holds, "player_id", gone)
    at_us = batch.fold.now_us
    new = [(*bound, at_us) for bound in sorted(now.items()) if before.get(bound[0]) != bound[1]]
    await insert_rows(connection, holds, new)


async def _save_people(connection: AsyncConnection, fold: Fold) -> None:
    """Who sits where, for the lists of matches."""
    await delete_among(connection, match_players, "table_id", fold.reseated)
    await insert_rows(
        connection,
        match_players,
        [
            (player, book.opened_at_us, table_id, seat)
            for table_id in sorted(fold.reseated)
            for book in (fold.books[table_id],)
            for seat, player in enumerate(book.players)
            if player and not book.is_bot(seat)
        ],
    )


async def _save_parked(connection: AsyncConnection, batch: _Batch) -> None:
    """What is kept aside, as it differs from what was."""
    fold = batch.fold
    await delete_among(connection, parked, "table_id", batch.parked.keys() - fold.parked.keys())
    rows = [
        (table_id, now.why.value, now.waits_for, now.since_us)
        for table_id, now in sorted(fold.parked.items())
        if batch.parked.get(table_id) != now
    ]
    await upsert_rows(connection, parked, rows)
    kept = {
        (table_id, version): stored
        for table_id, some in fold.kept.items()
        for version, stored in some.items()
    }
    await run_many(connection, _DROP_KEPT, sorted(batch.kept.keys() - kept.keys()))
    new = [(*key, stored) for key, stored in sorted(kept.items()) if key not in batch.kept]
    await insert_rows(connection, unapplied, new)
