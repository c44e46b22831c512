"""`shengji demo`: the whole house, four bots, one match, shown as it happens."""

import asyncio
import hashlib
import os
import sys
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click
import grpc
from rich.console import Console

from services.cli.booked import booked_match, print_booked
from services.cli.data import DataInUse, Running, announce, default_data, held
from services.cli.house import House, HouseOptions, open_house
from services.cli.render import MatchPrinter
from services.cli.verifying import print_report, verify_table
from services.game.ids import bot_id
from services.game.wire import cards_from_wire, rules_from_wire
from services.pb.event.v1.event_pb2 import Difficulty, Event, Pace
from services.pb.lobby.v1.player_service_pb2 import Guest, SignInRequest
from services.pb.lobby.v1.player_service_pb2_grpc import PlayerServiceStub
from services.pb.lobby.v1.room_pb2 import (
    ROOM_STATE_OPEN,
    ROOM_STATE_PLAYING,
    ROOM_STATE_STARTING,
    Room,
    RoomPlan,
)
from services.pb.lobby.v1.room_service_pb2 import (
    CreateRoomRequest,
    GetRoomRequest,
    SetBotsRequest,
    StartRoomRequest,
)
from services.pb.lobby.v1.room_service_pb2_grpc import RoomServiceStub
from services.pb.table.v1.table_service_pb2 import GetRulesRequest, WatchRequest
from services.pb.table.v1.table_service_pb2_grpc import TableServiceStub
from services.pb.table.v1.view_pb2 import Update
from services.rules.options import RuleSet
from services.rules.presets import PRESET_NAMES
from services.shell.keys import signing_key
from services.shell.nats_server import NatsServerError
from services.shell.supervisor import ChildDied
from services.shell.tokens import sign
from services.shell.trust import BOT_ISSUER

_SEATS: Final = 4
_LOOK_S: Final = 0.05
_INTERRUPTED: Final = 130
"""The exit status after Ctrl-C, as shells have it."""
_DRAW_MS: Final = 25
_THINK_MS: Final = 35
"""At speed 1 a match takes about two minutes."""
_STAKE: Final = 10
"""Chips, which bots take from the house and win for it."""
_DIFFICULTIES: Final = {
    "easy": Difficulty.DIFFICULTY_EASY,
    "normal": Difficulty.DIFFICULTY_NORMAL,
}


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the command line asks for."""

    preset: str
    deals: int
    difficulty: str
    speed: float
    """0: as fast as it goes."""
    seed: str


class _Speed(click.ParamType[float]):
    """A factor above 0, or `max`."""

    name = "factor"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The factor; 0 stands for `max`."""
        if value == "max":
            return 0.0
        try:
            factor = float(str(value))
        except ValueError:
            factor = 0.0
        if not 0 < factor < 1000:
            self.fail(f"{value!r} is neither a factor above 0 nor max", param, ctx)
        return factor


@click.command()
@click.option(
    "--preset", type=click.Choice(PRESET_NAMES), default="classic-2d", show_default=True, help="The rules."
)
@click.option("--deals", type=click.IntRange(min=0), default=0, help="Stop after so many [the whole match].")
@click.option(
    "--bots", type=click.Choice(list(_DIFFICULTIES)), default="normal", show_default=True, help="How strong."
)
@click.option("--speed", type=_Speed(), default="1", show_default=True, help="A factor, or max.")
@click.option(
    "--data", type=click.Path(path_type=Path), default=None, help="Folder to keep [a new one a run]."
)
@click.option(
    "--seed",
    default="",
    help="Every card follows from this text, so that the match repeats; never for real play.",
)
def demo(preset: str, deals: int, bots: str, speed: float, data: Path | None, seed: str) -> None:
    """Play a match of four bots and show it.

    Starts a nats-server and the table, lobby, ledger and bot services as processes of their own, fills a room
    with bots and prints what happens at its table. Then it verifies the stored log, asks the ledger who won
    how many chips, audits its books and stops everything. Exit status 0 only when the match (or the deals
    asked for) ended, the log is sound and nothing differs from it in the ledger's books. Ctrl-C stops it at
    any time.
    """
    folder = data or default_data() / f"demo-{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}"  # noqa: DTZ005
    wish = _Wish(preset, deals, bots, speed, seed)
    try:
        with held(folder):
            sound = asyncio.run(_run(folder, wish))
    except (DataInUse, ChildDied, NatsServerError) as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        click.echo(f"\nStopped before its end; kept in {folder}", err=True)
        sys.exit(_INTERRUPTED)
    click.echo(f"Kept in {folder} (shengji replay --data {folder})", err=True)
    sys.exit(0 if sound else 1)


async def _run(folder: Path, wish: _Wish) -> bool:
    options = HouseOptions(
        data=folder,
        think_ms=round(_THINK_MS / wish.speed) if wish.speed else 0,
        insecure_entropy=wish.seed,
        master_keys=f"demo:{hashlib.sha256(wish.seed.encode()).hexdigest()}" if wish.seed else "",
    )
    async with open_house(options) as house:
        announce(folder, Running(os.getpid(), "demo", house.nats, house.table, house.lobby, house.ledger))
        watching = asyncio.create_task(house.supervisor.watch())
        playing = asyncio.create_task(_play(folder, wish, house))
        try:
            done, _ = await asyncio.wait({watching, playing}, return_when=asyncio.FIRST_COMPLETED)
        finally:  # at Ctrl-C too: what ends after this is meant to end, and is no news
            watching.cancel()
            playing.cancel()
            await asyncio.gather(watching, playing, return_exceptions=True)
        if playing not in done:
            watching.result()
        return playing.result()


