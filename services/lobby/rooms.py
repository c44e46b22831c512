"""What may become of a room: pure decisions on its record.

Every function takes the record as it is, who asks, what is asked and the time in milliseconds of Unix time,
and returns the record after it: the same object when nothing changes, because the intent is fulfilled
already. Records are never changed in place. What is not allowed raises ``RefusedError``.

    OPEN ⇄ SEARCHING
    OPEN → STARTING → PLAYING → AFTER → STARTING → …        any → ENDED
           STARTING → OPEN when the table could not be founded

What has to do with its tables stands in ``room_tables.py``.
"""

from collections.abc import Callable
from typing import Final

from services.game.state import SEATS
from services.lobby.room_checks import (
    Person,
    check_host,
    check_member,
    check_state,
    is_free,
    is_member,
    seated,
)
from services.pb.event.v1.event_pb2 import Difficulty
from services.pb.lobby.v1.room_pb2 import (
    ROOM_STATE_AFTER,
    ROOM_STATE_ENDED,
    ROOM_STATE_OPEN,
    ROOM_STATE_PLAYING,
    ROOM_STATE_SEARCHING,
    ROOM_STATE_STARTING,
    VISIBILITY_CODE,
    VISIBILITY_UNSPECIFIED,
    Room,
    RoomMember,
    RoomPlan,
    RoomSeat,
    Visibility,
)
from services.pb.lobby.v1.stored_pb2 import RoomRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError

MEMBERS_MOST: Final = 12
KICKED_MOST: Final = 100
"""Of those sent away so many are remembered, the last ones."""
AT_TABLE: Final = (ROOM_STATE_STARTING, ROOM_STATE_PLAYING)
"""States in which the seated members are at the room's table, or on their way to it."""
SETTLED: Final = (ROOM_STATE_OPEN, ROOM_STATE_AFTER)
"""States in which seats can be changed."""


# ------------------------------------------------------------------------------------------ coming and going


def create(
    room_id: str,
    host: Person,
    plan: RoomPlan,
    visibility: Visibility.ValueType,
    code: str,
    *,
    operator: str,
    request_id: bytes,
    stand: bool,
    now_ms: int,
) -> RoomRecord:
    """A new room with its host in it, on seat 0 unless they stand."""
    room = Room(
        room_id=room_id,
        version=1,
        state=ROOM_STATE_OPEN,
        plan=plan,
        visibility=visibility or VISIBILITY_CODE,
        code=code,
        host_id=host.player_id,
        seats=[RoomSeat() for _ in range(SEATS)],
        members=[RoomMember(player_id=host.player_id, name=host.name)],
        created_at_ms=now_ms,
    )
    if not stand:
        room.seats[0].player_id = host.player_id
    return RoomRecord(room=room, operator=operator, request_id=request_id, changed_at_ms=now_ms, salt=code)


def join(record: RoomRecord, person: Person, now_ms: int) -> RoomRecord:
    """Somebody comes in; while the table plays, to look on.

    Raises:
        RefusedError: KICKED, WRONG_PHASE, ROOM_FULL.
    """
    room = record.room
    if is_member(room, person.player_id):
        return record
    if person.player_id in record.kicked:
        raise RefusedError(Reason.KICKED)
    if room.state not in (*SETTLED, ROOM_STATE_PLAYING):
        raise RefusedError(Reason.WRONG_PHASE)
    if len(room.members) >= MEMBERS_MOST:
        raise RefusedError(Reason.ROOM_FULL)
    return changed(
        record,
        now_ms,
        lambda after: after.room.members.append(RoomMember(player_id=person.player_id, name=person.name)),
    )


def leave(record: RoomRecord, player_id: str, now_ms: int) -> RoomRecord:
    """A member goes, or is gone already.

    Raises:
        RefusedError: WRONG_PHASE: they sit at the table, or opponents are being looked for.
    """
    room = record.room
    if not is_member(room, player_id):
        return record
    if room.state == ROOM_STATE_SEARCHING or (room.state in AT_TABLE and player_id in seated(room)):
        raise RefusedError(Reason.WRONG_PHASE)
    return changed(record, now_ms, lambda after: without(after.room, player_id))


