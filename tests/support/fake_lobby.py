"""A lobby for tests of its clients: one process, no store, the real table service behind it."""

import asyncio
import base64
import json
import time
import uuid
from contextlib import asynccontextmanager

import grpc

from services.pb.event.v1.event_pb2 import Difficulty, Pace, Seat
from services.pb.lobby.v1 import match_service_pb2 as match_pb
from services.pb.lobby.v1 import match_service_pb2_grpc as match_grpc
from services.pb.lobby.v1 import player_service_pb2 as player_pb
from services.pb.lobby.v1 import player_service_pb2_grpc as player_grpc
from services.pb.lobby.v1 import presence_service_pb2 as presence_pb
from services.pb.lobby.v1 import presence_service_pb2_grpc as presence_grpc
from services.pb.lobby.v1 import room_pb2, room_service_pb2_grpc
from services.pb.lobby.v1 import room_service_pb2 as room_service_pb
from services.pb.table.v1.table_service_pb2 import CreateTableRequest, WatchRequest
from services.pb.table.v1.table_service_pb2_grpc import TableServiceStub
from services.rules.reasons import Reason
from services.shell.errors import DETAILS_KEY, RefusedError, code_of, locale_of, status_of
from services.shell.keys import signing_key
from services.shell.tokens import sign

NORMAL = Difficulty.DIFFICULTY_NORMAL
LIFETIME_MS = 900_000


