"""Declaring backed by jokers at the table: who may, and when the window closes (RULES §7, 003, D27)."""

from dataclasses import replace
from functools import cache

import pytest
from support.cards import card
from support.scene import AT_ONCE, PACE, PLAYERS, SECOND, Scene, dealt, dealt_where, drawn_cards

from engine_ext.codes import NO_TRUMP
from services.game.commands import BuryCards, CallMutiny, Declare, GiveTime, Leave, Pass, SetAutoPlay
from services.game.state import Bury, Declaring, Mutiny, Tricks
from services.game.waits import all_drawn_us, deadline_us, due_us, to_act
from services.pb.card.v1 import card_pb2
from services.rules.reasons import Reason

LJ, BJ = card("LJ"), card("BJ")
QUIET = replace(AT_ONCE, mutiny_ms=0)
CLOSED = ["declaring_closed", "kitty_taken"]


def opening(hand):
    """A level card with a joker of its colour, where the hand has them; the deal's level is 2."""
    jokers = {"S2": LJ, "H2": BJ, "C2": LJ, "D2": BJ}
    held = [two for two, joker in jokers.items() if card(two) in hand and joker in hand]
    return bytes([card(held[0]), jokers[held[0]]]) if held else None


@cache
def seed_where(name):
    """A deal of tournament-2d that some test needs, found once."""
    wanted = {
        "pairs of both": lambda hands, _: all(
            any(hand.count(joker) == 2 for hand in hands) for joker in (LJ, BJ)
        ),
        "opener and a pair": lambda hands, _: any(
            opening(hands[seat]) and any(hands[other].count(LJ) == 2 for other in range(4) if other != seat)
            for seat in range(4)
        ),
        "both sides": lambda hands, _: opening(hands[0][:24]) and opening(hands[1][:24]),
    }[name]
    return dealt_where(wanted, "tournament-2d", QUIET)


def table(name, declarer=None, pace=QUIET):
    found = seed_where(name)
    scene = Scene(found.state, now_us=found.now_us)
    if declarer is not None:
        scene.rig(deal=replace(scene.phase.deal, declarer=declarer))
        scene.state = scene.state._replace(match=replace(scene.state.match, declarer=declarer))
    scene.state = scene.state._replace(founding=replace(scene.state.founding, pace=pace))
    return scene, drawn_cards(scene.state).hands


def asked(scene):
    return to_act(scene.state, scene.now_us)


def pass_all(scene, *seats):
    kinds = []
    for seat in seats:
        kinds = scene.do(Pass(PLAYERS[seat]))
    return kinds


# -- the first deal


def test_on_a_first_deal_the_first_to_declare_is_declarer():
    scene, hands = table("both sides")
    assert asked(scene) == (0, 1, 2, 3)
    assert scene.do(Declare("ann", opening(hands[0]))) == ["declared"]
    assert asked(scene) == (0, 1, 2, 3)
    assert scene.refuses(Declare("bob", opening(hands[1]))) is Reason.NOT_A_DECLARATION
    assert pass_all(scene, 0, 1, 2, 3) == ["passed", *CLOSED]
    closed = scene.event("declaring_closed")
    assert (closed.declarer, closed.declared_by) == (0, 0)


@pytest.mark.parametrize("overrides", [{}, {"first_declarer": "first"}])
def test_counters_before_the_kitty_make_the_counterer_declarer(overrides):
    """反主反打, whatever ``first_declarer`` says: that one belongs to the other policy."""
    scene, hands = table("opener and a pair")
    rules = scene.state.rules.with_overrides(overrides)
    scene.state = scene.state._replace(founding=replace(scene.state.founding, rules=rules))
    counterer = next(seat for seat in range(4) if hands[seat].count(LJ) == 2)
    opener = next(seat for seat in range(4) if opening(hands[seat]) and seat != counterer)
    scene.do(Declare(PLAYERS[opener], opening(hands[opener])))
    scene.do(Declare(PLAYERS[counterer], bytes([LJ, LJ])))
    assert scene.phase.declarations.standing.trump == NO_TRUMP
    assert scene.refuses(Declare(PLAYERS[counterer], bytes([LJ, LJ]))) is Reason.MUST_NOT_COUNTER_OWN
    assert pass_all(scene, 0, 1, 2, 3) == ["passed", *CLOSED]
    closed = scene.event("declaring_closed")
    assert (closed.declarer, closed.declared_by, closed.trump) == (
        counterer,
        counterer,
        card_pb2.TRUMP_NO_TRUMP,
    )
    assert isinstance(scene.phase, Bury)
    assert scene.phase.seat == counterer


