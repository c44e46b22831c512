"""Writing a room: its record, its invite code and its members' places change together or not at all.

Where a member is follows from the room alone, so places and rooms cannot disagree.
"""

from services.game.ids import is_id
from services.lobby.records import Change, code_key, place_key, room_key
from services.lobby.room_checks import seated
from services.lobby.rooms import AT_TABLE
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_ENDED
from services.pb.lobby.v1.stored_pb2 import CodeRecord, PlaceRecord, RoomRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError


def places(record: RoomRecord) -> dict[str, PlaceRecord]:
    """Where each member of a room is."""
    room = record.room
    here = {
        member.player_id: PlaceRecord(room_id=room.room_id, ticket_id=room.ticket_id)
        for member in room.members
    }
    if room.state in AT_TABLE:
        for player_id, seat in seated(room).items():
            here[player_id].table_id = room.table_id
            here[player_id].seat = seat
    return here


async def save_room(change: Change, before: RoomRecord | None, after: RoomRecord) -> None:
    """Put a room that was decided on, or drop it with everything of it when it has ended.

    Whoever comes in must have been nowhere, or have been taken from there in this change. Before None: the
    room is new.

    Raises:
        RefusedError: ELSEWHERE for somebody who comes in.
        Unavailable: the store cannot be read.
    """
    if after is before:
        return
    room = after.room
    were = places(before) if before is not None else {}
    ended = room.state == ROOM_STATE_ENDED
    are = {} if ended else places(after)
    for player_id, place in are.items():
        if player_id not in were:
            await check_nowhere(change, player_id, room.room_id)
        if were.get(player_id) != place:
            await change.put(place_key(player_id), place)
    for player_id in were.keys() - are.keys():
        await change.drop(place_key(player_id))
    if before is not None and (ended or before.room.code != room.code):
        await change.drop(code_key(before.room.code))
    if ended:
        await change.drop(room_key(room.room_id))
        return
    if before is None or before.room.code != room.code:
        await change.put(code_key(room.code), CodeRecord(room_id=room.room_id))
    await change.put(room_key(room.room_id), after)


async def read_place(change: Change, player_id: str) -> None:
    """Read where somebody is who may come into a room, before the room is read.

    Records are read one by one. In this order nobody who has just come into the room is found elsewhere, in
    that very room.

    Raises:
        RefusedError: UNKNOWN_PLAYER for who can be nowhere, such as a bot or a service.
        Unavailable: the store cannot be read.
    """
    if not is_id("ply", player_id):
        raise RefusedError(Reason.UNKNOWN_PLAYER)
    await change.get(place_key(player_id), PlaceRecord)


async def check_nowhere(change: Change, player_id: str, room_id: str) -> None:
    """Refuse who comes into a room and is somewhere already.

    Raises:
        RefusedError: ELSEWHERE; BUSY when they have just left this very room.
        Unavailable: the store cannot be read.
    """
    place = await change.get(place_key(player_id), PlaceRecord)
    if place is not None:
        if place.room_id == room_id:
            raise RefusedError(Reason.BUSY)
        kind = "table" if place.table_id else "search" if place.ticket_id else "room"
        raise RefusedError(Reason.ELSEWHERE, {"place": kind})
