"""A new database from archives: the same as the one that lived."""

from functools import cache
from random import Random

import pytest
from sqlalchemy import text
from support.databases import new_database
from support.ledger_worlds import GRANT, PROJECTIONS, world
from support.ledgers import feed, merged, reached, whole

from services.ledger.archive import Archive
from services.ledger.restoring import restore
from services.shell.logs import Log

LOG = Log("test", "error")


def logs_of(messages):
    """The stored commits of each table."""
    logs = {}
    for message in messages:
        logs.setdefault(message.table_id, []).append(message.stored)
    return logs


def is_closed(message):
    return message.commit.events[-1].HasField("table_closed")


def what_is_left(messages):
    """What the streams have when they have dropped the closed tables but for their last commits."""
    closed = {message.table_id for message in messages if is_closed(message)}
    return [message for message in messages if message.table_id not in closed or is_closed(message)]


@cache
def lived_through():
    return world(deals=60)[:-9]


async def live(database):
    await feed(database, merged(lived_through(), Random(1)), GRANT, PROJECTIONS)


@pytest.fixture
async def database(kind, tmp_path):
    """A ledger that has read everything."""
    made = await new_database(kind, tmp_path, "to be restored", live)
    yield made
    await made.close()


@pytest.fixture
async def lived(database, tmp_path):
    """What it has read, and the archive; the last tables are open, all others archived."""
    messages = lived_through()
    archive = Archive(tmp_path / "archive")
    logs = logs_of(messages)
    for message in messages:
        if is_closed(message):
            archive.write(message.table_id, logs[message.table_id])
    assert len(archive.tables()) > 5
    return messages, archive, await whole(database)


@pytest.fixture
async def empty(kind, tmp_path):
    made = await new_database(kind, tmp_path)
    yield made
    await made.close()


def into(database):
    async def apply(entries):
        await feed(database, [entries], GRANT, PROJECTIONS)

    return apply


def same(one, other):
    """Everything but the order in which postings of different players were made."""
    for name in one:
        assert sorted(map(repr, one[name])) == sorted(map(repr, other[name])), name


@pytest.mark.parametrize("killed_after", [0, 1, 5])
async def test_a_new_database_is_the_old_one(lived, empty, monkeypatch, killed_after):
    monkeypatch.setattr("services.ledger.restoring.BATCH", 7)
    messages, archive, expected = lived
    left = what_is_left(messages)
    assert len(left) < len(messages) / 2
    batches = 0

    async def kill_after_some(entries):
        nonlocal batches
        batches += 1
        if batches > killed_after:
            raise ConnectionError
        await into(empty)(entries)

    with pytest.raises(ConnectionError):
        await restore(empty, archive, kill_after_some, LOG)
    assert 0 < await restore(empty, archive, into(empty), LOG) <= len(archive.tables())
    await feed(empty, merged(left, Random(2)), GRANT, PROJECTIONS)
    same(await whole(empty), expected)
    assert await reached(empty) == {n: max(m.sequence for m in left if m.stream == n) for n in range(4)}
    assert await restore(empty, archive, into(empty), LOG) == 0


async def test_a_ledger_that_lacks_nothing_looks_for_nothing(lived, database):
    _, archive, _ = lived
    archive.folder = None
    assert await restore(database, archive, into(database), LOG) == 0


async def test_an_archive_that_is_damaged_is_left_out(lived, empty):
    _, archive, _ = lived
    victim = archive.tables()[2]
    path = archive.folder / archive.find(victim)
    path.write_bytes(path.read_bytes()[:-1])
    await restore(empty, archive, into(empty), LOG)
    state = await whole(empty)
    assert victim not in {row[0] for row in state["matches"]}
    assert len(state["matches"]) == len(archive.tables()) - 1
    await empty.write(lambda connection: connection.execute(text("UPDATE positions SET sequence = 9")))
    assert await restore(empty, archive, into(empty), LOG) == 0