def test_after_the_bury_of_a_first_deal_nobody_counters():
    scene, _ = table("both sides")
    pass_all(scene, 0, 1, 2, 3)
    seat = scene.phase.seat
    scene.do(BuryCards(PLAYERS[seat], scene.state.version, scene.phase.hands[seat][:8]))
    assert isinstance(scene.phase, Tricks)


def test_jokers_alone_do_not_open():
    scene, hands = table("pairs of both")
    for joker in (LJ, BJ):
        seat = next(seat for seat in range(4) if hands[seat].count(joker) == 2)
        assert scene.refuses(Declare(PLAYERS[seat], bytes([joker, joker]))) is Reason.NOT_A_DECLARATION
        assert scene.refuses(Declare(PLAYERS[seat], bytes([joker]))) is Reason.NOT_A_DECLARATION


def test_nobody_declares_the_third_kitty_card_is_turned_and_its_twin_declares():
    scene = dealt_where(
        lambda hands, kitty: kitty[2] < 52 and any(kitty[2] in hand for hand in hands[1::2]),
        "tournament-2d",
        QUIET,
    )
    hands, kitty = drawn_cards(scene.state)
    scene.rig(deal=replace(scene.phase.deal, declarer=0))
    assert pass_all(scene, 0, 2, 1, 3) == ["passed", *CLOSED]
    closed = scene.event("declaring_closed")
    assert (closed.turned_place, closed.trump) == (3, kitty[2] // 13 + 1)
    assert kitty[2] in hands[closed.declarer]


# -- later deals


def test_while_cards_are_drawn_only_the_declaring_side_may_declare_and_the_declarer_stays():
    scene, hands = table("both sides", declarer=2, pace=replace(PACE, mutiny_ms=0))
    scene.now_us = all_drawn_us(scene.state) - 1
    shown = opening(hands[0][:24])
    assert asked(scene) == (0, 2)
    assert scene.refuses(Declare("bob", opening(hands[1][:24]))) is Reason.NOT_ALLOWED_TO_DECLARE
    assert scene.do(Declare("ann", shown)) == ["declared"]
    assert asked(scene) == ()
    assert scene.refuses(Declare("bob", opening(hands[1][:24]))) is Reason.NOT_ALLOWED_TO_DECLARE
    assert due_us(scene.state) == deadline_us(scene.state) == all_drawn_us(scene.state)
    assert scene.refuses(GiveTime()) is Reason.WRONG_PHASE
    assert scene.expire() == CLOSED  # with the last card, since nobody is left to ask
    closed = scene.event("declaring_closed")
    assert (closed.declarer, closed.declared_by) == (2, 0)


def test_after_the_last_card_a_declaration_closes_the_window_at_once():
    scene, hands = table("both sides", declarer=0)
    assert scene.do(Declare("ann", opening(hands[0]))) == ["declared", *CLOSED]
    assert scene.event("declaring_closed").declarer == 0


def test_when_both_have_passed_the_attackers_may_and_who_shows_becomes_declarer():
    """The sides change roles, the deal's level stays (D27)."""
    scene, hands = table("both sides", declarer=0, pace=replace(QUIET, mutiny_ms=10_000))
    shown = opening(hands[1])
    scene.do(Pass("cid"))
    assert asked(scene) == (0,)
    assert scene.refuses(Declare("bob", shown)) is Reason.NOT_ALLOWED_TO_DECLARE
    scene.now_us += 5 * SECOND
    scene.do(Pass("ann"))
    assert asked(scene) == (1, 3)
    assert deadline_us(scene.state) == scene.now_us + 8 * SECOND
    assert scene.refuses(Declare("ann", opening(hands[0]))) is Reason.ALREADY_PASSED
    level = scene.phase.deal.level
    assert scene.do(Declare("bob", shown)) == ["declared", "declaring_closed"]
    assert (scene.event("declaring_closed").declarer, scene.phase.deal.level) == (1, level)
    assert isinstance(scene.phase, Mutiny)
    assert asked(scene) == (0, 2)
    assert scene.refuses(CallMutiny("bob", scene.state.version)) is Reason.NO_MUTINY


def test_who_lets_the_time_run_out_has_passed_and_the_attackers_get_theirs():
    scene, _ = table("both sides", declarer=0)
    assert deadline_us(scene.state) == scene.now_us + 8 * SECOND
    scene.now_us = deadline_us(scene.state) + 60 * SECOND
    scene.do(GiveTime())
    assert scene.expire() == ["turn_expired", "passed"] * 2
    assert asked(scene) == (1, 3)
    assert deadline_us(scene.state) == scene.now_us + 8 * SECOND
    assert scene.expire() == [*["turn_expired", "passed"] * 2, *CLOSED]
    assert not any(held.missed for held in scene.state.seats)


def test_an_attacker_may_pass_before_being_asked():
    scene, hands = table("both sides", declarer=0)
    assert pass_all(scene, 3, 1, 0) == ["passed"]
    assert asked(scene) == (2,)
    assert pass_all(scene, 2) == ["passed", *CLOSED]
    scene, hands = table("both sides", declarer=0)
    pass_all(scene, 1, 0, 2)
    assert asked(scene) == (3,)
    assert scene.refuses(Declare("bob", opening(hands[1]))) is Reason.ALREADY_PASSED


def test_the_server_passes_for_those_it_plays_when_they_are_asked():
    scene, _ = table("both sides", declarer=0)
    for player in ("ann", "bob"):
        scene.do(SetAutoPlay(player, on=True))
    scene.do(Leave("cid"))
    assert due_us(scene.state) == scene.now_us + SECOND // 2
    assert scene.expire() == ["turn_expired", "passed"] * 2
    assert asked(scene) == (1, 3)
    assert due_us(scene.state) == scene.now_us + SECOND // 2
    assert scene.expire() == ["turn_expired", "passed"]
    assert asked(scene) == (3,)
    assert isinstance(scene.phase, Declaring)


def test_without_a_limit_the_window_waits_for_passes_of_one_side_and_then_the_other():
    scene, _ = table("both sides", declarer=1, pace=replace(QUIET, declare_ms=0))
    assert deadline_us(scene.state) is None
    assert asked(scene) == (1, 3)
    pass_all(scene, 1, 3)
    assert asked(scene) == (0, 2)
    assert pass_all(scene, 0, 2) == ["passed", *CLOSED]


def test_a_window_after_the_deal_opens_to_the_declaring_side():
    scene = dealt("tournament-2d", PACE, window="after_deal")
    scene.rig(deal=replace(scene.phase.deal, declarer=0))
    assert asked(scene) == ()
    scene.now_us = all_drawn_us(scene.state)
    assert asked(scene) == (0, 2)


def test_two_deck_systems_may_declare_so_too_and_play_without_a_kitty():
    scene = dealt("classic-2d", AT_ONCE, declaring="joker_backed", kitty=0, fallback="no_trump")
    scene.rig(deal=replace(scene.phase.deal, declarer=0))
    assert pass_all(scene, 0, 2, 1, 3) == ["passed", "declaring_closed"]
    assert isinstance(scene.phase, Tricks)  # nothing is buried, so nothing can be countered
