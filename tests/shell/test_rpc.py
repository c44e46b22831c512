"""Who is let in: by token, by none, by an operator's key; how often; and how a fault is answered."""

import json
from contextlib import asynccontextmanager
from io import StringIO

import grpc
import pytest
from prometheus_client import CollectorRegistry
from support.serving import Refused

from services.pb.lobby.v1 import operator_service_pb2 as operators
from services.pb.lobby.v1 import player_service_pb2 as players
from services.pb.lobby.v1.operator_service_pb2_grpc import OperatorServiceStub
from services.pb.lobby.v1.player_service_pb2_grpc import PlayerServiceStub
from services.rules.reasons import Reason
from services.shell import server
from services.shell.errors import RefusedError
from services.shell.keys import signing_key
from services.shell.limits import Buckets, address_of, network_of
from services.shell.log_store import Unavailable, Why
from services.shell.logs import Log
from services.shell.metrics import RpcMetrics
from services.shell.rpc import Guard
from services.shell.tokens import Verifier, sign
from services.shell.trust import trusted

PLAYERS = players.DESCRIPTOR.services_by_name["PlayerService"]
OPERATORS = operators.DESCRIPTOR.services_by_name["OperatorService"]
SLOW = 0.01
"""A rate at which no second call becomes free while a test runs, however long that takes."""


class Servicer:
    """Remembers who called; raises what it is told to."""

    def __init__(self):
        self.calls = []
        self.fault = None

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        descriptor = next(
            method
            for service in (PLAYERS, OPERATORS)
            for method in service.methods
            if method.name.lower() == name.replace("_", "")
        )
        answer = getattr(players, descriptor.output_type.name, None) or getattr(
            operators, descriptor.output_type.name
        )

        async def handle(request, call):
            self.calls.append(call)
            if self.fault is not None:
                raise self.fault
            return answer()

        return handle


async def by_key(key, address):
    """The operator named by the key itself."""
    if not key.startswith("opk_"):
        raise RefusedError(Reason.UNAUTHENTICATED)
    return key.removeprefix("opk_")


class House:
    def __init__(self, data, channel, servicer, log):
        self.data, self.servicer, self.log = data, servicer, log
        self.players, self.operators = PlayerServiceStub(channel), OperatorServiceStub(channel)

    async def ask(self, method, bearer="", request=None):
        """How a call without fields ends: None, or the refusal."""
        stub = self.operators if method in OPERATORS.methods_by_name else self.players
        messages = operators if stub is self.operators else players
        sent = (("authorization", f"Bearer {bearer}"),) if bearer else ()
        try:
            await getattr(stub, method)(getattr(messages, f"{method}Request")(), metadata=sent)
        except grpc.aio.AioRpcError as error:
            return Refused(error)
        return None

    def token(self, player, issuer="local", **how):
        return sign(signing_key(self.data, issuer), issuer, player, **how)


@asynccontextmanager
async def house(data, *, rate=0.0, operator_rate=0.0, stranger_rate=0.0):
    def limits(descriptor):
        return {name: Buckets(rate, 3) for name in descriptor.methods_by_name}

    log, servicer = StringIO(), Servicer()
    metrics = RpcMetrics(CollectorRegistry(), [*PLAYERS.methods_by_name, *OPERATORS.methods_by_name])
    guard = Guard(
        "shengji.lobby",
        Verifier(trusted(data), "lobby"),
        metrics,
        Log("lobby", "error", log),
        Buckets(stranger_rate, 3),
        Buckets(operator_rate, 3),
    )
    handlers = [
        guard.handlers(PLAYERS, servicer, limits(PLAYERS), open_methods=("SignIn", "Refresh", "GetKeys")),
        guard.handlers(OPERATORS, servicer, limits(OPERATORS), by_key=by_key),
    ]
    running = await server.start(handlers, [PLAYERS.full_name, OPERATORS.full_name], "127.0.0.1:0", None)
    options = (("grpc.use_local_subchannel_pool", 1),)
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{running.port}", options=options) as channel:
            yield House(data, channel, servicer, log)
    finally:
        await running.server.stop(0)


async def test_open_methods_need_no_token_and_the_others_do(tmp_path):
    async with house(tmp_path) as at:
        for method in ("SignIn", "Refresh", "GetKeys"):
            assert await at.ask(method) is None
            assert await at.ask(method, "nonsense") is None
        assert {(call.player_id, call.operator, call.address) for call in at.servicer.calls} == {
            ("", "", "127.0.0.1")
        }
        for method in set(PLAYERS.methods_by_name) - {"SignIn", "Refresh", "GetKeys"}:
            assert (await at.ask(method)).reason == "UNAUTHENTICATED"
            assert (await at.ask(method, "opk_acme")).reason == "UNAUTHENTICATED"
            assert await at.ask(method, at.token("ann")) is None


async def test_a_handler_is_told_the_player_the_operator_and_the_address(tmp_path):
    async with house(tmp_path) as at:
        await at.ask("GetPlayer", at.token("ann", operator="acme"))
        (call,) = at.servicer.calls
        assert (call.player_id, call.operator, call.address) == ("ann", "acme", "127.0.0.1")
        assert call.expires_at > 0


