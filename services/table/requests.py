"""From requests to commands: whatever a request says is checked here, before any table is touched."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from services.game import commands
from services.game.asked_rules import asked_rules
from services.game.commands import OpenTable, Refusal, SeatPlan
from services.game.errors import BadId, BadInput
from services.game.ids import CommandId, TableId, bot_id, is_service, table_id_of
from services.game.state import SEATS, Pace
from services.game.wire import cards_from_wire, pace_from_wire
from services.pb.event.v1.event_pb2 import RuleOption, Seat
from services.pb.table.v1 import table_service_pb2 as pb
from services.rules.options import RuleSet
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.tokens import BOT_PREFIX, is_player_id
from services.table.compose import canonical

CARDS_MOST: Final = 64
"""Cards in one request; the largest hand has 54."""
SEED_MOST: Final = 32
_OF_SERVICES: Final = ("stake", "operator", "rake_permille", "prize")
"""What only services may say of a table: who founds it holds the chips."""


class Asked(NamedTuple):
    """A player's command as it came."""

    table_id: str
    command: commands.PlayerCommand
    command_id: bytes
    body: bytes
    """The canonical bytes that its check is made of."""
    seen: int
    """The version that the client decided on."""


def sit(request: pb.SitRequest, player_id: str) -> Asked:
    """The command of Sit."""
    if request.seat >= SEATS:
        raise bad("seat", "must be from 0 to 3")
    return _asked(request.context, commands.Sit(player_id, request.seat))


def leave(request: pb.LeaveRequest, player_id: str) -> Asked:
    """The command of Leave."""
    return _asked(request.context, commands.Leave(player_id))


def ready(request: pb.ReadyRequest, player_id: str) -> Asked:
    """The command of Ready."""
    if len(request.client_seed) > SEED_MOST:
        raise bad("client_seed", f"has at most {SEED_MOST} bytes")
    return _asked(request.context, commands.Ready(player_id, request.client_seed))


def declare(request: pb.DeclareRequest, player_id: str) -> Asked:
    """The command of Declare."""
    return _asked(request.context, commands.Declare(player_id, _cards(request.cards)))


def pass_(request: pb.PassRequest, player_id: str) -> Asked:
    """The command of Pass."""
    return _asked(request.context, commands.Pass(player_id))


def call_mutiny(request: pb.CallMutinyRequest, player_id: str) -> Asked:
    """The command of CallMutiny."""
    return _asked(request.context, commands.CallMutiny(player_id, request.context.version))


def bury(request: pb.BuryRequest, player_id: str) -> Asked:
    """The command of Bury."""
    cards = _cards(request.cards)
    return _asked(request.context, commands.BuryCards(player_id, request.context.version, cards))


def counter(request: pb.CounterRequest, player_id: str) -> Asked:
    """The command of Counter."""
    cards = _cards(request.cards)
    return _asked(request.context, commands.TakeCounter(player_id, request.context.version, cards))


def play(request: pb.PlayRequest, player_id: str) -> Asked:
    """The command of Play."""
    return _asked(request.context, commands.Play(player_id, request.context.version, _cards(request.cards)))


def set_auto_play(request: pb.SetAutoPlayRequest, player_id: str) -> Asked:
    """The command of SetAutoPlay."""
    return _asked(request.context, commands.SetAutoPlay(player_id, request.on))


def end_unfunded(request: pb.EndUnfundedRequest, player_id: str) -> Asked:
    """The command of EndUnfunded."""
    return _asked(request.context, commands.EndUnfunded(player_id))


def create_table(request: pb.CreateTableRequest, player_id: str, insecure_entropy: str) -> Asked:
    """The command of CreateTable; the table's id follows from the caller and the command id.

    Args:
        request: the request.
        player_id: the caller.
        insecure_entropy: the service's setting; empty for real play.
    """
    for name in _OF_SERVICES:
        if getattr(request, name) and not is_service(player_id):
            raise RefusedError(Reason.NOT_YOURS, {"field": name})
    command_id = _command_id(request.command_id)
    table_id = table_id_of(player_id, command_id)
    previous = request.previous_table_id
    if previous:
        previous = _table_id(previous)
    command = OpenTable(
        table_id=table_id,
        player_id=player_id,
        rules=rules(request.preset, request.overrides),
        pace=pace_from_wire(request.pace) if request.HasField("pace") else Pace(),
        stake=request.stake,
        spectators=request.spectators,
        spectator_delay_ms=request.spectator_delay_ms,
        seats=_seats(request.seats, table_id),
        previous_table_id=previous,
        insecure_entropy=insecure_entropy,
        operator=request.operator,
        rake_permille=request.rake_permille,
        prize=request.prize,
    )
    said = pb.CreateTableRequest()
    said.CopyFrom(request)
    said.ClearField("command_id")
    body = canonical(command, said.SerializeToString(deterministic=True))
    return Asked(table_id, command, command_id, body, 0)


def rules(name: str, overrides: Sequence[RuleOption] = ()) -> RuleSet:
    """The rules of a preset with some options changed.

    Raises:
        RefusedError: UNKNOWN_PRESET, UNKNOWN_OPTION or BAD_OPTION.
    """
    chosen = asked_rules(name, overrides)
    if isinstance(chosen, Refusal):
        raise RefusedError(chosen.reason, chosen.detail)
    return chosen


def _seats(seats: Sequence[Seat], table_id: str) -> tuple[SeatPlan, SeatPlan, SeatPlan, SeatPlan]:
    plans: dict[int, SeatPlan] = {}
    for seat in seats:
        if seat.seat >= SEATS or seat.seat in plans:
            raise bad("seats", "name each of 0 to 3 once at most")
        if seat.difficulty:
            if seat.player_id:
                raise bad("seats", "a bot has a difficulty and no player_id")
            plans[seat.seat] = SeatPlan(bot_id(table_id, seat.seat), seat.difficulty)
        elif seat.player_id:
            player_id = seat.player_id
            if not is_player_id(player_id) or player_id.startswith(BOT_PREFIX) or is_service(player_id):
                raise bad("seats", "a player_id is none that a player could have")
            plans[seat.seat] = SeatPlan(player_id)
    south, east, north, west = (plans.get(number, SeatPlan()) for number in range(SEATS))
    return south, east, north, west


def _asked(context: pb.CommandContext, command: commands.PlayerCommand) -> Asked:
    return Asked(
        context.table_id, command, _command_id(context.command_id), canonical(command), context.version
    )


def _cards(numbers: Sequence[int]) -> bytes:
    if len(numbers) > CARDS_MOST:
        raise RefusedError(Reason.TOO_LARGE, {"field": "cards"})
    try:
        return cards_from_wire(numbers)
    except BadInput as error:
        raise bad(error.field, error.detail) from None


def _command_id(text: str) -> bytes:
    try:
        return CommandId.parse(text)
    except BadId:
        raise RefusedError(Reason.BAD_ID, {"id": text}) from None


def _table_id(text: str) -> TableId:
    try:
        return TableId.parse(text)
    except BadId:
        raise RefusedError(Reason.BAD_ID, {"id": text}) from None


def bad(field: str, detail: str) -> RefusedError:
    """A field that cannot be so."""
    return RefusedError(Reason.BAD_INPUT, {"field": field, "detail": detail})
