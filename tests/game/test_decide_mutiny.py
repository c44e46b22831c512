"""Mutiny: a redeal for an attacker's hand poor in points (RULES §7, D10)."""

from dataclasses import replace

import pytest
from support.cards import cards
from support.scene import AT_ONCE, NOW, PACE, PLAYERS, SECOND, dealt, drawn_cards, in_mutiny

from services.game.commands import BuryCards, CallMutiny, GiveTime, Leave, Pass, Ready, SetAutoPlay
from services.game.decide import kind_of
from services.game.shuffle import commitment
from services.game.state import Bury, Declaring, Mutiny, Scored, Tricks
from services.game.views import SPECTATOR, redact, view
from services.game.waits import deadline_us, due_us, to_act
from services.game.wire import cards_to_wire
from services.rules.cards import points
from services.rules.reasons import Reason

RICH = "SK SK HK HK C5"
TEN = "S3 S4 H3 C5 C5"
FIFTEEN = "S3 S4 H3 C5 CK"
HANDS = (RICH, TEN, RICH, FIFTEEN)


def call(scene, player):
    return CallMutiny(player, scene.state.version)


def test_under_15_points_claim_a_redeal_and_15_do_not():
    scene = in_mutiny(*HANDS)
    assert (points(cards(TEN)), points(cards(FIFTEEN))) == (10, 15)
    assert scene.refuses(call(scene, "dan")) is Reason.NO_MUTINY
    assert scene.do(call(scene, "bob")) == ["mutiny_called"]


def test_the_hand_is_shown_the_seed_revealed_and_the_next_one_committed_to():
    scene = in_mutiny(*HANDS)
    seed = scene.phase.deal.seed
    scene.do(call(scene, "bob"))
    called = scene.event("mutiny_called")
    assert list(called.cards) == cards_to_wire(bytes(sorted(cards(TEN))))
    assert (called.seat, called.deal, called.reveal.deal) == (1, 1, 1)
    assert commitment(called.reveal.server_seed) == seed.commitment
    assert called.next_seed.deal == 2
    assert called.next_seed.commitment != seed.commitment
    assert kind_of(scene.events) == "d"
    told = redact(scene.events[0], SPECTATOR, scene.state.rules).mutiny_called
    assert told.cards
    assert not told.next_seed.server_seed


def test_the_redeal_is_a_later_deal_of_the_same_declarer_and_counts_for_nothing():
    scene = in_mutiny(*HANDS, declarer=2)
    scene.rig(deal=replace(scene.phase.deal, declarer=None))  # it was a first deal
    scene.do(call(scene, "bob"))
    assert isinstance(scene.phase, Scored)
    assert (scene.state.match.deals, scene.state.match.levels, scene.state.match.declarer) == (0, (0, 0), 2)
    for player in PLAYERS:
        scene.do(Ready(player))
    started = scene.event("deal_started")
    assert (started.deal, started.declarer, started.first_drawer) == (2, 2, 2)
    assert isinstance(scene.phase, Declaring)
    assert scene.phase.declarations.standing is None
    assert to_act(scene.state, scene.now_us) == (0, 2)


def test_after_a_mutiny_the_next_deal_comes_at_its_time_too():
    scene = in_mutiny(*HANDS)
    scene.do(call(scene, "bob"))
    assert due_us(scene.state) == scene.now_us + 10 * SECOND
    assert scene.expire() == ["deal_started"]


def test_who_became_declarer_in_the_deal_stays_so_with_the_own_level():
    """D27: the attackers who declared have changed the roles."""
    scene = in_mutiny(RICH, RICH, TEN, RICH, declarer=3)
    scene.state = scene.state._replace(match=replace(scene.state.match, levels=(4, 7), declarer=0))
    scene.do(call(scene, "cid"))
    assert (scene.state.match.declarer, scene.state.match.deal_level) == (3, 7)


def test_only_attackers_call_once_and_on_this_turn():
    scene = in_mutiny(TEN, TEN, TEN, TEN)
    version = scene.state.version
    assert scene.refuses(call(scene, "ann")) is Reason.NO_MUTINY
    assert scene.refuses(call(scene, "cid")) is Reason.NO_MUTINY
    assert scene.refuses(call(scene, "eve")) is Reason.NOT_SEATED
    assert scene.refuses(CallMutiny("bob", version - 1)) is Reason.STALE_VERSION
    assert scene.refuses(CallMutiny("bob", version + 1)) is Reason.STALE_VERSION
    scene.do(Pass("bob"))
    assert scene.refuses(call(scene, "bob")) is Reason.ALREADY_PASSED
    assert scene.refuses(Pass("bob")) is Reason.ALREADY_PASSED
    assert scene.refuses(Pass("ann")) is Reason.NOT_YOUR_TURN
    assert scene.refuses(Pass("eve")) is Reason.NOT_SEATED
    assert scene.do(CallMutiny("dan", version)) == ["mutiny_called"]  # the other's pass moved no turn


