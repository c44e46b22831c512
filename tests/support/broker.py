"""A real nats-server for tests, and writers whose stored chains show what was lost or doubled."""

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from services.game.ids import TableId
from services.shell.broker import Broker, ensure_streams
from services.shell.log_store import Appended, Frozen, LogStore, Lost, Stored, Unavailable
from services.shell.nats_server import NatsServer


def new_table() -> TableId:
    """A table id that is nobody else's."""
    return TableId.new(int(time.time() * 1000), os.urandom(10))


def now_us() -> int:
    """The clock, in microseconds of Unix time."""
    return time.time_ns() // 1000


async def until(condition: Callable[[], bool], within_s: float = 3.0) -> float:
    """Wait until a condition holds, and say how many seconds that took.

    Raises:
        TimeoutError: it does not hold in time.
    """
    began = time.monotonic()
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - what is waited for knows nothing of this test
            await asyncio.sleep(0.002)
    return time.monotonic() - began


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
    await server.start()
    broker = await Broker.connect(server.url, "test")
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

    async def write_until(self, moment: float) -> None:
        """Append until the loop's clock shows ``moment``; ends early when the log is frozen."""
        while asyncio.get_running_loop().time() < moment:
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
