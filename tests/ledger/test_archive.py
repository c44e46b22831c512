"""The archive: what goes in comes out, what has changed is refused, whatever is interrupted is done again."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest
from prometheus_client import CollectorRegistry
from support.databases import new_database
from support.ledgers import feed, rows
from support.recorded import rechained, short_match

from services.game import chain
from services.game.decide import kind_of
from services.game.ids import TableId, partition
from services.ledger import archive as archive_module
from services.ledger.archive import MAGIC, Archive, ArchiveDamaged, fault_in, pack, place_of, unpack
from services.ledger.archiver import TRIES, Archiver, ArchiverMetrics, note_closed
from services.ledger.folding import entry
from services.ledger.schema import archives
from services.pb.log.v1.log_pb2 import Commit
from services.shell.log_memory import MemoryLog, MemoryStore
from services.shell.logs import Log


@cache
def match():
    """The stored commits of a closed table."""
    return tuple(short_match().stored)


@cache
def table():
    return TableId(Commit.FromString(match()[0]).table_id)


def settled(log=None):
    """What the ledger knows of the log: the hashes of its commits of kind `d`."""
    commits = map(Commit.FromString, log or match())
    hashes = map(chain.commit_hash, log or match())
    return {c.version: h for c, h in zip(commits, hashes, strict=True) if kind_of(tuple(c.events)) == "d"}


@pytest.fixture
def archive(tmp_path):
    return Archive(tmp_path / "data" / "archive")


def test_what_is_packed_is_unpacked_and_is_smaller():
    packed = pack(match())
    assert unpack(packed) == list(match())
    assert len(packed) < sum(map(len, match()))


def test_every_flipped_byte_and_every_cut_is_found():
    packed = pack(match())
    for at in [*range(60), *range(60, len(packed), 97), *range(len(packed) - 40, len(packed))]:
        for flip in (1, 128):
            changed = bytearray(packed)
            changed[at] ^= flip
            with pytest.raises(ArchiveDamaged):
                unpack(bytes(changed))
    for size in (0, 7, len(MAGIC), 40, len(packed) - 1):
        with pytest.raises(ArchiveDamaged):
            unpack(packed[:size])


def test_it_is_written_once_and_read_back(archive):
    kept = archive.write(table(), match())
    assert archive.write(table(), match()) == kept
    assert kept.place == place_of(table(), chain.commit_hash(match()[-1]))
    assert kept.commits == len(match())
    assert archive.read(kept.place) == list(match())
    assert archive.find(table()) == kept.place
    assert archive.tables() == [table()]
    assert [path.name for path in archive.folder.rglob("*") if path.is_file()] == [kept.place.split("/")[1]]


def test_nothing_is_there_before(archive):
    assert archive.tables() == []
    assert archive.find(table()) is None
    with pytest.raises(ArchiveDamaged, match="cannot be read"):
        archive.read(place_of(table(), bytes(32)))


@pytest.mark.parametrize("place", ["", "../x", "ff/tbl_x-00.sja", f"00/tbl_{'0' * 26}-{'0' * 64}.sja"])
def test_other_places_are_never_opened(archive, place):
    with pytest.raises(ArchiveDamaged):
        archive.read(place)


def test_a_whole_file_with_another_log_in_it_is_found(archive):
    kept = archive.write(table(), match())
    path = archive.folder / kept.place
    forged = rechained(match(), lambda commits: commits.pop(3), 2)
    path.write_bytes(pack(forged))
    with pytest.raises(ArchiveDamaged):
        archive.read(kept.place)
    swapped = [*match()[:5], match()[6], match()[5], *match()[7:]]
    path.write_bytes(pack(swapped))
    with pytest.raises(ArchiveDamaged, match="version 6"):
        archive.read(kept.place)


def test_what_reads_differently_than_written_is_refused(archive, monkeypatch):
    monkeypatch.setattr(archive_module, "pack", lambda commits: pack(commits[:-1]))
    with pytest.raises(ArchiveDamaged):
        archive.write(table(), match())


def test_a_write_that_is_interrupted_leaves_no_archive(archive, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        archive.write(table(), match())
    monkeypatch.undo()
    assert archive.tables() == []
    assert archive.write(table(), match()).commits == len(match())


def test_a_sound_log_has_no_fault():
    assert fault_in(table(), match(), settled()) == ""


def break_chain(log):
    commit = Commit.FromString(log[9])
    commit.recorded_at_us += 1
    return [*log[:9], commit.SerializeToString(deterministic=True), *log[10:]]


def other_decision(log):
    def change(commits):
        commits[0].events[0].Clear()
        commits[0].events[0].seat_ready.seat = 2

    return rechained(log, change, 7)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda log: log[:-1], "commits where"),
        (lambda log: [*log[:4], *log[5:]], "commits where"),
        (break_chain, "version 10"),
        (other_decision, "is not the commit that was settled"),
    ],
)
def test_a_log_that_is_not_sound_has_a_fault(spoil, said):
    assert said in fault_in(table(), spoil(list(match())), settled())


def test_a_forged_log_that_was_settled_so_is_found_all_the_same():
    forged = other_decision(list(match()))
    assert "version" in fault_in(table(), forged, settled(forged))


def test_a_table_that_is_not_closed_has_a_fault():
    assert "closing" in fault_in(table(), match()[:-1], settled(match()[:-1]) | settled_last(match()[:-1]))


def settled_last(log):
    return {len(log): chain.commit_hash(log[-1])}


# The archiver


async def stored_log(log, store=None):
    """A log store that holds this log."""
    memory = MemoryLog(store or MemoryStore())
    sequence = 0
    for stored in log:
        kind = kind_of(tuple(Commit.FromString(stored).events))
        sequence = (await memory.append(table(), sequence, stored, kind)).sequence
    return memory


def messages(log=None):
    """What the ledger's consumer reads of the log."""
    stream = partition(table()) % 4
    return [
        entry(stream, number, table(), stored)
        for number, stored in enumerate(log or match(), 1)
        if kind_of(tuple(Commit.FromString(stored).events)) == "d"
    ]


