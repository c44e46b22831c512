"""A real nats-server for tests, and writers whose stored chains show what was lost or doubled."""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.game.ids import TableId
from services.shell.broker import Broker, ensure_streams
from services.shell.log_store import Appended, Frozen, LogStore, Lost, Stored, Unavailable
from services.shell.nats_server import NatsServer

PATIENCE_S = 60.0
"""How long a test waits for what must come in the end: no promise, only the end of a test that hangs."""


def new_table() -> TableId:
    """A table id that is nobody else's."""
    return TableId.new(int(time.time() * 1000), os.urandom(10))


def now_us() -> int:
    """The clock, in microseconds of Unix time."""
    return time.time_ns() // 1000


async def until(condition: Callable[[], bool], within_s: float = PATIENCE_S) -> float:
    """Wait until a condition holds, and say how many seconds that took.

    Raises:
        TimeoutError: it does not hold in time.
    """
    began = time.monotonic()
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - what is waited for knows nothing of this test
            await asyncio.sleep(0.002)
    return time.monotonic() - began


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a condition holds that has to be asked for.

    Raises:
        TimeoutError: it never does.
    """
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)


def give_time(monkeypatch: pytest.MonkeyPatch, within_s: float = 30.0) -> None:
    """Let services in the test's process wait longer for NATS, which may get its turn late."""
    for module in (
        *("shell.broker", "shell.log_jetstream", "shell.snapshots", "shell.timers_jetstream"),
        *("lobby.store_jetstream", "lobby.store_following", "lobby.report_store", "lobby.table_log"),
    ):
        monkeypatch.setattr(f"services.{module}.API_TIMEOUT_S", within_s)
    monkeypatch.setattr("services.shell.broker.CONNECT_TIMEOUT_S", within_s)
    monkeypatch.setattr("services.shell.broker.PINGS_OUTSTANDING", round(within_s))
    monkeypatch.setattr("services.shell.timers.ARM_TIMEOUT_S", within_s)


def be_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything in this process that asks NATS wait longer than services do, and never think it dead.

    For tests of what the answers are, in which a machine that stands still for some seconds is no fault.
    """
    give_time(monkeypatch, PATIENCE_S)
    monkeypatch.setattr("services.shell.log_jetstream.BATCH_TIMEOUT_S", PATIENCE_S)
    monkeypatch.setattr("services.shell.timers_jetstream.ACK_WAIT_S", PATIENCE_S)


class _SkippingLoop(asyncio.SelectorEventLoop):
    """Its time passes only by being waited for, and then at once."""

    _passed_s = 0.0

    def time(self) -> float:
        return self._passed_s

    def _run_once(self) -> None:
        if not self._ready:  # type: ignore[attr-defined]
            waited_for = [timer.when() for timer in self._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
            self._passed_s = max(self._passed_s, min(waited_for, default=0.0))
        super()._run_once()  # type: ignore[misc]


def run_unhurried(work: Coroutine[object, object, None]) -> None:
    """Run what does no I/O so that none of its times is exceeded by a busy machine."""
    with asyncio.Runner(loop_factory=_SkippingLoop) as runner:
        runner.run(work)


@contextmanager
def running_server(folder: Path, **options: object) -> Iterator[NatsServer]:
    """A server with our streams for the length of a block; usable from fixtures without a loop."""
    server = NatsServer(folder, **options)  # type: ignore[arg-type]
    asyncio.run(_start(server))
    try:
        yield server
    finally:
        server.thaw()
        server.kill()


async def _start(server: NatsServer) -> None:
    await server.start(within_s=PATIENCE_S)
    broker = await Broker.connect(server.url, "test", within_s=PATIENCE_S)
    await ensure_streams(broker)
    await broker.close()


def payload(writer: str, number: int) -> bytes:
    """A commit's bytes that tell whose and which one it is."""
    return f"{writer}:{number}".encode()


class Writer:
    """Plays one process that appends to a table until told to stop, never knowing more than its log tells it.

    Attributes:
        acknowledged: (sequence, bytes) of every append that succeeded.
        lost: bytes of every append that was answered by somebody else's commit.
        unknown: bytes of every append whose outcome stayed unknown.
        refused: how often the log was not available, nothing having been written.
    """

    def __init__(self, name: str, log: LogStore, table_id: str, *, timeout_s: float = 5.0) -> None:
        self._name = name
        self._log = log
        self._table_id = table_id
        self._timeout_s = timeout_s
        self._number = 0
        self.last = 0
        self.acknowledged: list[tuple[int, bytes]] = []
        self.lost: list[bytes] = []
        self.unknown: list[bytes] = []
        self.refused = 0

    async def write(self) -> None:
        """Append one commit, and learn from the answer."""
        self._number += 1
        data = payload(self._name, self._number)
        kind = "d" if self._number % 5 == 0 else "m"
        try:
            answer = await self._log.append(self._table_id, self.last, data, kind, timeout_s=self._timeout_s)
        except Unavailable as error:
            if error.outcome_unknown:
                self.unknown.append(data)
            else:
                self.refused += 1
            await asyncio.sleep(0.05)
            await self._catch_up()
            return
        if isinstance(answer, Appended):
            self.acknowledged.append((answer.sequence, data))
            self.last = answer.sequence
        else:
            assert isinstance(answer, Lost)
            self.lost.append(data)
            self.last = answer.first.sequence
            await self._catch_up()

    async def _catch_up(self) -> None:
        try:
            commits = await self._log.read(self._table_id, self.last, timeout_s=1.0)
        except Unavailable:
            return
        if commits:
            self.last = commits[-1].sequence

    async def write_until(self, told: asyncio.Event) -> None:
        """Append until told to stop; ends early when the log is frozen."""
        while not told.is_set():
            try:
                await self.write()
            except Frozen:
                return
            # Without a pause of its own length, two writers in one loop would keep step for ever.
            await asyncio.sleep(random.uniform(0, 0.001))


def check_chain(commits: Sequence[Stored], writers: Sequence[Writer]) -> None:
    """Nothing acknowledged is missing or doubled, nothing lost is there, and each commit follows the last."""
    stored = {commit.sequence: commit.payload for commit in commits}
    before = 0
    for commit in commits:
        assert commit.previous == before, f"{commit} does not follow {before}"
        before = commit.sequence
    payloads = [commit.payload for commit in commits]
    assert len(set(payloads)) == len(payloads), "a commit is stored twice"
    for writer in writers:
        for sequence, data in writer.acknowledged:
            assert stored.get(sequence) == data, f"{data!r} was acknowledged at {sequence} and is not there"
        assert not set(writer.lost) & set(payloads), "a commit that was answered as lost is stored"
    known = {data for writer in writers for _, data in writer.acknowledged}
    unknown = {data for writer in writers for data in writer.unknown}
    assert set(payloads) <= known | unknown, "a commit is stored that nobody was told of"
