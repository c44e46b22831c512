"""The port of the lobby's state: records by key, changed several at a time or not at all.

A key is lower-case words joined by dots, such as ``room.rom_01…``. A record's revision rises with every
change of it; whoever changes one names the revision that was read, so nobody overwrites what they have not
seen.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

_KEY: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)+", re.ASCII)
KEY_MOST: Final = 160
"""Characters of a key."""
VALUE_MOST: Final = 64 * 1024
"""Bytes of a record."""
WRITES_MOST: Final = 32
"""Records in one change."""


class Entry(NamedTuple):
    """What stands under a key."""

    value: bytes
    """Empty: nothing is there."""
    revision: int
    """0: nothing has been there as far as the store remembers."""


NOTHING: Final = Entry(b"", 0)


class Write(NamedTuple):
    """One record of a change."""

    key: str
    value: bytes
    """Empty: take the record away."""
    expected: int
    """The revision that was read; anything else there now, and the whole change is refused."""
    ttl_s: float = 0
    """Seconds after which the record goes by itself, unless written again; 0: never."""


class Conflict(Exception):
    """Some record of a change has another revision than expected; nothing was changed.

    After an answer was lost it can also mean that the change was made and seen by others since. So whoever
    changes records reads them again and decides again, and an intent that is fulfilled already is a success.
    """


Listener = Callable[[str, Entry], None]
"""Told a key and what stands there now."""


class Following(Protocol):
    """A subscription to changes."""

    async def stop(self) -> None:
        """Be told no more."""


class Store(Protocol):
    """Records. Every method raises ``log_store.Unavailable`` when the store cannot be used now."""

    async def get(self, key: str) -> Entry:
        """What stands under a key now, as the store's leader knows it.

        Raises:
            ValueError: no key.
        """

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        """Change all the records or none; their new revisions.

        An unknown outcome (time-out, lost connection) is resolved before this returns: by the same change
        again, which then succeeds or is a ``Conflict``.

        Raises:
            Conflict: some record is not as expected.
            ValueError: no writes, too many, a key twice, no key, or a value too large.
        """

    async def follow(self, prefix: str, listener: Listener) -> Following:
        """Tell every record whose key begins with ``prefix + "."``, then every change of one, in order.

        Returns when all that were there at the start have been told. A lost connection is healed: what
        changed meanwhile is told late, each record's last state at least. Records that end by themselves are
        told too, within some seconds.
        """


def check_key(key: str) -> str:
    """The key itself.

    Raises:
        ValueError: it is none.
    """
    if len(key) > KEY_MOST or not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} is no key")
    return key


def check_writes(writes: Sequence[Write]) -> None:
    """Check a change before anything is sent.

    Raises:
        ValueError: see ``Store.commit``.
    """
    if not 0 < len(writes) <= WRITES_MOST or len({write.key for write in writes}) != len(writes):
        raise ValueError("a change has 1 to 32 records, each once")
    for write in writes:
        check_key(write.key)
        if len(write.value) > VALUE_MOST or write.expected < 0 or write.ttl_s < 0:
            raise ValueError(f"no such write of {write.key}")
