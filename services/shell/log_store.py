"""The log of a table as the services see it: append by compare-and-set, read, last sequence, live copies.

A *sequence* is the place of a commit in its stream. It rises along a table but has gaps, it never enters a
commit, and it means nothing after a stream was rebuilt. A table's own gap-free version is inside the commit
and is no business of the log store, which sees bytes.

What the server's answers mean, and what is done about each, is the table in README.md in this folder.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from services.game.ids import Kind

PAYLOAD_MAX: Final = 256 * 1024
"""Largest commit in bytes; the largest that a game can write is about 16 kB."""
APPEND_TIMEOUT_S: Final = 5.0
"""How long an append looks for an answer when the caller does not say."""
READ_TIMEOUT_S: Final = 5.0
"""How long a read tries when the caller does not say."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One commit as it stands in the log.

    Attributes:
        sequence: its place in the stream.
        payload: the stored bytes, exactly.
        previous: the place of the table's commit before it, 0 for the first.
    """

    sequence: int
    payload: bytes
    previous: int


@dataclass(frozen=True, slots=True)
class Appended:
    """The commit is durable and stands at this sequence."""

    sequence: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Another commit stands where this one should have gone, so this one is not stored and never will be.

    Attributes:
        first: the first commit after the expectation: the one that was lost to. There may be more after it.
    """

    first: Stored


class Why(StrEnum):
    """Why the log could not serve; a closed set, fit for a metric's label."""

    NOT_CONNECTED = "not_connected"
    """No connection to NATS; nothing was sent."""
    NO_ANSWER = "no_answer"
    """No server answered in time."""
    STORE_FULL = "store_full"
    """The store is at its limit; it serves again once room is made."""
    BUSY = "busy"
    """Too many at once: a write of the table in flight for the whole time, or too many cold loads waiting."""
    BEHIND = "behind"
    """The log answers as if acknowledged commits were missing: a stale leader, or lost data."""
    REFUSED = "refused"
    """The server refused for a reason that is not foreseen; a fault of configuration."""


class Unavailable(Exception):
    """The log cannot serve this now; the same call may succeed later.

    Attributes:
        why: the reason.
        outcome_unknown: the commit may be stored, or may still land. Only an append of the same bytes with
            the same expectation can settle it; False means that it is not stored and will not be.
        retry_after_s: a hint for the next try, in seconds.
    """

    def __init__(
        self, why: Why, detail: str = "", *, outcome_unknown: bool = False, retry_after_s: float = 0.5
    ) -> None:
        super().__init__(f"{why}: {detail}" if detail else why.value)
        self.why = why
        self.detail = detail
        self.outcome_unknown = outcome_unknown
        self.retry_after_s = retry_after_s


class Frozen(Exception):
    """Acknowledged commits are gone from the log, so nothing may be written on top: a matter for an operator.

    Attributes:
        what: the table id or the stream that is frozen.
        detail: the sequence that was known and the one that the server gave.
    """

    def __init__(self, what: str, detail: str) -> None:
        super().__init__(f"{what}: {detail}")
        self.what = what
        self.detail = detail


LiveCallback = Callable[[Stored], None]
"""Takes one live copy; must not block."""
Tell = Callable[[list[Stored]], None]
"""Takes some commits of a read that goes on; must not block."""


class Listening(Protocol):
    """A standing subscription to one table's live copies."""

    async def stop(self) -> None:
        """End it; harmless when it has ended."""


class LogStore(Protocol):
    """Append-only logs, one a table. Every method raises ``BadId`` for a text that is no table id."""

    async def append(
        self, table_id: str, expected: int, payload: bytes, kind: Kind, *, timeout_s: float = APPEND_TIMEOUT_S
    ) -> Appended | Lost:
        """Add one commit after the one at sequence ``expected``, durably, or learn which commit came first.

        The same bytes are published with the same expectation until an answer comes; calling again after an
        unknown outcome with the same bytes is right at any later time. A caller that is cancelled knows
        nothing of the outcome, as with ``outcome_unknown``. At most one append of a table may be under way in
        a process.

        Args:
            table_id: the table.
            expected: the sequence of the table's last commit, 0 for none, whatever its kind.
            payload: the commit, 1 to ``PAYLOAD_MAX`` bytes.
            kind: which of the table's two subjects it goes to.
            timeout_s: how long to look for an answer.

        Raises:
            Unavailable: no answer in time, or the log cannot take it now.
            Frozen: acknowledged commits of the table or its stream are missing.
            ValueError: an argument out of range.
        """

    async def read(
        self,
        table_id: str,
        after: int = 0,
        *,
        min_sequence: int = 0,
        timeout_s: float = READ_TIMEOUT_S,
        tell: Tell = lambda _: None,
    ) -> list[Stored]:
        """All commits of the table after a sequence, in order.

        Args:
            table_id: the table.
            after: only commits with a greater sequence.
            min_sequence: the commit at this sequence is known to be there; ask until it is in the answer.
                Without it the answer may lack the newest commits, and an empty one proves nothing about the
                table.
            timeout_s: how long to try.
            tell: is given the same commits in the same order, some at a time as they come.

        Raises:
            Unavailable: not readable in time, or too many reads are waiting (``busy``).
        """

    async def last(self, table_ids: Iterable[str]) -> Mapping[str, int]:
        """The sequence of the newest commit of each of the tables that have any; may be a moment old.

        Raises:
            Unavailable: not readable in time.
        """

    async def listen(self, table_id: str, callback: LiveCallback) -> Listening:
        """Have every new commit's live copy handed over as it comes: possibly none, twice or out of order.

        ``LiveFeed`` makes an ordered delivery without gaps of it; nothing else should call this.

        Raises:
            Unavailable: no connection.
        """


async def pages(store: LogStore, table_id: str) -> AsyncGenerator[list[Stored]]:
    """All commits of a table as ``LogStore.read`` finds them, some at a time.

    The next are on their way while the caller works on some, so a long log is folded while it is read.

    Raises:
        Unavailable: as ``read``, perhaps after some were given.
    """
    coming: asyncio.Queue[list[Stored] | None] = asyncio.Queue()
    reading = asyncio.create_task(store.read(table_id, tell=coming.put_nowait))
    reading.add_done_callback(lambda _: coming.put_nowait(None))
    try:
        while (commits := await coming.get()) is not None:
            yield commits
        await reading
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