class FakeLobby(
    player_grpc.PlayerServiceServicer,
    presence_grpc.PresenceServiceServicer,
    room_service_pb2_grpc.RoomServiceServicer,
    match_grpc.MatchServiceServicer,
):
    """Everything in memory; a room's table is founded on a real table service."""

    def __init__(self, data, table, pace):
        self.key = signing_key(data, "local")
        self.pace = pace
        self.table_address = table
        self.channel = grpc.aio.insecure_channel(table)
        self.tables = TableServiceStub(self.channel)
        self.players, self.devices, self.refresh = {}, {}, {}
        self.rooms, self.places, self.stays = {}, {}, {}
        self.muted, self.refreshes, self.watchers = [], 0, []
        self.lifetime_ms = LIFETIME_MS

    async def close(self):
        for task in self.watchers:
            task.cancel()
        await asyncio.gather(*self.watchers, return_exceptions=True)
        await self.channel.close()

    # who

    def token(self, player):
        return sign(self.key, "local", player, lifetime_s=max(1, self.lifetime_ms // 1000))

    def tokens(self, player):
        refresh = uuid.uuid4().hex
        self.refresh[refresh] = player
        now = int(time.time() * 1000)
        return player_pb.Tokens(
            access_token=self.token(player),
            access_expires_at_ms=now + self.lifetime_ms,
            refresh_token=refresh,
            refresh_expires_at_ms=now + 10**9,
        )

    async def me(self, context):
        for key, value in context.invocation_metadata():
            if key == "authorization":
                body = value.split()[1].split(".")[1]
                claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
                if claims["exp"] > time.time():
                    return claims["sub"]
        return await self.refuse(context, Reason.UNAUTHENTICATED)

    async def refuse(self, context, reason, **details):
        language = dict(context.invocation_metadata()).get("accept-language", "")
        status = status_of(RefusedError(reason, details), "shengji.lobby", locale_of(language))
        await context.abort(code_of(reason), status.message, ((DETAILS_KEY, status.SerializeToString()),))

    async def SignIn(self, request, context):
        founded = True
        if request.WhichOneof("way") == "device":
            known = self.devices.get(request.device.device_id)
            if known and known[1] != request.device.secret:
                await self.refuse(context, Reason.SIGN_IN_FAILED)
            founded = known is None
            player_id = known[0] if known else f"ply_{len(self.players)}"
            self.devices[request.device.device_id] = (player_id, request.device.secret)
        else:
            player_id = f"ply_{len(self.players)}"
        if founded:
            name = request.name or f"Guest {len(self.players)}"
            self.players[player_id] = player_pb.Player(player_id=player_id, name=name)
        return player_pb.SignInResponse(
            tokens=self.tokens(player_id), player=self.players[player_id], founded=founded
        )

    async def Refresh(self, request, context):
        player_id = self.refresh.pop(request.refresh_token, None)
        if player_id is None:
            await self.refuse(context, Reason.TOKEN_REUSED)
        assert uuid.UUID(request.request_id)
        self.refreshes += 1
        return player_pb.RefreshResponse(tokens=self.tokens(player_id))

    async def GetPlayer(self, request, context):
        return player_pb.GetPlayerResponse(player=self.players[await self.me(context)])

    async def SetName(self, request, context):
        player = self.players[await self.me(context)]
        player.name = request.name
        return player_pb.SetNameResponse(player=player)

    # where

    def where(self, player_id):
        room = self.rooms.get(self.places.get(player_id, ""))
        where = presence_pb.Whereabouts()
        if room is not None:
            where.room_id = room.room_id
            where.room.CopyFrom(room)
            if room.state == room_pb2.ROOM_STATE_PLAYING:
                where.table_id, where.table_version = room.table_id, 1
        return where

    async def GetWhereabouts(self, request, context):
        return presence_pb.GetWhereaboutsResponse(whereabouts=self.where(await self.me(context)))

    async def Stay(self, request, context):
        player_id = await self.me(context)
        queue = asyncio.Queue()
        self.stays.setdefault(player_id, []).append(queue)
        yield presence_pb.StayResponse(whereabouts=self.where(player_id))
        try:
            while True:
                yield await queue.get()
        finally:
            self.stays[player_id].remove(queue)

    def tell(self, player_id, message):
        for queue in self.stays.get(player_id, ()):
            queue.put_nowait(message)

    def changed(self, room):
        room.version += 1
        for member in room.members:
            member.online = bool(self.stays.get(member.player_id))
        shown = room_pb2.Room()
        shown.CopyFrom(room)
        for member in room.members:
            self.tell(member.player_id, presence_pb.StayResponse(room=shown))
        return shown

    async def Renew(self, request, context):
        await self.me(context)
        return presence_pb.RenewResponse()

    async def Say(self, request, context):
        me = await self.me(context)
        if request.phrase_id != "nice":
            await self.refuse(context, Reason.UNKNOWN_PHRASE)
        said = presence_pb.Said(player_id=me, phrase_id=request.phrase_id)
        for member in self.rooms[self.places[me]].members:
            self.tell(member.player_id, presence_pb.StayResponse(said=said))
        return presence_pb.SayResponse()

    async def ListPhrases(self, request, context):
        phrase = presence_pb.Phrase(phrase_id="nice", zh="打得好", en="Well played")
        return presence_pb.ListPhrasesResponse(phrases=[phrase])

    async def Mute(self, request, context):
        self.muted.append(request.player_id)
        return presence_pb.MuteResponse()

    # rooms

    async def room(self, context, room_id):
        me = await self.me(context)
        room = self.rooms.get(room_id)
        if room is None or me not in [member.player_id for member in room.members]:
            await self.refuse(context, Reason.NOT_IN_ROOM)
        return room, me

    def enter(self, room, me):
        self.places[me] = room.room_id
        room.members.add(player_id=me, name=self.players[me].name, online=True)

    async def CreateRoom(self, request, context):
        me = await self.me(context)
        number = len(self.rooms)
        room = room_pb2.Room(
            room_id=f"rom_{number}",
            state=room_pb2.ROOM_STATE_OPEN,
            plan=request.plan,
            code=f"AB3DE{number}",
            host_id=me,
            seats=[room_pb2.RoomSeat(player_id=me), *[room_pb2.RoomSeat() for _ in range(3)]],
        )
        self.rooms[room.room_id] = room
        self.enter(room, me)
        return room_service_pb.CreateRoomResponse(room=self.changed(room))

    async def JoinRoom(self, request, context):
        me = await self.me(context)
        for room in self.rooms.values():
            if room.code == request.code.upper():
                self.enter(room, me)
                return room_service_pb.JoinRoomResponse(room=self.changed(room))
        return await self.refuse(context, Reason.UNKNOWN_CODE)

    async def TakeSeat(self, request, context):
        room, me = await self.room(context, request.room_id)
        if request.HasField("seat"):
            held = room.seats[request.seat]
            if (held.player_id or held.difficulty) and held.player_id != me:
                await self.refuse(context, Reason.SEAT_TAKEN)
        for seat in room.seats:
            if seat.player_id == me:
                seat.player_id = ""
        if request.HasField("seat"):
            room.seats[request.seat].player_id = me
        return room_service_pb.TakeSeatResponse(room=self.changed(room))

    async def SwapSeats(self, request, context):
        room, _ = await self.room(context, request.room_id)
        first, second = room_pb2.RoomSeat(), room_pb2.RoomSeat()
        first.CopyFrom(room.seats[request.first])
        second.CopyFrom(room.seats[request.second])
        room.seats[request.first].CopyFrom(second)
        room.seats[request.second].CopyFrom(first)
        return room_service_pb.SwapSeatsResponse(room=self.changed(room))

    async def SetBots(self, request, context):
        room, me = await self.room(context, request.room_id)
        if room.host_id != me:
            await self.refuse(context, Reason.NOT_HOST)
        for number, seat in enumerate(room.seats):
            if not seat.player_id and (not request.HasField("seat") or request.seat == number):
                seat.difficulty = request.difficulty
        return room_service_pb.SetBotsResponse(room=self.changed(room))

    async def Kick(self, request, context):
        room, _ = await self.room(context, request.room_id)
        self.remove(room, request.player_id)
        self.tell(request.player_id, presence_pb.StayResponse(room_gone=room.room_id))
        return room_service_pb.KickResponse(room=self.changed(room))

    async def LeaveRoom(self, request, context):
        room, me = await self.room(context, request.room_id)
        self.remove(room, me)
        self.changed(room)
        return room_service_pb.LeaveRoomResponse()

    def remove(self, room, player_id):
        del self.places[player_id]
        for number, member in enumerate(room.members):
            if member.player_id == player_id:
                del room.members[number]
        for seat in room.seats:
            if seat.player_id == player_id:
                seat.player_id = ""

    async def StartRoom(self, request, context):
        room, me = await self.room(context, request.room_id)
        if room.host_id != me:
            await self.refuse(context, Reason.NOT_HOST)
        for seat in room.seats:
            if not seat.player_id and not seat.difficulty:
                seat.difficulty = NORMAL
        await self.begin(room)
        return room_service_pb.StartRoomResponse(room=room)

    async def begin(self, room):
        room.state = room_pb2.ROOM_STATE_STARTING
        for member in room.members:
            member.again = False
        self.changed(room)
        seats = [
            Seat(seat=number, player_id=seat.player_id, difficulty=seat.difficulty)
            for number, seat in enumerate(room.seats)
        ]
        request = CreateTableRequest(
            command_id=str(uuid.uuid4()),
            preset=room.plan.preset,
            overrides=room.plan.overrides,
            seats=seats,
            pace=self.pace,
        )
        founded = await self.tables.CreateTable(request, metadata=self.as_player(room.host_id))
        room.state, room.table_id = room_pb2.ROOM_STATE_PLAYING, founded.table_id
        self.changed(room)
        self.watchers.append(asyncio.create_task(self.follow(room, founded)))

    def as_player(self, player_id):
        return (("authorization", f"Bearer {self.token(player_id)}"),)

    async def follow(self, room, founded):
        """Until the match is over: then the room is AFTER."""
        watch = self.tables.Watch(
            WatchRequest(table_id=founded.table_id, after=founded.resume),
            metadata=(("authorization", f"Bearer {sign(self.key, 'local', room.host_id)}"),),
        )
        async for message in watch:
            if any(event.HasField("match_ended") for event in message.update.events):
                break
        watch.cancel()
        room.state = room_pb2.ROOM_STATE_AFTER
        self.changed(room)

    async def PlayAgain(self, request, context):
        room, me = await self.room(context, request.room_id)
        if room.state != room_pb2.ROOM_STATE_AFTER:
            await self.refuse(context, Reason.WRONG_PHASE)
        for member in room.members:
            member.again |= member.player_id == me
        if all(member.again for member in room.members):
            await self.begin(room)
        else:
            self.changed(room)
        return room_service_pb.PlayAgainResponse(room=room)

    # a match with three bots, a moment later

    async def CreateTicket(self, request, context):
        me = await self.me(context)
        self.watchers.append(asyncio.create_task(self.match(me, request)))
        ticket = match_pb.Ticket(ticket_id="tkt_1", player_ids=[me], preset=request.preset, waiting=1)
        return match_pb.CreateTicketResponse(ticket=ticket)

    async def match(self, me, request):
        await asyncio.sleep(0.2)
        room = room_pb2.Room(room_id="rom_match", code="MATCH2", host_id=me)
        room.plan.preset = request.preset
        room.plan.overrides.add(name="deals", value="1")
        room.seats.extend([room_pb2.RoomSeat(player_id=me), *[room_pb2.RoomSeat(difficulty=NORMAL)] * 3])
        self.rooms[room.room_id] = room
        self.enter(room, me)
        await self.begin(room)
        self.tell(me, presence_pb.StayResponse(whereabouts=self.where(me)))


@asynccontextmanager
async def fake_lobby(data, table, pace=None):
    """A lobby for the length of a block; yields it and its address."""
    lobby = FakeLobby(data, table, pace or QUICK)
    server = grpc.aio.server()
    player_grpc.add_PlayerServiceServicer_to_server(lobby, server)
    presence_grpc.add_PresenceServiceServicer_to_server(lobby, server)
    room_service_pb2_grpc.add_RoomServiceServicer_to_server(lobby, server)
    match_grpc.add_MatchServiceServicer_to_server(lobby, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield lobby, f"127.0.0.1:{port}"
    finally:
        await server.stop(0.2)
        await lobby.close()


QUICK = Pace(
    draw_ms=5,
    declare_ms=30_000,
    mutiny_ms=30_000,
    bury_ms=30_000,
    turn_ms=30_000,
    next_deal_ms=30_000,
    away_turns=3,
)
