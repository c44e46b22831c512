"""Batches in a real database: the same end whatever the order, the size of batches, and what comes again."""

from dataclasses import replace
from random import Random

import pytest
from support import ledgers
from support.databases import new_database
from support.ledger_oracle import expected, totals
from support.ledgers import GRANT, check, feed, merged, rows, shuffled, whole

from services.bench.ledger_logs import Mix, World
from services.ledger.books import Transfer, transfer_id
from services.ledger.consumer import Applier
from services.ledger.folding import Fold, entry
from services.ledger.metrics import LedgerMetrics
from services.ledger.posting import Journal, load_balances
from services.ledger.schema import parked, unapplied
from services.pb.ledger.v1.ledger_service_pb2 import Purpose
from services.shell.logs import Log

BROKE = Mix(people=9, stakes=(0, 7, 50, 90), parallel=2, options=0.6, escapes=0.15, bots=0.2)
SEEDS = range(2)


@pytest.fixture
async def plain(kind, tmp_path):
    """Another database, for the plain run."""
    made = await new_database(kind, tmp_path)
    yield made
    await made.close()


async def in_order(database, messages):
    """The plain run: one message after another as recorded."""
    await feed(database, [[one] for one in ledgers.entries_of(messages)])


@pytest.mark.parametrize("seed", SEEDS)
async def test_everybody_owns_what_the_rules_say(database, seed):
    messages = World(Random(seed), BROKE).messages(25)
    folds = await feed(database, merged(messages, Random(seed)))
    assert not any(fold.alarms for fold in folds)
    assert totals(await ledgers.balances(database)) == expected(messages, GRANT)[0]
    await check(database)
    assert await ledgers.reached(database) == {
        stream: max((m.sequence for m in messages if m.stream == stream), default=0) for stream in range(4)
    }


@pytest.mark.parametrize("seed", SEEDS)
async def test_streams_by_fits_and_starts_come_to_the_same(database, plain, seed):
    messages = World(Random(seed), replace(BROKE, hurried=0.5, parallel=4)).messages(20)
    await in_order(plain, messages)
    await feed(database, merged(messages, Random(seed)))
    assert await whole(database) == await whole(plain)
    await check(database)


@pytest.mark.parametrize("seed", SEEDS)
async def test_what_comes_again_has_no_effect(database, plain, seed):
    rng = Random(seed)
    messages = World(rng, BROKE).messages(12)
    await in_order(plain, messages)
    told = []
    for batch in merged(messages, rng):
        told += batch
        await feed(database, [batch])
        first = rng.randrange(len(told))
        again = told[first : first + rng.randint(0, 20)]
        await feed(database, [again, [*again, *again]])
    assert await whole(database) == await whole(plain)


@pytest.mark.parametrize("seed", SEEDS)
async def test_streams_far_apart_still_add_up_and_leave_nobody_waiting(database, seed):
    messages = World(Random(seed), replace(BROKE, hurried=0.3)).messages(20)
    await feed(database, shuffled(messages, Random(seed)))
    await check(database)
    everything = await whole(database)
    assert everything["parked"] == everything["unapplied"] == everything["holds"] == []
    assert len(everything["applied"]) == len(messages)


async def test_a_thousand_deals_in_large_batches(database):
    messages = World(Random(5), replace(BROKE, people=80, parallel=12)).messages(1000)
    entries = ledgers.entries_of(messages)
    await feed(database, [entries[at : at + 700] for at in range(0, len(entries), 700)])
    assert totals(await ledgers.balances(database)) == expected(messages, GRANT)[0]
    await check(database)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_gap_parks_its_table_alone_and_heals(database, plain, seed):
    rng = Random(seed)
    messages = World(rng, replace(BROKE, people=40, parallel=3, bots=0)).messages(20)
    await in_order(plain, messages)
    late = rng.choice([m for m in messages if m.commit.version > 1])
    await feed(database, merged([m for m in messages if m is not late], rng))
    after = [m for m in messages if m.table_id == late.table_id and m.commit.version > late.commit.version]
    assert await rows(database, parked, "table_id", "why") == [(late.table_id, "gap")] * bool(after)
    assert len(await rows(database, unapplied)) == len(after)
    await feed(database, [ledgers.entries_of([late])])
    assert await rows(database, parked) == []
    everything, others = await whole(database), await whole(plain)
    assert everything["unapplied"] == []
    await check(database)
    assert everything["applied"] == others["applied"]


