"""Ends matches that a seat cannot pay for any more, by asking the table service until the table is closed."""

import asyncio
import contextlib
import uuid
from typing import Any, Final

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.ledger.consumer import Consumer
from services.ledger.database import Database, DatabaseAway
from services.ledger.metrics import LedgerMetrics
from services.ledger.schema import matches
from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1.table_service_pb2_grpc import TableServiceStub
from services.shell.channel import ServiceToken
from services.shell.logs import Log, fault_of

CALLER: Final = "svc:ledger"
EVERY_S: Final = 1.0
"""How often tables are asked at the least. Besides, as soon as a deal of theirs was settled: quick players
leave little time between two deals."""
_CALL_S: Final = 2.0
_AT_ONCE: Final = 100
_COMMANDS: Final = uuid.UUID("3f0c5a42-91d7-5b0e-8d0b-4f7c2f1f6a90")
"""The name space of these commands' ids."""


class Unfunded:
    """Asks the table service to end unfunded matches; only the writer does, and repeats are harmless."""

    def __init__(
        self,
        database: Database,
        channel: grpc.aio.Channel,
        key: Ed25519PrivateKey,
        consumer: Consumer,
        settled: asyncio.Event,
        metrics: LedgerMetrics,
        log: Log,
    ) -> None:
        """Nothing runs yet; ``settled`` is set when there may be something to ask for."""
        self._database = database
        self._stub: Any = TableServiceStub(channel)
        self._token = ServiceToken(key, CALLER)
        self._consumer = consumer
        self._settled = settled
        self._metrics = metrics
        self._log = log
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to ask."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            self._settled.clear()
            if self._consumer.leading:
                try:
                    for table_id, version in await self.tables():
                        await self.end(table_id, version)
                except DatabaseAway as error:
                    self._log.warning("cannot_look_for_unfunded", fault=fault_of(error))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EVERY_S):
                    await self._settled.wait()

    async def tables(self) -> list[tuple[str, int]]:
        """Some tables that are to be ended, and when they were founded, for the command's id.

        Raises:
            DatabaseAway: not now.
        """
        wanted = select(matches.c.table_id, matches.c.opened_at_us).where(matches.c.unfunded)

        async def find(connection: AsyncConnection) -> list[tuple[str, int]]:
            rows = await connection.execute(wanted.order_by(matches.c.table_id).limit(_AT_ONCE))
            return [(table_id, opened_at_us) for table_id, opened_at_us in rows]

        return await self._database.read(find)

    async def end(self, table_id: str, opened_at_us: int) -> grpc.StatusCode:
        """Ask once; while a deal is open the answer is WRONG_PHASE, and it is asked again later."""
        command = uuid.uuid5(_COMMANDS, f"{table_id}/{opened_at_us}")
        request = pb.EndUnfundedRequest(context=pb.CommandContext(table_id=table_id, command_id=str(command)))
        try:
            await self._stub.EndUnfunded(request, metadata=self._token.metadata(), timeout=_CALL_S)
            code = grpc.StatusCode.OK
        except grpc.aio.AioRpcError as error:
            code = error.code()
        self._metrics.unfunded[code.name].inc()
        if code not in {grpc.StatusCode.OK, grpc.StatusCode.FAILED_PRECONDITION}:
            self._log.warning("cannot_end_unfunded", table_id=table_id, code=code.name)
        return code
