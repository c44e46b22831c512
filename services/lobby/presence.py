"""Who is online, on all replicas together.

A player is online while a Stay of theirs is alive on any replica. Each replica tells the others on the bus:
what has changed, once a second; everything, every five seconds. A replica that has not been heard for twelve
seconds is gone, and its players with it.

Beats get lost, and nobody asks for them again: a beat that is older than one heard already is dropped, and
what was missed is put right by the next beat that says everything. So twelve seconds after the last loss all
replicas know the same. A replica hears itself too: while it does not, it is cut off and knows of nobody's
absence.
"""

import asyncio
import json
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from zlib import crc32

from services.lobby.deps import Deps
from services.shell.logs import fault_of

TOPIC: Final = "presence"
BEAT_S: Final = 1.0
"""How long changes are gathered before they are told."""
EVERYTHING_S: Final = 5.0
"""How often everything is told."""
SILENCE_S: Final = 12.0
"""A replica not heard for so long is gone."""
BEAT_PLAYERS: Final = 4_000
"""Players in one beat, on average: at most about 280 kB."""
REPLICAS_MOST: Final = 64
PLAYERS_MOST: Final = 200_000
"""Players remembered of one replica, and players remembered after they have gone."""
REMEMBERED_S: Final = 600.0
"""How long it is remembered when somebody went; longer than anything waits for anybody."""

Heard = Callable[[str, bool], None]
"""Told a player and whether they are online now; must not block."""


class _Replica:
    """What one replica has said: who stays there."""

    def __init__(self, heard_at: float) -> None:
        self.players: dict[str, str] = {}
        """Player to operator."""
        self.newest = 0
        """The number of the newest beat heard."""
        self.heard_at = heard_at


