"""What an append makes of every answer, on the log in memory with faults by script."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.broker import Writer, check_chain, new_table, run_unhurried

from services.game.ids import stream_name
from services.shell.log_append import Outcome
from services.shell.log_memory import Fault, MemoryLog, MemoryStore
from services.shell.log_store import Appended, Frozen, Lost, Stored, Unavailable, Why


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog(freeze_after_s=60)


async def begun(log: MemoryLog, table: str) -> int:
    answer = await log.append(table, 0, b"first", "m")
    assert isinstance(answer, Appended)
    return answer.sequence


@pytest.mark.parametrize("fault", [Fault.LOSE_REQUEST, Fault.LOSE_ANSWER, Fault.LAND_LATE, Fault.TWICE])
@pytest.mark.parametrize("times", [1, 2, 5])
async def test_a_lost_answer_is_asked_for_again_and_the_commit_stands_once(
    log: MemoryLog, fault: Fault, times: int
) -> None:
    table = new_table()
    first = await begun(log, table)
    log.faults.extend([fault] * times)
    answer = await log.append(table, first, b"second", "m")
    assert isinstance(answer, Appended)
    assert log.store.commits(table)[1:] == [Stored(answer.sequence, b"second", first)]


@pytest.mark.parametrize("fault", [Fault.IN_FLIGHT, Fault.NOBODY, Fault.STALE])
async def test_an_answer_that_decides_nothing_is_not_taken_for_a_loss(log: MemoryLog, fault: Fault) -> None:
    table = new_table()
    first = await begun(log, table)
    log.faults.extend([fault] * 2)
    assert isinstance(await log.append(table, first, b"second", "m"), Appended)


async def test_a_lost_answer_with_others_on_top_is_still_ones_own(log: MemoryLog) -> None:
    table, other = new_table(), MemoryLog(log.store)
    first = await begun(log, table)
    log.faults.append(Fault.LOSE_ANSWER)
    own = asyncio.create_task(log.append(table, first, b"own", "m"))
    while len(log.store.commits(table)) < 2:  # noqa: ASYNC110 - the very moment counts
        await asyncio.sleep(0)
    last = log.store.commits(table)[-1].sequence
    for number in range(3):
        answer = await other.append(table, last, b"on top %d" % number, "m")
        assert isinstance(answer, Appended)
        last = answer.sequence
    assert await own == Appended(log.store.commits(table)[1].sequence)


async def test_who_settles_an_unknown_outcome_announces_the_commit(log: MemoryLog) -> None:
    table, heard = new_table(), []
    first = await begun(log, table)
    await log.listen(table, heard.append)
    log.faults.append(Fault.LOSE_ANSWER)
    await log.append(table, first, b"second", "m")
    await asyncio.sleep(0)
    commit = log.store.commits(table)[1]
    assert heard == [commit, commit]
    assert log.appender.settled == 1


async def test_without_a_connection_nothing_is_sent(log: MemoryLog) -> None:
    table = new_table()
    log.connected = False
    with pytest.raises(Unavailable) as caught:
        await log.append(table, 0, b"x", "m")
    assert (caught.value.why, caught.value.outcome_unknown) == (Why.NOT_CONNECTED, False)
    log.connected = True
    assert log.store.commits(table) == []


async def test_what_stays_unanswered_is_unknown_and_never_refused(log: MemoryLog) -> None:
    table = new_table()
    log.faults.extend([Fault.LOSE_REQUEST] * 1000)
    with pytest.raises(Unavailable) as caught:
        await log.append(table, 0, b"x", "m", timeout_s=0.2)
    assert (caught.value.why, caught.value.outcome_unknown) == (Why.NO_ANSWER, True)
    # It may still land; then the same bytes again find it.
    log.faults.clear()
    log.store.put(table, 0, b"x")
    assert await log.append(table, 0, b"x", "m") == Appended(log.store.commits(table)[0].sequence)


async def test_after_an_unknown_outcome_the_connection_is_waited_for(log: MemoryLog) -> None:
    table = new_table()
    log.faults.extend([Fault.LOSE_ANSWER, Fault.NOT_SENT, Fault.NOT_SENT])
    assert await log.append(table, 0, b"x", "m") == Appended(log.store.commits(table)[0].sequence)


def test_a_connection_lost_after_an_unknown_outcome_leaves_it_unknown(log: MemoryLog) -> None:
    log.faults.append(Fault.LOSE_ANSWER)
    log.faults.extend([Fault.NOT_SENT] * 1000)

    async def lose() -> None:
        with pytest.raises(Unavailable) as caught:
            await log.append(new_table(), 0, b"x", "m")
        assert (caught.value.why, caught.value.outcome_unknown) == (Why.NOT_CONNECTED, True)

    run_unhurried(lose())


async def test_a_full_store_is_said_at_once(log: MemoryLog) -> None:
    table = new_table()
    log.faults.append(Fault.STORE_FULL)
    with pytest.raises(Unavailable) as caught:
        await log.append(table, 0, b"x", "m")
    assert (caught.value.why, caught.value.outcome_unknown) == (Why.STORE_FULL, False)
    assert isinstance(await log.append(table, 0, b"x", "m"), Appended)


async def test_a_full_store_after_a_lost_answer_does_not_hide_the_commit(log: MemoryLog) -> None:
    table = new_table()
    log.faults.extend([Fault.LOSE_ANSWER, Fault.STORE_FULL])
    assert isinstance(await log.append(table, 0, b"x", "m"), Appended)
    log.faults.extend([Fault.LOSE_REQUEST, Fault.STORE_FULL])
    with pytest.raises(Unavailable) as caught:
        await log.append(table, log.store.commits(table)[0].sequence, b"y", "m")
    assert (caught.value.why, caught.value.outcome_unknown) == (Why.STORE_FULL, True)


def test_a_table_that_stays_behind_is_frozen_and_thaws_when_the_log_comes_right() -> None:
    run_unhurried(stay_behind(MemoryLog(freeze_after_s=15), new_table()))


async def stay_behind(log: MemoryLog, table: str) -> None:
    first = await begun(log, table)
    log.faults.extend([Fault.STALE] * 1000)
    with pytest.raises(Unavailable) as caught:
        await log.append(table, first, b"x", "m", timeout_s=10)
    assert (caught.value.why, caught.value.outcome_unknown) == (Why.BEHIND, False)
    with pytest.raises(Frozen) as frozen:
        await log.append(table, first, b"x", "m", timeout_s=20)
    assert frozen.value.what == table
    log.faults.clear()
    assert isinstance(await log.append(table, first, b"x", "m"), Appended)
    log.faults.append(Fault.STALE)
    assert isinstance(await log.append(table, log.store.commits(table)[-1].sequence, b"y", "m"), Appended), (
        "the time of the first trouble must not count for the next"
    )


async def test_a_stream_that_lost_its_end_takes_no_writes_after_the_reconnection(log: MemoryLog) -> None:
    table = new_table()
    first = await begun(log, table)
    second = await log.append(table, first, b"second", "m")
    assert isinstance(second, Appended)
    log.store.lose_tail(table, 1)
    log.connected = False
    log.connected = True
    with pytest.raises(Frozen) as caught:
        await log.append(table, first, b"on top of the damage", "m")
    assert log.appender.frozen == [caught.value.what] == [stream_name(table)]
    assert [commit.payload for commit in log.store.commits(table)] == [b"first"]


async def test_a_reconnection_to_a_whole_stream_goes_on(log: MemoryLog) -> None:
    table = new_table()
    first = await begun(log, table)
    log.connected = False
    log.connected = True
    assert isinstance(await log.append(table, first, b"second", "m"), Appended)


async def test_outcomes_are_counted(log: MemoryLog) -> None:
    table = new_table()
    log.faults.extend([Fault.IN_FLIGHT, Fault.LOSE_ANSWER])
    await log.append(table, 0, b"x", "m")
    assert isinstance(await log.append(table, 0, b"y", "m"), Lost)
    counts = {Outcome.IN_FLIGHT: 1, Outcome.NO_ANSWER: 1, Outcome.WRONG_LAST: 2}
    assert log.appender.answers == counts


@settings(max_examples=30, deadline=None)
@given(
    scripts=st.tuples(*[st.lists(st.sampled_from(list(Fault)), max_size=25) for _ in range(2)]),
    writes=st.integers(3, 12),
)
def test_whatever_goes_wrong_the_chain_holds(scripts: tuple[list[Fault], list[Fault]], writes: int) -> None:
    async def play() -> None:
        store, table = MemoryStore(), new_table()
        logs = [MemoryLog(store, freeze_after_s=60) for _ in scripts]
        for log, script in zip(logs, scripts, strict=True):
            log.faults.extend(script)
        writers = [Writer(name, log, table, timeout_s=0.3) for name, log in zip("ab", logs, strict=True)]

        async def write(writer: Writer) -> None:
            for _ in range(writes):
                await writer.write()

        await asyncio.gather(*(write(writer) for writer in writers))
        check_chain(store.commits(table), writers)

    run_unhurried(play())
