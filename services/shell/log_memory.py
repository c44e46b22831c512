"""The log in memory, with faults on demand: for tests, and for reading what the port promises.

Several ``MemoryLog`` on one ``MemoryStore`` are several processes on one NATS. Faults are a script: each
publish takes the next ``Fault``, each live copy the next ``LiveFault``; when the script is empty all goes
well.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from enum import Enum, auto

from services.game.ids import Kind, TableId, stream_name
from services.shell.log_append import Answer, Appender, Ends, Outcome
from services.shell.log_store import (
    APPEND_TIMEOUT_S,
    READ_TIMEOUT_S,
    Appended,
    Listening,
    LiveCallback,
    Lost,
    Stored,
    Tell,
    Unavailable,
    Why,
)


class Fault(Enum):
    """What happens to one publish."""

    NONE = auto()
    LOSE_REQUEST = auto()
    """It never arrives, and no answer comes."""
    LOSE_ANSWER = auto()
    """It is stored, and no answer comes."""
    LAND_LATE = auto()
    """No answer comes, and it lands only when the next publish of anybody has been handled."""
    TWICE = auto()
    """It arrives twice, and the second answer is the one that comes."""
    IN_FLIGHT = auto()
    """Refused since another write of the table is under way."""
    NOBODY = auto()
    """No server listens."""
    STORE_FULL = auto()
    """The store is at its limit."""
    STALE = auto()
    """A stale leader answers with a sequence lower than the table's last."""
    NOT_SENT = auto()
    """There is no connection."""


class LiveFault(Enum):
    """What happens to one live copy."""

    NONE = auto()
    DROP = auto()
    REPEAT = auto()
    """It comes twice."""
    DELAY = auto()
    """It comes after the next one, of any table."""


class MemoryStore:
    """The streams and their subscribers, as one NATS server keeps them."""

    def __init__(self) -> None:
        self._tables: dict[str, list[Stored]] = defaultdict(list)
        self._ends: dict[str, int] = defaultdict(int)
        self._listeners: dict[str, list[LiveCallback]] = defaultdict(list)
        self._late: list[tuple[str, int, bytes]] = []
        self._delayed: list[tuple[str, Stored]] = []
        self.live_faults: deque[LiveFault] = deque()

    def put(self, table_id: str, expected: int, payload: bytes) -> Answer:
        """One publish as the server handles it, then those that come late."""
        answer = self._put(table_id, expected, payload)
        late, self._late = self._late, []
        for publish in late:
            self._put(*publish)
        return answer

    def put_late(self, table_id: str, expected: int, payload: bytes) -> None:
        """Keep one publish until the next has been handled."""
        self._late.append((table_id, expected, payload))

    def _put(self, table_id: str, expected: int, payload: bytes) -> Answer:
        commits = self._tables[table_id]
        last = commits[-1].sequence if commits else 0
        if last != expected:
            return Answer(Outcome.WRONG_LAST, last)
        stream = stream_name(table_id)
        self._ends[stream] += 1
        commit = Stored(self._ends[stream], payload, expected)
        commits.append(commit)
        self.republish(table_id, commit)
        return Answer(Outcome.ACKNOWLEDGED, commit.sequence)

    def republish(self, table_id: str, commit: Stored) -> None:
        """Hand a live copy to whoever listens, subject to the script of faults."""
        fault = self.live_faults.popleft() if self.live_faults else LiveFault.NONE
        if fault is LiveFault.DELAY:
            self._delayed.append((table_id, commit))
            return
        if fault is not LiveFault.DROP:
            self._hand(table_id, commit)
        if fault is LiveFault.REPEAT:
            self._hand(table_id, commit)
        delayed, self._delayed = self._delayed, []
        for late in delayed:
            self._hand(*late)

    def _hand(self, table_id: str, commit: Stored) -> None:
        for callback in self._listeners[table_id]:
            asyncio.get_running_loop().call_soon(callback, commit)

    def commits(self, table_id: str) -> list[Stored]:
        """All commits of a table."""
        return list(self._tables[table_id])

    def end(self, stream: str) -> int:
        """The sequence of a stream's newest message."""
        return self._ends[stream]

    def listen(self, table_id: str, callback: LiveCallback) -> "_Listening":
        """Subscribe to a table's live copies."""
        callbacks = self._listeners[table_id]
        callbacks.append(callback)
        return _Listening(callbacks, callback)

    def lose_tail(self, table_id: str, keep: int) -> None:
        """Damage: keep a table's first commits and end its stream there, as a flipped bit on one node can."""
        commits = self._tables[table_id]
        del commits[keep:]
        self._ends[stream_name(table_id)] = commits[-1].sequence if commits else 0