class Bench:
    """A ledger that has applied the match, its log, and an archiver."""

    def __init__(self, database, store, archive, pool):
        registry = CollectorRegistry()
        self.value = registry.get_sample_value
        self.database = database
        self.archive = archive
        metrics = ArchiverMetrics(registry)
        self.archiver = Archiver(database, store, archive, metrics, Log("test", "error"))
        self.archiver._pool = pool

    async def row(self):
        return (await rows(self.database, archives))[0]


@pytest.fixture
async def bench(tmp_path, archive):
    """A ledger that has applied a match whose log is in memory; a thread verifies unless told otherwise."""
    made = []

    async def make(log=None, applied=None, *, process=False):
        database = await new_database("sqlite", tmp_path)
        pool = None if process else ThreadPoolExecutor(1)
        bench = Bench(database, await stored_log(log or match()), archive, pool)
        made.append(bench)
        await feed(database, [messages(applied)], projections=[note_closed])
        return bench

    yield make
    for one in made:
        await one.archiver.stop()
        await one.database.close()


async def test_a_closed_table_is_archived_once(bench):
    one = await bench()
    assert (await one.row())[5] == 0
    await one.archiver.archive_all()
    row = await one.row()
    assert one.archive.read(row[4]) == list(match())
    assert row[1] == chain.commit_hash(match()[-1])
    assert (row[2], row[6]) == (len(match()), "")
    await one.archiver.archive_all()
    assert await one.row() == row
    assert one.value("shengji_ledger_archived_tables_total") == 1
    assert one.value("shengji_ledger_unarchived_tables") == 0


async def test_a_table_that_is_still_open_is_not_noted(bench):
    one = await bench(match()[:-1], match()[:-1])
    assert await rows(one.database, archives) == []


async def test_a_log_that_does_not_verify_is_refused_for_good(bench):
    one = await bench(break_chain(list(match())))
    await one.archiver.archive_all()
    row = await one.row()
    assert row[6].startswith("version 10")
    assert row[5] > 0
    assert one.archive.tables() == []
    assert one.value("shengji_ledger_refused_logs_total") == 1


async def test_a_log_that_lacks_commits_is_looked_at_several_times(bench):
    one = await bench(match()[:-2])
    for _ in range(TRIES - 1):
        await one.archiver.archive_all()
        assert (await one.row())[5] == 0
    await one.archiver.archive_all()
    assert "commits where" in (await one.row())[6]


async def test_an_archive_that_is_there_does_for_a_log_that_is_gone(bench, archive):
    archive.write(table(), match())
    one = await bench()
    one.archiver._store = MemoryLog(MemoryStore())
    await one.archiver.archive_all()
    assert (await one.row())[6] == ""


async def test_a_killed_process_of_the_pool_is_replaced(bench, archive):
    one = await bench(process=True)
    await one.archiver._verify(table(), match(), settled())
    for process in list(one.archiver._pool._processes.values()):
        process.kill()
        process.join()
    await one.archiver.archive_all()
    await one.archiver.archive_all()
    assert (await one.row())[6] == ""
    assert archive.tables() == [table()]


async def test_it_runs_by_itself_where_it_may(bench, monkeypatch):
    one = await bench()
    monkeypatch.setattr("services.ledger.archiver.PAUSE_S", 0.01)
    may = False
    one.archiver._may_run = lambda: may
    one.archiver.start()
    await asyncio.sleep(0.1)
    assert (await one.row())[5] == 0
    may = True
    async with asyncio.timeout(120):
        while not (await one.row())[5]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
