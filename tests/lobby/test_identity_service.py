"""PlayerService and OperatorService over gRPC, as two replicas on a real store."""

import asyncio
import uuid
from contextlib import asynccontextmanager

import grpc
import pytest
from prometheus_client import CollectorRegistry
from support.identity import Clock, Desk, device
from support.serving import Refused

from services.lobby.operator_servicer import OperatorServicer
from services.lobby.player_servicer import OPEN_METHODS, PlayerServicer
from services.lobby.report_store import MemoryReports
from services.lobby.reports import Reports
from services.lobby.store_jetstream import JetStreamStore
from services.pb.lobby.v1 import operator_service_pb2 as operators
from services.pb.lobby.v1 import player_service_pb2 as players
from services.pb.lobby.v1.operator_service_pb2_grpc import OperatorServiceStub
from services.pb.lobby.v1.player_service_pb2_grpc import PlayerServiceStub
from services.shell import server
from services.shell.jwks import read_keys
from services.shell.limits import Buckets
from services.shell.metrics import RpcMetrics
from services.shell.rpc import Guard
from services.shell.tokens import Issuer, Keys, Verifier

PLAYERS = players.DESCRIPTOR.services_by_name["PlayerService"]
OPERATORS = operators.DESCRIPTOR.services_by_name["OperatorService"]


class Replica:
    def __init__(self, desk, channel):
        self.desk = desk
        self.players, self.operators = PlayerServiceStub(channel), OperatorServiceStub(channel)

    async def ask(self, method, bearer="", **fields):
        """One call."""
        owner = operators if method in OPERATORS.methods_by_name else players
        stub = self.operators if owner is operators else self.players
        sent = (("authorization", f"Bearer {bearer}"),) if bearer else ()
        try:
            return await getattr(stub, method)(getattr(owner, f"{method}Request")(**fields), metadata=sent)
        except grpc.aio.AioRpcError as error:
            raise Refused(error) from None


@asynccontextmanager
async def replica(desk):
    guard = Guard(
        "shengji.lobby",
        desk.verifier,
        RpcMetrics(CollectorRegistry(), [*PLAYERS.methods_by_name, *OPERATORS.methods_by_name]),
        desk.deps.log,
        Buckets(0, 1),
    )
    free = {name: Buckets(0, 1) for name in (*PLAYERS.methods_by_name, *OPERATORS.methods_by_name)}
    reports = Reports(desk.deps, MemoryReports(), None)
    handlers = [
        guard.handlers(
            PLAYERS,
            PlayerServicer(desk.accounts, desk.sessions, desk.signer),
            free,
            open_methods=OPEN_METHODS,
        ),
        guard.handlers(
            OPERATORS,
            OperatorServicer(desk.users, desk.sessions, reports),
            free,
            by_key=desk.keys.authenticate,
        ),
    ]
    running = await server.start(handlers, [PLAYERS.full_name, OPERATORS.full_name], "127.0.0.1:0", None)
    options = (("grpc.use_local_subchannel_pool", 1),)
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{running.port}", options=options) as channel:
            yield Replica(desk, channel)
    finally:
        await running.server.stop(0)
        await desk.members.stop()


@pytest.fixture
async def pair(tmp_path, broker):
    clock = Clock()
    seeds = [uuid.uuid4().int for _ in range(2)]  # all tests here share a store and a time: no id comes twice
    desks = [Desk(tmp_path, clock, JetStreamStore(broker, timeout_s=30), seed=seed) for seed in seeds]
    async with replica(desks[0]) as one, replica(desks[1]) as two:
        yield one, two


async def test_a_player_from_first_sight_to_signing_out(pair):
    one, two = pair
    guest = await one.ask("SignIn", guest=players.Guest(), name="Ann")
    assert guest.founded
    access, refresh = guest.tokens.access_token, guest.tokens.refresh_token
    assert (await two.ask("GetPlayer", access)).player == guest.player
    assert (await two.ask("SetName", access, name="Anna")).player.name == "Anna"
    phone = device(f"phone-{uuid.uuid4()}")
    assert (await one.ask("LinkDevice", access, device=phone)).player.devices == 1
    signed = await two.ask("SignIn", device=phone)
    assert (signed.player.player_id, signed.founded) == (guest.player.player_id, False)
    request = str(uuid.uuid4())
    renewed = (await two.ask("Refresh", refresh_token=refresh, request_id=request)).tokens
    again = (await one.ask("Refresh", refresh_token=refresh, request_id=request)).tokens
    assert renewed.refresh_token == again.refresh_token
    with pytest.raises(Refused, match="LAST_WAY_IN"):
        await one.ask("UnlinkDevice", access, device_id=phone.device_id)
    await one.ask("SignOut", access, refresh_token=renewed.refresh_token)
    with pytest.raises(Refused, match="SIGN_IN_FAILED"):
        await two.ask("Refresh", refresh_token=renewed.refresh_token, request_id=str(uuid.uuid4()))
    await two.ask("SignOut", access, everywhere=True)
    with pytest.raises(Refused, match="SIGN_IN_FAILED"):
        await one.ask("Refresh", refresh_token=signed.tokens.refresh_token, request_id=str(uuid.uuid4()))
    with pytest.raises(Refused, match="BAD_INPUT"):
        await one.ask("SignIn")
    with pytest.raises(Refused, match="SIGN_IN_FAILED"):
        await one.ask("SignOut", access)


