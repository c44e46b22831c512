"""LedgerService behind the guard, over gRPC; and without its database."""

from pathlib import Path

import grpc
import pytest
from prometheus_client import CollectorRegistry
from support.databases import new_url

from services.game.ids import TableId
from services.ledger.archive import Archive
from services.ledger.database import Database, opened
from services.ledger.holding import Holding
from services.ledger.servicer import LedgerServicer, limits
from services.pb.ledger.v1 import ledger_service_pb2 as pb
from services.pb.ledger.v1.ledger_service_pb2_grpc import LedgerServiceStub
from services.rules.reasons import Reason
from services.shell.errors import DETAILS_KEY, RefusedError
from services.shell.keys import signing_key
from services.shell.limits import Buckets
from services.shell.logs import Log
from services.shell.metrics import RpcMetrics
from services.shell.rpc import Call, Guard
from services.shell.server import start
from services.shell.tokens import Issuer, Keys, Verifier, sign

GRANT = 1000
SERVICE = pb.DESCRIPTOR.services_by_name["LedgerService"]
NO_TABLE = TableId.new(5, bytes(10))


async def test_it_is_served_and_an_admins_token_counts(tmp_path: Path):
    key = signing_key(tmp_path, "local")
    registry = CollectorRegistry()
    log = Log("test", "error")
    async with opened(new_url("sqlite", tmp_path)) as database:
        servicer = LedgerServicer(database, Archive(tmp_path), Holding(database, GRANT))
        verifier = Verifier([Issuer("local", Keys(key.public_key()))], "ledger")
        metrics = RpcMetrics(registry, [method.name for method in SERVICE.methods])
        guard = Guard("shengji.ledger", verifier, metrics, log, Buckets(0, 1))
        running = await start(
            [guard.handlers(SERVICE, servicer, limits(20.0))], [SERVICE.full_name], "127.0.0.1:0"
        )
        async with grpc.aio.insecure_channel(f"127.0.0.1:{running.port}") as channel:
            stub = LedgerServiceStub(channel)

            def bearing(player, scope):
                return (("authorization", f"Bearer {sign(key, 'local', player, scope=scope)}"),)

            mine = await stub.GetBalance(pb.GetBalanceRequest(), metadata=bearing("ann", "ledger"))
            assert mine.available == GRANT
            request = pb.GetBalanceRequest(player_id="ann")
            assert await stub.GetBalance(request, metadata=bearing("boss", "ledger admin")) == mine
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.GetBalance(request, metadata=bearing("bob", "ledger"))
            assert refused.value.code() is grpc.StatusCode.NOT_FOUND
            assert DETAILS_KEY in dict(refused.value.trailing_metadata())
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                async for _ in stub.GetLog(
                    pb.GetLogRequest(table_id=NO_TABLE), metadata=bearing("bob", "ledger")
                ):
                    pass
            assert refused.value.code() is grpc.StatusCode.NOT_FOUND
        await running.server.stop(0)


async def test_without_a_database_it_is_unavailable(tmp_path):
    database = Database("postgresql+asyncpg://nobody@127.0.0.1:1/none")
    servicer = LedgerServicer(database, Archive(tmp_path), Holding(database, GRANT))
    ann = Call("ann", 0, 0.0)
    holding = pb.HoldStakesRequest(table_id=NO_TABLE, stake=1, player_ids=["ann"], hold=True)
    for asking in (
        servicer.get_balance(pb.GetBalanceRequest(), ann),
        servicer.get_stats(pb.GetStatsRequest(), ann),
        servicer.hold_stakes(holding, Call("svc:lobby", 0, 0.0)),
    ):
        with pytest.raises(RefusedError) as refused:
            await asking
        assert refused.value.reason is Reason.UNAVAILABLE
    await database.close()
