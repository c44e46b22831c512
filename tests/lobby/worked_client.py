"""A whole match through nothing but the protos: sign in, make a room, three bots, play, result.

    python worked_client.py LOBBY TABLE [PRESET [OPTION=JSON …]]     (host:port each)

The stubs are those that any language generates from protos/. A real client would also keep the refresh token,
call Refresh before the access token ends, and begin its streams again after a loss.
"""

import asyncio
import os
import sys
import uuid

import grpc

from services.pb.event.v1.event_pb2 import DIFFICULTY_NORMAL, Pace, RuleOption
from services.pb.lobby.v1 import player_service_pb2 as players
from services.pb.lobby.v1 import presence_service_pb2 as presence
from services.pb.lobby.v1 import room_pb2 as room
from services.pb.lobby.v1 import room_service_pb2 as rooms
from services.pb.lobby.v1.player_service_pb2_grpc import PlayerServiceStub
from services.pb.lobby.v1.presence_service_pb2_grpc import PresenceServiceStub
from services.pb.lobby.v1.room_service_pb2_grpc import RoomServiceStub
from services.pb.table.v1 import table_service_pb2 as tables
from services.pb.table.v1 import view_pb2 as view
from services.pb.table.v1.table_service_pb2_grpc import TableServiceStub

Auth = list[tuple[str, str]]
QUICK = Pace(
    draw_ms=10,
    declare_ms=8_000,
    mutiny_ms=10_000,
    bury_ms=60_000,
    turn_ms=20_000,
    next_deal_ms=10_000,
    away_turns=3,
)


async def sign_in(lobby: grpc.aio.Channel) -> Auth:
    """As a new guest; what every later call carries."""
    answer = await PlayerServiceStub(lobby).SignIn(players.SignInRequest(guest=players.Guest()))
    print("signed in as", answer.player.name, answer.player.player_id)
    return [("authorization", f"Bearer {answer.tokens.access_token}"), ("accept-language", "en")]


async def start_room(lobby: grpc.aio.Channel, auth: Auth, plan: room.RoomPlan) -> None:
    """A room with three bots, begun."""
    stub = RoomServiceStub(lobby)
    made = await stub.CreateRoom(
        rooms.CreateRoomRequest(request_id=str(uuid.uuid4()), plan=plan), metadata=auth
    )
    room_id: str = made.room.room_id
    print("room", made.room.code)
    await stub.SetBots(rooms.SetBotsRequest(room_id=room_id, difficulty=DIFFICULTY_NORMAL), metadata=auth)
    await stub.StartRoom(rooms.StartRoomRequest(room_id=room_id), metadata=auth)


async def find_table(lobby: grpc.aio.Channel, auth: Auth) -> str:
    """Stay at the lobby until it says that the table is there."""
    stay = PresenceServiceStub(lobby).Stay(presence.StayRequest(), metadata=auth)
    async for message in stay:
        where = message.whereabouts
        if where.table_id and where.table_version:
            return str(where.table_id)
        if message.room.state == room.ROOM_STATE_PLAYING:
            return str(message.room.table_id)
        if message.room.failed:
            raise SystemExit(f"no table: {message.room.failed}")
    raise SystemExit("the lobby ended the stream")


class Player:
    """Plays one seat: never declares, buries its first cards, plays what is listed first."""

    def __init__(self, channel: grpc.aio.Channel, auth: Auth, table_id: str) -> None:
        self.table = TableServiceStub(channel)
        self.auth = auth
        self.table_id = table_id

    def context(self, version: int) -> tables.CommandContext:
        """For a new command, decided on a version."""
        return tables.CommandContext(table_id=self.table_id, command_id=str(uuid.uuid4()), version=version)

    async def play(self) -> view.TableView:
        """To the end of the match; the table then."""
        watch = self.table.Watch(tables.WatchRequest(table_id=self.table_id), metadata=self.auth)
        async for message in watch:
            for event in message.update.events:
                if event.HasField("deal_scored"):
                    print("deal", event.deal_scored.deal, "attackers", event.deal_scored.attackers_points)
            if message.HasField("heartbeat"):
                continue
            request = tables.GetViewRequest(table_id=self.table_id, min_version=message.update.version)
            now = (await self.table.GetView(request, metadata=self.auth)).view
            if now.phase in (view.PHASE_OVER, view.PHASE_CLOSED):
                return now
            if now.my_seat in now.to_act:
                try:
                    await self.act(now)
                except grpc.aio.AioRpcError as error:
                    if error.code() != grpc.StatusCode.ABORTED:  # the table was quicker: its update follows
                        raise
        raise SystemExit("the table ended the stream")

    async def act(self, now: view.TableView) -> None:
        """What the phase asks for."""
        here, auth, table = self.context(now.version), self.auth, self.table
        if now.phase in (view.PHASE_SEATING, view.PHASE_SCORED):
            await table.Ready(tables.ReadyRequest(context=here, client_seed=os.urandom(32)), metadata=auth)
        elif now.phase == view.PHASE_DECLARING:
            # Passes count after the last card, from which the window's time is counted.
            if now.deadline_ms - now.server_now_ms <= now.pace.declare_ms + 1:
                await table.Pass(tables.PassRequest(context=here), metadata=auth)
        elif now.phase in (view.PHASE_MUTINY, view.PHASE_COUNTER):
            await table.Pass(tables.PassRequest(context=here), metadata=auth)
        elif now.phase == view.PHASE_BURY:
            cards = now.hand[: now.kitty_size]
            await table.Bury(tables.BuryRequest(context=here, cards=cards), metadata=auth)
        elif now.phase == view.PHASE_TRICKS:
            request = tables.LegalPlaysRequest(table_id=self.table_id, cap=1)
            legal = await table.LegalPlays(request, metadata=auth)
            if legal.plays:
                context = self.context(legal.version)
                play = tables.PlayRequest(context=context, cards=legal.plays[0].cards)
                await table.Play(play, metadata=auth)


async def main(lobby_address: str, table_address: str, preset: str = "classic-2d", *options: str) -> None:
    """The whole way."""
    overrides = [RuleOption(name=name, value=value) for name, _, value in (o.partition("=") for o in options)]
    plan = room.RoomPlan(preset=preset, overrides=overrides, pace=QUICK)
    async with (
        grpc.aio.insecure_channel(lobby_address) as lobby,
        grpc.aio.insecure_channel(table_address) as tables_channel,
    ):
        auth = await sign_in(lobby)
        await start_room(lobby, auth, plan)
        now = await Player(tables_channel, auth, await find_table(lobby, auth)).play()
        if not now.HasField("result"):
            raise SystemExit("the table closed before the match was over")
        won = now.result.HasField("winning_side") and now.result.winning_side == now.my_seat % 2
        print("match over after", now.result.deals, "deals:", "won" if won else "not won")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
