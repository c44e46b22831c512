"""The public list of rooms: in pages, and as a stream of changes. Both read the mirror alone.

A watch holds the ids of rooms that changed and are not told yet, each once: a client that reads slowly is
told the newest state of each and skips what was between, so a watch is never larger than the list.
"""

import asyncio
import base64
import binascii
import bisect
import hashlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from services.game.framing import frame
from services.lobby.mirror import Mirror
from services.lobby.room_views import free_seats, is_listed, summary
from services.pb.lobby.v1.room_service_pb2 import (
    Idle,
    Listed,
    ListRoomsRequest,
    ListRoomsResponse,
    RoomFilter,
    WatchRoomsRequest,
    WatchRoomsResponse,
)
from services.pb.lobby.v1.stored_pb2 import RoomRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.renewals import Renewals
from services.shell.rpc import Call, Write

PAGE: Final = 20
PAGE_MOST: Final = 100
LOOKED_AT_MOST: Final = 1000
"""Rooms looked at for one page,"""
LOOKED_AT_ONCE: Final = 200
"""and for a watch that begins, before others have their turn."""
WATCHES_MOST: Final = 5000
"""Watches of one process."""
PLAYER_WATCHES: Final = 5
"""Watches of one player here; the oldest gives way, and its client is told to wait."""
GAVE_WAY_RETRY_S: Final = 60.0
IDLE_S: Final = 20.0
STUCK_S: Final = 10.0
"""How long one message may wait for a client that does not read."""
GATHER_S: Final = 0.1
"""How long changes are gathered before they are told."""
EXPIRY_GRACE_S: Final = 60.0
"""A watch outlives its token by so long; then the client comes again with a new one."""
_TAG_BYTES: Final = 8


class Spot(NamedTuple):
    """Where a room stands in the list, which never changes while it is there."""

    created_at_ms: int
    room_id: str


def matches(record: RoomRecord, operator: str, wanted: RoomFilter) -> bool:
    """Whether a room is in the list of an operator's players, and what one of them looks for."""
    if record.operator != operator or not is_listed(record):
        return False
    plan = record.room.plan
    if wanted.preset and plan.preset != wanted.preset:
        return False
    if plan.stake < wanted.stake_min or (wanted.stake_max and plan.stake > wanted.stake_max):
        return False
    if wanted.free_only and plan.stake:
        return False
    return free_seats(record.room) >= wanted.free_seats_min


class RoomLists:
    """All lists and watches of a process."""

    def __init__(
        self,
        rooms: Mirror[RoomRecord],
        now_ms: Callable[[], int],
        renewals: Renewals,
    ) -> None:
        """Begin with what the mirror knows.

        Args:
            rooms: the mirror of rooms.
            now_ms: milliseconds of Unix time.
            renewals: knows how long a watch may live.
        """
        self.rooms = rooms
        self.now_ms = now_ms
        self.renewals = renewals
        self.draining = False
        self._spots: dict[str, list[Spot]] = {}
        """By operator, oldest first."""
        self._watches: set[_Watch] = set()
        self._of_player: dict[str, list[_Watch]] = {}
        """From the oldest on, but for those that gave way."""
        for room_id, record in rooms.items():
            self._heard(room_id, None, record)
        rooms.on_change(self._heard)

    def _heard(self, room_id: str, before: RoomRecord | None, after: RoomRecord | None) -> None:
        record = after or before
        if record is None:
            return
        was = before is not None and is_listed(before)
        now = after is not None and is_listed(after)
        if was != now:
            self._list(record, now)
        if was or now:
            for watch in self._watches:
                if watch.operator == record.operator:
                    watch.hear(room_id)

    def _list(self, record: RoomRecord, now: bool) -> None:
        spots = self._spots.setdefault(record.operator, [])
        spot = Spot(record.room.created_at_ms, record.room.room_id)
        place = bisect.bisect_left(spots, spot)
        if now:
            spots.insert(place, spot)
        elif spots[place : place + 1] == [spot]:
            del spots[place]
        if not spots:
            del self._spots[record.operator]

    def newest(self, operator: str, before: Spot | None = None) -> Iterator[Spot]:
        """The rooms of an operator's list now, newest first; only those after a place, if one is given."""
        spots = self._spots.get(operator, [])
        end = len(spots) if before is None else bisect.bisect_left(spots, before)
        return reversed(spots[:end])

    def page(self, request: ListRoomsRequest, operator: str) -> ListRoomsResponse:
        """One page. Rooms that come or go meanwhile move no other from one page to the next.

        A page may be short though more follow: only so many rooms are looked at for one.

        Raises:
            RefusedError: BAD_INPUT for a size or token that cannot be.
        """
        if request.page_size > PAGE_MOST:
            raise RefusedError(Reason.BAD_INPUT, {"field": "page_size", "detail": f"is at most {PAGE_MOST}"})
        size = request.page_size or PAGE
        wanted = check_filter(request.filter)
        before = _spot_of(request.page_token, operator, wanted) if request.page_token else None
        response = ListRoomsResponse()
        for looked_at, spot in enumerate(self.newest(operator, before)):
            if before is not None and (len(response.rooms) == size or looked_at == LOOKED_AT_MOST):
                response.next_page_token = _token_of(before, operator, wanted)
                break
            before = spot
            record = self.rooms.get(spot.room_id)
            if record is not None and matches(record, operator, wanted):
                response.rooms.append(summary(record))
        return response

    async def watch(self, request: WatchRoomsRequest, call: Call, write: Write) -> None:
        """Serve one watch until its client leaves or it must end.

        Raises:
            RefusedError: it cannot begin (BUSY, BAD_INPUT), or why it ended (DRAINING, SLOW_READER,
                UNAUTHENTICATED; RATE_LIMITED for a player's oldest when there are too many).
        """
        if len(self._watches) >= WATCHES_MOST:
            raise RefusedError(Reason.BUSY)
        watch = _Watch(self, call, check_filter(request.filter), write)
        self._watches.add(watch)
        of_player = self._of_player.setdefault(call.player_id, [])
        of_player.append(watch)
        if len(of_player) > PLAYER_WATCHES:
            of_player.pop(0).give_way()
        try:
            await watch.run()
        finally:
            self._watches.discard(watch)
            self.renewals.leave(watch.lease)
            if watch in of_player:
                of_player.remove(watch)
            if not of_player and self._of_player.get(call.player_id) is of_player:
                del self._of_player[call.player_id]

    def drain(self) -> None:
        """End all watches: another replica serves them."""
        self.draining = True
        for watch in self._watches:
            watch.wake()


