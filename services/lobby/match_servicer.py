"""The calls of MatchService: requests are checked here, ``tickets.py`` does what they ask."""

from typing import Final

from services.game.errors import BadId
from services.game.ids import CommandId, is_id
from services.lobby.room_plans import checked_plan
from services.lobby.tickets import Asked, Tickets
from services.pb.event.v1.event_pb2 import DIFFICULTY_NORMAL, Difficulty
from services.pb.lobby.v1 import match_service_pb2 as pb
from services.pb.lobby.v1.room_pb2 import RoomPlan
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.rpc import Call

BOTS_AFTER_MOST_S: Final = 600


class MatchServicer:
    """MatchService; ``shell.rpc.Guard`` stands before it and answers what it raises."""

    def __init__(self, tickets: Tickets) -> None:
        self._tickets = tickets

    async def create_ticket(self, request: pb.CreateTicketRequest, call: Call) -> pb.CreateTicketResponse:
        """See the proto."""
        record = await self._tickets.create(asked(request), call.player_id, call.operator)
        return pb.CreateTicketResponse(ticket=self._tickets.shown(record))

    async def cancel_ticket(self, request: pb.CancelTicketRequest, call: Call) -> pb.CancelTicketResponse:
        """See the proto."""
        await self._tickets.cancel(request.ticket_id, call.player_id)
        return pb.CancelTicketResponse()

    async def get_ticket(self, request: pb.GetTicketRequest, call: Call) -> pb.GetTicketResponse:
        """See the proto."""
        record = await self._tickets.get(request.ticket_id, call.player_id)
        return pb.GetTicketResponse(ticket=self._tickets.shown(record))


def asked(request: pb.CreateTicketRequest) -> Asked:
    """What a request asks for.

    Raises:
        RefusedError: BAD_ID, UNKNOWN_PRESET or BAD_INPUT.
    """
    try:
        request_id = CommandId.parse(request.request_id)
    except BadId:
        raise RefusedError(Reason.BAD_ID, {"id": request.request_id}) from None
    if request.room_id and not is_id("rom", request.room_id):
        raise RefusedError(Reason.BAD_ID, {"id": request.room_id})
    if request.bots_after_s > BOTS_AFTER_MOST_S:
        detail = f"must be at most {BOTS_AFTER_MOST_S}"
        raise RefusedError(Reason.BAD_INPUT, {"field": "bots_after_s", "detail": detail})
    if request.bots not in Difficulty.values():
        raise RefusedError(Reason.BAD_INPUT, {"field": "bots", "detail": "is no such value"})
    plan = checked_plan(RoomPlan(preset=request.preset, stake=request.stake))
    return Asked(
        request_id=request_id,
        preset=plan.preset,
        stake=plan.stake,
        bots_after_s=request.bots_after_s,
        bots=request.bots or DIFFICULTY_NORMAL,
        room_id=request.room_id,
    )
