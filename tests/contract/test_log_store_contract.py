"""What every log store does, in memory and on a real server alike."""

import asyncio
from contextlib import aclosing

import pytest
from support.broker import Writer, check_chain, new_table, until

from services.game.errors import BadId
from services.shell.broker import Broker
from services.shell.log_jetstream import JetStreamLog
from services.shell.log_memory import MemoryLog, MemoryStore
from services.shell.log_store import PAYLOAD_MAX, Appended, LogStore, Lost, Stored, pages

WRITTEN = 400
"""Commits of a race: twenty a table."""


class LogStoreContract:
    """The contract; an adapter's class provides ``log`` and ``other``, two processes' logs on one store."""

    async def fill(self, log: LogStore, table_id: str, count: int) -> list[int]:
        sequences = [0]
        for number in range(count):
            kind = "d" if number % 3 == 2 else "m"
            answer = await log.append(table_id, sequences[-1], b"commit %d" % number, kind)
            assert isinstance(answer, Appended)
            sequences.append(answer.sequence)
        return sequences[1:]

    async def test_what_is_appended_is_read_in_order(self, log: LogStore) -> None:
        table = new_table()
        sequences = await self.fill(log, table, 7)
        assert sequences == sorted(set(sequences))
        commits = await log.read(table)
        assert [commit.sequence for commit in commits] == sequences
        assert [commit.payload for commit in commits] == [b"commit %d" % number for number in range(7)]
        assert [commit.previous for commit in commits] == [0, *sequences[:-1]]

    async def test_two_tables_do_not_see_each_other(self, log: LogStore) -> None:
        one, two = new_table(), new_table()
        await self.fill(log, one, 2)
        await self.fill(log, two, 3)
        assert len(await log.read(one)) == 2
        assert len(await log.read(two)) == 3

    async def test_both_kinds_share_one_expectation(self, log: LogStore) -> None:
        table = new_table()
        (first,) = await self.fill(log, table, 1)
        second = await log.append(table, first, b"d", "d")
        assert isinstance(second, Appended)
        # The newest message of kind m is still the first, and expecting it must not do.
        lost = await log.append(table, first, b"m", "m")
        assert lost == Lost(Stored(second.sequence, b"d", first))
        assert isinstance(await log.append(table, second.sequence, b"m", "m"), Appended)

    async def test_lost_names_the_first_commit_after_the_expectation(self, log: LogStore) -> None:
        table = new_table()
        sequences = await self.fill(log, table, 4)
        answer = await log.append(table, sequences[0], b"late", "m")
        assert answer == Lost(Stored(sequences[1], b"commit 1", sequences[0]))
        assert len(await log.read(table)) == 4

    async def test_a_table_cannot_be_founded_twice(self, log: LogStore) -> None:
        table = new_table()
        sequences = await self.fill(log, table, 2)
        assert await log.append(table, 0, b"another", "d") == Lost(Stored(sequences[0], b"commit 0", 0))

    async def test_the_same_bytes_again_are_the_same_commit(self, log: LogStore, other: LogStore) -> None:
        table = new_table()
        sequences = await self.fill(log, table, 3)
        for store in (log, other):
            assert await store.append(table, sequences[0], b"commit 1", "m") == Appended(sequences[1])
        assert len(await log.read(table)) == 3

    async def test_reading_begins_after_a_sequence(self, log: LogStore) -> None:
        table = new_table()
        sequences = await self.fill(log, table, 5)
        commits = await log.read(table, sequences[2])
        assert [commit.sequence for commit in commits] == sequences[3:]
        assert await log.read(table, sequences[-1]) == []
        assert len(await log.read(table, min_sequence=sequences[-1])) == 5

    async def test_a_read_tells_what_it_finds_as_it_comes(self, log: LogStore) -> None:
        table = new_table()
        sequences = await self.fill(log, table, 7)
        told: list[Stored] = []
        assert await log.read(table, sequences[1], tell=told.extend) == told
        assert [commit.sequence for commit in told] == sequences[2:]

    async def test_pages_are_what_is_read(self, log: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("services.shell.log_jetstream.BATCH", 3)
        table = new_table()
        await self.fill(log, table, 8)
        found = [page async for page in pages(log, table)]
        assert [commit for page in found for commit in page] == await log.read(table)
        assert len(found) > 2
        assert [page async for page in pages(log, new_table())] == []
        with pytest.raises(BadId):
            await anext(pages(log, "*"))

    async def test_whoever_leaves_pages_early_ends_the_read(self, log: LogStore) -> None:
        table = new_table()
        await self.fill(log, table, 4)
        before = asyncio.all_tasks()
        async with aclosing(pages(log, table)) as coming:
            async for page in coming:
                assert page
                break
        assert asyncio.all_tasks() <= before

    async def test_an_unknown_table_is_empty(self, log: LogStore) -> None:
        table = new_table()
        assert await log.read(table) == []
        assert await log.last([table]) == {}

    async def test_last_gives_the_newest_of_either_kind(self, log: LogStore) -> None:
        tables = [new_table() for _ in range(9)]
        newest = {}
        for count, table in enumerate(tables[1:], start=1):
            newest[table] = (await self.fill(log, table, count))[-1]
        assert await log.last(tables) == newest
        assert await log.last([]) == {}

    @pytest.mark.parametrize(
        "bad", ["*", "tbl_*", ">", "", "tbl_a.b", "x" * 30, "TBL_01m8nb652se0y8be6zxh4s2y3g"]
    )
    async def test_no_other_text_becomes_a_subject(self, log: LogStore, bad: str) -> None:
        table = new_table()
        await self.fill(log, table, 1)
        with pytest.raises(BadId):
            await log.append(bad, 0, b"x", "m")
        with pytest.raises(BadId):
            await log.read(bad)
        with pytest.raises(BadId):
            await log.last([table, bad])
        with pytest.raises(BadId):
            await log.listen(bad, lambda commit: None)
        assert len(await log.read(table)) == 1

    @pytest.mark.parametrize(
        ("expected", "data", "kind"),
        [(-1, b"x", "m"), (0, b"", "m"), (0, b"x" * (PAYLOAD_MAX + 1), "m"), (0, b"x", "x"), (0, b"x", "*")],
    )
    async def test_what_cannot_be_appended_is_an_error(
        self, log: LogStore, expected: int, data: bytes, kind: str
    ) -> None:
        table = new_table()
        with pytest.raises(ValueError, match="no such append"):
            await log.append(table, expected, data, kind)  # type: ignore[arg-type]
        assert await log.read(table) == []

    async def test_the_largest_commit_comes_back_whole(self, log: LogStore) -> None:
        table = new_table()
        data = bytes(range(256)) * (PAYLOAD_MAX // 256)
        await log.append(table, 0, data, "m")
        assert [commit.payload for commit in await log.read(table)] == [data]

    async def test_live_copies_carry_what_came_before(self, log: LogStore, other: LogStore) -> None:
        table, heard = new_table(), []
        listening = await log.listen(table, heard.append)
        assert await log.read(table) == []  # an answer on the same connection: the server knows who listens
        sequences = await self.fill(other, table, 4)
        await until(lambda: len(heard) == 4)
        assert heard == await log.read(table)
        assert [commit.previous for commit in heard] == [0, *sequences[:-1]]
        await listening.stop()
        await listening.stop()
        await other.append(table, sequences[-1], b"unheard", "m")
        await asyncio.sleep(0.05)
        assert len(heard) == 4

    async def test_of_two_racing_writers_exactly_one_wins_each_time(
        self, log: LogStore, other: LogStore
    ) -> None:
        tables = [new_table() for _ in range(20)]
        writers = {table: [Writer("a", log, table), Writer("b", other, table)] for table in tables}
        over = asyncio.Event()
        writing = [
            asyncio.create_task(writer.write_until(over)) for pair in writers.values() for writer in pair
        ]

        def enough() -> bool:
            # Fairness is not promised at every table.
            pairs = list(writers.values())
            written = sum(len(writer.acknowledged) for pair in pairs for writer in pair)
            each = all(any(pair[which].acknowledged for pair in pairs) for which in (0, 1))
            return written >= WRITTEN and each and any(writer.lost for pair in pairs for writer in pair)

        await until(enough)
        over.set()
        await asyncio.gather(*writing)
        for table, pair in writers.items():
            commits = await log.read(table)
            check_chain(commits, pair)
            assert len(commits) == sum(len(writer.acknowledged) for writer in pair)


class TestMemoryLog(LogStoreContract):
    @pytest.fixture
    def log(self) -> MemoryLog:
        return MemoryLog()

    @pytest.fixture
    def other(self, log: MemoryLog) -> MemoryLog:
        return MemoryLog(log.store)


class TestJetStreamLog(LogStoreContract):
    @pytest.fixture
    def log(self, broker: Broker) -> JetStreamLog:
        return JetStreamLog(broker)

    @pytest.fixture
    async def other(self, broker: Broker, nats_server):
        connection = await Broker.connect(nats_server.url, "other")
        yield JetStreamLog(connection)
        await connection.close()

    async def test_a_long_table_is_read_in_several_batches(self, log: JetStreamLog, monkeypatch) -> None:
        table = new_table()
        sequences = await self.fill(log, table, 25)
        monkeypatch.setattr("services.shell.log_jetstream.BATCH", 7)
        assert [commit.sequence for commit in await log.read(table)] == sequences

    async def test_many_tables_are_asked_for_in_several_requests(
        self, log: JetStreamLog, monkeypatch
    ) -> None:
        monkeypatch.setattr("services.shell.log_jetstream.LAST_BATCH", 3)
        tables = [new_table() for _ in range(30)]
        await asyncio.gather(*(self.fill(log, table, 3) for table in tables))
        assert set(await log.last(tables)) == set(tables)


def test_the_memory_store_is_shared_by_its_logs() -> None:
    store = MemoryStore()
    assert MemoryLog(store).store is store
