"""Who may call at all, how often, and how a server comes and goes."""

import asyncio
import time
from functools import partial
from types import SimpleNamespace

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub
from support.clocks import Ahead, stand_still
from support.house import patience
from support.serving import PATIENCE_S, Caller, Game, Refused, context, founding, metadata, replica, token

from services.pb.table.v1 import table_service_pb2 as pb
from services.shell.config import ConfigError
from services.shell.tokens import Verifier

RULES = pb.GetRulesRequest()


async def answer_to(at, authorization):
    sent = () if authorization is None else (("authorization", authorization),)
    try:
        await at.stub.GetRules(RULES, metadata=sent)
    except grpc.aio.AioRpcError as error:
        return Refused(error)
    return None


async def test_a_call_needs_a_good_token(one):
    data = one.data
    good = token(data, "ann")
    assert await answer_to(one, f"Bearer {good}") is None
    for bad in (
        None,
        "",
        good,
        f"bearer {good}",
        f"Bearer {good}x",
        f"Bearer {token(data, 'ann', now=time.time() - 2000)}",
        f"Bearer {token(data, 'ann', scope='lobby')}",
        f"Bearer {token(data, 'ann', issuer='bots')}",
        f"Bearer {token(data, 'bot:1', issuer='local')}",
        f"Bearer {token(data, 'svc:lobby', issuer='local')}",
        f"Bearer {token(data, 'svc:lobby', issuer='bots')}",
        f"Bearer {token(data, 'ann', issuer='services')}",
    ):
        refused = await answer_to(one, bad)
        assert refused is not None
        assert (refused.code, refused.reason) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
        assert good not in str(refused)


async def test_a_token_ends_in_the_middle_of_a_connection(nats_server, data, monkeypatch):
    clock = Ahead()
    monkeypatch.setattr("services.table.app.Verifier", partial(Verifier, clock=clock.time))
    async with replica(nats_server.url, data) as at:
        good = token(data, "ann", lifetime_s=600)
        assert await answer_to(at, f"Bearer {good}") is None
        clock.by_s = 600
        assert (await answer_to(at, f"Bearer {good}")).code is grpc.StatusCode.UNAUTHENTICATED


@pytest.fixture
def still(monkeypatch):
    """Limits for which no time passes."""
    stand_still(monkeypatch)


@pytest.mark.usefixtures("still")
async def test_each_player_has_a_limit_of_its_own(nats_server, data):
    async with replica(nats_server.url, data, command_rate=2.0) as at:
        game = Game([at])
        await game.found()
        refused = []
        for _ in range(12):
            try:
                await game.do(0, "Pass")
            except Refused as error:
                refused.append(error)
        reasons = [error.reason for error in refused]
        assert reasons.count("WRONG_PHASE") == 8
        assert reasons[-4:] == ["RATE_LIMITED"] * 4
        assert refused[-1].code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert 0 < refused[-1].retry.retry_delay.ToMilliseconds() <= 500
        with pytest.raises(Refused, match="WRONG_PHASE"):
            await game.do(1, "Pass")
        assert (await game.view(0)).version == 1


@pytest.mark.usefixtures("still")
async def test_bots_have_no_limit(nats_server, data):
    async with replica(nats_server.url, data, view_rate=1.0) as at:
        bot = Caller(data, "bot:x:1")
        for _ in range(20):
            await bot.call(at, "GetRules", RULES)
        player = Caller(data, "ann")
        for _ in range(4):
            await player.call(at, "GetRules", RULES)
        with pytest.raises(Refused, match="RATE_LIMITED"):
            await player.call(at, "GetRules", RULES)


@pytest.mark.usefixtures("still")
async def test_bad_tokens_are_limited_by_address_and_known_ones_are_not(nats_server, data):
    async with replica(nats_server.url, data, stranger_rate=1.0) as at:
        good = f"Bearer {token(data, 'ann')}"
        assert await answer_to(at, good) is None
        reasons = [(await answer_to(at, f"Bearer x{i}")).reason for i in range(8)]
        assert reasons == ["UNAUTHENTICATED"] * 4 + ["RATE_LIMITED"] * 4
        assert await answer_to(at, good) is None


