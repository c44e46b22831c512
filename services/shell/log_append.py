"""How one commit gets into the log: the one place that decides what the server's answers mean.

The adapters publish once and report what came back; ``Appender`` asks again, reads what stands in the
commit's place, and says ``Appended``, ``Lost``, ``Unavailable`` or ``Frozen``. The rules are the table in
README.md.
"""

import asyncio
import logging
import random
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from services.game.ids import KINDS, Kind
from services.shell.log_store import PAYLOAD_MAX, Appended, Frozen, Lost, Stored, Unavailable, Why

ATTEMPT_S: Final = 1.0
"""How long one publish waits for its answer."""
FREEZE_AFTER_S: Final = 15.0
"""A log that is behind its own acknowledgements for so long has lost them; an election takes 4-9 s."""
_IN_FLIGHT_PAUSE_S: Final = (0.005, 0.020)

_log = logging.getLogger(__name__)


class Outcome(StrEnum):
    """What one publish came to; a closed set, fit for a metric's label."""

    ACKNOWLEDGED = "acknowledged"
    WRONG_LAST = "wrong_last"
    """The table's last commit has another sequence, which is given (10071)."""
    IN_FLIGHT = "in_flight"
    """Another write of the table is under way, perhaps an earlier try of this one (10164): undecided."""
    NO_ANSWER = "no_answer"
    """It may be stored now or later."""
    NOT_SENT = "not_sent"
    """There was no connection."""
    NOBODY = "nobody"
    """No server took it, or the one that did was not ready; it is not stored."""
    STORE_FULL = "store_full"
    """The store is at its limit (10023, 10077); it is not stored."""
    BEHIND = "behind"
    """After a reconnection the stream's end is lower than what it has acknowledged; nothing was sent."""
    REFUSED = "refused"
    """Refused for another reason; it is not stored."""


class Answer(NamedTuple):
    """What one publish came to, with the sequence or the server's words that came with it."""

    outcome: Outcome
    sequence: int = 0
    detail: str = ""


class Ends(NamedTuple):
    """The end of a stream."""

    last: int
    """Sequence of its newest message."""
    replicas: int


class Wire(Protocol):
    """What an adapter does for the ``Appender``."""

    @property
    def epoch(self) -> int:
        """How often the connection has come back."""

    def stream(self, table_id: str) -> str:
        """The stream that keeps the table."""

    async def publish(
        self, table_id: str, expected: int, payload: bytes, kind: Kind, timeout_s: float
    ) -> Answer:
        """Publish once with the expectation; never raises for what a server or a network does."""

    async def first_after(self, table_id: str, sequence: int, timeout_s: float) -> Stored | None:
        """The table's first commit after a sequence as its leader has it, None if it knows of none.

        Raises:
            Unavailable: no answer.
        """

    async def ends(self, stream: str, timeout_s: float) -> Ends | None:
        """Where the stream ends as its leader has it, None without an answer."""

    async def announce(self, table_id: str, commit: Stored, kind: Kind) -> None:
        """Publish the live copy of a stored commit, since the server's own may have been lost."""


@dataclass(slots=True)
class _Mark:
    """What is known of one stream."""

    high: int = 0
    """Highest sequence that it has acknowledged to this process."""
    epoch: int = 0
    """The connection's epoch in which its end was last checked."""
    checking: bool = False
    behind_since: float | None = None
    frozen: str | None = None


