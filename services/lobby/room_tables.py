"""A room and its tables: beginning, what became of it, and playing again. Pure decisions, as in ``rooms.py``.

A table's name follows from the room and how often it has started, so every replica founds the same one. What
happens at a table names it: what concerns another table than the room's present one changes nothing.
"""

import uuid
from collections.abc import Sequence
from typing import Final, NamedTuple

from services.game.ids import table_id_of
from services.lobby.room_checks import (
    Person,
    check_host,
    check_member,
    check_state,
    is_free,
    is_member,
    seated,
)
from services.lobby.rooms import AT_TABLE, changed, says_again, without
from services.pb.event.v1.event_pb2 import DIFFICULTY_NORMAL, Difficulty
from services.pb.lobby.v1.room_pb2 import (
    ROOM_STATE_AFTER,
    ROOM_STATE_ENDED,
    ROOM_STATE_OPEN,
    ROOM_STATE_PLAYING,
    ROOM_STATE_STARTING,
    VISIBILITY_CODE,
    Room,
    RoomMember,
    RoomPlan,
    RoomSeat,
)
from services.pb.lobby.v1.stored_pb2 import RoomRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError

LOBBY: Final = "svc:lobby"
"""Who founds the tables of rooms, as the table service knows the caller."""
_STARTS: Final = uuid.UUID("5d0a8c1e-3b57-5f0e-8f0c-7a4f6e2b9d31")
"""The name space of the commands that found tables."""


def command_of(record: RoomRecord) -> uuid.UUID:
    """The command that founds the room's present table: the same on every replica.

    Its first code is in it because a room of the same id may be made again after it ended.
    """
    return uuid.uuid5(_STARTS, f"{record.room.room_id}/{record.salt}/{record.starts}")


# ----------------------------------------------------------------------------------------------- beginning


def matched(
    room_id: str,
    seats: Sequence[Person | Difficulty.ValueType],
    plan: RoomPlan,
    code: str,
    *,
    operator: str,
    now_ms: int,
) -> RoomRecord:
    """The room of a match that matchmaking has made: STARTING at once, its first person the host.

    Args:
        room_id: a new one.
        seats: a person or a bot's difficulty for each of the seats 0 to 3; one person at least.
        plan: what is played.
        code: a free invite code.
        operator: whose players they are.
        now_ms: the time.
    """
    people = [held for held in seats if isinstance(held, Person)]
    room = Room(
        room_id=room_id,
        version=1,
        state=ROOM_STATE_OPEN,
        plan=plan,
        visibility=VISIBILITY_CODE,
        code=code,
        host_id=people[0].player_id,
        seats=[
            RoomSeat(player_id=held.player_id) if isinstance(held, Person) else RoomSeat(difficulty=held)
            for held in seats
        ],
        members=[RoomMember(player_id=person.player_id, name=person.name) for person in people],
        created_at_ms=now_ms,
    )
    record = RoomRecord(room=room, operator=operator, changed_at_ms=now_ms, salt=code)
    _begin(record, previous_table_id="")
    return record


def start(record: RoomRecord, host_id: str, fill_with_bots: bool, now_ms: int) -> RoomRecord:
    """The host begins.

    Raises:
        RefusedError: NOT_IN_ROOM, NOT_HOST, WRONG_PHASE, SEATS_NOT_FILLED.
    """
    check_host(record, host_id)
    if record.room.state in AT_TABLE:
        return record
    check_state(record, (ROOM_STATE_OPEN,))
    if not fill_with_bots and any(is_free(seat) for seat in record.room.seats):
        raise RefusedError(Reason.SEATS_NOT_FILLED)

    def fill(after: RoomRecord) -> None:
        for seat in after.room.seats:
            if is_free(seat):
                seat.difficulty = DIFFICULTY_NORMAL
        _begin(after, previous_table_id="")

    return changed(record, now_ms, fill)


