"""A house with a lobby and ledgers: people sign in, meet, and play for chips; what the ledger says of it."""

import asyncio
import contextlib
import os
import random
import subprocess
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import Message

from services.cli.data import Running, announce
from services.cli.reading import archive_of, reader_of
from services.ledger.audit import Report, audit
from services.ledger.database import Database
from services.ledger.snapshot import load
from services.pb.event.v1.event_pb2 import DIFFICULTY_EASY, RuleOption
from services.pb.ledger.v1 import ledger_service_pb2 as pb
from services.pb.ledger.v1.ledger_service_pb2_grpc import LedgerServiceStub
from services.pb.lobby.v1 import match_service_pb2 as matches
from services.pb.lobby.v1 import player_service_pb2 as players
from services.pb.lobby.v1 import room_pb2
from services.pb.lobby.v1 import room_service_pb2 as rooms
from services.pb.lobby.v1.match_service_pb2_grpc import MatchServiceStub
from services.pb.lobby.v1.player_service_pb2_grpc import PlayerServiceStub
from services.pb.lobby.v1.room_service_pb2_grpc import RoomServiceStub
from services.shell.key_ring import KeyRing
from services.shell.trust import LOBBY_ISSUER
from support.calls import OPTIONS, RETRIED, Calls, Refused
from support.forks import Command
from support.house import READY_S, UNLIMITED, House, Service
from support.seats import AT_ONCE, Player

CALL_S = 30.0
TOLD_S = 60.0
"""How long what follows by itself may take where nothing is broken."""
QUICK = UNLIMITED | {
    "SHENGJI_CALL_RATE": "0",
    "SHENGJI_SIGN_IN_RATE": "0",
    "SHENGJI_QUERY_RATE": "0",
}


