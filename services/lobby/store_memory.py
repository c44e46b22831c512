"""``Store`` in memory: for tests, with the same contract as the one on JetStream."""

import math
from collections.abc import Callable, Sequence
from itertools import count

from services.lobby.store import NOTHING, Conflict, Entry, Listener, Write, check_key, check_writes


class _Following:
    def __init__(self, followers: "list[_Following]", prefix: str, listener: Listener) -> None:
        self.prefix = prefix + "."
        self.listener = listener
        self._followers = followers

    async def stop(self) -> None:
        """See ``Following.stop``."""
        if self in self._followers:
            self._followers.remove(self)


class MemoryStore:
    """``Store`` in memory. What has a time to live ends when ``expire`` is called after that time."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        """Begin empty.

        Args:
            clock: seconds; only ``ttl_s`` and ``expire`` look at it.
        """
        self._clock = clock
        self._entries: dict[str, Entry] = {}
        self._ends: dict[str, float] = {}
        self._soonest = math.inf
        self._revisions = count(1)
        self._followers: list[_Following] = []

    async def get(self, key: str) -> Entry:
        """See ``Store.get``."""
        self.expire()
        return self._entries.get(check_key(key), NOTHING)

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        """See ``Store.commit``."""
        check_writes(writes)
        self.expire()
        if any(self._entries.get(write.key, NOTHING).revision != write.expected for write in writes):
            raise Conflict
        return [self._put(write) for write in writes]

    def _put(self, write: Write) -> int:
        revision = next(self._revisions)
        self._ends.pop(write.key, None)
        if write.ttl_s:
            self._ends[write.key] = self._clock() + write.ttl_s
            self._soonest = min(self._soonest, self._ends[write.key])
        self._entries[write.key] = Entry(write.value, revision)
        self._tell(write.key)
        return revision

    async def follow(self, prefix: str, listener: Listener) -> _Following:
        """See ``Store.follow``."""
        following = _Following(self._followers, check_key(prefix + ".x")[:-2], listener)
        self._followers.append(following)
        for key, entry in list(self._entries.items()):
            if key.startswith(following.prefix) and entry.value:
                listener(key, entry)
        return following

    def expire(self) -> None:
        """End what has outlived its time."""
        now = self._clock()
        if now < self._soonest:
            return
        for key in [key for key, end in self._ends.items() if end <= now]:
            del self._ends[key]
            self._entries[key] = Entry(b"", next(self._revisions))
            self._tell(key)
        self._soonest = min(self._ends.values(), default=math.inf)

    def _tell(self, key: str) -> None:
        for following in list(self._followers):
            if key.startswith(following.prefix):
                following.listener(key, self._entries[key])
