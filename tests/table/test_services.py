"""What only services may ask of the table service: tables with stakes, and their end."""

import uuid

import grpc
import pytest
from support.serving import PLAYERS, Caller, Game, Refused, context, founding, replica

from services.game.ids import table_id_of
from services.pb.event.v1.event_pb2 import CLOSE_REASON_UNFUNDED, DIFFICULTY_EASY
from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1 import view_pb2

STAKED = {"stake": 100, "operator": "acme", "rake_permille": 25, "prize": 5000}


@pytest.fixture
def lobby(data):
    return Caller(data, "svc:lobby")


@pytest.fixture
def ledger(data):
    return Caller(data, "svc:ledger")


async def staked(one, lobby):
    """A table with a stake that the lobby founded."""
    game = Game([one])
    request = founding(**STAKED)
    game.founded = await lobby.call(one, "CreateTable", request)
    game.table_id, game.version = game.founded.table_id, 1
    assert game.table_id == table_id_of("svc:lobby", uuid.UUID(request.command_id).bytes)
    return game


async def refused(call):
    with pytest.raises(Refused) as caught:
        await call
    return caught.value.code, caught.value.reason


async def end(one, caller, game, command_id=""):
    request = pb.EndUnfundedRequest(context=context(game.table_id, command_id=command_id))
    return (await caller.call(one, "EndUnfunded", request)).receipt


async def test_a_service_founds_a_table_that_plays_for_chips(one, lobby):
    game = await staked(one, lobby)
    view = await game.view(0)
    assert (view.stake, view.rake_permille, view.prize) == (100, 25, 5000)
    await game.to_tricks()


@pytest.mark.parametrize("field", STAKED)
async def test_a_player_or_a_bot_does_not(one, field):
    for player in ("ann", "bot:x:1"):
        answer = await refused(
            Caller(one.data, player).call(one, "CreateTable", founding(**{field: STAKED[field]}))
        )
        assert answer == (grpc.StatusCode.PERMISSION_DENIED, "NOT_YOURS")


@pytest.mark.parametrize(
    "request_",
    [
        founding(PLAYERS[:3], stake=1),
        founding(stake=2_000_000_000),
        founding(operator="x"),
        founding(operator="Acme"),
        founding(rake_permille=101),
        founding(prize=10**12 + 1),
        founding([*PLAYERS[:3], "svc:lobby"]),
    ],
)
async def test_what_a_service_cannot_found(one, lobby, request_):
    assert await refused(lobby.call(one, "CreateTable", request_)) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "BAD_INPUT",
    )


async def test_a_bot_is_as_good_as_a_person_at_a_table_with_a_stake(one, lobby):
    request = founding(PLAYERS[:3], stake=1)
    request.seats.add(seat=3, difficulty=DIFFICULTY_EASY)
    assert (await lobby.call(one, "CreateTable", request)).seats[3].player_id.startswith("bot:")


async def test_nobody_sits_where_chips_are_held(one, lobby):
    game = await staked(one, lobby)
    await game.do(2, "Leave")
    for caller in (Caller(one.data, "eve"), game.callers[2], lobby):
        request = pb.SitRequest(context=context(game.table_id), seat=2)
        answer = await refused(caller.call(one, "Sit", request))
        assert answer == (grpc.StatusCode.PERMISSION_DENIED, "NOT_YOURS")


async def test_a_service_ends_a_match_that_cannot_be_paid_for(one, lobby, ledger):
    game = await staked(one, lobby)
    again = str(uuid.uuid4())
    receipt = await end(one, ledger, game, again)
    assert (receipt.version, receipt.repeated) == (2, False)
    assert (await end(one, ledger, game, again)).repeated
    assert await refused(end(one, ledger, game)) == (grpc.StatusCode.FAILED_PRECONDITION, "TABLE_CLOSED")
    game.version = 2
    assert (await game.view(0)).phase == view_pb2.PHASE_CLOSED
    watch = game.callers[0].watch(one, game.table_id, after=game.founded.resume)
    (update,) = [message.update for message in await watch.until(2)]
    (event,) = update.events
    assert event.table_closed.reason == CLOSE_REASON_UNFUNDED
    assert len(event.table_closed.reveal.keys) == 5
    watch.stop()


async def test_who_and_when_no_match_ends_unfunded(one, lobby, ledger):
    game = await staked(one, lobby)
    for player in ("ann", "bot:x:1"):
        answer = await refused(end(one, Caller(one.data, player), game))
        assert answer == (grpc.StatusCode.PERMISSION_DENIED, "NOT_YOURS")
    await game.deal()
    assert await refused(end(one, ledger, game)) == (grpc.StatusCode.FAILED_PRECONDITION, "WRONG_PHASE")
    free = Game([one])
    await free.found()
    assert await refused(end(one, ledger, free)) == (grpc.StatusCode.INVALID_ARGUMENT, "BAD_INPUT")


async def test_services_may_have_an_issuer_elsewhere(nats_server, data):
    issuers = (f"services={data / 'keys' / 'services.pub'}",)
    async with replica(nats_server.url, data, service_issuers=issuers) as at:
        assert (
            await Caller(data, "svc:lobby").call(at, "CreateTable", founding(stake=1))
        ).receipt.version == 1