def test_both_attackers_are_asked_whatever_they_hold_and_then_the_kitty_is_taken():
    scene = in_mutiny(RICH, RICH, RICH, RICH)
    kitty = scene.phase.kitty
    assert to_act(scene.state, scene.now_us) == (1, 3)
    assert scene.refuses(BuryCards("ann", scene.state.version, kitty)) is Reason.WRONG_PHASE
    assert scene.do(Pass("dan")) == ["passed"]
    assert to_act(scene.state, scene.now_us) == (1,)
    assert [seat.passed for seat in view(scene.state, 0, scene.now_us).seats] == [False] * 3 + [True]
    assert not view(scene.state, 0, scene.now_us).kitty
    assert scene.do(Pass("bob")) == ["passed", "kitty_taken"]
    assert isinstance(scene.phase, Bury)
    assert (scene.phase.seat, scene.phase.kitty) == (0, bytes(sorted(kitty)))
    assert scene.refuses(call(scene, "bob")) is Reason.WRONG_PHASE


def test_at_its_time_the_server_declines_and_nobody_has_missed_a_turn():
    scene = in_mutiny(*HANDS)
    scene.do(Pass("bob"))
    assert deadline_us(scene.state) == scene.state.waiting_since_us + 10 * SECOND
    assert scene.expire() == ["turn_expired", "passed", "kitty_taken"]
    assert not any(held.missed for held in scene.state.seats)


def test_time_that_passed_while_the_server_was_away_is_given_again():
    scene = in_mutiny(*HANDS)
    scene.now_us = deadline_us(scene.state) + 60 * SECOND
    scene.do(GiveTime())
    assert deadline_us(scene.state) == scene.now_us + 10 * SECOND
    assert scene.do(call(scene, "bob")) == ["mutiny_called"]


def test_the_server_declines_at_once_for_those_it_plays_and_the_other_keeps_the_time():
    scene = in_mutiny(*HANDS)
    scene.do(SetAutoPlay("bob", on=True))
    assert due_us(scene.state) == scene.state.waiting_since_us + SECOND // 2
    assert scene.expire() == ["turn_expired", "passed"]
    assert due_us(scene.state) == scene.state.waiting_since_us + 10 * SECOND
    scene.do(Leave("dan"))
    assert to_act(scene.state, scene.now_us) == ()
    assert scene.expire() == ["turn_expired", "passed", "kitty_taken"]


@pytest.mark.parametrize(
    ("rules", "after"), [("classic-2d", Bury), ("classic-4d", Tricks), ("classic-1d-2c", Bury)]
)
def test_other_systems_may_have_it_too(rules, after):
    scene = dealt(rules, AT_ONCE, mutiny=True)
    hands = drawn_cards(scene.state).hands
    for player in PLAYERS:
        scene.do(Pass(player))
    assert scene.events[-1].WhichOneof("kind") == "declaring_closed"
    assert isinstance(scene.phase, Mutiny)
    assert scene.phase.hands == tuple(bytes(sorted(hand)) for hand in hands)
    for seat in to_act(scene.state, scene.now_us):
        scene.do(Pass(PLAYERS[seat]))
    assert isinstance(scene.phase, after)


def test_any_seat_may_claim_a_redeal_where_the_rules_say_so():
    few, many = "S3 HA H3 C4 C5", "S3 S4 HA H3 C4"
    scene = in_mutiny(few, many, many, few, rules="classic-2d", redeal_few_trumps=2)
    assert to_act(scene.state, scene.now_us) == (0, 1, 2, 3)
    assert scene.refuses(call(scene, "bob")) is Reason.NO_MUTINY
    assert scene.do(Pass("ann")) == ["passed"]
    assert scene.refuses(call(scene, "ann")) is Reason.ALREADY_PASSED
    assert scene.do(call(scene, "dan")) == ["mutiny_called"]
    assert list(scene.event("mutiny_called").cards) == cards_to_wire(bytes(sorted(cards(few))))
    assert (scene.state.match.deals, scene.state.match.declarer) == (0, 0)


def test_the_declarer_too_may_claim_one_and_all_four_must_decline():
    none = "S3 HA H3 C4 C6"
    scene = in_mutiny(none, RICH, RICH, RICH, rules="classic-2d", redeal_no_points=True)
    for player in ("bob", "dan", "cid"):
        assert scene.do(Pass(player)) == ["passed"]
    assert scene.do(call(scene, "ann")) == ["mutiny_called"]
    scene = in_mutiny(RICH, RICH, RICH, none, rules="classic-2d", redeal_no_points=True)
    scene.do(Pass("ann"))
    scene.do(Pass("bob"))
    assert isinstance(scene.phase, Mutiny)
    assert scene.expire() == [*["turn_expired", "passed"] * 2, "kitty_taken"]
    assert isinstance(scene.phase, Bury)


def test_without_time_for_it_there_is_none():
    scene = dealt("tournament-2d", replace(PACE, draw_ms=0, mutiny_ms=0))
    for player in PLAYERS:
        scene.do(Pass(player))
    assert [event.WhichOneof("kind") for event in scene.events] == [
        "passed",
        "declaring_closed",
        "kitty_taken",
    ]
    assert isinstance(scene.phase, Bury)
    assert scene.refuses(CallMutiny("bob", scene.state.version)) is Reason.WRONG_PHASE


def test_the_last_deals_number_is_shown_at_the_end_though_a_redeal_was_not_counted():
    scene = in_mutiny(*HANDS)
    assert view(scene.state, SPECTATOR, NOW).deal == 1
    scene.do(call(scene, "bob"))
    assert view(scene.state, SPECTATOR, NOW).deal == 1
    for player in PLAYERS:
        scene.do(Ready(player))
    assert view(scene.state, SPECTATOR, NOW).deal == 2
