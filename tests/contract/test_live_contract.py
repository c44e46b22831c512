"""A live feed hands over every commit once and in order, whatever the live copies do."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from support.broker import new_table, until

from services.game.errors import BadId
from services.shell.broker import Broker
from services.shell.live import LiveFeed
from services.shell.log_jetstream import JetStreamLog
from services.shell.log_memory import LiveFault, MemoryLog
from services.shell.log_store import Appended, LogStore, Stored


async def write(log: LogStore, table: str, count: int, after: int = 0) -> int:
    for number in range(count):
        answer = await log.append(
            table, after, b"%d after %d" % (number, after), "d" if number % 4 == 3 else "m"
        )
        assert isinstance(answer, Appended)
        after = answer.sequence
    return after


class Watcher:
    """Notes what is handed over."""

    def __init__(self) -> None:
        self.commits: list[Stored] = []

    def __call__(self, commit: Stored) -> None:
        self.commits.append(commit)

    async def reach(self, sequence: int) -> None:
        await until(lambda: bool(self.commits) and self.commits[-1].sequence >= sequence)


class LiveContract:
    """The contract; an adapter's class provides ``log``, ``feed`` on it, and another process's ``writer``."""

    async def test_new_commits_come_in_order(self, log: LogStore, writer: LogStore, feed: LiveFeed) -> None:
        table, watcher = new_table(), Watcher()
        await feed.watch(table, 0, watcher)
        last = await write(writer, table, 30)
        await watcher.reach(last)
        assert watcher.commits == await log.read(table)

    async def test_commits_before_the_watch_come_first(self, writer: LogStore, feed: LiveFeed) -> None:
        table, watcher = new_table(), Watcher()
        middle = await write(writer, table, 5)
        last = await write(writer, table, 5, middle)
        await feed.watch(table, middle, watcher)
        final = await write(writer, table, 3, last)
        await watcher.reach(final)
        assert watcher.commits == await writer.read(table, middle)

    async def test_an_offered_commit_is_not_handed_over_twice(self, writer: LogStore, feed: LiveFeed) -> None:
        table, watcher = new_table(), Watcher()
        await feed.watch(table, 0, watcher)
        last = 0
        for number in range(5):
            answer = await writer.append(table, last, b"%d" % number, "m")
            assert isinstance(answer, Appended)
            feed.offer(table, Stored(answer.sequence, b"%d" % number, last))
            last = answer.sequence
        await watcher.reach(last)
        await asyncio.sleep(0.05)
        assert [commit.payload for commit in watcher.commits] == [b"0", b"1", b"2", b"3", b"4"]

    async def test_nothing_comes_after_unwatch(self, writer: LogStore, feed: LiveFeed) -> None:
        table, watcher = new_table(), Watcher()
        await feed.watch(table, 0, watcher)
        last = await write(writer, table, 2)
        await watcher.reach(last)
        await feed.unwatch(table)
        await feed.unwatch(table)
        await write(writer, table, 2, last)
        await asyncio.sleep(0.1)
        assert len(watcher.commits) == 2
        again = Watcher()
        await feed.watch(table, last, again)
        await asyncio.sleep(0.1)
        assert len(again.commits) == 2

    async def test_a_table_is_watched_once(self, feed: LiveFeed) -> None:
        table = new_table()
        await feed.watch(table, 0, Watcher())
        with pytest.raises(ValueError, match="watched already"):
            await feed.watch(table, 0, Watcher())
        with pytest.raises(BadId):
            await feed.watch("*", 0, Watcher())


class TestMemoryFeed(LiveContract):
    @pytest.fixture
    def log(self) -> MemoryLog:
        return MemoryLog()

    @pytest.fixture
    def writer(self, log: MemoryLog) -> MemoryLog:
        return MemoryLog(log.store)

    @pytest.fixture
    async def feed(self, log: MemoryLog) -> AsyncIterator[LiveFeed]:
        feed = LiveFeed(log, poll_s=0.1)
        await feed.start()
        yield feed
        await feed.stop()

    @pytest.mark.parametrize("fault", [LiveFault.DROP, LiveFault.REPEAT, LiveFault.DELAY])
    @pytest.mark.parametrize("at", [0, 3, 7])
    async def test_the_next_copy_shows_that_one_went_astray(
        self, log: MemoryLog, writer: MemoryLog, fault: LiveFault, at: int
    ) -> None:
        feed, table, watcher = LiveFeed(log, poll_s=60), new_table(), Watcher()
        await feed.watch(table, 0, watcher)
        await asyncio.sleep(0)
        log.store.live_faults.extend([LiveFault.NONE] * at + [fault] * 2)
        last = await write(writer, table, 10)
        await watcher.reach(last)
        assert watcher.commits == log.store.commits(table)

    async def test_the_newest_copy_lost_is_found_by_the_poll(
        self, log: MemoryLog, writer: MemoryLog, feed: LiveFeed
    ) -> None:
        table, watcher = new_table(), Watcher()
        await feed.watch(table, 0, watcher)
        log.store.live_faults.append(LiveFault.DROP)
        last = await write(writer, table, 1)
        await watcher.reach(last)
        assert feed.polled == 1

    async def test_a_commit_of_the_other_kind_lost_in_between_is_a_gap(
        self, log: MemoryLog, writer: MemoryLog, feed: LiveFeed
    ) -> None:
        table, watcher = new_table(), Watcher()
        first = await write(writer, table, 1)
        await feed.watch(table, 0, watcher)
        await watcher.reach(first)
        log.store.live_faults.append(LiveFault.DROP)
        second = await writer.append(table, first, b"d", "d")
        assert isinstance(second, Appended)
        third = await writer.append(table, second.sequence, b"m", "m")
        assert isinstance(third, Appended)
        await watcher.reach(third.sequence)
        assert [commit.payload for commit in watcher.commits] == [b"0 after 0", b"d", b"m"]

    async def test_a_log_out_of_reach_is_asked_again(self, log: MemoryLog, writer: MemoryLog) -> None:
        feed = LiveFeed(log, poll_s=0.05)
        await feed.start()
        table, watcher = new_table(), Watcher()
        await feed.watch(table, 0, watcher)
        log.store.live_faults.append(LiveFault.DROP)
        log.connected = False
        last = await write(writer, table, 1)
        await asyncio.sleep(0.2)
        assert watcher.commits == []
        log.connected = True
        await watcher.reach(last)
        await feed.stop()


class TestJetStreamFeed(LiveContract):
    @pytest.fixture
    def log(self, broker: Broker) -> JetStreamLog:
        return JetStreamLog(broker)

    @pytest.fixture
    async def writer(self, nats_server) -> AsyncIterator[JetStreamLog]:
        connection = await Broker.connect(nats_server.url, "writer")
        yield JetStreamLog(connection)
        await connection.close()

    @pytest.fixture
    async def feed(self, log: JetStreamLog, broker: Broker) -> AsyncIterator[LiveFeed]:
        feed = LiveFeed(log)
        broker.on_reconnect(feed.poke)
        await feed.start()
        yield feed
        await feed.stop()

    async def test_what_was_written_while_the_connection_was_away_comes_after_it(
        self, log: JetStreamLog, writer: JetStreamLog, broker: Broker
    ) -> None:
        feed = LiveFeed(log, poll_s=1000)
        broker.on_reconnect(feed.poke)
        await feed.start()
        table, watcher = new_table(), Watcher()
        await feed.watch(table, 0, watcher)
        first = await write(writer, table, 2)
        await watcher.reach(first)
        await broker.client.force_reconnect()
        last = await write(writer, table, 3, first)
        await watcher.reach(last)
        assert watcher.commits == await writer.read(table)
        await feed.stop()