async def test_a_flood_slows_nobody_noticeably(one, data):
    game = Game([one])
    await game.found()
    stop = asyncio.Event()

    async def flood():
        while not stop.is_set():
            await answer_to(one, "Bearer nonsense")

    floods = [asyncio.create_task(flood()) for _ in range(4)]
    slowest = 0.0
    for _ in range(30):
        began = time.perf_counter()
        await game.view(0)
        slowest = max(slowest, time.perf_counter() - began)
    stop.set()
    await asyncio.gather(*floods)
    assert slowest < patience(2)


async def test_health_and_reflection(one):
    health = HealthStub(one.channel)
    for name in ("", "shengji.table.v1.TableService"):
        answer = await health.Check(HealthCheckRequest(service=name))
        assert answer.status == HealthCheckResponse.SERVING
    call = ServerReflectionStub(one.channel).ServerReflectionInfo()
    await call.write(ServerReflectionRequest(list_services=""))
    names = {service.name for service in (await call.read()).list_services_response.service}
    assert names >= {"shengji.table.v1.TableService", "grpc.health.v1.Health"}
    call.cancel()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"listen": "0.0.0.0:0"}, "tls"),
        ({"listen": "nowhere"}, "host:port"),
        ({"tls_cert": "/nowhere.pem"}, "together"),
        ({"tls_cert": "/nowhere.pem", "tls_key": "/nowhere.key"}, "nowhere"),
        ({"issuers": ("lobby",)}, "name=file"),
    ],
)
async def test_a_server_that_must_not_start(nats_server, data, settings, named):
    with pytest.raises(ConfigError, match=named):
        async with replica(nats_server.url, data, **settings):
            pass


async def test_two_processes_do_not_share_a_port(nats_server, data, one):
    with pytest.raises(ConfigError, match="cannot be listened on"):
        async with replica(nats_server.url, data, listen=one.address):
            pass


async def test_draining_ends_watches_and_lets_calls_finish(nats_server, data, one, monkeypatch):
    waited, go_on = asyncio.Event(), asyncio.Event()

    async def wait(seconds):
        if seconds == 7:
            waited.set()
            await go_on.wait()

    monkeypatch.setattr("services.shell.server.asyncio", SimpleNamespace(sleep=wait))
    async with replica(nats_server.url, data) as at:
        game = Game([at])
        await game.found()
        watch = game.callers[0].watch(at, game.table_id)
        await watch.next()
        waiting = asyncio.create_task(game.callers[1].view(at, game.table_id, 2))
        await asyncio.sleep(0.05)
        stopping = asyncio.create_task(at.service.stop(wait_s=7, grace_s=3600))
        await waited.wait()
        status = await HealthStub(at.channel).Check(HealthCheckRequest())
        assert status.status == HealthCheckResponse.NOT_SERVING
        await game.do(0, "Ready")
        assert (await waiting).version == 2
        go_on.set()
        refused = None
        while refused is None:
            try:
                await watch.next()
            except Refused as error:
                refused = error
        assert (refused.code, refused.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
        assert refused.retry is not None
        await asyncio.wait_for(stopping, PATIENCE_S)  # nobody is left to be waited for
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await at.stub.GetRules(RULES, metadata=metadata(data, "ann"), timeout=PATIENCE_S)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        ready = pb.ReadyRequest(context=context(game.table_id))
        assert (await game.callers[2].call(one, "Ready", ready)).receipt.version == 3


async def test_where_services_found_tables_players_do_not(nats_server, tmp_path):
    async with replica(nats_server.url, tmp_path, founders="services") as at:
        with pytest.raises(Refused, match="NOT_YOURS"):
            await Caller(tmp_path, "ann").call(at, "CreateTable", founding())
        founded = await Caller(tmp_path, "svc:lobby").call(at, "CreateTable", founding())
        assert founded.receipt.version == 1
