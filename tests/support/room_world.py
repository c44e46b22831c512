"""Replicas of the lobby's rooms in memory, with tables, chips and presence that tests control."""

import asyncio
import random
import uuid
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace

from services.game.ids import new_id, table_id_of
from services.lobby.founding import Founding
from services.lobby.records import code_key, place_key, player_key, room_key
from services.lobby.room_codes import WrongCodes
from services.lobby.room_lists import RoomLists
from services.lobby.room_saving import places
from services.lobby.room_servicer import RoomServicer
from services.lobby.room_tables import LOBBY
from services.lobby.store import Entry, Store, Write
from services.lobby.store_memory import MemoryStore
from services.pb.event.v1.event_pb2 import SPECTATORS_LINK
from services.pb.lobby.v1 import room_service_pb2 as pb
from services.pb.lobby.v1.room_pb2 import Room, RoomPlan, Visibility
from services.pb.lobby.v1.stored_pb2 import CodeRecord, PlaceRecord, PlayerRecord, RoomRecord
from services.pb.table.v1.table_service_pb2 import CreateTableRequest, CreateTableResponse
from services.rules.reasons import Reason
from services.shell.bus import MemoryBus
from services.shell.errors import RefusedError
from services.shell.rpc import Call
from support.presence_world import Clock, World

PLAN = RoomPlan(preset="classic-2d", spectators=SPECTATORS_LINK)
DEAR = RoomPlan(preset="classic-2d", stake=10)


def player(number: int) -> str:
    """A player's id."""
    return new_id("ply", number, bytes(10))


class FakeTables:
    """``founding.Founder``: one table for one command, whatever is asked twice."""

    def __init__(self) -> None:
        self.founded: dict[str, CreateTableRequest] = {}
        self.calls = 0
        self.faults: list[Exception] = []
        """Raised by the next calls, one each."""

    async def create_table(self, request: CreateTableRequest) -> CreateTableResponse:
        self.calls += 1
        await asyncio.sleep(0)
        if self.faults:
            raise self.faults.pop(0)
        table_id = table_id_of(LOBBY, uuid.UUID(request.command_id).bytes)
        before = self.founded.setdefault(table_id, request)
        assert before == request, "one command, one body"
        return CreateTableResponse(table_id=table_id, spectator_code="look")


class FakeFunds:
    """``Funds``: everybody has a hundred chips unless told otherwise."""

    def __init__(self) -> None:
        self.chips: dict[str, int] = {}
        self.held: dict[str, tuple[list[str], int]] = {}
        self.refusals: list[Reason] = []
        self.checked: list[tuple[list[str], int]] = []

    async def check(self, player_ids: Sequence[str], stake: int) -> None:
        await asyncio.sleep(0)
        self.checked.append((list(player_ids), stake))
        self._afford(player_ids, stake)

    def _afford(self, player_ids: Iterable[str], stake: int) -> None:
        for player_id in player_ids:
            if self.chips.get(player_id, 100) < 8 * stake:
                raise RefusedError(Reason.INSUFFICIENT_FUNDS, {"amount": 8 * stake})

    async def hold(self, table_id: str, player_ids: Sequence[str], stake: int) -> None:
        await asyncio.sleep(0)
        if self.refusals:
            raise RefusedError(self.refusals.pop(0))
        if table_id in self.held:
            return
        self._afford(player_ids, stake)
        self.held[table_id] = (list(player_ids), stake)

    async def release(self, table_id: str) -> None:
        await asyncio.sleep(0)
        self.held.pop(table_id, None)


class FakeRenewals:
    """``Renewals`` of one replica: whoever renews renews everybody's."""

    def __init__(self) -> None:
        self.leases: list[SimpleNamespace] = []

    def enter(self, player_id: str, expires_at: int, renewed: Callable[[], None]) -> SimpleNamespace:
        lease = SimpleNamespace(expires_at=expires_at, renewed=renewed)
        self.leases.append(lease)
        return lease

    def leave(self, lease: SimpleNamespace) -> None:
        self.leases.remove(lease)

    async def renew(self, player_id: str, expires_at: int) -> None:
        for lease in self.leases:
            lease.expires_at = expires_at
            lease.renewed()


class FakePresence:
    """Everybody is online but those in ``away``, with the seconds since they went."""

    def __init__(self) -> None:
        self.away: dict[str, float] = {}

    def is_online(self, player_id: str) -> bool:
        return player_id not in self.away

    def absent_s(self, player_id: str) -> float:
        return self.away.get(player_id, 0.0)


class Jittery:
    """A store whose calls take turns by chance, so that what runs together meets in every order."""

    def __init__(self, store: Store, chance: random.Random) -> None:
        self._store = store
        self._chance = chance
        self.follow = store.follow

    async def get(self, key: str) -> Entry:
        await self._pause()
        return await self._store.get(key)

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        await self._pause()
        return await self._store.commit(writes)

    async def _pause(self) -> None:
        for _ in range(self._chance.randrange(4)):
            await asyncio.sleep(0)