def kick(record: RoomRecord, host_id: str, player_id: str, now_ms: int) -> RoomRecord:
    """The host sends a member away for good; while the table plays, only who looks on.

    Raises:
        RefusedError: NOT_HOST, WRONG_PHASE, NOT_IN_ROOM; BAD_INPUT for the host itself.
    """
    looks_on = record.room.state == ROOM_STATE_PLAYING and player_id not in seated(record.room)
    check_host(record, host_id, () if looks_on else SETTLED)
    if player_id == host_id:
        raise RefusedError(Reason.BAD_INPUT, {"field": "player_id", "detail": "is the host's own"})
    if not is_member(record.room, player_id):
        if player_id in record.kicked:
            return record
        raise RefusedError(Reason.NOT_IN_ROOM)

    def send_away(after: RoomRecord) -> None:
        without(after.room, player_id)
        after.kicked.append(player_id)
        del after.kicked[:-KICKED_MOST]

    return changed(record, now_ms, send_away)


def end(record: RoomRecord, now_ms: int) -> RoomRecord:
    """The room is over, and nobody is in it."""

    def over(after: RoomRecord) -> None:
        after.room.state = ROOM_STATE_ENDED
        del after.room.members[:]

    return changed(record, now_ms, over)


def without(room: Room, player_id: str) -> None:
    """Take a member out of a room that may be changed: off the seat, and the host's place passes on."""
    for seat in room.seats:
        if seat.player_id == player_id:
            seat.Clear()
    members = [member for member in room.members if member.player_id != player_id]
    del room.members[:]
    room.members.extend(members)
    if not members:
        room.state = ROOM_STATE_ENDED
    elif room.host_id == player_id:
        room.host_id = members[0].player_id


def says_again(room: Room, player_id: str, *, again: bool) -> None:
    """Note in a room that may be changed whether a member wants to play again."""
    for member in room.members:
        if member.player_id == player_id:
            member.again = again


# ----------------------------------------------------------------------------------------------------- seats


def take_seat(record: RoomRecord, player_id: str, seat: int | None, now_ms: int) -> RoomRecord:
    """A member takes a free seat, changes to it, or stands up.

    Raises:
        RefusedError: NOT_IN_ROOM, WRONG_PHASE, SEAT_TAKEN; BAD_INPUT for no seat.
    """
    check_member(record, player_id)
    if seat is not None:
        _check_seat(seat, "seat")
    if seated(record.room).get(player_id) == seat:
        return record
    check_state(record, SETTLED)
    if seat is not None and not is_free(record.room.seats[seat]):
        raise RefusedError(Reason.SEAT_TAKEN)

    def sit(after: RoomRecord) -> None:
        for held in after.room.seats:
            if held.player_id == player_id:
                held.Clear()
        if seat is not None:
            after.room.seats[seat].player_id = player_id
        else:
            says_again(after.room, player_id, again=False)

    return changed(record, now_ms, sit)


def swap_seats(
    record: RoomRecord, host_id: str, first: int, second: int, now_ms: int, version: int = 0
) -> RoomRecord:
    """The host exchanges two seats with whoever or whatever is on them.

    Args:
        record: the room.
        host_id: who asks.
        first: a seat.
        second: the other.
        now_ms: the time.
        version: of the room that the host looked at; 0 for any.

    Raises:
        RefusedError: NOT_IN_ROOM, NOT_HOST, WRONG_PHASE, STALE_VERSION; BAD_INPUT for no seats.
    """
    check_host(record, host_id, SETTLED)
    if version and version != record.room.version:
        raise RefusedError(Reason.STALE_VERSION)
    _check_seat(first, "first")
    _check_seat(second, "second")

    def exchange(after: RoomRecord) -> None:
        one, other = record.room.seats[first], record.room.seats[second]
        after.room.seats[first].CopyFrom(other)
        after.room.seats[second].CopyFrom(one)

    return changed(record, now_ms, exchange)


def set_bots(
    record: RoomRecord, host_id: str, difficulty: Difficulty.ValueType, seat: int | None, now_ms: int
) -> RoomRecord:
    """The host puts bots on a seat or all free ones, or takes them away (no difficulty).

    Raises:
        RefusedError: NOT_IN_ROOM, NOT_HOST, WRONG_PHASE; SEAT_TAKEN where a person sits; BAD_INPUT.
    """
    check_host(record, host_id, SETTLED)
    if seat is not None:
        _check_seat(seat, "seat")
        if record.room.seats[seat].player_id:
            raise RefusedError(Reason.SEAT_TAKEN)
    if difficulty not in Difficulty.values():
        raise RefusedError(Reason.BAD_INPUT, {"field": "difficulty", "detail": "is no such value"})

    def put(after: RoomRecord) -> None:
        for number, held in enumerate(after.room.seats):
            all_that_fit = seat is None and (is_free(held) if difficulty else not held.player_id)
            if number == seat or all_that_fit:
                held.difficulty = difficulty

    return changed(record, now_ms, put)