class _Listening:
    def __init__(self, callbacks: list[LiveCallback], callback: LiveCallback) -> None:
        self._callbacks = callbacks
        self._callback = callback

    async def stop(self) -> None:
        if self._callback in self._callbacks:
            self._callbacks.remove(self._callback)


class _MemoryWire:
    """One process's way to the store, with its script of faults."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.faults: deque[Fault] = deque()
        self.epoch = 0
        self.connected = True

    def stream(self, table_id: str) -> str:
        return stream_name(table_id)

    async def publish(
        self, table_id: str, expected: int, payload: bytes, kind: Kind, timeout_s: float
    ) -> Answer:
        await asyncio.sleep(0)
        fault = self.faults.popleft() if self.faults else Fault.NONE
        if fault is Fault.NOT_SENT or not self.connected:
            return Answer(Outcome.NOT_SENT)
        match fault:
            case Fault.LOSE_REQUEST:
                return Answer(Outcome.NO_ANSWER)
            case Fault.LAND_LATE:
                self.store.put_late(table_id, expected, payload)
                return Answer(Outcome.NO_ANSWER)
            case Fault.LOSE_ANSWER:
                self.store.put(table_id, expected, payload)
                return Answer(Outcome.NO_ANSWER)
            case Fault.TWICE:
                self.store.put(table_id, expected, payload)
            case Fault.IN_FLIGHT | Fault.NOBODY | Fault.STORE_FULL:
                return Answer(Outcome[fault.name])
            case Fault.STALE:
                return Answer(Outcome.WRONG_LAST, max(0, expected - 1))
        return self.store.put(table_id, expected, payload)

    async def first_after(self, table_id: str, sequence: int, timeout_s: float) -> Stored | None:
        await asyncio.sleep(0)
        commits = self.store.commits(table_id)
        return next((commit for commit in commits if commit.sequence > sequence), None)

    async def ends(self, stream: str, timeout_s: float) -> Ends | None:
        await asyncio.sleep(0)
        return Ends(self.store.end(stream), 1)

    async def announce(self, table_id: str, commit: Stored, kind: Kind) -> None:
        self.store.republish(table_id, commit)


class MemoryLog:
    """A ``LogStore`` on a ``MemoryStore``.

    Attributes:
        store: what is kept; shared by every log that is given it.
        faults: the script of faults of this log's publishes.
        appender: its counts are the log's metrics.
    """

    def __init__(self, store: MemoryStore | None = None, *, freeze_after_s: float = 0.2) -> None:
        self.store = store if store is not None else MemoryStore()
        self._wire = _MemoryWire(self.store)
        self.faults = self._wire.faults
        self.appender = Appender(self._wire, freeze_after_s=freeze_after_s)

    @property
    def connected(self) -> bool:
        """Whether a publish reaches the store; setting it to True again counts as a reconnection."""
        return self._wire.connected

    @connected.setter
    def connected(self, value: bool) -> None:
        if value and not self._wire.connected:
            self._wire.epoch += 1
        self._wire.connected = value

    async def append(
        self, table_id: str, expected: int, payload: bytes, kind: Kind, *, timeout_s: float = APPEND_TIMEOUT_S
    ) -> Appended | Lost:
        """See ``LogStore.append``."""
        return await self.appender.append(TableId(table_id), expected, payload, kind, timeout_s)

    async def read(
        self,
        table_id: str,
        after: int = 0,
        *,
        min_sequence: int = 0,
        timeout_s: float = READ_TIMEOUT_S,
        tell: Tell = lambda _: None,
    ) -> list[Stored]:
        """See ``LogStore.read``."""
        commits = [commit for commit in self.store.commits(TableId(table_id)) if commit.sequence > after]
        self._check_connected()
        if max([after, *(commit.sequence for commit in commits)]) < min_sequence:
            raise Unavailable(Why.BEHIND, f"no commit at {min_sequence}")
        for commit in commits:
            tell([commit])
        return commits

    async def last(self, table_ids: Iterable[str]) -> Mapping[str, int]:
        """See ``LogStore.last``."""
        self._check_connected()
        known = {table_id: self.store.commits(TableId(table_id)) for table_id in table_ids}
        return {table_id: commits[-1].sequence for table_id, commits in known.items() if commits}

    async def listen(self, table_id: str, callback: LiveCallback) -> Listening:
        """See ``LogStore.listen``."""
        return self.store.listen(TableId(table_id), callback)

    def _check_connected(self) -> None:
        if not self._wire.connected:
            raise Unavailable(Why.NOT_CONNECTED)
