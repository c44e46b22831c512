"""A ledger in a database: fed with messages in any order, looked at as a whole."""

from collections import Counter
from random import Random

from sqlalchemy import select

from services.game.ids import STREAMS
from services.ledger.applying import apply_batch
from services.ledger.folding import entry
from services.ledger.merging import Merge
from services.ledger.schema import (
    accounts,
    applied,
    deals,
    holds,
    match_players,
    matches,
    parked,
    positions,
    postings,
    stats,
    transfers,
    unapplied,
)

GRANT = 1000


def entries_of(messages):
    return [entry(*message[:4]) for message in messages]


def by_stream(messages):
    """The messages' entries, one list a stream."""
    streams = [[] for _ in range(STREAMS)]
    for made in entries_of(messages):
        streams[made.stream].append(made)
    return streams


def merged(messages, rng):
    """Batches as a reader gives them whose streams deliver by fits and starts: merged, of random sizes."""
    streams = by_stream(messages)
    merge, places = Merge(STREAMS), [0] * STREAMS
    while any(place < len(stream) for place, stream in zip(places, streams, strict=True)):
        number = rng.randrange(STREAMS)
        some = rng.randint(0, 30)
        new = streams[number][places[number] : places[number] + some]
        places[number] += len(new)
        merge.add(number, new, ended=places[number] == len(streams[number]))
        while batch := merge.take(rng.choice([1, 2, 7, 40])):
            yield batch
    for number in range(STREAMS):
        merge.add(number, [], ended=True)
    while batch := merge.take(rng.choice([1, 2, 7, 40])):
        yield batch


def shuffled(messages, rng: Random):
    """Batches in an order that no reader gives: streams one against the other, each in its own order."""
    streams = [stream for stream in by_stream(messages) if stream]
    while streams:
        stream = rng.choice(streams)
        yield [stream.pop(0) for _ in range(min(len(stream), rng.randint(1, 9)))]
        streams = [stream for stream in streams if stream]


async def feed(database, batches, grant=GRANT, projections=()):
    """Apply batches one after another; the folds."""
    return [
        await database.write(
            lambda connection, batch=batch: apply_batch(
                connection, batch, grant=grant, now_us=7, projections=projections
            )
        )
        for batch in batches
    ]


async def rows(database, table, *columns):
    """All rows of a table in order, only these columns."""

    async def work(connection):
        chosen = [table.c[name] for name in columns] or list(table.c)
        return [tuple(row) for row in await connection.execute(select(*chosen).order_by(*chosen))]

    return await database.read(work)


async def balances(database):
    return dict(await rows(database, accounts, "name", "balance"))


async def whole(database):
    """Everything that follows from the logs, whatever the way it came about."""
    moved = await rows(database, postings, "transfer_id", "account", "amount", "player_id", "at_us")
    return {
        "balances": {name: amount for name, amount in (await balances(database)).items() if amount},
        "transfers": await rows(database, transfers),
        "postings": moved,
        "matches": await rows(database, matches),
        "people": await rows(database, match_players),
        "deals": await rows(database, deals),
        "stats": await rows(database, stats),
        "applied": await rows(database, applied),
        "holds": await rows(database, holds, "player_id", "table_id"),
        "parked": await rows(database, parked, "table_id", "why"),
        "unapplied": await rows(database, unapplied),
    }


async def check(database):
    """That the books are in order: sums, signs, running balances, no orphans."""
    moved = await rows(database, postings)
    known = {row[0] for row in await rows(database, transfers, "id")}
    sums, running = Counter(), Counter()
    for _, transfer_id, account, amount, after, player_id, _ in moved:
        assert transfer_id in known
        sums[transfer_id] += amount
        running[account] += amount
        assert running[account] == after
        assert after >= 0 or player_id is None
    assert set(sums.values()) <= {0}
    assert known == set(sums)
    have = await balances(database)
    assert {name: amount for name, amount in running.items() if amount} == {
        name: amount for name, amount in have.items() if amount
    }
    assert sum(have.values()) == 0


async def reached(database):
    return dict(await rows(database, positions, "stream", "sequence"))