def play_again(record: RoomRecord, player_id: str, again: bool, now_ms: int) -> RoomRecord:
    """Somebody on a seat wants to play again, or no longer; when all of them do, it begins.

    Raises:
        RefusedError: NOT_IN_ROOM, NOT_SEATED, WRONG_PHASE.
    """
    check_member(record, player_id)
    people = seated(record.room)
    if player_id not in people:
        raise RefusedError(Reason.NOT_SEATED)
    if again and record.room.state in AT_TABLE and record.previous_table_id:
        return record
    check_state(record, (ROOM_STATE_AFTER,))

    def say(after: RoomRecord) -> None:
        says_again(after.room, player_id, again=again)
        willing = {member.player_id for member in after.room.members if member.again}
        if people.keys() <= willing and not any(is_free(seat) for seat in after.room.seats):
            _begin(after, previous_table_id=after.room.table_id)

    return changed(record, now_ms, say)


def _begin(after: RoomRecord, previous_table_id: str) -> None:
    """Make a room STARTING whose seats are filled, and name its table."""
    after.starts += 1
    after.previous_table_id = previous_table_id
    after.held = False
    del after.left[:]
    room = after.room
    room.state = ROOM_STATE_STARTING
    room.table_id = table_id_of(LOBBY, command_of(after).bytes)
    room.failed = ""
    room.spectator_code = room.resume = ""
    for member in room.members:
        member.again = False


# ------------------------------------------------------------------------------------------- being founded


def funds_held(record: RoomRecord, table_id: str, now_ms: int) -> RoomRecord:
    """The chips for the table are held: nobody's lack of them can fail this start any more."""
    if not is_starting(record, table_id):
        return record

    def hold(after: RoomRecord) -> None:
        after.held = True

    return changed(record, now_ms, hold)


def founded(record: RoomRecord, table_id: str, spectator_code: str, resume: str, now_ms: int) -> RoomRecord:
    """The table is there."""
    if not is_starting(record, table_id):
        return record

    def play(after: RoomRecord) -> None:
        after.room.state = ROOM_STATE_PLAYING
        after.room.spectator_code = spectator_code
        after.room.resume = resume

    return changed(record, now_ms, play)


def start_failed(
    record: RoomRecord, table_id: str, failed: str, now_ms: int, *, for_funds: bool = False
) -> RoomRecord:
    """The table cannot be founded: the room is open again; one of a match that never was is over.

    Args:
        record: the room.
        table_id: the table.
        failed: the name of the reason.
        now_ms: the time.
        for_funds: it was for want of chips; of no account when another replica has them held by now.
    """
    if not is_starting(record, table_id) or (for_funds and record.held):
        return record

    def reopen(after: RoomRecord) -> None:
        room = after.room
        room.table_id = after.previous_table_id = ""
        room.failed = failed
        after.held = False
        room.state = ROOM_STATE_OPEN
        if not record.request_id and record.starts == 1:
            room.state = ROOM_STATE_ENDED
            del room.members[:]

    return changed(record, now_ms, reopen)


def is_starting(record: RoomRecord, table_id: str) -> bool:
    """Whether the room waits for this very table."""
    return record.room.state == ROOM_STATE_STARTING and record.room.table_id == table_id


# -------------------------------------------------------------------------------------- what happened there


class Happened(NamedTuple):
    """What commits of a table say that concerns its room."""

    left: tuple[str, ...] = ()
    """Players who left it for good."""
    over: bool = False
    """The match has ended, or the table is closed."""


def happened(record: RoomRecord, table_id: str, what: Happened, now_ms: int) -> RoomRecord:
    """The room after something happened at its table; the same whatever comes first, and told twice.

    Who left the table is out of the room; the match over, everybody is back from the table.
    """
    room = record.room
    if room.table_id != table_id or room.state not in (*AT_TABLE, ROOM_STATE_AFTER):
        return record

    def take(after: RoomRecord) -> None:
        for player_id in what.left:
            if player_id not in after.left:
                after.left.append(player_id)
                if is_member(after.room, player_id):
                    without(after.room, player_id)
        if what.over and after.room.state in AT_TABLE:
            after.room.state = ROOM_STATE_AFTER

    return changed(record, now_ms, take)