class Presence:
    """Who is online. ``start`` and ``stop`` run it; ``beat`` is one second of its life."""

    def __init__(self, deps: Deps, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin, knowing nobody.

        Args:
            deps: the bus, and a random name for this replica.
            clock: seconds.
        """
        self._deps = deps
        self._clock = clock
        self._name = deps.random(8).hex()
        self._started = clock()
        self._here = _Replica(self._started)
        self._stays: Counter[str] = Counter()
        self._others: dict[str, _Replica] = {}
        self._operators: dict[str, str] = {}
        self._holders: Counter[str] = Counter()
        self._of_operator: Counter[str] = Counter()
        self._went: OrderedDict[str, float] = OrderedDict()
        self._heard_itself_at = self._sure_since = self._started
        self._listeners: list[Heard] = []
        self._number = 0
        self._changed: set[str] = set()
        self._everything_at = self._started
        self._life: asyncio.Task[None] | None = None

    # -------------------------------------------------------------------------------------- who is online

    def is_online(self, player_id: str) -> bool:
        """A Stay of the player is alive on some replica."""
        return player_id in self._operators

    def absent_s(self, player_id: str) -> float:
        """Seconds for which the player is known to be away, 0 when online.

        Counted from this replica's start at the earliest, or from when it could hear the others again: nobody
        is sent away because a replica is new or was cut off.
        """
        if player_id in self._operators or self._is_cut_off():
            return 0.0
        return self._clock() - max(self._sure_since, self._went.get(player_id, self._started))

    def _is_cut_off(self) -> bool:
        return self._life is not None and self._clock() - self._heard_itself_at >= SILENCE_S

    def operator_of(self, player_id: str) -> str | None:
        """The operator of a player who is online; None of any other."""
        return self._operators.get(player_id)

    def online(self, operator: str) -> int:
        """How many players of an operator are online."""
        return self._of_operator[operator]

    def on_change(self, listener: Heard) -> Callable[[], None]:
        """Have somebody told of whoever comes and goes; the answer ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # --------------------------------------------------------------------------------- stays of this replica

    def enter(self, player_id: str, operator: str) -> None:
        """A Stay of the player has begun here; there may be several."""
        self._stays[player_id] += 1
        if self._stays[player_id] == 1 or self._here.players.get(player_id) != operator:
            self._add(self._here, player_id, operator)
            self._changed.add(player_id)

    def leave(self, player_id: str) -> None:
        """One of the player's Stays here has ended."""
        self._stays[player_id] -= 1
        if self._stays[player_id] <= 0:
            del self._stays[player_id]
            self._remove(self._here, player_id, self._clock())
            self._changed.add(player_id)

    # ------------------------------------------------------------------------------------------ its life

    async def start(self) -> None:
        """Hear the others, and beat every second from now on."""
        await self._deps.bus.hear(TOPIC, self.hear)
        await self._tell_everything()
        self._life = asyncio.create_task(self._live(), name="presence")

    async def stop(self) -> None:
        """Beat no more; the others are told that nobody stays here."""
        if self._life is not None:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)
        now = self._clock()
        for player_id in list(self._here.players):
            self._remove(self._here, player_id, now)
        await self._tell_everything()

    async def _live(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                await self.beat()
            except Exception as error:
                self._deps.log.error("fault", detail="presence", fault=fault_of(error))

    async def beat(self) -> None:
        """Tell what there is to tell, and give up replicas that are silent."""
        now = self._clock()
        for name, replica in list(self._others.items()):
            if now - replica.heard_at >= SILENCE_S:
                self._give_up(name)
        self._forget(now)
        if now >= self._everything_at or len(self._changed) > BEAT_PLAYERS:
            await self._tell_everything()
        elif self._changed:
            changed, self._changed = self._changed, set()
            here = self._here.players
            await self._tell(
                {
                    "came": _by_operator((player, here[player]) for player in changed if player in here),
                    "went": [player for player in changed if player not in here],
                }
            )
        self._deps.metrics.players_online.set(len(self._operators))

    async def _tell_everything(self) -> None:
        """In parts: a player's part follows from their id, so each part also says who of it is not there."""
        self._changed.clear()
        self._everything_at = self._clock() + EVERYTHING_S
        parts = 1 + len(self._here.players) // BEAT_PLAYERS
        players: list[list[tuple[str, str]]] = [[] for _ in range(parts)]
        for player_id, operator in self._here.players.items():
            players[_part(player_id, parts)].append((player_id, operator))
        for part, those in enumerate(players):
            await self._tell({"part": part, "parts": parts, "came": _by_operator(those)})

    async def _tell(self, beat: Mapping[str, object]) -> None:
        self._number += 1
        news = {"from": self._name, "number": self._number, **beat}
        await self._deps.bus.tell(TOPIC, json.dumps(news, separators=(",", ":")).encode())

    # ------------------------------------------------------------------------------------ what others say

    def hear(self, news: bytes) -> None:
        """Take another replica's beat; what is none is logged and changes nothing."""
        try:
            beat: dict[str, Any] = json.loads(news)
            if beat["from"] == self._name:
                self._hear_itself()
            else:
                self._take(beat)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._deps.log.error("bad_beat", detail="presence", fault=fault_of(error))

    def _hear_itself(self) -> None:
        now = self._clock()
        if now - self._heard_itself_at >= SILENCE_S:
            self._sure_since = now
        self._heard_itself_at = now

    def _take(self, beat: dict[str, Any]) -> None:
        name, number = str(beat["from"]), int(beat["number"])
        replica = self._others.get(name) or self._meet(name)
        if replica is None or number <= replica.newest:
            return
        came = {player: operator for operator, players in beat["came"].items() for player in players}
        if "parts" in beat:
            part, parts = int(beat["part"]), int(beat["parts"])
            went = [known for known in replica.players if known not in came and _part(known, parts) == part]
        else:
            went = list(beat["went"])
        replica.newest, replica.heard_at = number, self._clock()
        for player in went:
            self._remove(replica, player, replica.heard_at)
        for player, operator in came.items():
            self._add(replica, player, operator)

    def _meet(self, name: str) -> _Replica | None:
        """A replica not known yet. It knows nothing of this one either, so the next beat says everything."""
        if len(self._others) >= REPLICAS_MOST:
            self._deps.log.error("too_many_replicas", count=REPLICAS_MOST)
            return None
        self._everything_at = self._clock()
        self._others[name] = _Replica(self._clock())
        return self._others[name]

    def _give_up(self, name: str) -> None:
        replica = self._others.pop(name)
        for player_id in list(replica.players):
            self._remove(replica, player_id, replica.heard_at)

    # ------------------------------------------------------------------------------------------- counting

    def _add(self, replica: _Replica, player_id: str, operator: str) -> None:
        known = replica.players.get(player_id)
        if known == operator or (known is None and len(replica.players) >= PLAYERS_MOST):
            return
        replica.players[player_id] = operator
        self._holders[player_id] += known is None
        came = player_id not in self._operators
        self._belongs(player_id, operator)
        if came:
            self._went.pop(player_id, None)
            self._say(player_id, True)

    def _belongs(self, player_id: str, operator: str | None) -> None:
        """Count a player for an operator (None: for nobody any more): a guest may have become a user."""
        before = self._operators.pop(player_id, None)
        if before is not None:
            self._of_operator[before] -= 1
        if operator is not None:
            self._operators[player_id] = operator
            self._of_operator[operator] += 1

    def _remove(self, replica: _Replica, player_id: str, at: float) -> None:
        if replica.players.pop(player_id, None) is None:
            return
        self._holders[player_id] -= 1
        if not self._holders[player_id]:
            del self._holders[player_id]
            self._belongs(player_id, None)
            self._went[player_id] = at
            self._say(player_id, False)
        else:
            holders = (one.players.get(player_id) for one in (self._here, *self._others.values()))
            self._belongs(player_id, next(operator for operator in holders if operator is not None))

    def _say(self, player_id: str, online: bool) -> None:
        for listener in list(self._listeners):
            listener(player_id, online)

    def _forget(self, now: float) -> None:
        """Who went first stands first, within seconds."""
        while self._went:
            at = next(iter(self._went.values()))
            if len(self._went) <= PLAYERS_MOST and now - at <= REMEMBERED_S:
                return
            self._went.popitem(last=False)


def _part(player_id: str, parts: int) -> int:
    return crc32(player_id.encode()) % parts


def _by_operator(players: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Operators' names are told once."""
    grouped: dict[str, list[str]] = {}
    for player_id, operator in players:
        grouped.setdefault(operator, []).append(player_id)
    return grouped
