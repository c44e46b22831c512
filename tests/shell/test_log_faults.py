"""The log on a real server that is killed, frozen, cut off or full while two processes write."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.broker import PATIENCE_S, Writer, check_chain, eventually, new_table, until
from support.proxy import Proxy

from services.game.ids import stream_name
from services.shell.broker import Broker, ensure_streams
from services.shell.live import LiveFeed
from services.shell.log_append import Answer, Outcome
from services.shell.log_jetstream import COLD_LOADS, COLD_LOADS_WAITING, JetStreamLog, outcome_of
from services.shell.log_store import APPEND_TIMEOUT_S, Appended, Frozen, Lost, Stored, Unavailable, Why
from services.shell.nats_server import NatsServer

TABLES = 20
KILLS = 2
MOST_KILLS = 10
patient = pytest.mark.usefixtures("patient")


@pytest.fixture
def log(broker: Broker) -> JetStreamLog:
    return JetStreamLog(broker)


@pytest.fixture
async def other(nats_server: NatsServer) -> AsyncIterator[JetStreamLog]:
    connection = await Broker.connect(nats_server.url, "other")
    yield JetStreamLog(connection)
    await connection.close()


class Race:
    """Two processes that write to the same tables."""

    def __init__(self, one: JetStreamLog, two: JetStreamLog, *, timeout_s: float = 5.0) -> None:
        self.tables = [new_table() for _ in range(TABLES)]
        self.pairs = {
            table: [
                Writer("a", one, table, timeout_s=timeout_s),
                Writer("b", two, table, timeout_s=timeout_s),
            ]
            for table in self.tables
        }
        self._tasks: list[asyncio.Task[None]] = []
        self._over = asyncio.Event()

    @property
    def writers(self) -> list[Writer]:
        return [writer for pair in self.pairs.values() for writer in pair]

    @property
    def acknowledged(self) -> int:
        return sum(len(writer.acknowledged) for writer in self.writers)

    @property
    def unknown(self) -> bool:
        """Whether anybody was left without an answer for good."""
        return any(writer.unknown for writer in self.writers)

    def start(self) -> None:
        self._tasks = [asyncio.create_task(writer.write_until(self._over)) for writer in self.writers]

    async def more(self, count: int) -> None:
        """Wait until so many more appends have succeeded."""
        before = self.acknowledged
        await until(lambda: self.acknowledged >= before + count)

    async def finish(self, log: JetStreamLog) -> None:
        """Stop them and check every stored chain against what the writers were told."""
        self._over.set()
        await asyncio.gather(*self._tasks)
        for table, pair in self.pairs.items():
            check_chain(await log.read(table), pair)


async def test_a_killed_server_loses_and_doubles_nothing(
    nats_server: NatsServer, log: JetStreamLog, other: JetStreamLog
) -> None:
    race = Race(log, other)
    race.start()
    # A kill is of use when somebody is left without an answer, as nearly every one does.
    kills, met = 0, False
    while kills < KILLS or not (met or kills == MOST_KILLS):
        await race.more(10 * TABLES)
        nats_server.kill()
        kills += 1
        await asyncio.sleep(0.3)
        await nats_server.start(within_s=PATIENCE_S)
        await race.more(2 * TABLES)
        met = race.unknown or log.appender.settled + other.appender.settled > 0
    await race.finish(log)
    assert met


async def test_a_frozen_server_is_waited_for_and_late_writes_stand_once(
    nats_server: NatsServer, broker: Broker, log: JetStreamLog, other: JetStreamLog
) -> None:
    race = Race(log, other, timeout_s=1.5)
    race.start()
    await race.more(10 * TABLES)
    nats_server.freeze()
    # In a cluster the client would go to another server now.
    await until(lambda: race.unknown and not broker.connected)
    nats_server.thaw()
    await race.more(10 * TABLES)
    await race.finish(log)


@patient
async def test_a_swallowed_acknowledgement_is_found_in_the_log(
    nats_server: NatsServer, log: JetStreamLog
) -> None:
    async with Proxy(nats_server.port) as proxy:
        connection = await Broker.connect(proxy.url, "proxied")
        proxied, table, heard = JetStreamLog(connection), new_table(), []
        first = await proxied.append(table, 0, b"first", "m")
        assert isinstance(first, Appended)
        feed = LiveFeed(log, poll_s=60)
        await feed.watch(table, 0, heard.append)
        proxy.swallow = True
        pending = asyncio.create_task(
            proxied.append(table, first.sequence, b"second", "m", timeout_s=PATIENCE_S)
        )

        async def landed() -> bool:
            return len(await log.read(table)) == 2

        await eventually(landed)
        assert not pending.done()
        _, stored = await log.read(table)
        await log.append(table, stored.sequence, b"on top", "d")
        proxy.swallow = False
        assert await pending == Appended(stored.sequence)
        assert [commit.payload for commit in await log.read(table)] == [b"first", b"second", b"on top"]
        await until(lambda: len(heard) >= 3)
        await asyncio.sleep(0.1)
        assert [commit.payload for commit in heard] == [b"first", b"second", b"on top"]
        await feed.stop()
        await connection.close()


@patient
async def test_acknowledgements_that_never_come_leave_the_outcome_unknown(nats_server: NatsServer) -> None:
    async with Proxy(nats_server.port) as proxy:
        connection = await Broker.connect(proxy.url, "proxied")
        proxied, table = JetStreamLog(connection), new_table()
        proxy.swallow = True
        began = time.monotonic()
        with pytest.raises(Unavailable) as caught:
            await proxied.append(table, 0, b"x", "m", timeout_s=0.5)
        assert caught.value.outcome_unknown
        assert time.monotonic() - began < APPEND_TIMEOUT_S - 1, "the time when none is given"
        proxy.swallow = False
        assert isinstance(await proxied.append(table, 0, b"x", "m"), Appended)
        await connection.close()


@patient
async def test_bytes_that_arrive_late_do_not_stand_twice(nats_server: NatsServer, log: JetStreamLog) -> None:
    async with Proxy(nats_server.port) as proxy:
        connection = await Broker.connect(proxy.url, "proxied")
        proxied, table = JetStreamLog(connection), new_table()
        first = await proxied.append(table, 0, b"first", "m")
        assert isinstance(first, Appended)
        proxy.hold = True
        with pytest.raises(Unavailable) as caught:
            await proxied.append(table, first.sequence, b"late", "m", timeout_s=0.3)
        assert caught.value.outcome_unknown
        assert len(await log.read(table)) == 1
        proxy.hold = False
        answer = await proxied.append(table, first.sequence, b"late", "m")
        assert isinstance(answer, Appended)
        await asyncio.sleep(0.1)
        assert [commit.payload for commit in await log.read(table)] == [b"first", b"late"]
        await connection.close()


@patient
async def test_a_cut_connection_is_retried_at_once(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Proxy(nats_server.port) as proxy:
        connection = await Broker.connect(proxy.url, "proxied")
        proxied, table = JetStreamLog(connection), new_table()
        await proxied.append(table, 0, b"first", "m")
        # One attempt would wait longer for its answer than this test does.
        monkeypatch.setattr(proxied.appender, "_attempt_s", 3 * PATIENCE_S)
        proxy.swallow = True
        pending = asyncio.create_task(
            proxied.append(new_table(), 0, b"second", "m", timeout_s=4 * PATIENCE_S)
        )
        await asyncio.sleep(0.05)
        proxy.swallow = False
        proxy.cut()
        assert isinstance(await asyncio.wait_for(pending, PATIENCE_S), Appended)
        await connection.close()


@patient
async def test_without_a_server_an_append_is_refused_at_once(nats_server: NatsServer) -> None:
    async with Proxy(nats_server.port) as proxy:
        connection = await Broker.connect(proxy.url, "proxied")
        proxied, table = JetStreamLog(connection), new_table()
        proxy.refuse = True
        proxy.cut()
        await until(lambda: not connection.connected)
        began = time.monotonic()
        with pytest.raises(Unavailable) as caught:
            await proxied.append(table, 0, b"x", "m", timeout_s=PATIENCE_S)
        assert (caught.value.why, caught.value.outcome_unknown) == (Why.NOT_CONNECTED, False)
        with pytest.raises(Unavailable) as caught:
            await proxied.read(table, timeout_s=PATIENCE_S)
        assert caught.value.why is Why.NOT_CONNECTED
        assert time.monotonic() - began < PATIENCE_S / 2
        proxy.refuse = False
        await until(lambda: connection.epoch == 1)
        assert await proxied.read(table) == [], "what was refused must not be sent later"
        await connection.close()


@patient
async def test_a_full_store_says_so_and_recovers_by_itself(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, store_max=3_000_000)
    await server.start(within_s=PATIENCE_S)
    connection = await Broker.connect(server.url, "full", within_s=PATIENCE_S)
    await ensure_streams(connection)
    log, table = JetStreamLog(connection), new_table()
    data, last = b"x" * 200_000, 0

    async def fill() -> None:
        nonlocal last
        for number in range(30):
            answer = await log.append(table, last, data + b"%d" % number, "m")
            assert isinstance(answer, Appended)
            last = answer.sequence

    with pytest.raises(Unavailable) as caught:
        await fill()
    assert (caught.value.why, caught.value.outcome_unknown) == (Why.STORE_FULL, False)
    assert (await log.read(table))[-1].sequence == last
    await connection.js.purge_stream(stream_name(table), subject="sj.v1.table.>", keep=1)
    assert isinstance(await log.append(table, last, data, "m"), Appended)
    await connection.close()
    await server.stop()


def _lose_blocks(folder: Path) -> None:
    """Damage a stopped store: what is behind a flipped bit is cut off at the next start."""
    for file in [*folder.rglob("*.blk"), *folder.rglob("index.db")]:
        file.unlink()


@patient
async def test_a_stream_that_lost_its_end_is_frozen(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    await server.start(within_s=PATIENCE_S)
    connection = await Broker.connect(server.url, "damage", within_s=PATIENCE_S)
    await ensure_streams(connection)
    log, table = JetStreamLog(connection), new_table()
    first = await log.append(table, 0, b"first", "m")
    assert isinstance(first, Appended)
    server.kill()
    _lose_blocks(tmp_path)
    await server.start(within_s=PATIENCE_S)
    await until(lambda: connection.epoch == 1)
    with pytest.raises(Frozen) as caught:
        await log.append(table, first.sequence, b"second", "m")
    assert caught.value.what == stream_name(table)
    with pytest.raises(Frozen):
        await log.append(table, 0, b"founded again", "m")
    assert await log.read(table) == []
    await connection.close()
    await server.stop()


@pytest.mark.parametrize(
    ("code", "error", "words", "outcome"),
    [
        (400, 10071, "wrong last sequence: 42", Answer(Outcome.WRONG_LAST, 42)),
        (400, 10164, "wrong last sequence", Outcome.IN_FLIGHT),
        (429, 10163, "try later", Outcome.IN_FLIGHT),
        (429, 10167, "too many requests", Outcome.NOBODY),
        (503, 10008, "JetStream system temporarily unavailable", Outcome.NOBODY),
        (503, 1, "anything else of a server that is not ready", Outcome.NOBODY),
        (503, 10023, "insufficient resources", Outcome.STORE_FULL),
        (503, 10077, "maximum bytes exceeded", Outcome.STORE_FULL),
        (400, 10060, "expected stream does not match", Outcome.REFUSED),
    ],
)
def test_every_code_has_its_meaning(code: int, error: int, words: str, outcome: Answer | Outcome) -> None:
    answer = outcome_of({"code": code, "err_code": error, "description": words})
    assert outcome in (answer, answer.outcome)


@patient
async def test_racing_writers_on_one_connection_wait_for_each_other(log: JetStreamLog) -> None:
    table = new_table()
    appends = [log.append(table, 0, b"%d" % number, "m", timeout_s=PATIENCE_S) for number in range(8)]
    answers = await asyncio.gather(*appends)
    assert sorted(type(answer).__name__ for answer in answers) == ["Appended"] + ["Lost"] * 7
    (stored,) = await log.read(table)
    assert all(answer in (Appended(stored.sequence), Lost(stored)) for answer in answers)


@patient
async def test_reads_beyond_the_queue_are_told_to_come_back(log: JetStreamLog) -> None:
    table = new_table()
    await log.append(table, 0, b"x", "m")
    reads = [log.read(table, timeout_s=PATIENCE_S) for _ in range(COLD_LOADS + COLD_LOADS_WAITING + 3)]
    answers = await asyncio.gather(*reads, return_exceptions=True)
    busy = [answer for answer in answers if isinstance(answer, Unavailable)]
    assert [error.why for error in busy] == [Why.BUSY] * 3
    assert busy[0].retry_after_s > 0
    assert sum(isinstance(answer, list) for answer in answers) == COLD_LOADS + COLD_LOADS_WAITING
    assert log.reads_waiting == 0


@patient
async def test_a_commit_known_to_be_there_is_waited_for(log: JetStreamLog, other: JetStreamLog) -> None:
    table = new_table()
    first = await log.append(table, 0, b"first", "m")
    assert isinstance(first, Appended)
    reading = asyncio.create_task(log.read(table, min_sequence=first.sequence + 1, timeout_s=PATIENCE_S))
    await asyncio.sleep(0.05)
    assert not reading.done()
    second = await other.append(table, first.sequence, b"second", "m")
    assert isinstance(second, Appended)
    assert (await reading)[-1] == Stored(second.sequence, b"second", first.sequence)
    with pytest.raises(Unavailable):
        await log.read(table, min_sequence=second.sequence + 1, timeout_s=0.2)