class _Watch:
    """One watch: what its client knows, and what it has not been told yet."""

    def __init__(self, lists: RoomLists, call: Call, wanted: RoomFilter, write: Write) -> None:
        self.operator = call.operator
        self._woken = asyncio.Event()
        self._lists = lists
        self.lease = lists.renewals.enter(call.holder, call.expires_at, self.wake)
        self._wanted = wanted
        self._write = write
        self._known: set[str] = set()
        self._changed: dict[str, None] = {}
        self._gave_way = False

    def hear(self, room_id: str) -> None:
        """A room has changed."""
        self._changed[room_id] = None
        self._woken.set()

    def wake(self) -> None:
        """Look whether to end."""
        self._woken.set()

    def give_way(self) -> None:
        """End: the player has too many."""
        self._gave_way = True
        self.wake()

    async def run(self) -> None:
        """The rooms there are, then what changes."""
        for looked_at, spot in enumerate(self._lists.newest(self.operator)):
            if looked_at % LOOKED_AT_ONCE == 0:
                await asyncio.sleep(0)
            self._check_end()
            await self._tell(spot.room_id)
        await self._send(WatchRoomsResponse(listed=Listed()))
        while True:
            self._check_end()
            await self._wait()
            changed, self._changed = self._changed, {}
            for room_id in changed:
                await self._tell(room_id)

    async def _wait(self) -> None:
        """Until something changed and a little longer; an idle client is told that the connection lives."""
        try:
            async with asyncio.timeout(self._patience()):
                await self._woken.wait()
        except TimeoutError:
            self._check_end()
            now = self._lists.now_ms()
            expires = self.lease.expires_at * 1000
            await self._send(WatchRoomsResponse(idle=Idle(server_now_ms=now, token_expires_at_ms=expires)))
            return
        if not self._lists.draining:
            await asyncio.sleep(GATHER_S)
        self._woken.clear()

    def _patience(self) -> float:
        """Until the next sign of life, or until the watch must end."""
        return min(IDLE_S, max(0.0, self._ends_at() - self._lists.now_ms() / 1000) + 0.01)

    def _ends_at(self) -> float:
        return self.lease.expires_at + EXPIRY_GRACE_S

    async def _tell(self, room_id: str) -> None:
        """Tell a room as it is at this moment, or that it is no longer in the list."""
        record = self._lists.rooms.get(room_id)
        if record is not None and matches(record, self.operator, self._wanted):
            self._known.add(room_id)
            await self._send(WatchRoomsResponse(room=summary(record)))
        elif room_id in self._known:
            self._known.discard(room_id)
            await self._send(WatchRoomsResponse(gone=room_id))

    async def _send(self, response: WatchRoomsResponse) -> None:
        try:
            async with asyncio.timeout(STUCK_S):
                await self._write(response.SerializeToString())
        except TimeoutError:
            raise RefusedError(Reason.SLOW_READER) from None

    def _check_end(self) -> None:
        if self._gave_way:
            raise RefusedError(Reason.RATE_LIMITED, retry_after_s=GAVE_WAY_RETRY_S)
        if self._lists.draining:
            raise RefusedError(Reason.DRAINING)
        if self._lists.now_ms() / 1000 >= self._ends_at():
            raise RefusedError(Reason.UNAUTHENTICATED, {"detail": "the token has expired"})


def check_filter(wanted: RoomFilter) -> RoomFilter:
    """A filter that something could match.

    Raises:
        RefusedError: BAD_INPUT.
    """
    if wanted.free_seats_min > 4:
        raise RefusedError(
            Reason.BAD_INPUT, {"field": "filter.free_seats_min", "detail": "must be from 0 to 4"}
        )
    return wanted


def _token_of(spot: Spot, operator: str, wanted: RoomFilter) -> str:
    """A page token: where the page ended, tied to the filter that it was made with."""
    place = f"{spot.created_at_ms}.{spot.room_id}".encode()
    return base64.urlsafe_b64encode(_tag(place, operator, wanted) + place).decode().rstrip("=")


def _spot_of(token: str, operator: str, wanted: RoomFilter) -> Spot:
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True)
        place = raw[_TAG_BYTES:]
        if raw[:_TAG_BYTES] != _tag(place, operator, wanted):
            raise ValueError("the tag is of another filter")
        created_at_ms, _, room_id = place.decode().partition(".")
        return Spot(int(created_at_ms), room_id)
    except (ValueError, binascii.Error):
        refused = {"field": "page_token", "detail": "is none of this filter's"}
        raise RefusedError(Reason.BAD_INPUT, refused) from None


def _tag(place: bytes, operator: str, wanted: RoomFilter) -> bytes:
    said = wanted.SerializeToString(deterministic=True)
    return hashlib.sha256(frame(said, operator.encode(), place)).digest()[:_TAG_BYTES]