async def _play(folder: Path, wish: _Wish, house: House) -> bool:
    """Fill a room, print the match at its table, and verify what was stored."""
    console = Console(highlight=False, soft_wrap=False)
    async with (
        grpc.aio.insecure_channel(house.lobby) as lobby,
        grpc.aio.insecure_channel(house.table) as channel,
    ):
        players: Any = PlayerServiceStub(lobby)
        token = (await players.SignIn(SignInRequest(guest=Guest()))).tokens.access_token
        room = await _started(RoomServiceStub(lobby), token, wish)
        stub: Any = TableServiceStub(channel)
        table_id = room.table_id
        rules = await _rules(stub, token, table_id)
        printer = MatchPrinter(console, rules, [f"{wish.difficulty} bot"] * _SEATS)
        printer.heading(table_id)
        shown = 0
        async for version, events, drawn in _everything(stub, folder, room):
            shown = version
            printer.events(events)
            for seat, cards in enumerate(drawn):
                printer.draw(seat, cards)
            if printer.result is not None or (wish.deals and len(printer.scores) >= wish.deals):
                break
    printer.summary()
    booked = await booked_match(
        house.ledger,
        folder,
        house.nats,
        table_id,
        version=shown,
        deals=len(printer.scores),
        ended=printer.result is not None,
    )
    print_booked(console, booked)
    if wish.seed:
        console.print("  The cards followed from --seed: anybody could foresee them.")
    # As far as was shown: the bots may be on their way to the next deal already.
    report = await verify_table(house.nats, table_id, shown)
    print_report(console, table_id, report, head=not wish.seed)
    return report.problem is None and booked is not None and booked.sound


async def _started(stub: Any, token: str, wish: _Wish) -> Room:
    """A room of four bots whose table has begun; its host looks on."""
    request_id = uuid.uuid5(uuid.NAMESPACE_OID, wish.seed) if wish.seed else uuid.uuid4()
    pace = Pace(
        draw_ms=round(_DRAW_MS / wish.speed) if wish.speed else 0,
        # Four bots pass by themselves; a limit would only make what happens depend on the machine's speed.
        declare_ms=0,
        mutiny_ms=10_000,
        bury_ms=60_000,
        turn_ms=60_000,
        next_deal_ms=60_000,
        away_turns=3,
    )
    plan, caller = RoomPlan(preset=wish.preset, stake=_STAKE, pace=pace), _bearer(token)
    made = await stub.CreateRoom(
        CreateRoomRequest(request_id=str(request_id), plan=plan, stand=True), metadata=caller
    )
    room: Room = made.room
    if room.state != ROOM_STATE_OPEN:
        raise click.ClickException("this folder holds this --seed's match already: choose another --data")
    bots = SetBotsRequest(room_id=room.room_id, difficulty=_DIFFICULTIES[wish.difficulty])
    await stub.SetBots(bots, metadata=caller)
    room = (await stub.StartRoom(StartRoomRequest(room_id=room.room_id), metadata=caller)).room
    while room.state == ROOM_STATE_STARTING:
        await asyncio.sleep(_LOOK_S)
        room = (await stub.GetRoom(GetRoomRequest(room_id=room.room_id), metadata=caller)).room
    if room.state != ROOM_STATE_PLAYING:
        raise click.ClickException(f"the table was not founded: {room.failed}")
    return room


async def _rules(stub: Any, token: str, table_id: str) -> RuleSet:
    answer = await stub.GetRules(GetRulesRequest(table_id=table_id), metadata=_bearer(token))
    return rules_from_wire(answer.rules)


async def _everything(
    stub: Any, folder: Path, room: Room
) -> AsyncIterator[tuple[int, list[Event], list[bytes]]]:
    """All that happens, with every seat's secrets: the four seats' streams put together, step by step.

    The streams hold the same steps, so the nth message of each is about the same one.
    """
    key = signing_key(folder, BOT_ISSUER)
    request = WatchRequest(table_id=room.table_id, after=room.resume)
    bots = [bot_id(room.table_id, seat) for seat in range(_SEATS)]
    watches = [
        stub.Watch(request, metadata=_bearer(sign(key, BOT_ISSUER, bot, lifetime_s=24 * 3600)))
        for bot in bots
    ]
    try:
        while True:
            updates = [await _next_update(watch) for watch in watches]
            events = [_fullest(list(versions)) for versions in zip(*(u.events for u in updates), strict=True)]
            yield updates[0].version, events, [cards_from_wire(update.drawn_cards) for update in updates]
    finally:
        for watch in watches:
            watch.cancel()


async def _next_update(watch: Any) -> Update:
    while True:
        message = await watch.read()
        if message is grpc.aio.EOF:
            raise click.ClickException("the table service ended the stream")
        if message.HasField("update"):
            return message.update  # type: ignore[no-any-return]


def _fullest(versions: list[Event]) -> Event:
    """Of the same event as four seats see it, the one that tells most."""
    return max(versions, key=lambda event: event.ByteSize())


def _bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)