async def test_tokens_are_verified_anywhere_with_what_getkeys_says(pair):
    one, two = pair
    keys = await two.ask("GetKeys")
    issuers = [Issuer(keys.issuer, Keys(read_keys(keys.jwks)))]
    tokens = (await one.ask("SignIn", guest=players.Guest())).tokens
    for scope in ("table", "lobby", "ledger"):
        assert Verifier(issuers, scope, clock=one.desk.clock).verify(tokens.access_token)


async def test_a_stolen_token_ends_the_sign_in_on_all_replicas(pair):
    one, two = pair
    tokens = (await one.ask("SignIn", guest=players.Guest())).tokens
    stolen = (
        await two.ask("Refresh", refresh_token=tokens.refresh_token, request_id=str(uuid.uuid4()))
    ).tokens
    with pytest.raises(Refused, match="TOKEN_REUSED"):
        await one.ask("Refresh", refresh_token=tokens.refresh_token, request_id=str(uuid.uuid4()))
    with pytest.raises(Refused, match="SIGN_IN_FAILED"):
        await two.ask("Refresh", refresh_token=stolen.refresh_token, request_id=str(uuid.uuid4()))


@pytest.mark.parametrize("same", [True, False])
async def test_two_replicas_are_asked_at_once(pair, same):
    tokens = (await pair[0].ask("SignIn", guest=players.Guest())).tokens
    requests = [str(uuid.uuid4())] * 2 if same else [str(uuid.uuid4()) for _ in pair]
    answers = await asyncio.gather(
        *(
            at.ask("Refresh", refresh_token=tokens.refresh_token, request_id=request)
            for at, request in zip(pair, requests, strict=True)
        ),
        return_exceptions=True,
    )
    if same:
        assert len({answer.tokens.refresh_token for answer in answers}) == 1
    else:
        (lost,) = [answer for answer in answers if isinstance(answer, Refused)]
        assert lost.reason == "TOKEN_REUSED"


async def test_wrong_secrets_are_slowed_on_all_replicas(pair):
    one, two = pair
    phone = device(f"phone-{uuid.uuid4()}")
    await one.ask("SignIn", device=phone)
    wrong = players.Device(device_id=phone.device_id, secret=b"w" * 16)
    for at in (one, two, one, two, one):
        with pytest.raises(Refused, match="SIGN_IN_FAILED"):
            await at.ask("SignIn", device=wrong)
    with pytest.raises(Refused, match="RATE_LIMITED") as caught:
        await two.ask("SignIn", device=phone)
    assert caught.value.retry.retry_delay.ToMilliseconds() == 1000


async def test_an_operator_and_its_users(pair):
    one, two = pair
    name = f"op-{uuid.uuid4().hex[:8]}"
    key = await one.desk.operators.add(name)
    guest = await one.ask("SignIn", guest=players.Guest())
    user = await two.ask("SignInUser", key, user_id="u1", guest_access_token=guest.tokens.access_token)
    assert user.player.player_id == guest.player.player_id
    one.desk.clock.now += 1  # players of one millisecond have no order
    other = await one.ask("SignInUser", key, user_id="u2", name="Bob")
    assert other.founded
    assert (await two.ask("GetUser", key, user_id="u2")).player == other.player
    first = await one.ask("ListUsers", key, page_size=1)
    second = await one.ask("ListUsers", key, page_size=1, page_token=first.next_page_token)
    assert [*first.players, *second.players] == [user.player, other.player]
    assert second.next_page_token == ""
    assert (await one.ask("ListReports", key)).next_page_token
    await two.ask("SignOutUser", key, player_id=other.player.player_id)
    with pytest.raises(Refused, match="SIGN_IN_FAILED"):
        await one.ask("Refresh", refresh_token=other.tokens.refresh_token, request_id=str(uuid.uuid4()))
    with pytest.raises(Refused, match="UNAUTHENTICATED"):
        await one.ask("GetUser", key + "x", user_id="u2")
