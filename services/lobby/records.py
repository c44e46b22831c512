"""The lobby's records: their keys, and one atomic change of several.

Every operation of the lobby is one ``atomically(store, work)``: ``work`` reads records through a ``Change``,
decides, and says what becomes of them. If another replica was faster it is done again on what is there then,
so ``work`` must do nothing but read, decide and put. An intent that is fulfilled already is a success.
"""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from google.protobuf.message import Message

from services.lobby.store import Conflict, Entry, Store, Write
from services.pb.lobby.v1.stored_pb2 import PlayerRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError

ATTEMPTS: Final = 8
"""How often a change is decided anew when others were faster."""
M = TypeVar("M", bound=Message)
T = TypeVar("T")


def player_key(player_id: str) -> str:
    """Of a ``PlayerRecord``."""
    return f"player.{player_id}"


def place_key(player_id: str) -> str:
    """Of a ``PlaceRecord``."""
    return f"place.{player_id}"


def room_key(room_id: str) -> str:
    """Of a ``RoomRecord``."""
    return f"room.{room_id}"


def code_key(code: str) -> str:
    """Of a ``CodeRecord``; codes are compared in lower case."""
    return f"code.{code.lower()}"


def ticket_key(ticket_id: str) -> str:
    """Of a ``TicketRecord``."""
    return f"ticket.{ticket_id}"


def family_key(family_id: str) -> str:
    """Of a ``FamilyRecord``."""
    return f"family.{family_id}"


def operator_key(name: str) -> str:
    """Of an ``OperatorRecord``."""
    return f"operator.{name}"


def device_key(device_id: str) -> str:
    """Of a ``DeviceRecord``: device names are any text, so their hash stands in the key."""
    return f"device.{digest(device_id)}"


def user_key(operator: str, user_id: str) -> str:
    """Of a ``UserRecord``, likewise."""
    return f"user.{operator}.{digest(user_id)}"


def member_key(operator: str, player_id: str) -> str:
    """Of a ``UserRecord`` for each player of an operator, so that they can be listed."""
    return f"member.{operator}.{player_id}"


def reporter_key(player_id: str) -> str:
    """Of a ``ReporterRecord``."""
    return f"reporter.{player_id}"


def slow_key(tried: str) -> str:
    """Of a ``SlowRecord`` about whatever was tried, likewise."""
    return f"slow.{digest(tried)}"


def digest(text: str) -> str:
    """40 hexadecimal digits of SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:40]


class Change:
    """What one operation has read, and what it will write."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[str, Entry] = {}
        self._writes: dict[str, tuple[bytes, float]] = {}
        self._guarded: set[str] = set()

    async def get(self, key: str, kind: type[M]) -> M | None:
        """A record as it is, or as this change has put it; a copy to be changed at will.

        Raises:
            Unavailable: the store cannot be read.
        """
        value = self._writes[key][0] if key in self._writes else (await self._entry(key)).value
        return kind.FromString(value) if value else None

    async def put(self, key: str, record: Message, ttl_s: float = 0) -> None:
        """Write a record; one that nobody has read is read first, so that the write can be refused.

        Raises:
            Unavailable: the store cannot be read.
        """
        await self._entry(key)
        self._writes[key] = (record.SerializeToString(), ttl_s)

    async def guard(self, key: str) -> None:
        """Let the change be refused if this record changes meanwhile, though it stays as it is.

        What is only read is not compared: a decision that hangs on a record it does not write guards it.

        Raises:
            Unavailable: the store cannot be read.
        """
        entry = await self._entry(key)
        self._writes.setdefault(key, (entry.value, 0))
        self._guarded.add(key)

    async def drop(self, key: str) -> None:
        """Take a record away, if it is there.

        Raises:
            Unavailable: the store cannot be read.
        """
        if (await self._entry(key)).value:
            self._writes[key] = (b"", 0)
        else:
            self._writes.pop(key, None)

    async def _entry(self, key: str) -> Entry:
        if key not in self._read:
            self._read[key] = await self._store.get(key)
        return self._read[key]

    async def commit(self) -> None:
        """Write everything, if anything would change.

        Raises:
            Conflict: others were faster.
            Unavailable: the store cannot be used.
        """
        writes = [
            Write(key, value, self._read[key].revision, ttl_s)
            for key, (value, ttl_s) in self._writes.items()
            if value != self._read[key].value or ttl_s or key in self._guarded
        ]
        if writes:
            await self._store.commit(writes)


async def atomically(store: Store, work: Callable[[Change], Awaitable[T]]) -> T:
    """Do one operation on the records; what ``work`` returned for the change that was made.

    Raises:
        RefusedError: what ``work`` raised; or BUSY, when others were faster too often.
        Unavailable: the store cannot be used.
    """
    for _ in range(ATTEMPTS):
        change = Change(store)
        done = await work(change)
        try:
            await change.commit()
        except Conflict:
            continue
        return done
    raise RefusedError(Reason.BUSY)


async def known_player(change: Change, player_id: str, operator: str | None = None) -> PlayerRecord:
    """A player's record; with ``operator``, only of that operator's.

    Raises:
        RefusedError: UNKNOWN_PLAYER.
        Unavailable: the store cannot be read.
    """
    try:
        record = await change.get(player_key(player_id), PlayerRecord)
    except ValueError:  # what is no key names nobody
        record = None
    if record is None or operator not in (None, record.operator):
        raise RefusedError(Reason.UNKNOWN_PLAYER)
    return record
