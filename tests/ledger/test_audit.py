"""The audit: nothing to find in a ledger that is right, and whatever is changed is found and named."""

from functools import cache
from random import Random

import pytest
from sqlalchemy import text
from support.databases import new_database
from support.ledger_worlds import GRANT, MIX, PROJECTIONS, LogsInMemory, world
from support.ledgers import feed, merged, rows, shuffled
from support.recorded import short_match

from services.bench.ledger_logs import Message, Mix
from services.game.ids import TableId, partition
from services.ledger.archive import Archive
from services.ledger.audit import audit
from services.ledger.folding import entry
from services.ledger.holding import Holding
from services.ledger.schema import accounts, archives, deals, matches, postings, transfers
from services.ledger.snapshot import load
from services.pb.log.v1.log_pb2 import Commit
from services.shell.errors import RefusedError


async def audited(database, logs, folder):
    return await audit(await database.read(load), logs, Archive(folder))


@cache
def lived_through():
    return tuple(world())


@pytest.fixture
async def lived(kind, tmp_path):
    """A ledger that has seen a world, and its logs; nothing is to be found."""
    logs = LogsInMemory(list(lived_through()))

    async def live(database):
        await feed(database, merged(logs.messages, Random(1)), GRANT, PROJECTIONS)
        report = await audited(database, logs, tmp_path)
        assert report.differences == []
        assert (report.commits, report.unreached) == (len(logs.messages), 0)
        assert report.transfers > 100

    database = await new_database(kind, tmp_path, "lived", live)
    yield Lived(database, logs.messages)
    await database.close()


class Lived(LogsInMemory):
    """The logs, and the ledger's database."""

    def __init__(self, database, messages):
        super().__init__(messages)
        self.database = database


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_the_order_that_the_ledger_met(database, tmp_path, seed):
    broke = Mix(
        people=9,
        stakes=(0, 7, 50, 90),
        parallel=4,
        options=0.6,
        escapes=0.15,
        bots=0.2,
        hurried=seed % 2 * 0.3,
    )
    logs = LogsInMemory(world(seed, broke))
    order = merged if seed % 3 else shuffled
    await feed(database, order(logs.messages, Random(seed)), GRANT, PROJECTIONS)
    assert (await audited(database, logs, tmp_path)).differences == []


