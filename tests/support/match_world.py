"""Replicas that look for opponents, in memory, over a store that fails as tests say."""

import asyncio
import random
import uuid
from collections.abc import Sequence

from services.lobby.match_servicer import MatchServicer
from services.lobby.passes import Passes
from services.lobby.room_saving import places
from services.lobby.store import Conflict, Entry, Store, Write
from services.lobby.tickets import Tickets
from services.pb.lobby.v1 import match_service_pb2 as pb
from services.pb.lobby.v1.match_service_pb2 import Ticket
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_SEARCHING, Room, RoomPlan
from services.pb.lobby.v1.stored_pb2 import CodeRecord, PlaceRecord, RoomRecord, TicketRecord
from services.shell.log_store import Unavailable, Why
from support.room_world import House, Replica, player

PRESET = "classic-2d"


class FakeRatings:
    """``Ratings`` of whom a test has rated."""

    def __init__(self) -> None:
        self.rated: dict[str, float] = {}

    async def of(self, player_ids: Sequence[str]) -> list[float]:
        await asyncio.sleep(0)
        return [self.rated.get(player_id, 1500.0) for player_id in player_ids]


class Unsteady:
    """A store whose calls take turns by chance, fail by chance, and sometimes fail though they were done."""

    def __init__(self, store: Store, chance: random.Random, *, fails: float = 0.0) -> None:
        self._store = store
        self._chance = chance
        self.fails = fails
        self.follow = store.follow

    async def get(self, key: str) -> Entry:
        await self._pause()
        self._may_fail()
        return await self._store.get(key)

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        await self._pause()
        self._may_fail()
        if self._chance.random() < self.fails:
            raise Conflict
        done = await self._store.commit(writes)
        await self._pause()
        self._may_fail()
        if self._chance.random() < self.fails:
            raise Conflict  # made, and told otherwise: what a lost answer can look like
        return done

    def _may_fail(self) -> None:
        if self._chance.random() < self.fails:
            raise Unavailable(Why.NO_ANSWER)

    async def _pause(self) -> None:
        for _ in range(self._chance.randrange(4)):
            await asyncio.sleep(0)


class MatchHouse(House):
    """What replicas share."""

    def __init__(self) -> None:
        super().__init__()
        self.ratings = FakeRatings()

    async def searcher(self, seed: int = 1, store: Store | None = None) -> "Searcher":
        """One more replica."""
        return Searcher(self, await self.replica(seed, store))

    def tickets(self) -> dict[str, TicketRecord]:
        """All that are known, ended ones as well."""
        return self.records("ticket", TicketRecord)

    def check(self) -> None:
        """Every player is in one place, the one that its room or its ticket says."""
        rooms = self.records("room", RoomRecord)
        told: dict[str, PlaceRecord] = {}
        for room_id, record in rooms.items():
            for player_id, place in places(record).items():
                assert player_id not in told, "in two rooms"
                told[player_id] = place
            if record.room.state == ROOM_STATE_SEARCHING:
                ticket = self.tickets()[record.room.ticket_id]
                assert (ticket.room_id, ticket.end) == (room_id, 0)
        for ticket_id, ticket in self.tickets().items():
            if ticket.end:
                continue
            if ticket.room_id:
                assert rooms[ticket.room_id].room.ticket_id == ticket_id
            else:
                (player_id,) = ticket.ticket.player_ids
                assert player_id not in told, "in a room and in a search"
                told[player_id] = PlaceRecord(ticket_id=ticket_id)
        assert self.records("place", PlaceRecord) == told
        codes = {code: record.room_id for code, record in self.records("code", CodeRecord).items()}
        assert codes == {record.room.code.lower(): room_id for room_id, record in rooms.items()}


class Searcher:
    """One replica's matchmaking."""

    def __init__(self, house: MatchHouse, replica: Replica) -> None:
        self.house = house
        self.replica = replica
        self.deps = replica.deps._replace(ratings=house.ratings)
        mirror = replica.world.mirrors.tickets
        self.tickets = Tickets(self.deps, mirror)
        self.servicer = MatchServicer(self.tickets)
        self.passes = Passes(self.deps, mirror, self.tickets, house.presence)

    async def create(
        self,
        number: int,
        *,
        request: uuid.UUID | None = None,
        room: Room | None = None,
        stake: int = 0,
        bots_after_s: int = 0,
        bots: int = 0,
        preset: str = PRESET,
        operator: str = "",
    ) -> Ticket:
        """A player begins to search."""
        asked = pb.CreateTicketRequest(
            request_id=str(request or uuid.uuid4()),
            preset=preset,
            stake=stake,
            bots_after_s=bots_after_s,
            bots=bots,
            room_id=room.room_id if room else "",
        )
        return (await self.servicer.create_ticket(asked, self.replica.call(number, operator))).ticket

    async def cancel(self, number: int, ticket_id: str) -> None:
        """A player ends a search."""
        await self.servicer.cancel_ticket(
            pb.CancelTicketRequest(ticket_id=ticket_id), self.replica.call(number)
        )

    async def get(self, number: int, ticket_id: str) -> Ticket:
        """A player asks for a ticket."""
        request = pb.GetTicketRequest(ticket_id=ticket_id)
        return (await self.servicer.get_ticket(request, self.replica.call(number))).ticket

    async def partners(self, host: int, guest: int, *, stake: int = 0) -> Room:
        """A room of two on opposite seats."""
        room = await self.replica.create(host, RoomPlan(preset=PRESET, stake=stake))
        await self.replica.join(guest, room)
        return await self.replica.sit(guest, room, 2)

    async def room_of(self, number: int) -> RoomRecord | None:
        """The room where a player is."""
        place = await self.replica.place(number)
        return await self.replica.record(place.room_id) if place and place.room_id else None


def numbers_of(ticket: Ticket, most: int) -> list[int]:
    """Which players of the first so many a ticket is of."""
    known = {player(number): number for number in range(most)}
    return [known[player_id] for player_id in ticket.player_ids]