class Appender:
    """Appends for one process; see ``LogStore.append``.

    Attributes:
        answers: how often each outcome came, for metrics.
        settled: how many appends were settled after an unknown outcome.
    """

    def __init__(
        self, wire: Wire, *, freeze_after_s: float = FREEZE_AFTER_S, attempt_s: float = ATTEMPT_S
    ) -> None:
        self._wire = wire
        self._freeze_after_s = freeze_after_s
        self._attempt_s = attempt_s
        self._marks: dict[str, _Mark] = {}
        self._behind: dict[str, float] = {}
        self.answers: Counter[Outcome] = Counter()
        self.settled = 0

    @property
    def frozen(self) -> list[str]:
        """Streams that lost what they had acknowledged, to which this process writes no more."""
        return [stream for stream, mark in self._marks.items() if mark.frozen is not None]

    async def append(
        self, table_id: str, expected: int, payload: bytes, kind: Kind, timeout_s: float
    ) -> Appended | Lost:
        """Append one commit; see ``LogStore.append``."""
        if kind not in KINDS or expected < 0 or not 0 < len(payload) <= PAYLOAD_MAX:
            raise ValueError(f"no such append: kind {kind!r}, expected {expected}, {len(payload)} bytes")
        now = asyncio.get_running_loop().time
        give_up = now() + timeout_s
        unknown = False
        while True:
            answer = await self._attempt(table_id, expected, payload, kind, give_up - now())
            self.answers[answer.outcome] += 1
            if answer.outcome is Outcome.ACKNOWLEDGED:
                return await self._done(table_id, Stored(answer.sequence, payload, expected), kind, unknown)
            unknown = unknown or answer.outcome is Outcome.NO_ANSWER
            if _worth_reading(answer, expected, unknown):
                first = await self._first_after(table_id, expected, give_up - now())
                if first is not None and first.payload == payload:
                    return await self._done(table_id, first, kind, unknown)
                if first is not None:
                    self._note(table_id, first.sequence)
                    return Lost(first)
            pause_s = self._pause(table_id, expected, answer, unknown)
            if now() + pause_s >= give_up:
                raise given_up(answer, unknown)
            await asyncio.sleep(pause_s)

    async def _attempt(
        self, table_id: str, expected: int, payload: bytes, kind: Kind, left_s: float
    ) -> Answer:
        stream = self._wire.stream(table_id)
        mark = self._marks.get(stream)
        if mark is None:
            mark = self._marks[stream] = _Mark(epoch=self._wire.epoch)
        if mark.frozen is not None:
            raise Frozen(stream, mark.frozen)
        timeout_s = max(0.01, min(self._attempt_s, left_s))
        if mark.epoch != self._wire.epoch:
            obstacle = await self._check_end(stream, mark, timeout_s)
            if obstacle is not None:
                return obstacle
        return await self._wire.publish(table_id, expected, payload, kind, timeout_s)

    async def _check_end(self, stream: str, mark: _Mark, timeout_s: float) -> Answer | None:
        """Whether a stream still holds all that it acknowledged, asked once after each reconnection."""
        if mark.checking:
            return Answer(Outcome.NOBODY, detail=f"{stream} is being checked")
        epoch = self._wire.epoch
        mark.checking = True
        try:
            ends = await self._wire.ends(stream, timeout_s)
        finally:
            mark.checking = False
        if ends is None:
            return Answer(Outcome.NOBODY, detail=f"{stream} does not say where it ends")
        if ends.last >= mark.high:
            mark.epoch, mark.behind_since = epoch, None
            return None
        now = asyncio.get_running_loop().time()
        if mark.behind_since is None:
            mark.behind_since = now
        detail = f"ends at {ends.last}, but has acknowledged {mark.high}"
        # A single node has no stale leader that could catch up.
        if ends.replicas == 1 or now - mark.behind_since >= self._freeze_after_s:
            mark.frozen = detail
            _log.critical("log_frozen", extra={"detail": f"{stream} {detail}"})
            raise Frozen(stream, detail)
        return Answer(Outcome.BEHIND, ends.last, detail)

    async def _first_after(self, table_id: str, sequence: int, left_s: float) -> Stored | None:
        try:
            return await self._wire.first_after(table_id, sequence, max(0.01, min(self._attempt_s, left_s)))
        except Unavailable:
            return None

    async def _done(self, table_id: str, commit: Stored, kind: Kind, unknown: bool) -> Appended:
        self._note(table_id, commit.sequence)
        if unknown:
            self.settled += 1
            await self._wire.announce(table_id, commit, kind)
        return Appended(commit.sequence)

    def _note(self, table_id: str, sequence: int) -> None:
        mark = self._marks[self._wire.stream(table_id)]
        mark.high = max(mark.high, sequence)
        if self._behind:
            self._behind.pop(table_id, None)

    def _pause(self, table_id: str, expected: int, answer: Answer, unknown: bool) -> float:
        """Seconds until the next try of the same bytes.

        Raises:
            Unavailable: trying again at once is of no use.
            Frozen: the table's newest commits are gone.
        """
        match answer.outcome:
            case Outcome.IN_FLIGHT:
                return random.uniform(*_IN_FLIGHT_PAUSE_S)
            case Outcome.WRONG_LAST if answer.sequence < expected:
                self._lower(table_id, f"ends at {answer.sequence}, but had a commit at {expected}")
                return 0.1
            case Outcome.NOT_SENT if not unknown:
                raise given_up(answer, unknown)
            case Outcome.STORE_FULL | Outcome.REFUSED:
                raise given_up(answer, unknown)
            case Outcome.BEHIND:
                return 0.2
            case _:
                return 0.03

    def _lower(self, table_id: str, detail: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._behind.setdefault(table_id, now) >= self._freeze_after_s:
            _log.critical("log_frozen", extra={"table_id": table_id, "detail": detail})
            raise Frozen(table_id, detail)


def _worth_reading(answer: Answer, expected: int, unknown: bool) -> bool:
    """Whether the commit's place in the log may be taken: the read that then follows is decisive."""
    if answer.outcome is Outcome.WRONG_LAST:
        return answer.sequence > expected
    return unknown and answer.outcome in {Outcome.STORE_FULL, Outcome.REFUSED}


_WHY: Final = {
    Outcome.WRONG_LAST: (Why.BEHIND, 1.0),
    Outcome.IN_FLIGHT: (Why.BUSY, 0.1),
    Outcome.NO_ANSWER: (Why.NO_ANSWER, 0.5),
    Outcome.NOT_SENT: (Why.NOT_CONNECTED, 0.5),
    Outcome.NOBODY: (Why.NO_ANSWER, 1.0),
    Outcome.STORE_FULL: (Why.STORE_FULL, 5.0),
    Outcome.BEHIND: (Why.BEHIND, 1.0),
    Outcome.REFUSED: (Why.REFUSED, 5.0),
}


def given_up(answer: Answer, unknown: bool) -> Unavailable:
    """What a write that was last answered so comes to; ``unknown``: one of its tries may have landed."""
    why, retry_after_s = _WHY[answer.outcome]
    return Unavailable(why, answer.detail, outcome_unknown=unknown, retry_after_s=retry_after_s)
