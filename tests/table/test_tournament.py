"""tournament-2d over gRPC: mutinies, counters after a bury, and who is told what."""

import pytest
from support.serving import Game, Refused, founding, replica

from services.game.verify import DealState, verify
from services.pb.table.v1 import view_pb2
from services.rules.cards import CARD_POINTS
from services.shell.log_jetstream import JetStreamLog

COMMAND_ID = "018f0000-0000-7000-8000-000000000001"
ENTROPY = "tournament 8"
"""With this command id a match of three short deals that has a mutiny and a counter."""
REFUSALS = {"NO_MUTINY", "NOT_STRONG_ENOUGH", "LOCKED", "MUST_NOT_COUNTER_OWN"}


@pytest.fixture
async def two(nats_server, data):
    """Two replicas whose cards are foreseeable."""
    async with (
        replica(nats_server.url, data, insecure_entropy=ENTROPY) as one,
        replica(nats_server.url, data, insecure_entropy=ENTROPY) as other,
    ):
        yield one, other


def poor(view):
    return sum(CARD_POINTS[card - 1] for card in view.hand) < 15


def counter_of(view):
    """Two level cards with their joker, or two jokers, if the seat holds any."""
    hand = list(view.hand)
    held = [[joker] * 2 for joker in (53, 54) if hand.count(joker) == 2]
    for suit in range(4):
        card, joker = 13 * suit + view.level - 1, 53 + suit % 2
        if hand.count(card) == 2 and joker in hand:
            held.append([card, card, joker])
    return held[0] if held else None


async def tries(game, seat, method, view, **fields):
    """Whether a command was accepted."""
    try:
        await game.do(seat, method, view.version, **fields)
    except Refused as error:
        if error.reason not in REFUSALS:
            raise
        return False
    return True


async def act(game, view, seat):
    """What a plain player does whose turn it is."""
    match view.phase:
        case view_pb2.PHASE_SEATING | view_pb2.PHASE_SCORED:
            await game.do(seat, "Ready")
        case view_pb2.PHASE_DECLARING:
            await game.do(seat, "Pass")
        case view_pb2.PHASE_MUTINY:
            if not await tries(game, seat, "CallMutiny", view):
                assert not poor(view)
                await game.do(seat, "Pass")
        case view_pb2.PHASE_COUNTER:
            cards = counter_of(view)
            if cards is None or not await tries(game, seat, "Counter", view, cards=cards):
                await game.do(seat, "Pass")
        case view_pb2.PHASE_BURY:
            await game.do(seat, "Bury", view.version, cards=list(view.hand)[: view.kitty_size])
        case view_pb2.PHASE_TRICKS:
            await game.play_one(seat)


async def told_to(watch, version):
    """The kinds of all events, and the cards of those that take or bury the kitty, by seat."""
    messages = await watch.until(version)
    events = [event for message in messages for event in message.update.events]
    return [event.WhichOneof("kind") for event in events], events


async def test_a_match_with_a_mutiny_and_a_counter_over_the_wire(two, broker):
    game = Game(two)
    overrides = {"deals": "3", "kitty": "60"}
    await game.found(founding(preset="tournament-2d", overrides=overrides, command_id=COMMAND_ID))
    watches = [caller.watch(two[0], game.table_id) for caller in game.callers]
    view = await game.view(0)
    while view.phase != view_pb2.PHASE_OVER:
        seat = view.to_act[0]
        await act(game, await game.view(seat), seat)
        view = await game.view(0)
    told = [await told_to(watch, view.version) for watch in watches]
    kinds = told[0][0]
    assert all(other == kinds for other, _ in told)
    for seat, (_, events) in enumerate(told):
        for event in events:
            kind = event.WhichOneof("kind")
            if kind in {"kitty_taken", "buried"}:
                payload = getattr(event, kind)
                assert bool(payload.cards) == (payload.seat == seat)
    stored = [commit.payload for commit in await JetStreamLog(broker).read(game.table_id)]
    report = verify(game.table_id, stored)
    assert report.problem is None
    assert "mutiny_called" in kinds
    assert "countered" in kinds
    assert set(report.deals.values()) == {DealState.VERIFIED}
    assert len(report.deals) == 3 + kinds.count("mutiny_called") == kinds.count("deal_started")
    assert view.deal == len(report.deals)
    assert kinds.count("buried") == 3 + kinds.count("countered")


@pytest.mark.parametrize("method", ["CallMutiny", "Counter"])
async def test_in_other_phases_they_are_refused(game, method):
    await game.deal()
    with pytest.raises(Refused) as refused:
        await game.do(1, method, (await game.view(1)).version)
    assert refused.value.reason == "WRONG_PHASE"
    assert refused.value.code.name == "FAILED_PRECONDITION"
