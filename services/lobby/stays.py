"""Stays: the one stream of a front end, which brings everything that concerns its player.

A stay keeps no queue of states: it knows what has changed since it last told, and tells how it stands now.
So its memory is bounded whatever happens, and a reader who is slow misses steps between, never the last one.
Only what was said is queued; who lets that run full, or does not read at all, is cut off.

Changes come from the replica's mirrors, but whereabouts are read in the store itself: a mirror of rooms and
one of places may be at different moments.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from services.lobby.deps import Deps, Mirrors
from services.lobby.presence import Presence
from services.lobby.room_views import as_seen
from services.lobby.talk import Saying, Talk
from services.lobby.whereabouts import Finder
from services.pb.lobby.v1.match_service_pb2 import Ticket
from services.pb.lobby.v1.presence_service_pb2 import Said, StayIdle, StayResponse, Whereabouts
from services.pb.lobby.v1.room_pb2 import Room
from services.pb.lobby.v1.stored_pb2 import PlaceRecord, RoomRecord, TicketRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.log_store import Unavailable
from services.shell.logs import fault_of
from services.shell.renewals import Renewals
from services.shell.rpc import Call, Write

SWEEP_S: Final = 1.0
"""How often time is looked at; also how long comings and goings of others are gathered."""
TICKET_S: Final = 5.0
IDLE_S: Final = 20.0
EXPIRY_GRACE_S: Final = 60.0
"""A stay outlives its token by so long."""
STUCK_S: Final = 10.0
"""How long one message may wait for a client that does not read."""
SAYINGS_MOST: Final = 64
"""Sayings that wait for one client."""
PLAYER_STAYS: Final = 5
"""Stays of one player here; the oldest gives way, and its client is told to wait."""
GAVE_WAY_RETRY_S: Final = 60.0


class StayTools(NamedTuple):
    """What stays look at and report to."""

    deps: Deps
    mirrors: Mirrors
    presence: Presence
    finder: Finder
    talk: Talk
    renewals: Renewals
    show_ticket: Callable[[TicketRecord], Ticket]
    """A ticket as its player is told it now."""
    clock: Callable[[], float] = time.monotonic


class Stays:
    """All stays of a process, at most ``limit``."""

    def __init__(self, tools: StayTools, limit: int) -> None:
        """Serve nobody yet; ``start`` before the first stay."""
        self.draining = False
        self._tools = tools
        self._limit = limit
        self._of_player: dict[str, list[_Stay]] = {}
        self._count = 0
        self._listening: list[Callable[[], None]] = []
        self._life: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return self._count

    async def start(self) -> None:
        """Follow the mirrors, presence and talk."""
        mirrors, presence = self._tools.mirrors, self._tools.presence
        self._tools.talk.on_said(self._said)
        self._listening = [
            mirrors.places.on_change(self._place_changed),
            mirrors.rooms.on_change(self._room_changed),
            presence.on_change(self._online_changed),
        ]
        self._life = asyncio.create_task(self._live(), name="stays")

    async def stop(self) -> None:
        """Follow nothing any more."""
        self.drain()
        for end in self._listening:
            end()
        if self._life is not None:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)

    def drain(self) -> None:
        """End all stays: another replica serves them."""
        self.draining = True
        for stay in self._all():
            stay.wake()

    async def stay(self, call: Call, write: Write) -> None:
        """Serve one stay until its client leaves or it must end.

        Raises:
            RefusedError: it cannot begin (BUSY), or why it ended: SLOW_READER, DRAINING, UNAUTHENTICATED;
                RATE_LIMITED for a player's oldest when there are too many.
            Unavailable: it cannot begin, since the store or the log cannot be read.
        """
        if self.draining:
            raise RefusedError(Reason.DRAINING)
        if self._count >= self._limit:
            raise RefusedError(Reason.BUSY)
        of_player = self._of_player.setdefault(call.player_id, [])
        if len(of_player) >= PLAYER_STAYS:
            of_player.pop(0).cut_off(RefusedError(Reason.RATE_LIMITED, retry_after_s=GAVE_WAY_RETRY_S))
        stay = _Stay(self, self._tools, call, write)
        of_player.append(stay)
        self._tools.presence.enter(call.player_id, call.operator)
        self._counted(+1)
        try:
            await stay.run()
        except asyncio.CancelledError:
            if stay.cut is None:
                raise
            stay.task.uncancel()
            raise stay.cut from None
        finally:
            self._counted(-1)
            self._tools.presence.leave(call.player_id)
            stay.leave()
            if stay in of_player:
                of_player.remove(stay)
            if not of_player and self._of_player.get(call.player_id) is of_player:
                del self._of_player[call.player_id]

    def _counted(self, change: int) -> None:
        self._count += change
        self._tools.deps.metrics.stays.set(self._count)

    # ---------------------------------------------------------------------------------------- what happens

    async def _live(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            try:
                self.sweep()
            except Exception as error:
                self._tools.deps.log.error("fault", detail="stays", fault=fault_of(error))

    def sweep(self) -> None:
        """Time has passed."""
        now = self._tools.clock()
        for stay in self._all():
            stay.look(now)

    def _all(self) -> list["_Stay"]:
        return [stay for stays in self._of_player.values() for stay in stays]

    def _of_members(self, record: RoomRecord | None) -> Iterator["_Stay"]:
        for member in record.room.members if record is not None else ():
            yield from self._of_player.get(member.player_id, ())

    def _place_changed(self, player_id: str, before: PlaceRecord | None, after: PlaceRecord | None) -> None:
        for stay in self._of_player.get(player_id, ()):
            stay.moved = True
            stay.wake()

    def _room_changed(self, room_id: str, before: RoomRecord | None, after: RoomRecord | None) -> None:
        for stay in self._of_members(after):
            stay.room_changed = True
            stay.moved = stay.moved or stay.awaits_table
            stay.wake()

    def _online_changed(self, player_id: str, online: bool) -> None:
        place = self._tools.mirrors.places.get(player_id)
        if place is not None and place.room_id:
            for stay in self._of_members(self._tools.mirrors.rooms.get(place.room_id)):
                stay.others_changed = True

    def _said(self, saying: Saying) -> None:
        if saying.room_id:
            hearers = self._of_members(self._tools.mirrors.rooms.get(saying.room_id))
        else:
            hearers = (stay for stay in self._all() if stay.table_id == saying.table_id)
        for stay in hearers:
            stay.hear(saying.said)


class _Stay:
    """One stay: what was told last, and what has changed since."""

    def __init__(self, stays: Stays, tools: StayTools, call: Call, write: Write) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a stay runs in a task")
        self.task = task
        self.cut: RefusedError | None = None
        self.moved = True
        self.room_changed = False
        self.others_changed = False
        self._stays = stays
        self._tools = tools
        self._player_id = call.player_id
        self._write = write
        self._lease = tools.renewals.enter(call.holder, call.expires_at, self.wake)
        self._news = asyncio.Event()
        self._sayings: deque[Said] = deque()
        self._told = Whereabouts()
        self._room = Room()
        """As told last."""
        self._ticket_at = float("inf")
        self._idle_at = tools.clock() + IDLE_S
        self._writing_since = 0.0

    @property
    def table_id(self) -> str:
        """At which table the player is, as told last."""
        return self._told.table_id

    @property
    def awaits_table(self) -> bool:
        """Whether a table was told that was still being founded: its version is to follow."""
        return bool(self._told.table_id) and not self._told.table_version

    # ------------------------------------------------------------------------------------- told by others

    def wake(self) -> None:
        """There is something to tell, or a reason to end."""
        self._news.set()

    def hear(self, said: Said) -> None:
        """Something was said where the player is."""
        if len(self._sayings) >= SAYINGS_MOST:
            self.cut_off(RefusedError(Reason.SLOW_READER))
        else:
            self._sayings.append(said)
            self.wake()

    def look(self, now: float) -> None:
        """Time has passed."""
        if self._writing_since and now - self._writing_since > STUCK_S:
            self.cut_off(RefusedError(Reason.SLOW_READER))
            return
        if self.others_changed:
            self.others_changed, self.room_changed = False, True
        self.moved = self.moved or self.awaits_table
        due = now >= min(self._ticket_at, self._idle_at) or self._has_expired()
        if due or self.moved or self.room_changed:
            self.wake()

    def cut_off(self, why: RefusedError) -> None:
        """End it wherever it is."""
        if self.cut is None:
            self.cut = why
            self.task.cancel()

    def leave(self) -> None:
        """It has ended."""
        self._tools.renewals.leave(self._lease)

    # ----------------------------------------------------------------------------------------- its life

    async def run(self) -> None:
        """Tell the whereabouts, then everything that changes.

        Raises:
            RefusedError: it must end.
            Unavailable: not even the whereabouts can be told.
        """
        await self._tell_whereabouts(first=True)
        while True:
            await self._news.wait()
            self._news.clear()
            self._check_end()
            if self.moved:
                try:
                    await self._tell_whereabouts()
                except Unavailable:
                    self.moved = True  # the next sweep tries again
            if self.room_changed:
                await self._tell_room()
            while self._sayings:
                await self._tell_said(self._sayings.popleft())
            now = self._tools.clock()
            if now >= self._ticket_at:
                await self._tell_ticket(now)
            if now >= self._idle_at:
                await self._tell_idle()

    def _has_expired(self) -> bool:
        return self._tools.deps.now_ms() >= (self._lease.expires_at + EXPIRY_GRACE_S) * 1000

    def _check_end(self) -> None:
        if self._stays.draining:
            raise RefusedError(Reason.DRAINING)
        if self._has_expired():
            raise RefusedError(Reason.UNAUTHENTICATED, {"detail": "the token has expired"})

    async def _tell_whereabouts(self, *, first: bool = False) -> None:
        self.moved = False
        found = await self._tools.finder.of(self._player_id)
        if not first and _spot(found) == _spot(self._told):
            return
        if self._told.room_id and self._told.room_id != found.room_id:
            await self._send(StayResponse(room_gone=self._told.room_id))
        await self._send(StayResponse(whereabouts=found))
        self._told, self._room = found, found.room
        self._ticket_at = self._tools.clock() if found.ticket_id else float("inf")
        if found.ticket_id or found.room_id:
            self.room_changed = bool(found.room_id)  # it may have changed while this was read
            self.wake()

    async def _tell_room(self) -> None:
        self.room_changed = False
        record = self._tools.mirrors.rooms.get(self._told.room_id) if self._told.room_id else None
        if record is None or record.room.version < self._room.version:
            return  # the mirror is behind what was told; it will come again
        room = as_seen(record, self._player_id, self._tools.presence)
        if room != self._room:
            await self._send(StayResponse(room=room))
            self._room = room

    async def _tell_said(self, said: Said) -> None:
        try:
            muted = await self._tools.talk.muted_by(self._player_id)
        except Unavailable:
            return  # nobody hears whom they may have muted, and a moment later it is worth nothing
        if said.player_id not in muted:
            await self._send(StayResponse(said=said))

    async def _tell_ticket(self, now: float) -> None:
        self._ticket_at = now + TICKET_S
        record = self._tools.mirrors.tickets.get(self._told.ticket_id)
        if record is not None and not record.end:
            await self._send(StayResponse(ticket=self._tools.show_ticket(record)))

    async def _tell_idle(self) -> None:
        idle = StayIdle(
            server_now_ms=self._tools.deps.now_ms(),
            token_expires_at_ms=self._lease.expires_at * 1000,
        )
        await self._send(StayResponse(idle=idle))

    async def _send(self, message: StayResponse) -> None:
        now = self._writing_since = self._tools.clock()
        self._idle_at = now + IDLE_S
        await self._write(message.SerializeToString())
        self._writing_since = 0.0


def _spot(found: Whereabouts) -> tuple[str, str, str, bool, int | None]:
    """What makes whereabouts other ones; of a table's version only that it has one."""
    seat = found.seat if found.HasField("seat") else None
    return found.room_id, found.ticket_id, found.table_id, bool(found.table_version), seat