async def test_an_operators_service_takes_keys_and_no_tokens(tmp_path):
    async with house(tmp_path) as at:
        for method in OPERATORS.methods_by_name:
            assert await at.ask(method, "opk_acme") is None
            for bad in ("", "x", at.token("ann"), at.token("svc:lobby", "services")):
                assert (await at.ask(method, bad)).reason == "UNAUTHENTICATED"
        assert {(call.player_id, call.operator) for call in at.servicer.calls} == {("", "acme")}


async def test_open_methods_are_limited_by_address(tmp_path):
    async with house(tmp_path, rate=SLOW) as at:
        assert [await at.ask("SignIn") for _ in range(3)] == [None] * 3
        refused = await at.ask("SignIn")
        assert (refused.code, refused.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RATE_LIMITED")
        assert 0 < refused.retry.retry_delay.ToMilliseconds() <= 1000 / SLOW
        assert await at.ask("Refresh") is None
        assert await at.ask("GetPlayer", at.token("ann")) is None


async def test_one_operators_flood_slows_nobody_else(tmp_path):
    async with house(tmp_path, operator_rate=SLOW) as at:
        flood = [await at.ask("GetPlayer", at.token(f"ply_{i}", operator="acme")) for i in range(5)]
        assert [refused and refused.reason for refused in flood] == [None] * 3 + ["RATE_LIMITED"] * 2
        assert flood[-1].retry is not None
        for _ in range(3):
            assert await at.ask("GetPlayer", at.token("ply_1", operator="other")) is None
        for _ in range(5):
            assert await at.ask("GetPlayer", at.token("ply_1")) is None


async def test_operators_calls_are_limited_by_operator(tmp_path):
    async with house(tmp_path, rate=SLOW) as at:
        answers = [await at.ask("GetUser", "opk_acme") for _ in range(4)]
        assert answers[:3] == [None] * 3
        assert (answers[3].reason, answers[3].retry is not None) == ("RATE_LIMITED", True)
        assert await at.ask("GetUser", "opk_other") is None


async def test_bad_keys_are_limited_by_address_like_bad_tokens(tmp_path):
    async with house(tmp_path, stranger_rate=SLOW) as at:
        reasons = [(await at.ask("GetUser", "x")).reason for _ in range(5)]
        assert reasons == ["UNAUTHENTICATED"] * 3 + ["RATE_LIMITED"] * 2
        assert (await at.ask("GetUser", "opk_acme")).reason == "RATE_LIMITED"
        assert (await at.ask("GetPlayer", at.token("ann"))).retry is not None


@pytest.mark.parametrize(("player", "issuer"), [("bot:x:1", "bots"), ("svc:ledger", "services")])
async def test_the_hosts_own_are_not_limited(tmp_path, player, issuer):
    async with house(tmp_path, rate=0.1) as at:
        token = at.token(player, issuer)
        assert [await at.ask("GetPlayer", token) for _ in range(8)] == [None] * 8


@pytest.mark.parametrize(
    ("why", "reason", "retry_ms"),
    [
        (Why.NOT_CONNECTED, "UNAVAILABLE", 700),
        (Why.NO_ANSWER, "UNAVAILABLE", 700),
        (Why.STORE_FULL, "CANNOT_RECORD", 700),
        (Why.BUSY, "BUSY", 700),
    ],
)
async def test_a_store_that_cannot_serve_is_told_as_such(tmp_path, why, reason, retry_ms):
    async with house(tmp_path) as at:
        at.servicer.fault = Unavailable(why, "secret detail", retry_after_s=retry_ms / 1000)
        for method, bearer in (("SignIn", ""), ("GetPlayer", at.token("ann")), ("GetUser", "opk_acme")):
            refused = await at.ask(method, bearer)
            assert (refused.code, refused.reason) == (grpc.StatusCode.UNAVAILABLE, reason)
            assert refused.retry.retry_delay.ToMilliseconds() == retry_ms
        assert at.log.getvalue() == ""


async def test_a_limit_of_a_handlers_own_says_when_to_come_back(tmp_path):
    async with house(tmp_path) as at:
        at.servicer.fault = RefusedError(Reason.RATE_LIMITED)
        assert (await at.ask("SignIn")).retry is not None


async def test_a_fault_is_logged_and_not_told(tmp_path):
    async with house(tmp_path) as at:
        at.servicer.fault = ValueError("hidden")
        refused = await at.ask("SignIn")
        assert (refused.code, refused.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
        line = json.loads(at.log.getvalue())
        assert line["rpc"] == "SignIn"
        assert "hidden" not in at.log.getvalue()


@pytest.mark.parametrize(
    ("peer", "address", "network"),
    [
        ("ipv4:192.0.2.7:5123", "192.0.2.7", "192.0.2.7"),
        ("ipv6:[2001:db8:1:2:3::4]:99", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("ipv6:%5B2001:db8::1%5D:99", "2001:db8::1", "2001:db8::/64"),
        ("ipv6:[::ffff:192.0.2.7]:99", "::ffff:192.0.2.7", "192.0.2.7"),
        ("ipv6:%5Bfe80::1%25eth0%5D:99", "fe80::1%eth0", "fe80::/64"),
        ("unix:/run/x.sock", "unix:/run/x.sock", "unix:/run/x.sock"),
        ("unix:", "unix:", "unix:"),
        ("", "", ""),
    ],
)
def test_an_address_is_what_stands_between_kind_and_port(peer, address, network):
    assert address_of(peer) == address
    assert network_of(address) == network
