"""People of the lobby: they sign in, meet in rooms, stay, and go on at the table they are told of.

Everything goes over the wire, to any of the lobby's replicas. A tap sees every byte that is sent to anybody.
"""

import asyncio
import random
import time
import uuid
from collections.abc import Sequence
from typing import Any

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from services.lobby.app import SERVED
from services.pb.event.v1.event_pb2 import RuleOption
from services.pb.lobby.v1 import match_service_pb2 as match_pb
from services.pb.lobby.v1 import player_service_pb2 as player_pb
from services.pb.lobby.v1 import presence_service_pb2 as presence_pb
from services.pb.lobby.v1 import room_service_pb2 as room_pb
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_PLAYING, Room, RoomPlan
from services.shell.errors import DETAILS_KEY
from support.calls import CALL_S, OPTIONS, RETRIED, Calls, Refused, Tap
from support.seats import AT_ONCE, Player

METHODS = {method.name: method for service in SERVED for method in service.methods}
TOLD_S = 60.0
"""How long what is told on Stay may take."""


def plan(preset: str = "classic-1d", **options: str) -> RoomPlan:
    """What a room plays: a preset with overrides as JSON, at a pace that nobody waits for."""
    overrides = [RuleOption(name=name, value=value) for name, value in options.items()]
    return RoomPlan(preset=preset, overrides=overrides, pace=AT_ONCE)


class LobbyCalls:
    """Channels to all replicas of the lobby.

    Attributes:
        retries: calls that were made again.
        tokens: the newest access token of everybody who signed in, by player id.
    """

    def __init__(self, addresses: Sequence[str], tap: Tap | None = None) -> None:
        """Open channels."""
        self.channels = [grpc.aio.insecure_channel(address, options=OPTIONS) for address in addresses]
        self.retries = 0
        self.tokens: dict[str, str] = {}
        self._tap = tap

    async def close(self) -> None:
        """Close the channels."""
        await asyncio.gather(*(channel.close() for channel in self.channels))

    def token(self, player_id: str) -> str:
        """The newest access token of a player."""
        return self.tokens[player_id]

    def _method(self, name: str, replica: int) -> Any:
        method, channel = METHODS[name], self.channels[replica]
        path = f"/{method.containing_service.full_name}/{name}"
        make = channel.unary_stream if method.server_streaming else channel.unary_unary
        return make(path, request_serializer=lambda request: request.SerializeToString())

    async def call(
        self, name: str, request: Message, token: str = "", replica: int = 0, who: str = ""
    ) -> Any:
        """One call of a unary method, once.

        Args:
            name: the method; no two of the lobby's services have one of the same name.
            request: its request.
            token: what the call bears; empty for nothing.
            replica: which one is asked.
            who: whose call it is, for the tap.

        Raises:
            Refused: it did not succeed.
        """
        try:
            raw = await self._method(name, replica)(request, metadata=_bearer(token), timeout=CALL_S)
        except grpc.aio.AioRpcError as error:
            raise self.refusal(who, name, error) from None
        self.saw(who, name, raw)
        return GetMessageClass(METHODS[name].output_type).FromString(raw)

    async def settle(
        self, name: str, request: Message, token: str = "", replica: int = 0, who: str = ""
    ) -> Any:
        """A call that is made again, at another replica, until it is answered or refused for good.

        Raises:
            Refused: for good.
        """
        while True:
            try:
                return await self.call(name, request, token, replica, who)
            except Refused as error:
                if error.code not in RETRIED:
                    raise
            self.retries += 1
            replica = (replica + 1) % len(self.channels)
            await asyncio.sleep(random.uniform(0.02, 0.1))

    def stream(self, name: str, request: Message, token: str, replica: int = 0) -> Any:
        """A stream of raw messages; its errors are to be given to ``refusal``."""
        return self._method(name, replica)(request, metadata=_bearer(token))

    def saw(self, who: str, name: str, raw: bytes) -> None:
        """A message came."""
        if self._tap is not None:
            self._tap(who, name, raw)

    def refusal(self, who: str, name: str, error: grpc.aio.AioRpcError) -> Refused:
        """An error as a refusal; the tap sees all of it."""
        for key, value in error.trailing_metadata() or ():
            if key == DETAILS_KEY:
                self.saw(who, f"{name} refused", value if isinstance(value, bytes) else value.encode())
        self.saw(who, f"{name} said", (error.details() or "").encode())
        return Refused(error)


