"""Plans of rooms: checked by the very code that founds tables, and made into the request that founds one."""

from typing import Final

from services.game.asked_rules import asked_rules
from services.game.commands import OpenTable, Refusal, SeatPlan
from services.game.decide.seating import opening_fault
from services.game.ids import table_id_of
from services.game.state import SEATS, Pace
from services.game.wire import pace_from_wire
from services.lobby.room_tables import LOBBY, command_of
from services.pb.event.v1.event_pb2 import Seat
from services.pb.lobby.v1.room_pb2 import RoomPlan, Visibility
from services.pb.lobby.v1.stored_pb2 import RoomRecord
from services.pb.table.v1.table_service_pb2 import CreateTableRequest
from services.rules.reasons import Reason
from services.shell.errors import RefusedError

PLAN_BYTES: Final = 4096
"""Of a serialised plan."""
_SOMEBODY: Final = (SeatPlan("north"), SeatPlan("east"), SeatPlan("south"), SeatPlan("west"))


def checked_plan(plan: RoomPlan) -> RoomPlan:
    """A plan that a table could play, without what this code does not know.

    Raises:
        RefusedError: UNKNOWN_PRESET, UNKNOWN_OPTION, BAD_OPTION, BAD_INPUT or TOO_LARGE.
    """
    if plan.ByteSize() > PLAN_BYTES:
        raise RefusedError(Reason.TOO_LARGE, {"field": "plan"})
    rules = asked_rules(plan.preset, plan.overrides)
    fault = (
        rules
        if isinstance(rules, Refusal)
        else opening_fault(
            OpenTable(
                table_id=table_id_of(LOBBY, bytes(16)),
                player_id=LOBBY,
                rules=rules,
                pace=pace_from_wire(plan.pace) if plan.HasField("pace") else Pace(),
                stake=plan.stake,
                spectators=plan.spectators,
                spectator_delay_ms=plan.spectator_delay_ms,
                seats=_SOMEBODY,
            )
        )
    )
    if fault is not None:
        raise RefusedError(fault.reason, fault.detail)
    checked = RoomPlan()
    checked.CopyFrom(plan)
    checked.DiscardUnknownFields()
    return checked


def checked_visibility(visibility: Visibility.ValueType) -> Visibility.ValueType:
    """A visibility that there is.

    Raises:
        RefusedError: BAD_INPUT.
    """
    if visibility not in Visibility.values():
        raise RefusedError(Reason.BAD_INPUT, {"field": "visibility", "detail": "is no such value"})
    return visibility


def table_request(record: RoomRecord) -> CreateTableRequest:
    """What founds the table of a room that is STARTING: the same request whoever makes it."""
    plan = record.room.plan
    return CreateTableRequest(
        command_id=str(command_of(record)),
        preset=plan.preset,
        overrides=plan.overrides,
        seats=[
            Seat(seat=number, player_id=held.player_id, difficulty=held.difficulty)
            for number, held in zip(range(SEATS), record.room.seats, strict=True)
        ],
        stake=plan.stake,
        pace=plan.pace if plan.HasField("pace") else None,
        spectators=plan.spectators,
        spectator_delay_ms=plan.spectator_delay_ms,
        previous_table_id=record.previous_table_id,
        operator=record.operator,
    )
