"""Who is in a room, and what is refused because of it. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from services.pb.lobby.v1.room_pb2 import Room, RoomSeat
from services.pb.lobby.v1.stored_pb2 import RoomRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError


class Person(NamedTuple):
    """Somebody who comes in."""

    player_id: str
    name: str


def seated(room: Room) -> dict[str, int]:
    """The people on seats, with their seats."""
    return {seat.player_id: number for number, seat in enumerate(room.seats) if seat.player_id}


def is_member(room: Room, player_id: str) -> bool:
    """Whether a player is in the room."""
    return any(member.player_id == player_id for member in room.members)


def is_free(seat: RoomSeat) -> bool:
    """Whether neither a person nor a bot sits there."""
    return not seat.player_id and not seat.difficulty


def check_member(record: RoomRecord, player_id: str) -> None:
    """Refuse strangers.

    Raises:
        RefusedError: NOT_IN_ROOM.
    """
    if not is_member(record.room, player_id):
        raise RefusedError(Reason.NOT_IN_ROOM)


def check_host(record: RoomRecord, player_id: str, states: Sequence[int] = ()) -> None:
    """Refuse all but the host, and the host when the room is in none of some states.

    Raises:
        RefusedError: NOT_IN_ROOM, NOT_HOST, WRONG_PHASE.
    """
    check_member(record, player_id)
    if record.room.host_id != player_id:
        raise RefusedError(Reason.NOT_HOST)
    if states:
        check_state(record, states)


def check_state(record: RoomRecord, states: Sequence[int]) -> None:
    """Refuse what cannot be done where the room stands.

    Raises:
        RefusedError: WRONG_PHASE.
    """
    if record.room.state not in states:
        raise RefusedError(Reason.WRONG_PHASE)
