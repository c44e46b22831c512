"""Counters and mutinies of bots, one principle a test."""

from random import Random

import pytest

from services.bot import easy
from services.bot.actions import CallMutiny, Counter, Pass
from services.bot.choose import choose
from services.bot.counter import counter, wants_redeal
from services.bot.declare import Drawn
from services.bot.local import LocalBots
from services.bot.memory import Memory
from services.game.entropy import SeededEntropy
from services.game.local import QUICK, open_local
from services.game.state import Counter as CounterPhase
from services.game.wire import cards_to_wire
from services.pb.card.v1.card_pb2 import Trump
from services.pb.event.v1 import event_pb2 as pb
from services.pb.table.v1.view_pb2 import Phase, SeatView, TableView
from services.rules.cards import card_texts
from services.rules.presets import preset

LONG_HEARTS = "H2 H2 BJ H3 H4 H6 H7 H8 H9 HJ HQ HA S4 S7 C5 C9 D6 D8"
SHORT_HEARTS = "H2 H2 BJ H3 S3 S4 S6 S7 S8 S9 SJ SQ SA C5 C9 D6 D8"
POOR = "S3 S4 H3 H4 H6 C3 C4 C6 C7 D3 D4 D6 D7"


@pytest.fixture
def settled(tell):
    """A later deal of tournament-2d, level 2, seat 0 the declarer, this declaration standing."""

    def make(standing="0 S2 LJ", trump="S"):
        memory = Memory(preset("tournament-2d"))
        tell.started(memory, "2")
        if standing:
            seat, text = standing.split(" ", 1)
            for passing in (0, 2) if int(seat) % 2 else ():
                memory.observe(pb.Event(passed=pb.Passed(seat=passing)))
            shown = pb.Declared(seat=int(seat), cards=cards_to_wire(tell.cards(text)), count=2)
            memory.observe(pb.Event(declared=shown))
        tell.settled(memory, trump)
        return memory

    return make


def counters(memory, tell, hand, seat):
    found = counter(memory, memory.rules, Drawn(seat, tell.cards(hand), complete=True))
    return found and " ".join(card_texts(found))


def test_counters_an_opponent_with_a_much_better_suit(settled, tell):
    assert counters(settled(), tell, LONG_HEARTS, 1) == "H2 H2 BJ"


def test_does_not_counter_for_a_worse_suit(settled, tell):
    assert counters(settled(), tell, SHORT_HEARTS, 1) is None


def test_after_a_fallback_it_counters_as_against_an_opponent(settled, tell):
    assert counters(settled(standing=""), tell, LONG_HEARTS, 2) == "H2 H2 BJ"


def test_leaves_the_partner_alone_where_the_gain_is_small(settled, tell):
    hand = "H2 H2 BJ H3 H4 H6 H7 H8 H9 S3 S4 S6 S7 S8 C5 D6 D7 D8 C6"
    assert counters(settled(), tell, hand, 2) is None
    assert counters(settled("3 S2 LJ"), tell, hand, 2) == "H2 H2 BJ"


def test_never_counters_its_own_nor_what_is_stronger(settled, tell):
    assert counters(settled("0 H2 BJ", "H"), tell, LONG_HEARTS, 0) is None
    memory = settled()
    countered = pb.Countered(seat=3, cards=cards_to_wire(tell.cards("LJ LJ")), trump=Trump.TRUMP_NO_TRUMP)
    memory.observe(pb.Event(countered=countered))
    assert counters(memory, tell, LONG_HEARTS, 1) is None
    assert memory.order.trump == 4
    assert memory.known[3][52] == 2


def test_easy_counters_with_anything_or_passes(settled, tell):
    has = Drawn(1, tell.cards(SHORT_HEARTS), complete=True)
    seen = {easy.counter(settled(), preset("tournament-2d"), has, Random(n)) for n in range(20)}
    assert seen == {Pass(), Counter(tell.cards("H2 H2 BJ"))}


def test_a_weak_hand_wants_a_redeal_and_a_strong_one_does_not(settled, tell):
    memory = settled()
    assert wants_redeal(memory, memory.rules, tell.cards(POOR))
    strong = "BJ BJ LJ S2 S2 H2 SA SQ SQ SJ S9 S8 HA HA CA"
    assert not wants_redeal(memory, memory.rules, tell.cards(strong))


def mutiny_view(tell, hand):
    return TableView(
        table_id="t",
        version=9,
        phase=Phase.PHASE_MUTINY,
        my_seat=1,
        declarer=0,
        hand=cards_to_wire(tell.cards(hand)),
        seats=[SeatView(seat=seat) for seat in range(4)],
        to_act=[1, 3],
    )


def test_a_mutiny_is_called_only_where_the_rules_allow_it(settled, tell):
    memory = settled()
    assert choose(mutiny_view(tell, POOR), memory.rules, memory, 2) == CallMutiny()
    assert choose(mutiny_view(tell, POOR + " SK S5"), memory.rules, memory, 2) == Pass()


def test_bots_claim_the_other_redeals_too_and_keep_what_no_source_names():
    """Whole deals in memory; ``LocalBots`` raises at a refusal."""
    rules = preset("classic-2d").with_overrides(
        {
            "kitty": 60,
            "deals": 4,
            "redeal_no_points": True,
            "redeal_few_trumps": 3,
            "bury_points_max": 100,
            "throw_blockers": "shown",
            "must_defend": ["2", "5"],
        }
    )
    claims = set()
    for seed in ("one", "two", "three"):
        table = open_local(rules, SeededEntropy(seed), QUICK)
        LocalBots(table, (2,) * 4).play()
        events = [event for commit in table.commits for event in commit.events]
        called = [event.mutiny_called for event in events if event.HasField("mutiny_called")]
        claims |= {(claim.seat - claim.declarer) % 2 for claim in called}
        assert not any(event.HasField("turn_expired") for event in events)
        assert events[-1].HasField("match_ended")
    assert claims == {0, 1}


@pytest.mark.parametrize("difficulty", [1, 2])
def test_short_hands_make_bots_call_mutinies_and_counter(difficulty):
    """Whole deals in memory with twelve cards each; ``LocalBots`` raises at a refusal."""
    rules = preset("tournament-2d").with_overrides({"kitty": 60, "deals": 6})
    kinds = set()
    asked = 0

    def watching(view, rules, memory, level, drawn):
        nonlocal asked
        asked += isinstance(table.table.phase, CounterPhase)
        return choose(view, rules, memory, level, drawn)

    for seed in ("one", "two", "three"):
        table = open_local(rules, SeededEntropy(seed), QUICK)
        LocalBots(table, (difficulty,) * 4, watching).play()
        kinds |= {event.WhichOneof("kind") for commit in table.commits for event in commit.events}
    assert kinds >= {"mutiny_called", "declared", "match_ended"}
    assert "turn_expired" not in kinds
    assert asked