async def test_what_is_not_reached_yet_is_no_difference(database, tmp_path):
    logs = LogsInMemory(world())
    batches = list(merged(logs.messages, Random(2)))
    for at in range(0, len(batches), len(batches) // 7 + 1):
        await feed(database, batches[at : at + len(batches) // 7 + 1], GRANT, PROJECTIONS)
        assert (await audited(database, logs, tmp_path)).differences == []


async def test_stakes_held_in_advance_and_expired_ones_are_no_difference(database, tmp_path):
    logs = LogsInMemory(world(4))
    holding, rng = Holding(database, 300), Random(5)
    batches = list(merged(logs.messages, Random(2)))
    people = [f"ply_{number:04}" for number in range(MIX.people)]
    coming = [m for m in logs.messages if m.commit.events[0].HasField("table_opened")]
    for batch in batches:
        for _ in range(rng.randint(0, 2)):
            opened = rng.choice(coming)
            seats = [seat.player_id for seat in opened.commit.events[0].table_opened.seats]
            found = [player for player in seats if player.startswith("ply")] or rng.sample(people, 2)
            table_id = opened.table_id if rng.random() < 0.7 else TableId.new(rng.randrange(9), bytes(10))
            try:
                await holding.hold(table_id, opened.commit.events[0].table_opened.stake or 3, found)
                if rng.random() < 0.3:
                    await holding.release(table_id)
            except RefusedError:
                continue
        if rng.random() < 0.3:
            await holding.expire(2**62)
        await feed(database, [batch], 300, PROJECTIONS)
    purposes = [row[4] for row in await rows(database, transfers) if row[1] == 2]
    assert 0 in purposes, "some holds should have been made in advance"
    assert (await audited(database, logs, tmp_path)).differences == []


async def change(database, statement, **values):
    """Change what nobody may change."""

    async def work(connection):
        if connection.dialect.name == "sqlite":
            for table in ("transfers", "postings"):
                for verb in ("update", "delete"):
                    await connection.execute(text(f"DROP TRIGGER IF EXISTS {table}_no_{verb}"))
        else:
            for table in ("transfers", "postings"):
                await connection.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER USER"))
        done = await connection.execute(text(statement), values)
        assert done.rowcount == 1, "the change should hit one row"

    await database.write(work)


async def test_a_posting_that_was_changed_is_named(lived, tmp_path):
    settlements = {row[0]: row for row in await rows(lived.database, transfers) if row[1] == 4}
    posting = next(row for row in await rows(lived.database, postings) if row[1] in settlements)
    await change(lived.database, "UPDATE postings SET amount = amount + 1 WHERE seq = :seq", seq=posting[0])
    found = (await audited(lived.database, lived, tmp_path)).differences
    assert found[0].what == "balance after a posting"
    transfer = settlements[posting[1]]
    named = next(one for one in found if one.what == "settlement")
    assert named[1:] == (transfer[2], transfer[3], posting[2], posting[3], posting[3] + 1)


async def test_chips_moved_consistently_to_a_wrong_winner_are_found(lived, tmp_path):
    """The books add up in themselves; only the logs say who won."""
    settlements = {row[0]: row for row in await rows(lived.database, transfers) if row[1] == 4}
    moved = await rows(lived.database, postings)
    row = next(row for row in reversed(moved) if row[1] in settlements and row[2].startswith("available"))
    here = [one for one in moved if one[2] == row[2] and one[0] >= row[0]]
    friend = [one[2] for one in moved if one[2].startswith("available") and one[2] != row[2]]
    account = max(friend, key=friend.count)
    there = [one for one in moved if one[2] == account and one[0] > row[0]]
    for one, by in [(one, -1) for one in here] + [(one, 1) for one in there]:
        statement = "UPDATE postings SET balance_after = balance_after + :by WHERE seq = :seq"
        await change(lived.database, statement, by=by, seq=one[0])
    for name, by in ((row[2], -1), (account, 1)):
        statement = "UPDATE accounts SET balance = balance + :by WHERE name = :name"
        await change(lived.database, statement, by=by, name=name)
    await change(lived.database, "UPDATE postings SET amount = amount - 1 WHERE seq = :seq", seq=row[0])
    other = next((one for one in moved if one[1] == row[1] and one[2] == account), None)
    if other is None:
        last = await rows(lived.database, postings)
        assert last
    found = (await audited(lived.database, lived, tmp_path)).differences
    assert any(one.what == "settlement" and one.table_id == settlements[row[1]][2] for one in found)


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE accounts SET balance = balance + 1 WHERE name = 'available:ply_0003'", "balance"),
        ("UPDATE accounts SET balance = balance - 1 WHERE name = 'house:grants'", "balance"),
        (
            "UPDATE stats SET won = won + 1 WHERE player_id = 'ply_0001' AND preset = 'classic-2d'",
            "statistics",
        ),
        ("UPDATE positions SET sequence = sequence WHERE stream = 1", None),
    ],
)
async def test_a_value_that_was_changed_is_named(lived, tmp_path, statement, what):
    await change(lived.database, statement)
    found = (await audited(lived.database, lived, tmp_path)).differences
    assert found[0].what.startswith(what) if what else not found, found


ROWS = [
    (deals, "UPDATE deals SET won_1 = won_1 + 1 WHERE table_id = :a AND deal = :b", "deal's result"),
    (deals, "DELETE FROM deals WHERE table_id = :a AND deal = :b", "deal's result"),
    (matches, "UPDATE matches SET ended_at_us = 5 WHERE table_id = :a AND :b = :b", "match's columns"),
    (
        matches,
        "UPDATE matches SET book = replace(book, 'classic', 'clastic') WHERE table_id = :a AND :b = :b",
        None,
    ),
    (matches, "DELETE FROM matches WHERE table_id = :a AND :b = :b", "commit 1"),
]


@pytest.mark.parametrize(("table", "statement", "what"), ROWS)
async def test_a_row_that_was_changed_is_named(lived, tmp_path, table, statement, what):
    chosen = (await rows(lived.database, table))[2]
    if what is None:
        found = next(row for row in await rows(lived.database, matches) if "classic" in row[1])
        chosen, what = found, "match's preset"
    second = chosen[1] if table is deals else "x"
    statement = statement.replace("AND :b = :b", "") if table is matches else statement
    values = {"a": chosen[0]} | ({"b": second} if table is deals else {})
    await change(lived.database, statement, **values)
    found = (await audited(lived.database, lived, tmp_path)).differences
    assert found[0].what == what
    assert found[0].table_id == chosen[0]


@pytest.mark.parametrize("table", ["rating_history", "standings"])
async def test_a_rating_that_was_changed_is_named(lived, tmp_path, table):
    await change(
        lived.database,
        f"UPDATE {table} SET mu = mu + 0.000001 WHERE mu = (SELECT max(mu) FROM {table}) AND matches ="
        f" (SELECT max(matches) FROM {table} b WHERE mu = (SELECT max(mu) FROM {table}))",
    )
    found = (await audited(lived.database, lived, tmp_path)).differences
    assert found[0].what.startswith("rating of" if table == "rating_history" else "standing in")


async def test_a_transfer_that_is_gone_is_named(lived, tmp_path):
    chosen = next(row for row in await rows(lived.database, transfers) if row[1] == 4)
    await change(lived.database, "DELETE FROM transfers WHERE id = :id", id=chosen[0])
    found = (await audited(lived.database, lived, tmp_path)).differences
    assert found[0].what == "posting"
    assert any(one.what == "settlement" and one.table_id == chosen[2] for one in found)


async def test_a_purpose_that_was_changed_is_named(lived, tmp_path):
    chosen = next(row for row in await rows(lived.database, transfers) if row[1] == 4)
    await change(lived.database, "UPDATE transfers SET purpose = 8 WHERE id = :id", id=chosen[0])
    found = (await audited(lived.database, lived, tmp_path)).differences
    assert (found[0].what, found[0].table_id, found[0].deal) == ("settlement", chosen[2], chosen[3])


async def test_every_commit_that_was_changed_is_named(lived, tmp_path):
    for at in range(0, len(lived.messages), 17):
        message = lived.messages[at]
        changed = Commit.FromString(message.stored)
        changed.recorded_at_us += 1
        logs = LogsInMemory(list(lived.messages))
        logs.messages[at] = message._replace(stored=changed.SerializeToString(deterministic=True))
        found = (await audited(lived.database, logs, tmp_path)).differences
        assert found[0].table_id == message.table_id
        assert found[0].what in {"log", f"commit {changed.version}"}


async def test_a_commit_that_was_dropped_or_never_applied_is_named(lived, tmp_path):
    victim = max(lived.messages, key=lambda message: message.commit.version)
    cut = LogsInMemory([message for message in lived.messages if message is not victim])
    found = (await audited(lived.database, cut, tmp_path)).differences
    assert (found[0].what, found[0].table_id) == (f"commit {victim.commit.version}", victim.table_id)
    gone = LogsInMemory([message for message in lived.messages if message.table_id != victim.table_id])
    found = (await audited(lived.database, gone, tmp_path)).differences
    assert (found[0].what, found[0].table_id) == ("log", victim.table_id)


async def test_a_table_that_the_ledger_passed_over_is_named(database, tmp_path):
    messages = world()
    victim = messages[7].table_id
    kept = [message for message in messages if message.table_id != victim]
    await feed(database, merged(kept, Random(1)), GRANT, PROJECTIONS)
    found = (await audited(database, LogsInMemory(messages), tmp_path)).differences
    assert (found[0].table_id, found[0].found) == (victim, "left out")


async def test_an_archive_that_was_changed_is_named(database, tmp_path):
    log = short_match().stored
    table_id = Commit.FromString(log[0]).table_id
    versions = [
        m for m in (entry(partition(table_id) % 4, n, table_id, s) for n, s in enumerate(log, 1)) if is_d(m)
    ]
    await feed(database, [versions], GRANT, PROJECTIONS)
    kept = Archive(tmp_path).write(table_id, log)
    await database.write(
        lambda connection: connection.execute(
            archives.update().values(place=kept.place, head=kept.head, commits=kept.commits, archived_at_us=1)
        )
    )
    logs = LogsInMemory([Message(0, n, table_id, stored, None) for n, stored in enumerate(log, 1)])
    assert (await audited(database, logs, tmp_path)).differences == []
    path = tmp_path / kept.place
    whole = path.read_bytes()
    for at in range(0, len(whole), 997):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
        found = (await audited(database, logs, tmp_path)).differences
        assert (found[0].what, found[0].table_id) == ("archive", table_id)
    path.unlink()
    assert (await audited(database, logs, tmp_path)).differences[0].what == "archive"


def is_d(message):
    from services.game.decide import kind_of

    return kind_of(tuple(message.commit.events)) == "d"


async def test_a_table_that_is_parked_for_good_is_named(database, tmp_path):
    logs = LogsInMemory(world())
    victim = max(logs.messages, key=lambda message: message.commit.version).commit
    kept = [
        m for m in logs.messages if (m.table_id, m.commit.version) != (victim.table_id, victim.version - 1)
    ]
    await feed(database, merged(kept, Random(1)), GRANT, PROJECTIONS)
    found = (await audited(database, logs, tmp_path)).differences
    assert (found[0].what, found[0].table_id, found[0].found) == ("table", victim.table_id, "parked: gap")


async def test_money_from_nowhere_is_named(lived, tmp_path):
    """A transfer that no log knows, though the books add up with it."""

    async def work(connection):
        wanted = accounts.select().with_only_columns(accounts.c.name, accounts.c.balance)
        balance = {row.name: row.balance for row in await connection.execute(wanted)}
        await connection.execute(
            transfers.insert().values(
                id=b"n" * 16, purpose=4, table_id=lived.messages[0].table_id, deal=9, version=99, at_us=5
            )
        )
        for account, amount in (("available:ply_0001", 5), ("house:fees", -5)):
            after = balance[account] + amount
            await connection.execute(
                postings.insert().values(
                    transfer_id=b"n" * 16,
                    account=account,
                    amount=amount,
                    balance_after=after,
                    player_id=None if amount < 0 else "ply_0001",
                    at_us=5,
                )
            )
            await connection.execute(
                accounts.update().where(accounts.c.name == account).values(balance=after)
            )

    await lived.database.write(work)
    found = (await audited(lived.database, lived, tmp_path)).differences
    assert found[0] == ("settlement", lived.messages[0].table_id, 9, "available:ply_0001", 0, 5)
