"""What a replica knows of the records of one kind, kept up to date by the store: for lists, streams, passes.

It may be a moment behind. Whoever changes something decides on the store itself (``records.atomically``).
"""

import logging
from collections.abc import Callable, Iterable
from itertools import count
from typing import Final, Generic, TypeVar

from google.protobuf.message import DecodeError, Message

from services.lobby.store import Entry, Following, Store
from services.shell.logs import fault_of

DROPPED_KEPT: Final = 4096
"""Dropped records whose revision is still known, so that nothing older brings one back."""

_log = logging.getLogger(__name__)
M = TypeVar("M", bound=Message)
Heard = Callable[[str, M | None, M | None], None]
"""Told a name, the record before (None: none) and the record now (None: dropped)."""


class Mirror(Generic[M]):
    """All records whose key begins with ``prefix + "."``, by name: the key without that."""

    def __init__(self, store: Store, prefix: str, kind: type[M]) -> None:
        """Know nothing until ``start``."""
        self._store = store
        self._prefix = prefix
        self._kind = kind
        self._records: dict[str, M] = {}
        self._revisions: dict[str, int] = {}
        self._dropped: dict[str, int] = {}
        self._listeners: dict[int, Heard[M]] = {}
        self._numbers = count()
        self._following: Following | None = None

    async def start(self) -> None:
        """Follow the store; returns when everything that is there is known. Listeners hear all of it.

        Raises:
            Unavailable: the store cannot be read.
        """
        if self._following is None:
            self._following = await self._store.follow(self._prefix, self._told)

    async def stop(self) -> None:
        """Stay as it is from now on."""
        following, self._following = self._following, None
        if following is not None:
            await following.stop()

    def get(self, name: str) -> M | None:
        """A record, not to be changed."""
        return self._records.get(name)

    def items(self) -> Iterable[tuple[str, M]]:
        """Every name and record as they are at this moment; the records are not to be changed."""
        return list(self._records.items())

    def __len__(self) -> int:
        """How many records there are."""
        return len(self._records)

    def on_change(self, listener: Heard[M]) -> Callable[[], None]:
        """Have a listener told of every change after it was made; it must not block.

        Returns:
            What takes the listener away again.
        """
        number = next(self._numbers)
        self._listeners[number] = listener

        def remove() -> None:
            self._listeners.pop(number, None)

        return remove

    def _told(self, key: str, entry: Entry) -> None:
        name = key[len(self._prefix) + 1 :]
        if entry.revision <= self._revisions.get(name, self._dropped.get(name, 0)):
            return
        before = self._records.get(name)
        try:
            after = self._kind.FromString(entry.value) if entry.value else None
        except DecodeError as error:
            _log.error("record_unreadable", extra={"detail": self._prefix, "fault": fault_of(error)})
            return
        self._keep(name, after, entry.revision)
        if before is None and after is None:
            return
        for listener in list(self._listeners.values()):
            try:
                listener(name, before, after)
            except Exception as error:
                _log.exception("listener_failed", extra={"detail": self._prefix, "fault": fault_of(error)})

    def _keep(self, name: str, record: M | None, revision: int) -> None:
        self._dropped.pop(name, None)
        if record is not None:
            self._records[name] = record
            self._revisions[name] = revision
            return
        self._records.pop(name, None)
        self._revisions.pop(name, None)
        self._dropped[name] = revision
        if len(self._dropped) > DROPPED_KEPT:
            del self._dropped[next(iter(self._dropped))]
