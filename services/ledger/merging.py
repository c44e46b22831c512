"""Messages of several streams in the order of their recording, whatever the order in which they come."""

from collections import deque
from collections.abc import Iterable
from typing import Final

from services.ledger.folding import Entry

_NEVER: Final = 1 << 63
"""Later than anything was recorded: of a stream that has no more."""


class Merge:
    """A merge that goes on only while it knows the next message of every stream that has one.

    A ledger that is rebuilt so takes tables in the order in which they were played, and ends with the same
    balances as the one that lived, even for people who went from table to table without chips to spare.
    """

    def __init__(self, streams: int) -> None:
        self._queues: list[deque[Entry]] = [deque() for _ in range(streams)]
        self._ended = [False] * streams

    def add(self, stream: int, entries: Iterable[Entry], *, ended: bool) -> None:
        """Take the next messages of a stream.

        Args:
            stream: which.
            entries: in its order.
            ended: for now it has no more, so nobody need wait for it.
        """
        self._queues[stream].extend(entries)
        self._ended[stream] = ended

    def waiting(self, stream: int) -> int:
        """How many messages of a stream are here."""
        return len(self._queues[stream])

    def ended(self) -> bool:
        """Whether every stream was read to its end for now, and nothing is left here."""
        return all(self._ended) and not any(self._queues)

    def take(self, most: int) -> list[Entry]:
        """The next messages, at most so many."""
        taken: list[Entry] = []
        queues, ended = self._queues, self._ended
        if any(not queue and not over for queue, over in zip(queues, ended, strict=True)):
            return taken
        heads = [queue[0].at_us if queue else _NEVER for queue in queues]
        while len(taken) < most and (first := min(heads)) < _NEVER:
            stream = heads.index(first)
            queue = queues[stream]
            taken.append(queue.popleft())
            if queue:
                heads[stream] = queue[0].at_us
            elif ended[stream]:
                heads[stream] = _NEVER
            else:
                break
        return taken
