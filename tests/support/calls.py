"""Calls to table replicas as a player: typed, counted, retried with the same command id, and tapped.

A tap sees every byte that the service sends to anybody: responses, messages of watches, and errors.
"""

import asyncio
import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import ErrorInfo, LocalizedMessage, RetryInfo
from google.rpc.status_pb2 import Status

from services.pb.table.v1 import table_service_pb2 as pb
from services.shell.errors import DETAILS_KEY

SERVICE = pb.DESCRIPTOR.services_by_name["TableService"]
RETRIED = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNKNOWN,
}
"""After these nobody knows whether a command was recorded."""
CALL_S = 30.0
OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.use_local_subchannel_pool", 1),
)

Tap = Callable[[str, str, bytes], None]
"""Takes (player, method, bytes); of an error its google.rpc.Status ("… refused") and the rest ("… said")."""


class Refused(Exception):
    """A call that did not succeed.

    Attributes:
        code: the gRPC status code.
        reason: ErrorInfo's reason, empty without one.
        metadata: ErrorInfo's metadata.
        retry_s: RetryInfo's delay; None without one.
        localized: LocalizedMessage's text.
        status: the whole google.rpc.Status.
    """

    def __init__(self, error: grpc.aio.AioRpcError) -> None:
        super().__init__(f"{error.code().name}: {error.details()}")
        self.code = error.code()
        self.status = Status()
        for key, value in error.trailing_metadata() or ():
            if key == DETAILS_KEY:
                self.status.ParseFromString(value)
        info, delay, localized = ErrorInfo(), RetryInfo(), LocalizedMessage()
        self.retry_s: float | None = None
        for detail in self.status.details:
            detail.Unpack(info)
            detail.Unpack(localized)
            if detail.Unpack(delay):
                self.retry_s = delay.retry_delay.ToTimedelta().total_seconds()
        self.reason = info.reason
        self.metadata = dict(info.metadata)
        self.localized = localized.message


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A command that was answered with a receipt."""

    table_id: str
    command_id: str
    version: int
    at: float
    """When the answer came, the loop's clock."""
    replica: int


class Calls:
    """Channels to all replicas, and what was acknowledged or refused for good through them.

    Attributes:
        acknowledged: every command that got a receipt, one entry a receipt.
        refused: ids of commands that were refused for good: they are not in the log.
        repeated: receipts that answered a repetition.
        retries: calls that were made again with the same command id.
    """

    def __init__(self, addresses: Sequence[str], token: Callable[[str], str], tap: Tap | None = None) -> None:
        """Open channels.

        Args:
            addresses: of the replicas.
            token: the token of a player.
            tap: sees all bytes that come.
        """
        self._token = token
        self._tap = tap
        self.channels = [grpc.aio.insecure_channel(address, options=OPTIONS) for address in addresses]
        self.acknowledged: list[Acknowledged] = []
        self.refused: list[tuple[str, str]] = []
        self.repeated = 0
        self.retries = 0
        self._methods = {
            (name, n): self._method(name, channel)
            for name in SERVICE.methods_by_name
            for n, channel in enumerate(self.channels)
        }

    def _method(self, name: str, channel: grpc.aio.Channel) -> Any:
        path = f"/{SERVICE.full_name}/{name}"
        if SERVICE.methods_by_name[name].server_streaming:
            return channel.unary_stream(path, request_serializer=_serialise)
        return channel.unary_unary(path, request_serializer=_serialise)

    async def close(self) -> None:
        """Close the channels."""
        await asyncio.gather(*(channel.close() for channel in self.channels))

    def bearer(self, player: str) -> tuple[tuple[str, str], ...]:
        """The metadata that proves a player."""
        return (("authorization", f"Bearer {self._token(player)}"),)

    async def call(
        self,
        name: str,
        request: Message | bytes,
        player: str,
        replica: int = 0,
        *,
        metadata: Sequence[tuple[str, str]] | None = None,
        timeout_s: float = CALL_S,
    ) -> Any:
        """One call of a unary method, once.

        Raises:
            Refused: it did not succeed.
        """
        carried = self.bearer(player) if metadata is None else metadata
        try:
            raw = await self._methods[name, replica](request, metadata=carried, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            raise self.refusal(player, name, error) from None
        if self._tap is not None:
            self._tap(player, name, raw)
        return GetMessageClass(SERVICE.methods_by_name[name].output_type).FromString(raw)

    def watch(self, request: pb.WatchRequest, player: str, replica: int = 0) -> Any:
        """A stream of raw messages; its errors are to be given to ``refusal``."""
        return self._methods["Watch", replica](request, metadata=self.bearer(player))

    def saw(self, player: str, raw: bytes) -> None:
        """A message of a watch came."""
        if self._tap is not None:
            self._tap(player, "Watch", raw)

    def refusal(self, player: str, name: str, error: grpc.aio.AioRpcError) -> Refused:
        """An error as a refusal; the tap sees all of it."""
        if self._tap is not None:
            for key, value in error.trailing_metadata() or ():
                said = value if isinstance(value, bytes) else value.encode()
                self._tap(player, f"{name} {'refused' if key == DETAILS_KEY else 'said'}", said)
            self._tap(player, f"{name} said", (error.details() or "").encode())
        return Refused(error)

    async def ask(self, name: str, request: Message, player: str, replica: int = 0) -> Any:
        """A question that is asked again, of another replica, until it is answered or refused for good.

        Raises:
            Refused: for good.
        """
        while True:
            try:
                return await self.call(name, request, player, replica)
            except Refused as error:
                if error.code not in RETRIED:
                    raise
            replica = (replica + 1) % len(self.channels)
            await asyncio.sleep(random.uniform(0.02, 0.08))

    async def settle(self, name: str, request: Message, player: str, replica: int = 0) -> pb.Receipt:
        """A command, sent with one id until it is acknowledged or refused for good.

        Raises:
            Refused: for good.
        """
        context = request.context if hasattr(request, "context") else request
        if not context.command_id:
            context.command_id = str(uuid.uuid4())
        while True:
            try:
                answer = await self.call(name, request, player, replica)
            except Refused as error:
                if error.code not in RETRIED:
                    self.refused.append((getattr(context, "table_id", ""), context.command_id))
                    raise
                self.retries += 1
                replica = (replica + 1) % len(self.channels)
                await asyncio.sleep(random.uniform(0.02, 0.08))
                continue
            receipt: pb.Receipt = answer.receipt
            table_id = getattr(answer, "table_id", "") or context.table_id
            now = asyncio.get_running_loop().time()
            self.acknowledged.append(
                Acknowledged(table_id, context.command_id, receipt.version, now, replica)
            )
            self.repeated += receipt.repeated
            return answer if name == "CreateTable" else receipt


def _serialise(request: Message | bytes) -> bytes:
    return request if isinstance(request, bytes) else request.SerializeToString()