# ---------------------------------------------------------------------------------------- the host's matters


def set_plan(
    record: RoomRecord, host_id: str, plan: RoomPlan, visibility: Visibility.ValueType, now_ms: int
) -> RoomRecord:
    """The host changes what is played, and who can find the room unless that is unspecified.

    Raises:
        RefusedError: NOT_IN_ROOM, NOT_HOST, WRONG_PHASE.
    """
    check_host(record, host_id, (ROOM_STATE_OPEN,))

    def plan_anew(after: RoomRecord) -> None:
        after.room.plan.CopyFrom(plan)
        if visibility != VISIBILITY_UNSPECIFIED:
            after.room.visibility = visibility

    return changed(record, now_ms, plan_anew)


def hand_over(record: RoomRecord, host_id: str, player_id: str, now_ms: int) -> RoomRecord:
    """The host makes another member the host.

    Raises:
        RefusedError: NOT_IN_ROOM for either, NOT_HOST, WRONG_PHASE.
    """
    if record.room.host_id == player_id and is_member(record.room, host_id):
        return record
    check_host(record, host_id, SETTLED)
    check_member(record, player_id)

    def pass_on(after: RoomRecord) -> None:
        after.room.host_id = player_id

    return changed(record, now_ms, pass_on)


def renew_code(record: RoomRecord, host_id: str, code: str, now_ms: int) -> RoomRecord:
    """The host has a new invite code; a repeated request makes another one.

    Raises:
        RefusedError: NOT_IN_ROOM, NOT_HOST, WRONG_PHASE.
    """
    check_host(record, host_id, (*SETTLED, ROOM_STATE_PLAYING))

    def renew(after: RoomRecord) -> None:
        after.room.code = code

    return changed(record, now_ms, renew)


# ------------------------------------------------------------------------------------- looking for opponents


def begin_search(record: RoomRecord, host_id: str, ticket_id: str, now_ms: int) -> RoomRecord:
    """The host of a room of two partners looks for opponents.

    Raises:
        RefusedError: NOT_IN_ROOM, NOT_HOST, WRONG_PHASE; BAD_INPUT when these are not two partners alone, or
            the plan is no preset as it is.
    """
    if record.room.state == ROOM_STATE_SEARCHING and record.room.ticket_id == ticket_id:
        return record
    check_host(record, host_id, (ROOM_STATE_OPEN,))
    fault = _search_fault(record.room)
    if fault:
        raise RefusedError(Reason.BAD_INPUT, {"field": "room_id", "detail": fault})

    def search(after: RoomRecord) -> None:
        after.room.state = ROOM_STATE_SEARCHING
        after.room.ticket_id = ticket_id

    return changed(record, now_ms, search)


def _search_fault(room: Room) -> str:
    seats = sorted(seated(room).values())
    if len(room.members) != 2 or seats not in ([0, 2], [1, 3]):
        return "the room is not of two people on opposite seats"
    if any(seat.difficulty for seat in room.seats):
        return "bots have seats in the room"
    return "matchmaking plays presets as they are" if room.plan.overrides else ""


def end_search(record: RoomRecord, ticket_id: str, now_ms: int) -> RoomRecord:
    """A search is over without a match; that of another ticket changes nothing."""
    if record.room.state != ROOM_STATE_SEARCHING or record.room.ticket_id != ticket_id:
        return record

    def reopen(after: RoomRecord) -> None:
        after.room.state = ROOM_STATE_OPEN
        after.room.ticket_id = ""

    return changed(record, now_ms, reopen)


# ------------------------------------------------------------------------------------------------- in common


def changed(record: RoomRecord, now_ms: int, change: Callable[[RoomRecord], object]) -> RoomRecord:
    """The record after a change, with its version and time; the record itself if the change made none."""
    after = RoomRecord()
    after.CopyFrom(record)
    change(after)
    if after == record:
        return record
    after.room.version += 1
    after.changed_at_ms = now_ms
    return after


def _check_seat(seat: int, field: str) -> None:
    if not 0 <= seat < SEATS:
        raise RefusedError(Reason.BAD_INPUT, {"field": field, "detail": "must be from 0 to 3"})