@pytest.fixture
def applier(database):
    from prometheus_client import CollectorRegistry

    registry = CollectorRegistry()
    made = Applier(database, GRANT, LedgerMetrics(registry), Log("test", "error"))
    made.registry = registry
    return made


def alarms(applier, why):
    return applier.registry.get_sample_value("shengji_ledger_alarms_total", {"why": why})


def one_match(seed=1):
    quiet = {"options": 0, "escapes": 0, "bots": 0, "redeals": 0, "broken": 0, "seated": 1}
    return World(Random(seed), Mix(name="own", people=4, stakes=(10,), parallel=1, **quiet)).messages(3)


def first_settlement(messages):
    """The transfer that the first scored deal makes."""
    fold = Fold(GRANT)
    for made in ledgers.entries_of(messages[:2]):
        fold.apply(made, 7)
    return next(t for t in fold.journal.posted if t.purpose == Purpose.PURPOSE_SETTLEMENT)


async def forge(database, transfer):
    async def work(connection):
        journal = Journal(
            await load_balances(connection, [f"own_000{number}" for number in range(4)], ["house:fees"])
        )
        journal.post(transfer)
        await journal.save(connection)

    await database.write(work)


async def test_the_same_version_with_another_content_is_an_alarm(database, applier):
    messages = one_match()
    await applier.apply(ledgers.entries_of(messages))
    before = await whole(database)
    forged = messages[1].commit
    forged.recorded_at_us += 1
    again = entry(messages[1].stream, messages[1].sequence, messages[1].table_id, forged.SerializeToString())
    await applier.apply([again])
    assert alarms(applier, "conflict") == 1
    after = await whole(database)
    assert after["parked"] == [(messages[1].table_id, "conflict")]
    assert after["balances"] == before["balances"]


async def test_a_transfer_of_the_same_id_that_moved_something_else_parks_its_table_alone(database, applier):
    messages, others = one_match(), World(Random(9), BROKE).messages(10)
    table_id = messages[0].table_id
    identity = transfer_id(f"{table_id}/1/settlement")
    moved = (("house:fees", -5), ("available:own_0000", 5))
    await applier.apply(ledgers.entries_of(messages[:1]))
    await forge(database, Transfer(identity, Purpose.PURPOSE_SETTLEMENT, table_id, 1, 4, 77, moved))
    await applier.apply(ledgers.entries_of([*others, *messages[1:]]))
    assert alarms(applier, "conflict") == 1
    assert await rows(database, parked, "table_id", "why") == [(table_id, "conflict")]
    assert len(await rows(database, unapplied)) == len(messages) - 1
    await check(database)


async def test_a_transfer_that_is_there_with_the_same_content_is_not_made_again(database, applier, plain):
    messages = one_match()
    await feed(plain, [ledgers.entries_of(messages)])
    entries = ledgers.entries_of(messages)
    await applier.apply(entries[:1])
    await forge(database, first_settlement(messages))
    await applier.apply(entries[1:])
    assert alarms(applier, "conflict") == 0
    assert (await whole(database))["balances"] == (await whole(plain))["balances"]
    await check(database)


async def test_bytes_that_cannot_be_written_park_their_table_alone(database, applier):
    messages, others = one_match(), World(Random(9), BROKE).messages(10)
    bad = entry(messages[1].stream, messages[1].sequence, messages[1].table_id, b"\xff\xff\xff")
    nul = World(Random(3), BROKE).messages(1)[0]
    for seat in nul.commit.events[0].table_opened.seats:
        seat.player_id = "a\0b"
    stored = nul.commit.SerializeToString()
    await applier.apply([ledgers.entries_of(messages)[0], bad, entry(0, 1, nul.table_id, stored)])
    await applier.apply(ledgers.entries_of(others))
    assert alarms(applier, "poison") == 2
    assert len(await rows(database, parked)) == 2
    await check(database)