class House:
    """What replicas share."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = MemoryStore(self.clock)
        self.bus = MemoryBus()
        self.tables = FakeTables()
        self.funds = FakeFunds()
        self.presence = FakePresence()
        self.renewals = FakeRenewals()

    async def replica(self, seed: int = 1, store: Store | None = None) -> "Replica":
        replica = Replica(self, seed, store or self.store)
        await replica.world.start()
        replica.lists = RoomLists(replica.world.mirrors.rooms, self.clock.ms, self.renewals)
        replica.rooms = RoomServicer(replica.deps, replica.lists, self.presence, WrongCodes(self.clock))
        return replica

    async def players(self, *numbers: int, operator: str = "") -> None:
        for number in numbers:
            key = player_key(player(number))
            record = PlayerRecord(player_id=player(number), name=f"P{number}", operator=operator)
            await self.store.commit([Write(key, record.SerializeToString(), 0)])

    def records(self, prefix: str, kind: type) -> dict[str, object]:
        """Everything under a prefix, by the rest of the key."""
        return {
            key.removeprefix(prefix + "."): kind.FromString(entry.value)
            for key, entry in self.store._entries.items()
            if key.startswith(prefix + ".") and entry.value
        }

    def empty(self) -> None:
        """Begin anew: no rooms, tables or chips held, only the players."""
        self.tables.founded.clear()
        self.funds.held.clear()
        self.funds.refusals.clear()
        self.store._entries = {
            key: entry for key, entry in self.store._entries.items() if key.startswith("player.")
        }

    def check(self) -> None:
        """What must be true after every change, whatever it was."""
        rooms = self.records("room", RoomRecord)
        told = {}
        for room_id, record in rooms.items():
            room = record.room
            members = [member.player_id for member in room.members]
            assert room.room_id == room_id
            assert room.host_id in members
            assert len(members) == len(set(members)) <= 12
            assert len(room.seats) == 4
            sitting = [seat.player_id for seat in room.seats if seat.player_id]
            assert len(sitting) == len(set(sitting))
            assert set(sitting) <= set(members)
            assert not any(seat.player_id and seat.difficulty for seat in room.seats)
            assert not set(record.kicked) & set(members)
            for member, place in places(record).items():
                assert member not in told, "in two rooms"
                told[member] = place
        assert self.records("place", PlaceRecord) == told
        codes = {code: record.room_id for code, record in self.records("code", CodeRecord).items()}
        assert codes == {record.room.code.lower(): room_id for room_id, record in rooms.items()}


class Replica:
    """One replica's room servicer."""

    lists: RoomLists
    rooms: RoomServicer

    def __init__(self, house: House, seed: int, store: Store) -> None:
        self.house = house
        self.world = World(house.store, house.bus, house.clock, seed)
        self.deps = self.world.deps._replace(funds=house.funds, store=store)

    def founding(self) -> Founding:
        return Founding(self.deps, self.world.mirrors.rooms, self.house.tables)

    def call(self, number: int, operator: str = "", address: str = "") -> Call:
        return Call(player(number), int(self.house.clock.now) + 900, 0.0, operator=operator, address=address)

    async def create(
        self,
        number: int,
        plan: RoomPlan = PLAN,
        *,
        public: bool = False,
        request: uuid.UUID | None = None,
        stand: bool = False,
        operator: str = "",
    ) -> Room:
        asked = pb.CreateRoomRequest(
            request_id=str(request or uuid.uuid4()),
            plan=plan,
            visibility=Visibility.VISIBILITY_PUBLIC if public else Visibility.VISIBILITY_CODE,
            stand=stand,
        )
        return (await self.rooms.create_room(asked, self.call(number, operator))).room

    async def join(self, number: int, room: Room, operator: str = "") -> Room:
        request = pb.JoinRoomRequest(code=room.code)
        return (await self.rooms.join_room(request, self.call(number, operator))).room

    async def sit(self, number: int, room: Room, seat: int | None) -> Room:
        request = pb.TakeSeatRequest(room_id=room.room_id, seat=seat)
        return (await self.rooms.take_seat(request, self.call(number))).room

    async def begin(self, number: int, room: Room) -> Room:
        request = pb.StartRoomRequest(room_id=room.room_id, fill_with_bots=True)
        return (await self.rooms.start_room(request, self.call(number))).room

    async def record(self, room_id: str) -> RoomRecord | None:
        value = (await self.house.store.get(room_key(room_id))).value
        return RoomRecord.FromString(value) if value else None

    async def place(self, number: int) -> PlaceRecord | None:
        value = (await self.house.store.get(place_key(player(number)))).value
        return PlaceRecord.FromString(value) if value else None

    async def has_code(self, code: str) -> bool:
        return bool((await self.house.store.get(code_key(code))).value)
