"""Prepared tables to send at: the calls that bring each to its first trick, and the plays of a deal."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from services.bench.floor_server import METHOD
from services.bench.matches import PACE, PLAYERS, Match, Move, new_table_id
from services.bench.rig import ENTROPY, Rig, Service
from services.game import commands
from services.game.wire import cards_to_wire, pace_to_wire
from services.pb.event.v1.event_pb2 import Seat
from services.pb.table.v1 import table_service_pb2 as pb
from services.rules.presets import preset

PRESET: Final = "classic-2d"

Shot = Callable[[], Awaitable[object]]
"""Sends one prepared call and waits for its answer."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One table at one server."""

    table_id: str
    before: list[Shot]
    """What comes before the first trick, in order."""
    plays: list[Shot]
    """The plays of the deal, in order."""


async def lanes(rig: Rig, table: Service, count: int) -> tuple[list[Lane], list[list[Move]]]:
    """Found so many tables at a table service, each with its lane, and the moves that it will see.

    Args:
        rig: has the tokens of the players.
        table: the table service.
        count: how many tables.
    """
    founded = await asyncio.gather(*(_found(rig, table) for _ in range(count)))
    made, moves = [], []
    for table_id in founded:
        match = Match(table_id, preset(PRESET), ENTROPY)
        deal = list(match.deal())
        shots = [_shot(rig, table, table_id, move, version) for version, move in enumerate(deal, 1)]
        first = next(at for at, move in enumerate(deal) if isinstance(move.command, commands.Play))
        made.append(Lane(table_id, shots[:first], shots[first:]))
        moves.append(deal)
    return made, moves


def floor_lanes(floor: Service, metadata: Any, moves: list[list[Move]], rng: Random) -> list[Lane]:
    """The same bytes for tables of other ids at the floor."""
    call = floor.call(METHOD)
    made = []
    for deal in moves:
        table_id = new_table_id(rng)
        head = table_id.encode()
        shots = [_bare(call, head + move.kind.encode() + move.stored, metadata) for move in deal]
        first = next(at for at, move in enumerate(deal) if isinstance(move.command, commands.Play))
        made.append(Lane(table_id, shots[:first], shots[first:]))
    return made


async def _found(rig: Rig, table: Service) -> str:
    seats = [Seat(seat=seat, player_id=player) for seat, player in enumerate(PLAYERS)]
    request = pb.CreateTableRequest(
        command_id=str(uuid.uuid4()), preset=PRESET, seats=seats, pace=pace_to_wire(PACE)
    )
    answer = await table.call("CreateTable")(request.SerializeToString(), metadata=rig.metadata[0])
    return pb.CreateTableResponse.FromString(answer).table_id


def _shot(rig: Rig, table: Service, table_id: str, move: Move, version: int) -> Shot:
    context = pb.CommandContext(
        table_id=table_id, command_id=str(uuid.UUID(bytes=move.command_id)), version=version
    )
    match move.command:
        case commands.Ready():
            method, request = "Ready", pb.ReadyRequest(context=context).SerializeToString()
        case commands.Pass():
            method, request = "Pass", pb.PassRequest(context=context).SerializeToString()
        case commands.BuryCards(_, _, cards):
            buried = pb.BuryRequest(context=context, cards=cards_to_wire(cards))
            method, request = "Bury", buried.SerializeToString()
        case commands.Play(_, _, cards):
            played = pb.PlayRequest(context=context, cards=cards_to_wire(cards))
            method, request = "Play", played.SerializeToString()
        case _:
            raise ValueError(f"no call makes {move.command}")
    return _bare(table.call(method), request, rig.metadata[move.seat])


def _bare(call: Any, request: bytes, metadata: Any) -> Shot:
    return lambda: call(request, metadata=metadata)
