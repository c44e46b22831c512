"""The ledger as a process: it settles, answers, counts, and has matches ended that nobody can pay for."""

import asyncio
import json
import signal
import urllib.request
from random import Random

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.house import Service, own_port, patience
from support.ledger_oracle import expected
from support.ledger_tables import Table
from support.ledgers import GRANT

from services.bench.ledger_logs import Mix, World
from services.game.ids import subject
from services.pb.ledger.v1 import ledger_service_pb2 as pb
from services.pb.ledger.v1.ledger_service_pb2_grpc import LedgerServiceStub
from services.pb.table.v1 import table_service_pb2 as table_pb
from services.pb.table.v1.table_service_pb2_grpc import (
    TableServiceServicer,
    add_TableServiceServicer_to_server,
)
from services.shell.keys import signing_key
from services.shell.tokens import sign

MIX = Mix(people=12, stakes=(0, 7, 20), parallel=3, options=0.5, escapes=0.1, bots=0.2)
"""Nobody runs out of chips, so it does not matter which stream's message comes a little earlier."""
EXIT_S = 15.0
"""ARCHITECTURE §7: a service that is told to stop has ended."""


class Tables(TableServiceServicer):
    """A table service that notes which matches are to be ended."""

    def __init__(self):
        self.asked = []

    async def EndUnfunded(self, request, context):
        self.asked.append(request.context)
        self.caller = dict(context.invocation_metadata())["authorization"]
        return table_pb.EndUnfundedResponse()


@pytest.fixture
async def tables():
    server = grpc.aio.server()
    servicer = Tables()
    add_TableServiceServicer_to_server(servicer, server)
    servicer.port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield servicer
    await server.stop(None)


@pytest.fixture
async def ledger(nats_server, tmp_path, tables):
    service = Service(
        "ledger",
        tmp_path,
        {
            "SHENGJI_NATS": nats_server.url,
            "SHENGJI_OPENING_GRANT": str(GRANT),
            "SHENGJI_TABLE": f"127.0.0.1:{tables.port}",
            "SHENGJI_METRICS": f"127.0.0.1:{own_port()}",
        },
    )
    service.start()
    await service.ready()
    yield service
    service.kill()


async def until(condition):
    """Wait for what comes in the end."""
    async with asyncio.timeout(120):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.1)


def bearer(folder, player, issuer="local"):
    token = sign(signing_key(folder, issuer), issuer, player, scope="table ledger")
    return (("authorization", f"Bearer {token}"),)


def metrics_of(service):
    with urllib.request.urlopen(f"http://{service.env['SHENGJI_METRICS']}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_a_process_settles_answers_and_ends_in_order(ledger, broker, tables, tmp_path):
    messages = World(Random(21), MIX).messages(30)
    short = Table(stake=200, grant=GRANT, number=5, players=("s0", "s1", "s2", "s3"))
    for message in messages:
        await broker.js.publish(subject(message.table_id, "d"), message.stored)
    for stored in short.log:
        await broker.js.publish(subject(short.table_id, "d"), stored)
    chips = expected(messages, GRANT)[0]
    async with grpc.aio.insecure_channel(ledger.address) as channel:
        stub = LedgerServiceStub(channel)

        async def owned(player):
            answer = await stub.GetBalance(pb.GetBalanceRequest(), metadata=bearer(tmp_path, player))
            return answer.available + answer.held

        await until(lambda: metrics_of(ledger).get(("shengji_ledger_commits_total",), 0) >= len(messages) + 1)
        for player in sorted(name for name in chips if name.startswith("ply_")):
            assert await owned(player) == chips[player]
        services = bearer(tmp_path, "svc:lobby", "services")
        request = pb.HoldStakesRequest(
            table_id=short.table_id.replace("tbl_01", "tbl_00"), stake=10, player_ids=["ply_0001"], hold=True
        )
        await stub.HoldStakes(request, metadata=services)
        await stub.ReleaseStakes(pb.ReleaseStakesRequest(table_id=request.table_id), metadata=services)
    await until(lambda: tables.asked)
    assert {context.table_id for context in tables.asked} == {short.table_id}
    counted = metrics_of(ledger)
    assert counted["shengji_ledger_writer",] == 1
    assert counted["shengji_ledger_settled_deals_total",] >= 30
    assert counted["shengji_ledger_posting_lag_seconds_count",] == len(messages) + 1
    assert not any(value for name, value in counted.items() if name[0] == "shengji_ledger_alarms_total")
    ledger.signal(signal.SIGTERM)
    assert await ledger.wait(patience(EXIT_S)) == 0
    lines = [json.loads(line) for line in ledger.log.read_text().splitlines()]
    assert [line["event"] for line in lines if line["level"] == "error"] == []
    assert {"serving", "writing", "stopping", "stopped"} <= {line["event"] for line in lines}


async def test_two_processes_one_killed_the_other_takes_over(ledger, broker, nats_server, tmp_path, tables):
    second = Service("ledger", tmp_path, dict(ledger.env) | {"SHENGJI_METRICS": f"127.0.0.1:{own_port()}"}, 1)
    second.env["SHENGJI_LISTEN"] = second.address
    second.start()
    await second.ready()
    try:
        table = Table(stake=1, number=9, players=("k0", "k1", "k2", "k3"))
        table.score(1, levels=3)
        await broker.js.publish(subject(table.table_id, "d"), table.log[0])
        await until(lambda: metrics_of(ledger).get(("shengji_ledger_writer",)))
        await until(lambda: metrics_of(ledger).get(("shengji_ledger_lag_messages", "0")) == 0)
        assert metrics_of(second)["shengji_ledger_writer",] == 0
        ledger.kill()
        await broker.js.publish(subject(table.table_id, "d"), table.log[1])
        async with grpc.aio.insecure_channel(second.address) as channel:
            stub = LedgerServiceStub(channel)
            async with asyncio.timeout(120):
                while True:
                    answer = await stub.GetBalance(pb.GetBalanceRequest(), metadata=bearer(tmp_path, "k1"))
                    if answer.available + answer.held == GRANT + 3:
                        break
                    await asyncio.sleep(0.1)
    finally:
        second.kill()
