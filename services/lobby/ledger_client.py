"""The ledger as the lobby asks it, as ``svc:lobby``: the ports ``Ratings`` and ``Funds`` over gRPC."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.lobby.ports import NEW_RATING
from services.lobby.room_tables import LOBBY
from services.pb.ledger.v1.ledger_service_pb2 import (
    GetRatingsRequest,
    HoldStakesRequest,
    ReleaseStakesRequest,
)
from services.pb.ledger.v1.ledger_service_pb2_grpc import LedgerServiceStub
from services.rules.reasons import Reason
from services.shell.channel import PASSING, ServiceToken, detail_of, reason_of
from services.shell.errors import RefusedError
from services.shell.logs import Log

CALL_TIMEOUT_S: Final = 3.0
SETTLING_S: Final = (0.1, 0.2, 0.4)
"""Pauses before somebody is asked about again whose chips are held: the match before may just have ended."""


class LedgerClient:
    """``Ratings`` and ``Funds`` of a ledger service."""

    def __init__(self, channel: grpc.aio.Channel, key: Ed25519PrivateKey, log: Log) -> None:
        """Call over a channel (``shell.channel.open_channel``), with tokens signed by the services' key."""
        self._stub: Any = LedgerServiceStub(channel)
        self._token = ServiceToken(key, LOBBY)
        self._log = log

    async def of(self, player_ids: Sequence[str]) -> list[float]:
        """See ``Ratings.of``."""
        try:
            answer = await self._call("GetRatings", GetRatingsRequest(player_ids=player_ids))
        except RefusedError as refused:
            self._log.warning("ratings_unknown", reason=refused.reason.value)
            return [NEW_RATING] * len(player_ids)
        return [rating.rating for rating in answer.ratings]

    async def check(self, player_ids: Sequence[str], stake: int) -> None:
        """See ``Funds.check``."""
        request = HoldStakesRequest(stake=stake, player_ids=player_ids)
        for pause_s in SETTLING_S:
            try:
                await self._call("HoldStakes", request)
            except RefusedError as refused:
                if refused.reason is not Reason.ELSEWHERE:
                    raise
            else:
                return
            await asyncio.sleep(pause_s)
        await self._call("HoldStakes", request)

    async def hold(self, table_id: str, player_ids: Sequence[str], stake: int) -> None:
        """See ``Funds.hold``."""
        request = HoldStakesRequest(table_id=table_id, stake=stake, player_ids=player_ids, hold=True)
        await self._call("HoldStakes", request)

    async def release(self, table_id: str) -> None:
        """See ``Funds.release``."""
        await self._call("ReleaseStakes", ReleaseStakesRequest(table_id=table_id))

    async def _call(self, method: str, request: Any) -> Any:
        """One call.

        Raises:
            RefusedError: the ledger's own refusal; UNAVAILABLE when it cannot answer now.
        """
        try:
            return await getattr(self._stub, method)(
                request, metadata=self._token.metadata(), timeout=CALL_TIMEOUT_S
            )
        except grpc.aio.AioRpcError as error:
            name = reason_of(error)
            if error.code() in PASSING or name not in Reason.__members__:
                raise RefusedError(Reason.UNAVAILABLE) from None
            raise RefusedError(Reason[name], detail_of(error)) from None
