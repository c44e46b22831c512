"""Declaring by a level card backed by a joker (RULES §7, 003)."""

import pytest

from engine_ext.codes import NO_TRUMP
from services.rules.cards import parse_cards
from services.rules.declaring import Deal, Declarations, Refusal, judge_pass, judge_showing, settle
from services.rules.joker_backed import judge_counter
from services.rules.presets import preset
from services.rules.reasons import Reason

RULES = preset("tournament-2d")
FIRST = Deal(level=4, declarer=None, first_drawer=0)
LATER = Deal(level=4, declarer=0, first_drawer=0)


def attempt(state, showing, deal=FIRST, judge=judge_showing):
    seat, *texts = showing.split()
    return judge(RULES, deal, state, int(seat), parse_cards(texts))


def show(*showings, deal=FIRST, judge=judge_showing):
    state = Declarations()
    for showing in showings:
        state = attempt(state, showing, deal, judge)
        assert not isinstance(state, Refusal), (showing, state)
    return state


@pytest.mark.parametrize(
    ("cards", "trump"), [("H6 BJ", 1), ("D6 BJ", 3), ("S6 LJ", 0), ("LJ C6", 2), ("H6 BJ H6", 1)]
)
def test_openings(cards, trump):
    assert show(f"2 {cards}").standing.trump == trump


@pytest.mark.parametrize(
    "cards",
    [
        "",
        "H6",
        "BJ",
        "BJ BJ",
        "LJ LJ",
        "H6 LJ",
        "S6 BJ",
        "H7 BJ",
        "H6 D6 BJ",
        "H6 H6",
        "H6 BJ BJ",
        "H6 H6 H6 BJ",
    ],
)
def test_no_openings(cards):
    assert attempt(Declarations(), f"2 {cards}") == Refusal(Reason.NOT_A_DECLARATION)


def test_counters_rise():
    state = show("2 S6 LJ", "3 D6 D6 BJ", "0 LJ LJ", "1 BJ BJ")
    assert (state.standing.seat, state.standing.trump) == (1, NO_TRUMP)
    assert settle(RULES, FIRST, state, b"").declarer == 1
    assert attempt(show("2 S6 LJ", "3 LJ LJ"), "0 D6 D6 BJ") == Refusal(Reason.NOT_STRONG_ENOUGH)
    assert attempt(show("2 S6 LJ"), "3 D6 BJ") == Refusal(Reason.NOT_A_DECLARATION)
    assert attempt(show("2 S6 LJ", "3 D6 D6 BJ"), "0 C6 C6 LJ") == Refusal(Reason.NOT_STRONG_ENOUGH)


def test_nobody_counters_their_own():
    assert attempt(show("2 S6 LJ"), "2 D6 D6 BJ") == Refusal(Reason.MUST_NOT_COUNTER_OWN)
    assert show("2 S6 LJ", "3 D6 D6 BJ", "2 LJ LJ").standing.seat == 2


def test_a_locked_declaration_yields_to_no_trump_only():
    locked = show("2 S6 S6 LJ")
    assert attempt(locked, "3 D6 D6 BJ") == Refusal(Reason.LOCKED)
    assert attempt(locked, "3 BJ BJ").standing.trump == NO_TRUMP


def test_on_later_deals_the_declaring_side_comes_first():
    """D27."""
    assert settle(RULES, LATER, show("2 H6 BJ", deal=LATER), b"").declarer == 0
    nobody = Declarations()
    assert attempt(nobody, "1 H6 BJ", LATER) == Refusal(Reason.NOT_ALLOWED_TO_DECLARE)
    one_passed = judge_pass(nobody, 0)
    assert attempt(one_passed, "1 H6 BJ", LATER) == Refusal(Reason.NOT_ALLOWED_TO_DECLARE)
    opened = attempt(judge_pass(one_passed, 2), "1 H6 BJ", LATER)
    assert settle(RULES, LATER, opened, b"").declarer == 1
    assert attempt(opened, "3 LJ LJ", LATER) == Refusal(Reason.NOT_ALLOWED_TO_DECLARE)


def test_counters_after_a_bury_change_trump_only():
    opened = show("2 H6 BJ", deal=LATER)
    countered = attempt(opened, "1 D6 D6 BJ", LATER, judge_counter)
    settled = settle(RULES, LATER, countered, b"")
    assert (settled.trump, settled.declarer) == (3, 0)
    assert show("2 D6 D6 BJ", deal=LATER, judge=judge_counter).standing.trump == 3


def test_the_turned_cards_twin_declares_on_every_deal():
    kitty = parse_cards(["S3", "H3", "C4", "D5"])
    hands = [b"", parse_cards(["C4"]), b"", b""]
    settled = settle(RULES, LATER, Declarations(), kitty, hands)
    assert (settled.trump, settled.declarer) == (2, 1)
