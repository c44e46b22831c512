"""The table service as a bot calls it: one channel, a token for each bot, short deadlines."""

import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.bot.actions import (
    Action,
    Bury,
    CallMutiny,
    Counter,
    Declare,
    Pass,
    Play,
    Ready,
    TakeBack,
    kind,
)
from services.game.wire import cards_from_wire, cards_to_wire
from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1.table_service_pb2_grpc import TableServiceStub
from services.pb.table.v1.view_pb2 import TableView
from services.shell.channel import PASSING, reason_of
from services.shell.tokens import LIFETIME_S, sign

CALL_TIMEOUT_S: Final = 6.0
"""For one call; a view may wait 5 s for its version."""
TOKENS: Final = 20_000
"""Tokens kept at most."""
_RENEW_S: Final = LIFETIME_S * 0.8
_COMMANDS: Final = uuid.UUID("0b7f2c5e-6f0c-5d39-9a52-2c1f3c0f7a11")
"""The name space of bots' command ids."""


class Unreachable(Exception):
    """The table service cannot serve now, or its answer is unknown; the same call may be made again."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The table service's refusal.

    Attributes:
        code: the status code's name.
        reason: the reason's name, empty when the status has none.
    """

    code: str
    reason: str


class Refusal(Exception):
    """A call that was refused.

    Attributes:
        refused: how.
    """

    def __init__(self, refused: Refused) -> None:
        super().__init__(f"{refused.code} {refused.reason}")
        self.refused = refused


def command_id(table_id: str, version: int, seat: int, name: str) -> str:
    """The id of a bot's command: the same in every process, so that a repeat is known as one."""
    return str(uuid.uuid5(_COMMANDS, f"{table_id}/{version}/{seat}/{name}"))


class Tokens:
    """Tokens for bots, made when needed and again before they expire."""

    def __init__(self, key: Ed25519PrivateKey, issuer: str) -> None:
        self._key = key
        self._issuer = issuer
        self._made: OrderedDict[str, tuple[float, str]] = OrderedDict()

    def of(self, player_id: str) -> str:
        """A token that is good for some minutes."""
        now = time.time()
        made, token = self._made.get(player_id, (0.0, ""))
        if now - made > _RENEW_S:
            token = sign(self._key, self._issuer, player_id)
            self._made[player_id] = (now, token)
            self._made.move_to_end(player_id)
            if len(self._made) > TOKENS:
                self._made.popitem(last=False)
        return token


class TableClient:
    """Calls to the table service on behalf of bots."""

    def __init__(self, channel: grpc.aio.Channel, tokens: Tokens) -> None:
        self._stub: Any = TableServiceStub(channel)
        self._tokens = tokens

    async def view(self, table_id: str, player_id: str, min_version: int) -> TableView:
        """The table as a bot sees it, at this version or a later one.

        Raises:
            Unreachable: try again.
            Refusal: the service will not show it.
        """
        request = pb.GetViewRequest(table_id=table_id, min_version=min_version)
        response = await self._call(self._stub.GetView, request, player_id)
        view: TableView = response.view
        return view

    async def legal_plays(self, table_id: str, player_id: str) -> list[bytes]:
        """What the bot may play now, strongest first; empty when it is not its turn.

        Raises:
            Unreachable: try again.
            Refusal: the service will not say.
        """
        response = await self._call(self._stub.LegalPlays, pb.LegalPlaysRequest(table_id=table_id), player_id)
        return [cards_from_wire(play.cards) for play in response.plays]

    async def act(self, view: TableView, action: Action, attempt: str = "") -> int:
        """Send an action for the seat of a view.

        Args:
            view: what it was decided on.
            action: what to do.
            attempt: tells a second choice on the same view from the first.

        Returns:
            The version that holds it.

        Raises:
            Unreachable: the outcome is unknown; the same action may be sent again.
            Refusal: it was refused.
        """
        seat = view.my_seat
        context = pb.CommandContext(
            table_id=view.table_id,
            command_id=command_id(view.table_id, view.version, seat, kind(action) + attempt),
            version=view.version,
        )
        response = await self._call(*self._request(context, action), view.seats[seat].player_id)
        version: int = response.receipt.version
        return version

    def _request(self, context: pb.CommandContext, action: Action) -> tuple[Any, Any]:
        match action:
            case Ready():
                return self._stub.Ready, pb.ReadyRequest(context=context)
            case TakeBack():
                return self._stub.SetAutoPlay, pb.SetAutoPlayRequest(context=context, on=False)
            case Declare(cards):
                return self._stub.Declare, pb.DeclareRequest(context=context, cards=cards_to_wire(cards))
            case Pass():
                return self._stub.Pass, pb.PassRequest(context=context)
            case CallMutiny():
                return self._stub.CallMutiny, pb.CallMutinyRequest(context=context)
            case Counter(cards):
                return self._stub.Counter, pb.CounterRequest(context=context, cards=cards_to_wire(cards))
            case Bury(cards):
                return self._stub.Bury, pb.BuryRequest(context=context, cards=cards_to_wire(cards))
            case Play(cards):
                return self._stub.Play, pb.PlayRequest(context=context, cards=cards_to_wire(cards))

    async def _call(self, method: Any, request: Any, player_id: str) -> Any:
        metadata = (("authorization", "Bearer " + self._tokens.of(player_id)),)
        try:
            return await method(request, metadata=metadata, timeout=CALL_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            if error.code() in PASSING:
                raise Unreachable(error.code().name) from None
            raise Refusal(Refused(error.code().name, reason_of(error))) from None