class LedgerHouse(House):
    """A house with a lobby and ledger replicas on one database.

    Attributes:
        lobby: the lobby service.
        ledgers: the ledger services.
        database: the URL of their database.
    """

    def __init__(
        self,
        folder: Path,
        *,
        replicas: int = 1,
        ledgers: int = 1,
        grant: int = 10_000,
        database: str = "",
        think_ms: int = 0,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Describe it; ``env`` goes to all services but the bots."""
        told = QUICK | dict(env or {})
        super().__init__(folder, replicas, told, think_ms)
        KeyRing(folder, LOBBY_ISSUER, time.time)
        tables = ",".join(replica.address for replica in self.replicas)
        self.database = database or f"sqlite+aiosqlite:///{folder / 'ledger.db'}"
        booking = {
            **told,
            "SHENGJI_NATS": self.nats_url("ledger"),
            "SHENGJI_TABLE": tables,
            "SHENGJI_OPENING_GRANT": str(grant),
            "SHENGJI_DATABASE": database,
        }
        self.ledgers = [Service("ledger", folder, booking, number) for number in range(ledgers)]
        meeting = {
            **told,
            "SHENGJI_NATS": self.nats_url("lobby"),
            "SHENGJI_TABLE": tables,
            "SHENGJI_LEDGER": ",".join(ledger.address for ledger in self.ledgers),
        }
        self.lobby = Service("lobby", folder, meeting)

    async def start(self, *, bots: bool = True) -> None:
        """Start everything and wait until it serves."""
        await super().start()
        more = [*self.ledgers, self.lobby, *([self.bots] if bots else [])]
        for service in more:
            service.start()
        await asyncio.gather(*(service.ready(READY_S) for service in more))
        # So that commands find the house as they find one of `shengji up`.
        where = (self.replicas[0].address, self.lobby.address, self.ledgers[0].address)
        announce(self.folder, Running(os.getpid(), "tests", self.nats_url("reader"), *where))

    def kill(self) -> None:
        """End everything at once."""
        for service in (self.lobby, *self.ledgers):
            service.kill()
        super().kill()

    async def stop(self) -> None:
        """End everything in order; every status must be 0."""
        services = (self.bots, self.lobby, *self.ledgers, *self.replicas)
        assert await asyncio.gather(*(service.stop() for service in services)) == [0] * len(services)
        await self.nats.stop()
        (self.folder / "run.lock").unlink()

    async def shengji(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command on this house's data, log and database."""
        environment = {**self.lobby.env, "SHENGJI_DATABASE": self.database}
        command = Command(*arguments, "--data", str(self.folder), env=environment)
        return await asyncio.to_thread(command.finish)

    async def audited(self) -> Report:
        """The report of an audit, which must find nothing, whether or not the house runs."""
        database, archive = Database(self.database), archive_of(self.folder)
        try:
            found = await database.read(load)
        finally:
            await database.close()
        async with reader_of(self.folder, archive) as reader:
            report = await audit(found, reader, archive)
        assert report.differences == []
        return report

    async def nothing_differs(self) -> str:
        """An audit as an operator runs it, which must find nothing; what it says."""
        done = await self.shengji("audit")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Nothing differs." in done.stdout
        return done.stdout


@asynccontextmanager
async def opened_ledger_house(folder: Path, **how: Any) -> AsyncIterator[LedgerHouse]:
    """Such a house for the length of a block; arguments as ``LedgerHouse`` takes them."""
    house = LedgerHouse(folder, **how)
    try:
        await house.start()
        yield house
    finally:
        house.kill()


@contextmanager
def running_ledger_house(folder: Path, **how: Any) -> Iterator[LedgerHouse]:
    """The same, usable from fixtures without a loop."""
    house = LedgerHouse(folder, **how)
    try:
        asyncio.run(house.start())
        yield house
    finally:
        house.kill()


class People:
    """Calls to lobby, tables and ledger as guests who have signed in.

    Attributes:
        tables: calls to the tables.
        tokens: access tokens by player.
    """

    def __init__(self, house: LedgerHouse) -> None:
        """Open channels."""
        self.house = house
        self.tokens: dict[str, str] = {}
        self.tables = Calls([replica.address for replica in house.replicas], self.tokens.__getitem__)
        self._lobby = grpc.aio.insecure_channel(house.lobby.address, options=OPTIONS)
        self._ledgers = [
            grpc.aio.insecure_channel(ledger.address, options=OPTIONS) for ledger in house.ledgers
        ]
        self._stubs: list[Any] = [
            stub(self._lobby) for stub in (PlayerServiceStub, RoomServiceStub, MatchServiceStub)
        ]
        self._ledger_stubs: list[Any] = [LedgerServiceStub(channel) for channel in self._ledgers]

    async def close(self) -> None:
        """Close the channels."""
        await self.tables.close()
        await asyncio.gather(*(channel.close() for channel in (self._lobby, *self._ledgers)))

    async def call(self, name: str, request: Message, player: str = "") -> Any:
        """A call to the lobby, made again until it is answered or refused for good.

        Raises:
            Refused: for good.
        """
        (stub,) = [stub for stub in self._stubs if hasattr(stub, name)]
        return await self._settled([getattr(stub, name)], request, player)

    async def ask(self, name: str, request: Message, player: str) -> Any:
        """A question to any of the ledgers, likewise; an empty player asks as an admin.

        Raises:
            Refused: for good.
        """
        return await self._settled([getattr(stub, name) for stub in self._ledger_stubs], request, player)

    async def _settled(self, methods: Sequence[Any], request: Message, player: str) -> Any:
        metadata = (("authorization", f"Bearer {self.tokens[player]}"),) if player else ()
        turn = 0
        while True:
            try:
                return await methods[turn % len(methods)](request, metadata=metadata, timeout=CALL_S)
            except grpc.aio.AioRpcError as error:
                refused = Refused(error)
                if refused.code not in RETRIED:
                    raise refused from None
            turn += 1
            await asyncio.sleep(random.uniform(0.05, 0.15))

    # ---------------------------------------------------------------------------------------------- the lobby

    async def guests(self, number: int) -> list[str]:
        """So many new guests; their ids."""
        made = []
        for _ in range(number):
            answer = await self.call("SignIn", players.SignInRequest(guest=players.Guest()))
            self.tokens[answer.player.player_id] = answer.tokens.access_token
            made.append(answer.player.player_id)
        return made

    def admin(self) -> str:
        """Somebody who may see everybody's chips."""
        self.tokens["ply_admin"] = self.house.sign("ply_admin", scope="ledger admin")
        return "ply_admin"

    async def room(self, seats: Sequence[str], plan: room_pb2.RoomPlan) -> room_pb2.Room:
        """A room whose first person is its host; people (or an empty text for a bot) on the seats 0 to 3."""
        host, *others = [player for player in seats if player]
        request = rooms.CreateRoomRequest(request_id=str(uuid.uuid4()), plan=plan)
        room = (await self.call("CreateRoom", request, host)).room
        for player in others:
            await self.call("JoinRoom", rooms.JoinRoomRequest(code=room.code), player)
        for seat, player in enumerate(seats):
            if player and player != host:
                await self.call("TakeSeat", rooms.TakeSeatRequest(room_id=room.room_id, seat=seat), player)
        bots = rooms.SetBotsRequest(room_id=room.room_id, difficulty=DIFFICULTY_EASY)
        if not all(seats):
            await self.call("SetBots", bots, host)
        return await self.look(room.room_id, host)

    async def look(self, room_id: str, player: str) -> room_pb2.Room:
        """A room as it is now."""
        answer = await self.call("GetRoom", rooms.GetRoomRequest(room_id=room_id), player)
        room: room_pb2.Room = answer.room
        return room

    async def until(self, room_id: str, player: str, *states: int, within_s: float = TOLD_S) -> room_pb2.Room:
        """Wait until a room is in one of some states."""
        async with asyncio.timeout(within_s):
            while True:
                room = await self.look(room_id, player)
                if room.state in states:
                    return room
                await asyncio.sleep(0.05)

    async def table(
        self, seats: Sequence[str], plan: room_pb2.RoomPlan, within_s: float = TOLD_S
    ) -> room_pb2.Room:
        """A room with these people, begun; once its table is there."""
        room = await self.room(seats, plan)
        host = next(player for player in seats if player)
        await self.call("StartRoom", rooms.StartRoomRequest(room_id=room.room_id), host)
        states = (room_pb2.ROOM_STATE_PLAYING, room_pb2.ROOM_STATE_OPEN)
        started = await self.until(room.room_id, host, *states, within_s=within_s)
        assert started.state == room_pb2.ROOM_STATE_PLAYING, started.failed
        return started

    async def ticket(self, player: str, stake: int, preset: str = "classic-1d") -> matches.Ticket:
        """Begin to look for opponents."""
        request = matches.CreateTicketRequest(request_id=str(uuid.uuid4()), preset=preset, stake=stake)
        ticket: matches.Ticket = (await self.call("CreateTicket", request, player)).ticket
        return ticket

    def at(self, room: room_pb2.Room, rng: random.Random) -> list[Player]:
        """The people on a room's seats, ready to play at its table."""
        return [
            Player(self.tables, room.table_id, held.player_id, seat, rng, room.resume)
            for seat, held in enumerate(room.seats)
            if held.player_id
        ]

    async def play(self, room: room_pb2.Room, rng: random.Random, within_s: float = 240) -> None:
        """Play a room's match to its end."""
        async with asyncio.timeout(within_s):
            await asyncio.gather(*(player.play() for player in self.at(room, rng)))

    # --------------------------------------------------------------------------------------------- the ledger

    async def balance(self, player: str) -> pb.GetBalanceResponse:
        """What a player owns."""
        answer: pb.GetBalanceResponse = await self.ask("GetBalance", pb.GetBalanceRequest(), player)
        return answer

    async def match(self, table_id: str, player: str) -> pb.GetMatchResponse | None:
        """A match as the ledger tells it; None while it has not heard of it."""
        with contextlib.suppress(Refused):
            answer: pb.GetMatchResponse = await self.ask(
                "GetMatch", pb.GetMatchRequest(table_id=table_id), player
            )
            return answer
        return None

    async def log(self, table_id: str, player: str) -> list[bytes]:
        """A match's whole log, out of the archive."""
        metadata = (("authorization", f"Bearer {self.tokens[player]}"),)
        stream = self._ledger_stubs[0].GetLog(pb.GetLogRequest(table_id=table_id), metadata=metadata)
        return [commit async for message in stream for commit in message.commits]

    async def settled(
        self, table_id: str, player: str, within_s: float = TOLD_S, *, archived: bool = False
    ) -> pb.GetMatchResponse:
        """Wait until the ledger knows of a match's end, or has archived its log."""
        async with asyncio.timeout(within_s):
            while True:
                told = await self.match(table_id, player)
                if told is not None and (told.match.head if archived else told.match.ended_at_ms):
                    return told
                await asyncio.sleep(0.05)


@asynccontextmanager
async def people_of(house: LedgerHouse) -> AsyncIterator[People]:
    """People of a house for the length of a block."""
    people = People(house)
    try:
        yield people
    finally:
        await people.close()


def staked(stake: int, preset: str = "classic-1d", **options: str) -> room_pb2.RoomPlan:
    """A plan for so many chips, with overrides as JSON; nobody waits for anything."""
    overrides = [RuleOption(name=name, value=value) for name, value in options.items()]
    return room_pb2.RoomPlan(preset=preset, stake=stake, overrides=overrides, pace=AT_ONCE)
