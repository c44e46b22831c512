"""Where a player is, and how to go on there: what a front end asks after any loss."""

from typing import Final

from services.lobby.presence import Presence
from services.lobby.records import place_key, room_key
from services.lobby.room_views import as_seen
from services.lobby.store import Store
from services.lobby.table_log import TableLog
from services.pb.lobby.v1.presence_service_pb2 import Whereabouts
from services.pb.lobby.v1.stored_pb2 import PlaceRecord, RoomRecord

_TRIES: Final = 3


class Finder:
    """Finds players, by the records themselves and the log: what it says was true when it was asked."""

    def __init__(self, store: Store, log: TableLog, presence: Presence) -> None:
        self._store = store
        self._log = log
        self._presence = presence

    async def of(self, player_id: str) -> Whereabouts:
        """Where a player is, as the player is told.

        Raises:
            Unavailable: the store or the log cannot be read.
        """
        place, room = await self._place_and_room(player_id)
        found = Whereabouts(room_id=place.room_id, ticket_id=place.ticket_id, table_id=place.table_id)
        if place.HasField("seat"):
            found.seat = place.seat
        if room is not None:
            found.room.CopyFrom(as_seen(room, player_id, self._presence))
        if place.table_id:
            found.table_version = await self._log.version_of(place.table_id)
        return found

    async def place(self, player_id: str) -> PlaceRecord:
        """The player's place; an empty one for nowhere, where bots, services and strangers always are.

        Raises:
            Unavailable: the store cannot be read.
        """
        try:
            entry = await self._store.get(place_key(player_id))
        except ValueError:  # what is no key names nobody
            return PlaceRecord()
        return PlaceRecord.FromString(entry.value)

    async def _place_and_room(self, player_id: str) -> tuple[PlaceRecord, RoomRecord | None]:
        """Both change in one write but are read one by one, so if the room is gone the place is read again.

        A place whose room stays away would keep its player out of everything, so it counts as nowhere.
        """
        for _ in range(_TRIES):
            place = await self.place(player_id)
            if not place.room_id:
                return place, None
            entry = await self._store.get(room_key(place.room_id))
            if entry.value:
                return place, RoomRecord.FromString(entry.value)
        return PlaceRecord(), None