class Staying:
    """A person's Stay, which begins anew at another replica whenever it breaks.

    Attributes:
        whereabouts: where the person is, as told last; None before the first word.
        room: the room as told last, inside the whereabouts or after them.
        tables: every table told of, in order.
        gone: rooms that the person was sent out of.
        said: what was heard.
        tickets: tickets as they were told.
        idles: signs of life.
        breaks: why it broke, each time: the status' reason or code.
        refusals: the same as refusals.
        broke_at: when, each time: the monotonic clock.
    """

    def __init__(self, person: "Person", replica: int, *, stay: bool = False) -> None:
        self.whereabouts: presence_pb.Whereabouts | None = None
        self.room = Room()
        self.tables: list[str] = []
        self.gone: list[str] = []
        self.said: list[presence_pb.Said] = []
        self.tickets: list[match_pb.Ticket] = []
        self.idles: list[presence_pb.StayIdle] = []
        self.breaks: list[str] = []
        self.refusals: list[Refused] = []
        self.broke_at: list[float] = []
        self.news = asyncio.Condition()
        self.replica = replica
        self._stay = stay
        self._person = person
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Hang up; raises what ended it before."""
        self._task.cancel()
        (result,) = await asyncio.gather(self._task, return_exceptions=True)
        if isinstance(result, Exception):
            raise result

    async def until(self, condition: Any, within_s: float = TOLD_S) -> None:
        """Wait until a condition of this stay holds.

        Raises:
            TimeoutError: it does not in time.
            Refused: the stay was refused for good.
        """
        async with asyncio.timeout(within_s), self.news:
            await self.news.wait_for(lambda: condition() or self._task.done())
        if not condition():
            self._task.result()

    async def _run(self) -> None:
        calls = self._person.calls
        while True:
            stream = calls.stream("Stay", presence_pb.StayRequest(), self._person.token, self.replica)
            try:
                async for raw in stream:
                    calls.saw(self._person.player_id, "Stay", raw)
                    await self._take(presence_pb.StayResponse.FromString(raw))
            except grpc.aio.AioRpcError as error:
                refused = calls.refusal(self._person.player_id, "Stay", error)
                self.breaks.append(refused.reason or refused.code.name)
                self.refusals.append(refused)
                self.broke_at.append(time.monotonic())
                if refused.code not in RETRIED or self._stay:
                    raise refused from None
            finally:
                stream.cancel()
                async with self.news:
                    self.news.notify_all()
            self.replica = (self.replica + 1) % len(calls.channels)
            await asyncio.sleep(random.uniform(0.02, 0.1))

    async def _take(self, message: presence_pb.StayResponse) -> None:
        match message.WhichOneof("content"):
            case "whereabouts":
                self.whereabouts = message.whereabouts
                self.room = message.whereabouts.room
                table_id = message.whereabouts.table_id
                if table_id and table_id not in self.tables:
                    self.tables.append(table_id)
            case "room":
                self.room = message.room
            case "room_gone":
                self.gone.append(message.room_gone)
            case "said":
                self.said.append(message.said)
            case "ticket":
                self.tickets.append(message.ticket)
            case "idle":
                self.idles.append(message.idle)
        async with self.news:
            self.news.notify_all()


class Person:
    """Somebody with a front end.

    Attributes:
        calls: the lobby.
        replica: the replica that is asked first.
        tokens: the newest pair.
        player: who they are.
        stay: their Stay, once begun.
    """

    def __init__(self, calls: LobbyCalls, replica: int = 0) -> None:
        """Nobody yet; ``sign_in`` makes somebody."""
        self.calls = calls
        self.replica = replica
        self.tokens = player_pb.Tokens()
        self.player = player_pb.Player()
        self.stay: Staying | None = None

    @property
    def player_id(self) -> str:
        """Who they are."""
        return self.player.player_id

    @property
    def token(self) -> str:
        """What their calls bear."""
        return self.tokens.access_token

    async def sign_in(self, device: player_pb.Device | None = None, **more: str) -> "Person":
        """Sign in, as a new guest unless with a device; more: operator, name."""
        request = player_pb.SignInRequest(guest=player_pb.Guest(), **more)
        if device is not None:
            request.device.CopyFrom(device)
        answer = await self.calls.settle("SignIn", request, replica=self.replica, who="a stranger")
        self.player = answer.player
        return self.hold(answer.tokens)

    async def refresh(self, request_id: str = "") -> "Person":
        """Get new tokens for the refresh token."""
        request = player_pb.RefreshRequest(
            refresh_token=self.tokens.refresh_token, request_id=request_id or str(uuid.uuid4())
        )
        answer = await self.calls.settle("Refresh", request, replica=self.replica, who=self.player_id)
        return self.hold(answer.tokens)

    def hold(self, tokens: player_pb.Tokens) -> "Person":
        """Bear these tokens from now on."""
        self.tokens = tokens
        self.calls.tokens[self.player_id] = tokens.access_token
        return self

    def hold_access(self, token: str) -> "Person":
        """Bear this access token from now on; the refresh token stays."""
        return self.hold(player_pb.Tokens(access_token=token, refresh_token=self.tokens.refresh_token))

    async def call(self, name: str, request: Message, replica: int | None = None) -> Any:
        """One call, once.

        Raises:
            Refused: it did not succeed.
        """
        at = self.replica if replica is None else replica
        return await self.calls.call(name, request, self.token, at, self.player_id)

    async def settle(self, name: str, request: Message) -> Any:
        """A call that is made again until it is answered or refused for good.

        Raises:
            Refused: for good.
        """
        return await self.calls.settle(name, request, self.token, self.replica, self.player_id)

    async def whereabouts(self) -> presence_pb.Whereabouts:
        """Where they are, by GetWhereabouts."""
        answer = await self.settle("GetWhereabouts", presence_pb.GetWhereaboutsRequest())
        where: presence_pb.Whereabouts = answer.whereabouts
        return where

    def come(self, *, stay: bool = False) -> Staying:
        """Begin to stay; ``stay``: never go to another replica."""
        self.stay = Staying(self, self.replica, stay=stay)
        return self.stay

    async def go(self) -> None:
        """Stay no more."""
        if self.stay is not None:
            stay, self.stay = self.stay, None
            await stay.stop()

    # ------------------------------------------------------------------------------------------------- rooms

    async def make_room(self, planned: RoomPlan, **more: Any) -> Room:
        """Make a room; more as CreateRoomRequest takes it."""
        request = room_pb.CreateRoomRequest(request_id=str(uuid.uuid4()), plan=planned, **more)
        room: Room = (await self.settle("CreateRoom", request)).room
        return room

    async def join(self, code: str) -> Room:
        """Come into a room by its code."""
        room: Room = (await self.settle("JoinRoom", room_pb.JoinRoomRequest(code=code))).room
        return room

    async def take_seat(self, room_id: str, seat: int | None) -> Room:
        """Take a seat or stand up."""
        request = room_pb.TakeSeatRequest(room_id=room_id, seat=seat)
        room: Room = (await self.settle("TakeSeat", request)).room
        return room

    async def start(self, room_id: str, *, fill: bool = True) -> Room:
        """Begin, bots on the free seats."""
        request = room_pb.StartRoomRequest(room_id=room_id, fill_with_bots=fill)
        room: Room = (await self.settle("StartRoom", request)).room
        return room

    async def told_of_table(self, within_s: float = TOLD_S) -> Room:
        """Wait until Stay has told of a table that plays; the room then."""
        stay = self.stay
        assert stay is not None

        def at_table() -> bool:
            where = stay.whereabouts
            return bool(where and where.table_id) and stay.room.state == ROOM_STATE_PLAYING

        await stay.until(at_table, within_s)
        return stay.room

    # ------------------------------------------------------------------------------------------------- table

    def player_at(self, tables: Calls, room: Room, rng: random.Random) -> Player:
        """This person on their seat at a room's table: plays by LegalPlays, watches from its founding."""
        (seat,) = [at for at, held in enumerate(room.seats) if held.player_id == self.player_id]
        return Player(tables, room.table_id, self.player_id, seat, rng, room.resume)


def _bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),) if token else ()
