"""A lobby's replica in memory, with a clock that tests turn: for presence, stays, talk and reports."""

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from io import StringIO

from google.protobuf.message import Message
from prometheus_client import CollectorRegistry

from services.lobby.deps import Deps, Mirrors
from services.lobby.metrics import LobbyMetrics
from services.lobby.mirror import Mirror
from services.lobby.ports import EqualRatings, NoFunds
from services.lobby.presence import Presence
from services.lobby.records import place_key, player_key, room_key, ticket_key
from services.lobby.store import Write
from services.lobby.store_memory import MemoryStore
from services.lobby.talk import Talk
from services.lobby.whereabouts import Finder
from services.pb.event.v1.event_pb2 import SPECTATORS_OFF
from services.pb.lobby.v1.match_service_pb2 import Ticket
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_OPEN, Room, RoomMember, RoomPlan
from services.pb.lobby.v1.stored_pb2 import PlaceRecord, PlayerRecord, RoomRecord, TicketRecord
from services.shell.bus import Bus, MemoryBus
from services.shell.logs import Log
from services.shell.rpc import Call

BEGIN_S = 1_750_000_000.0
"""Where the clock begins: seconds of Unix time."""


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = BEGIN_S

    def __call__(self) -> float:
        return self.now

    def ms(self) -> int:
        """Milliseconds of Unix time."""
        return round(self.now * 1000)


class FakeTableLog:
    """``TableLog`` of what a test says."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}
        self.players: dict[str, set[str]] = {}

    async def version_of(self, table_id: str) -> int:
        """See ``TableLog.version_of``."""
        return self.versions.get(table_id, 0)

    async def seated(self, table_id: str) -> frozenset[str]:
        """See ``TableLog.seated``."""
        return frozenset(self.players.get(table_id, ()))


class World:
    """One replica; several may share a store, a bus and a clock."""

    def __init__(
        self,
        store: MemoryStore | None = None,
        bus: Bus | None = None,
        clock: Clock | None = None,
        seed: int = 1,
    ) -> None:
        self.clock = clock or Clock()
        self.store = store or MemoryStore(self.clock)
        self.bus = bus or MemoryBus()
        self.log = StringIO()
        self.registry = CollectorRegistry()
        self.deps = Deps(
            store=self.store,
            bus=self.bus,
            now_ms=self.clock.ms,
            random=random.Random(seed).randbytes,
            ratings=EqualRatings(),
            funds=NoFunds(),
            metrics=LobbyMetrics(self.registry),
            log=Log("lobby", "debug", self.log),
        )
        self.mirrors = Mirrors(
            Mirror(self.store, "room", RoomRecord),
            Mirror(self.store, "place", PlaceRecord),
            Mirror(self.store, "ticket", TicketRecord),
        )
        self.presence = Presence(self.deps, clock=self.clock)
        self.table_log = FakeTableLog()
        self.finder = Finder(self.store, self.table_log, self.presence)
        self.talk = Talk(self.deps, self.finder, clock=self.clock)

    async def start(self) -> None:
        """Follow the store and the bus."""
        for mirror in self.mirrors:
            await mirror.start()
        await self.talk.start()

    async def put(self, records: Mapping[str, Message | None]) -> None:
        """Write records in one change; None takes one away."""
        writes = [
            Write(
                key,
                b"" if record is None else record.SerializeToString(),
                (await self.store.get(key)).revision,
            )
            for key, record in records.items()
        ]
        await self.store.commit(writes)

    async def player(self, player_id: str, operator: str = "") -> None:
        """Found a player."""
        await self.put({player_key(player_id): PlayerRecord(player_id=player_id, operator=operator)})

    async def room(self, room_id: str, *members: str, version: int = 1, **fields: object) -> None:
        """Have a room with these members, whose places say so."""
        room = Room(
            room_id=room_id,
            version=version,
            state=ROOM_STATE_OPEN,
            plan=RoomPlan(preset="classic-2d", spectators=SPECTATORS_OFF),
            code="ABC234",
            host_id=members[0],
            members=[RoomMember(player_id=member, name=member) for member in members],
        )
        room.MergeFrom(Room(**fields))  # type: ignore[arg-type]
        places = {
            place_key(member): PlaceRecord(room_id=room_id, table_id=room.table_id) for member in members
        }
        await self.put({room_key(room_id): RoomRecord(room=room), **places})

    async def ticket(self, ticket_id: str, player_id: str) -> None:
        """Have a player wait."""
        ticket = Ticket(ticket_id=ticket_id, player_ids=[player_id], preset="classic-2d")
        await self.put(
            {
                ticket_key(ticket_id): TicketRecord(ticket=ticket),
                place_key(player_id): PlaceRecord(ticket_id=ticket_id),
            }
        )

    def call(self, player_id: str, operator: str = "", lives_s: int = 900) -> Call:
        """A call of a player's with a token that lives so long."""
        return Call(player_id, int(self.clock.now) + lives_s, 0.0, operator=operator)


@asynccontextmanager
async def started(world: World) -> AsyncIterator[World]:
    """A world that is started for the length of a block."""
    await world.start()
    try:
        yield world
    finally:
        for mirror in world.mirrors:
            await mirror.stop()
