"""What every durable timer does, in memory and on a real server alike, with the back-up delay cut short."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from support.broker import eventually, new_table, now_us, until

from services.game.errors import BadId
from services.shell.broker import Broker
from services.shell.log_store import Unavailable, Why
from services.shell.timers import Done, Due, MemoryTimers, MemoryTimerStore, Rearm, Timers, Verdict
from services.shell.timers_jetstream import JetStreamTimers

BACKUP_S = 0.2
MS = 1000
Places = Callable[[], Awaitable[tuple[int, int]]]
"""How many timers are scheduled, and how many have fired and are not done."""


class Clock:
    """A clock that can be set back and forth."""

    offset_us = 0

    def now_us(self) -> int:
        return now_us() + self.offset_us


class Handled:
    """A handler that notes what fires and answers by a script, then ``Done``."""

    def __init__(self, *script: Verdict | Exception, only: str = "") -> None:
        self.script = list(script)
        self.only = only
        self.calls: list[tuple[Due, int]] = []

    async def __call__(self, due: Due) -> Verdict:
        if self.only not in ("", due.table_id):
            return Done()
        self.calls.append((due, now_us()))
        answer = self.script.pop(0) if self.script else Done()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def wait(self, count: int) -> None:
        await until(lambda: len(self.calls) >= count)

    def in_time(self) -> bool:
        """Nothing was handed over before its deadline; how long after it is for the benchmarks."""
        return all(at_us >= due.deadline_us for due, at_us in self.calls)


class TimersContract:
    """The contract; an adapter provides ``clock``, ``timers``, a second replica ``other``, and ``places``."""

    async def test_fires_once_in_time(self, timers: Timers) -> None:
        handled, table = Handled(), new_table()
        await timers.start(handled)
        due = Due(table, 3, now_us() + 300 * MS)
        await timers.arm(*_values(due))
        await handled.wait(1)
        await asyncio.sleep(0.4)
        assert [call[0] for call in handled.calls] == [due]
        assert handled.in_time()

    async def test_a_deadline_that_has_passed_fires_at_once(self, timers: Timers) -> None:
        handled, table = Handled(), new_table()
        await timers.start(handled)
        await timers.arm(table, 1, now_us() - 5_000 * MS)
        await handled.wait(1)

    async def test_an_earlier_one_replaces_a_later_one(self, timers: Timers, places: Places) -> None:
        handled, table = Handled(), new_table()
        await timers.start(handled)
        soon = now_us() + 100 * MS
        await timers.arm(table, 1, soon + 600_000 * MS)
        await timers.arm(table, 2, soon)

        async def over() -> bool:
            return await places() == (0, 0)

        await eventually(over)
        assert [call[0] for call in handled.calls] == [Due(table, 2, soon)]

    async def test_a_later_one_leaves_the_earlier_one_to_be_looked_at(
        self, timers: Timers, other: Timers
    ) -> None:
        # Again with more time if it passed before everything was armed.
        for ahead_ms in (1_000, 10_000, 60_000):
            table, soon = new_table(), now_us() + ahead_ms * MS
            await timers.arm(table, 1, soon)
            await timers.arm(table, 2, soon + 200 * MS)
            # A replica that loads the table now knows of no timer, and must not put the outstanding one off.
            await other.arm(table, 2, soon + 200 * MS)
            if now_us() < soon:
                break
        handled = Handled(Rearm(3, soon + 300 * MS), only=table)
        await timers.start(handled)
        await handled.wait(2)
        assert [call[0] for call in handled.calls] == [Due(table, 1, soon), Due(table, 3, soon + 300 * MS)]
        assert handled.in_time()

    async def test_of_two_armed_at_once_the_earlier_stays(self, timers: Timers, other: Timers) -> None:
        handled, tables = Handled(), [new_table() for _ in range(10)]
        await timers.start(handled)
        soon = now_us() + 300 * MS
        early = [timers.arm(table, 1, soon) for table in tables]
        late = [other.arm(table, 1, soon + 60_000 * MS) for table in tables]
        await asyncio.gather(*early, *late)
        await handled.wait(10)
        assert sorted(call[0].table_id for call in handled.calls) == sorted(tables)

    async def test_of_two_replicas_one_is_told(self, timers: Timers, other: Timers) -> None:
        one, two = Handled(), Handled()
        await timers.start(one)
        await other.start(two)
        tables = [new_table() for _ in range(10)]
        await asyncio.gather(*(timers.arm(table, 1, now_us() + 100 * MS) for table in tables))
        await until(lambda: len(one.calls) + len(two.calls) == 10)
        await asyncio.sleep(0.3)
        assert sorted(call[0].table_id for call in one.calls + two.calls) == sorted(tables)

    async def test_a_failed_handler_is_asked_again(self, timers: Timers) -> None:
        handled, table = Handled(Unavailable(Why.NO_ANSWER, retry_after_s=0.1)), new_table()
        await timers.start(handled)
        await timers.arm(table, 1, now_us())
        await handled.wait(2)
        assert handled.calls[0][0] == handled.calls[1][0]

    async def test_one_that_a_newer_replaced_is_dropped_unread(self, timers: Timers, places: Places) -> None:
        handled, table = Handled(), new_table()
        await timers.arm(table, 1, now_us() - 1_000 * MS)

        async def fired() -> bool:
            return await places() == (0, 1)

        await eventually(fired)
        # Nobody has taken it yet, and the table has moved on.
        later = now_us() + 600_000 * MS
        await timers.arm(table, 2, later)
        await timers.start(handled)
        await until(lambda: timers.stale == 1)
        await asyncio.sleep(0.1)
        assert handled.calls == []

    async def test_a_store_whose_clock_is_ahead_fires_early_and_is_armed_anew(
        self, timers: Timers, clock: Clock
    ) -> None:
        handled, table = Handled(), new_table()
        clock.offset_us = -1_000 * MS
        await timers.start(handled)
        deadline_us = now_us() + 300 * MS
        await timers.arm(table, 7, deadline_us)
        await handled.wait(1)
        # The handler was not asked while, by our clock, the deadline had not passed.
        due, at_us = handled.calls[0]
        assert due == Due(table, 7, deadline_us)
        assert at_us + clock.offset_us >= deadline_us
        assert len(handled.calls) == 1

    @pytest.mark.parametrize("bad", ["*", "", ">", "tbl_*"])
    async def test_no_other_text_becomes_a_subject(self, timers: Timers, bad: str) -> None:
        with pytest.raises(BadId):
            await timers.arm(bad, 1, now_us())


def _values(due: Due) -> tuple[str, int, int]:
    return due.table_id, due.version, due.deadline_us


class TestMemoryTimers(TimersContract):
    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    async def timers(self, clock: Clock) -> AsyncIterator[MemoryTimers]:
        timers = MemoryTimers(clock.now_us, BACKUP_S, MemoryTimerStore(now_us))
        yield timers
        await timers.stop()

    @pytest.fixture
    async def other(self, timers: MemoryTimers) -> AsyncIterator[MemoryTimers]:
        other = MemoryTimers(now_us, BACKUP_S, timers.store)
        yield other
        await other.stop()

    @pytest.fixture
    def places(self, timers: MemoryTimers) -> Places:
        async def places() -> tuple[int, int]:
            return len(timers.store.armed), timers.store.fired.qsize()

        return places


class TestJetStreamTimers(TimersContract):
    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    async def timers(self, broker: Broker, clock: Clock) -> AsyncIterator[JetStreamTimers]:
        timers = JetStreamTimers(broker, clock.now_us, BACKUP_S)
        yield timers
        await timers.stop()
        await broker.js.purge_stream("SJ_TIMERS")

    @pytest.fixture
    async def other(self, broker: Broker, nats_server) -> AsyncIterator[JetStreamTimers]:
        connection = await Broker.connect(nats_server.url, "other")
        other = JetStreamTimers(connection, now_us, BACKUP_S)
        yield other
        await other.stop()
        await connection.close()

    @pytest.fixture
    def places(self, broker: Broker) -> Places:
        async def places() -> tuple[int, int]:
            counts = [
                (
                    await broker.js.stream_info("SJ_TIMERS", subjects_filter=f"sj.v1.timer.{kind}.>")
                ).state.subjects
                for kind in ("arm", "due")
            ]
            return len(counts[0] or {}), len(counts[1] or {})

        return places

    async def test_the_earlier_one_stays_one_write(self, timers: JetStreamTimers, broker: Broker) -> None:
        table, deadline_us = new_table(), now_us() + 60_000 * MS
        for version in range(1, 20):
            await timers.arm(table, version, deadline_us + version)
        assert (await broker.js.stream_info("SJ_TIMERS")).state.last_seq == 1 + await _before(broker, table)

    async def test_one_acknowledged_is_forgotten_by_the_server(
        self, timers: JetStreamTimers, places: Places
    ) -> None:
        handled = Handled()
        await timers.start(handled)
        await timers.arm(new_table(), 1, now_us())
        await handled.wait(1)

        async def forgotten() -> bool:
            return await places() == (0, 0)

        await eventually(forgotten)


async def _before(broker: Broker, table: str) -> int:
    """How many messages the stream ever had before the table's first."""
    subjects = (
        await broker.js.stream_info("SJ_TIMERS", subjects_filter=f"sj.v1.timer.arm.*.{table}")
    ).state.subjects
    assert subjects
    message = await broker.js.get_msg("SJ_TIMERS", subject=next(iter(subjects)))
    return message.seq - 1
