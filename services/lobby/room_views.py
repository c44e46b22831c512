"""A room as somebody may see it."""

from typing import Protocol

from services.lobby.room_checks import is_free, is_member
from services.pb.lobby.v1.room_pb2 import (
    ROOM_STATE_OPEN,
    VISIBILITY_PUBLIC,
    Room,
    RoomSummary,
)
from services.pb.lobby.v1.stored_pb2 import RoomRecord


class Online(Protocol):
    """Who is there; ``presence.Presence`` knows."""

    def is_online(self, player_id: str) -> bool:
        """Whether a connection of the player's is alive."""

    def absent_s(self, player_id: str) -> float:
        """Seconds since the player was last seen, 0 while online."""


def as_seen(record: RoomRecord, player_id: str, presence: Online) -> Room:
    """The room for a player: who of it is online, and its codes for members alone."""
    seen = Room()
    seen.CopyFrom(record.room)
    for member in seen.members:
        member.online = presence.is_online(member.player_id)
    if not is_member(seen, player_id):
        seen.code = seen.spectator_code = seen.resume = ""
    return seen


def is_listed(record: RoomRecord) -> bool:
    """Whether a room stands in the public list of its operator."""
    return record.room.state == ROOM_STATE_OPEN and record.room.visibility == VISIBILITY_PUBLIC


def free_seats(room: Room) -> int:
    """Seats without anybody, 0 to 4."""
    return sum(is_free(seat) for seat in room.seats)


def summary(record: RoomRecord) -> RoomSummary:
    """A room as the public list shows it."""
    room = record.room
    host = next((member.name for member in room.members if member.player_id == room.host_id), "")
    return RoomSummary(
        room_id=room.room_id,
        version=room.version,
        state=room.state,
        plan=room.plan,
        host_name=host,
        free_seats=free_seats(room),
        people=len(room.members),
        created_at_ms=room.created_at_ms,
    )
