"""What people say to each other, and whom they do not want to hear.

Something said is told on the bus to all replicas, and each tells those of its Stays that are in the room or
at the table; who has muted the speaker is left out there. Nothing that was said is kept.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from services.lobby.deps import Deps
from services.lobby.phrases import PHRASES
from services.lobby.records import Change, atomically, known_player, player_key
from services.lobby.whereabouts import Finder
from services.pb.lobby.v1.presence_service_pb2 import Said
from services.pb.lobby.v1.stored_pb2 import PlayerRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.limits import Buckets
from services.shell.logs import fault_of

SAID: Final = "said"
MUTED: Final = "muted"
SAY_EVERY_S: Final = 2.0
SAY_BURST: Final = 3
MUTED_MOST: Final = 200
_KNOWN_S: Final = 30.0
"""How long a list of the muted counts as known; a change is told on the bus, but that can get lost."""
_KNOWN_MOST: Final = 20_000


class Saying(NamedTuple):
    """Something said, and who is to hear it."""

    room_id: str
    """Everybody in this room; empty for none."""
    table_id: str
    """Everybody whose place is at this table; empty for none."""
    said: Said


class Talk:
    """Saying and muting. ``start`` it before its first use."""

    def __init__(self, deps: Deps, finder: Finder, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Talk.

        Args:
            deps: the store and the bus.
            finder: knows who is where.
            clock: seconds, for the limit.
        """
        self._deps = deps
        self._finder = finder
        self._clock = clock
        self._name = deps.random(8).hex()
        self._says = Buckets(1 / SAY_EVERY_S, SAY_BURST, clock=clock)
        self._muted: OrderedDict[str, tuple[frozenset[str], float]] = OrderedDict()
        self._listeners: list[Callable[[Saying], None]] = []

    async def start(self) -> None:
        """Hear what is said from now on."""
        await self._deps.bus.hear(SAID, self._heard)
        await self._deps.bus.hear(MUTED, lambda news: self._forget(news.decode(errors="replace")))

    def on_said(self, listener: Callable[[Saying], None]) -> None:
        """Have somebody told of everything that is said anywhere; it must not block."""
        self._listeners.append(listener)

    # --------------------------------------------------------------------------------------------- saying

    async def say(self, player_id: str, phrase_id: str) -> None:
        """Say a phrase to everybody where the player is.

        Raises:
            RefusedError: UNKNOWN_PHRASE; RATE_LIMITED beyond one in two seconds, three at once; NOT_IN_ROOM.
            Unavailable: the store cannot be read.
        """
        if phrase_id not in PHRASES:
            raise RefusedError(Reason.UNKNOWN_PHRASE)
        wait = self._says.take(player_id)
        if wait:
            raise RefusedError(Reason.RATE_LIMITED, retry_after_s=wait)
        place = await self._finder.place(player_id)
        if not (place.room_id or place.table_id):
            raise RefusedError(Reason.NOT_IN_ROOM)
        news = {
            "from": self._name,
            "room": place.room_id,
            "table": place.table_id,
            "player": player_id,
            "phrase": phrase_id,
            "at": self._deps.now_ms(),
        }
        await self._deps.bus.tell(SAID, json.dumps(news).encode())
        self._deps.metrics.said.inc()

    def _heard(self, news: bytes) -> None:
        try:
            told = json.loads(news)
            said = Said(player_id=told["player"], phrase_id=told["phrase"], said_at_ms=told["at"])
            saying = Saying(str(told["room"]), str(told["table"]), said)
            elsewhere = told["from"] != self._name
        except (ValueError, KeyError, TypeError) as error:
            self._deps.log.error("bad_news", detail=SAID, fault=fault_of(error))
            return
        if elsewhere:
            self._says.take(said.player_id)  # the limit holds over all replicas
        for listener in self._listeners:
            listener(saying)

    # --------------------------------------------------------------------------------------------- muting

    async def mute(self, player_id: str, other: str, muted: bool) -> None:
        """No longer hear a player, or hear them again. What is so already is a success.

        Raises:
            RefusedError: UNKNOWN_PLAYER, also for one of another operator's; BAD_INPUT for oneself;
                TOO_LARGE beyond 200.
            Unavailable: the store cannot be used.
        """
        if other == player_id:
            raise RefusedError(Reason.BAD_INPUT, {"field": "player_id", "detail": "is your own"})

        async def work(change: Change) -> None:
            record = await known_player(change, player_id)
            if muted == (other in record.muted):
                return
            if not muted:
                record.muted.remove(other)
            else:
                await known_player(change, other, record.operator)
                if len(record.muted) >= MUTED_MOST:
                    raise RefusedError(Reason.TOO_LARGE)
                record.muted.append(other)
            await change.put(player_key(player_id), record)

        await atomically(self._deps.store, work)
        self._forget(player_id)
        await self._deps.bus.tell(MUTED, player_id.encode())

    async def muted_by(self, player_id: str) -> frozenset[str]:
        """Whom the player does not hear; read anew when it has changed, and every half minute.

        Raises:
            Unavailable: the store cannot be read.
        """
        muted, read_at = self._muted.get(player_id, (frozenset(), -_KNOWN_S))
        if self._clock() - read_at < _KNOWN_S:
            return muted
        now = self._clock()
        entry = await self._deps.store.get(player_key(player_id))
        muted = frozenset(PlayerRecord.FromString(entry.value).muted)
        self._muted[player_id] = muted, now
        self._muted.move_to_end(player_id)
        if len(self._muted) > _KNOWN_MOST:
            self._muted.popitem(last=False)
        return muted

    def _forget(self, player_id: str) -> None:
        self._muted.pop(player_id, None)
