"""The table service as the lobby calls it: to found the tables of rooms, as ``svc:lobby``."""

from typing import Any, Final

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.lobby.room_tables import LOBBY
from services.pb.table.v1.table_service_pb2 import CreateTableRequest, CreateTableResponse
from services.pb.table.v1.table_service_pb2_grpc import TableServiceStub
from services.shell.channel import PASSING, ServiceToken, reason_of

CALL_TIMEOUT_S: Final = 6.0


class TableUnreachable(Exception):
    """The table service cannot serve now, or its answer is unknown; the same call may be made again."""


class TableRefusal(Exception):
    """The table service refused, and would again.

    Attributes:
        reason: the name of its reason, or of the status code when it gave none.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TableClient:
    """Calls to the table service on behalf of the lobby."""

    def __init__(self, channel: grpc.aio.Channel, key: Ed25519PrivateKey) -> None:
        """Call over a channel (``shell.channel.open_channel``), with tokens signed by the services' key."""
        self._stub: Any = TableServiceStub(channel)
        self._token = ServiceToken(key, LOBBY)

    async def create_table(self, request: CreateTableRequest) -> CreateTableResponse:
        """Found a table; the same request founds it once.

        Raises:
            TableUnreachable: try again. A token that is not accepted counts as that: keys may be changing.
            TableRefusal: there will be no such table.
        """
        try:
            response: CreateTableResponse = await self._stub.CreateTable(
                request, metadata=self._token.metadata(), timeout=CALL_TIMEOUT_S
            )
        except grpc.aio.AioRpcError as error:
            reason = reason_of(error)
            if error.code() in PASSING or error.code() is grpc.StatusCode.UNAUTHENTICATED:
                raise TableUnreachable(reason or error.code().name) from None
            raise TableRefusal(reason or error.code().name) from None
        return response
