"""Declaring by level cards, passing, and what it settles (RULES §7)."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine_ext.codes import BIG_JOKER, CARDS, LITTLE_JOKER, NO_TRUMP
from services.rules.cards import card_text, parse_card, parse_cards, parse_level, rank_of
from services.rules.declaring import (
    Deal,
    Declarations,
    Refusal,
    asked,
    judge_pass,
    judge_showing,
    must_hold,
    settle,
)
from services.rules.level_cards import strength
from services.rules.presets import PRESETS, preset
from services.rules.reasons import Reason

LEVEL_PRESETS = [name for name, rules in PRESETS.items() if rules.declaring == "level_cards"]
FIRST_DEAL = Deal(level=parse_level("T"), declarer=None, first_drawer=0)


def later(declarer, level="T"):
    return Deal(parse_level(level), declarer=declarer, first_drawer=declarer)


def show(rules, *showings, deal=FIRST_DEAL):
    """The state after showings like "1 HT HT", each of which must be accepted."""
    state = Declarations()
    for showing in showings:
        state = attempt(rules, state, showing, deal)
        assert not isinstance(state, Refusal), (showing, state)
    return state


def attempt(rules, state, showing, deal=FIRST_DEAL):
    seat, *texts = showing.split()
    return judge_showing(rules, deal, state, int(seat), parse_cards(texts))


def refused(rules, state, showing, deal=FIRST_DEAL):
    answer = attempt(rules, state, showing, deal)
    assert isinstance(answer, Refusal), answer
    return answer.reason


CLASSIC = preset("classic-2d")
THREE = preset("classic-3d")
BASIC = preset("basic-2d")


def test_what_is_shown_stands_with_its_trump():
    state = show(CLASSIC, "1 HT")
    assert (state.standing.seat, state.standing.trump, state.first) == (1, 1, 1)
    state = show(CLASSIC, "1 HT", "2 DT DT", "0 LJ LJ")
    assert (state.standing.seat, state.standing.trump, state.first) == (0, NO_TRUMP, 1)
    assert state.shown == ((1, parse_cards(["HT"])), (2, parse_cards(["DT"] * 2)), (0, bytes([52, 52])))


@pytest.mark.parametrize(
    "cards", ["", "H9", "HT DT", "HT H9", "LJ BJ", "LJ", "HT HT HT", "HT LJ", "LJ LJ LJ"]
)
def test_what_declares_nothing(cards):
    assert refused(CLASSIC, Declarations(), f"1 {cards}") is Reason.NOT_A_DECLARATION


def test_jokers_only_where_they_may_be_shown():
    for name in ("classic-1d", "classic-1d-2c", "basic-1d", "closed-1d", "classic-4d"):
        assert refused(preset(name), Declarations(), "1 BJ") is Reason.NOT_A_DECLARATION
    assert refused(preset("classic-4d"), Declarations(), "1 BJ BJ") is Reason.NOT_A_DECLARATION
    for name in ("classic-3d", "closed-2d", "closed-4d", "bigkitty-4d", "basic-3d"):
        assert refused(preset(name), Declarations(), "1 BJ") is Reason.NOT_A_DECLARATION
        assert show(preset(name), "1 BJ BJ").standing.trump == NO_TRUMP


def test_the_minimum():
    assert refused(preset("closed-3d"), Declarations(), "1 HT") is Reason.NOT_A_DECLARATION
    assert show(preset("closed-3d"), "1 HT HT").standing.count == 2
    single_joker = CLASSIC.with_overrides({"minimum_jokers": 1})
    assert show(single_joker, "1 BJ").standing.trump == NO_TRUMP


def test_equal_is_not_stronger():
    assert refused(CLASSIC, show(CLASSIC, "1 HT"), "2 DT") is Reason.NOT_STRONG_ENOUGH
    assert refused(CLASSIC, show(CLASSIC, "1 LJ LJ"), "2 BJ BJ") is Reason.NOT_STRONG_ENOUGH
    ranked = preset("bigkitty-4d")
    assert show(ranked, "1 LJ LJ", "2 BJ BJ", "3 ST ST ST").standing.seat == 3
    assert refused(ranked, show(ranked, "1 BJ BJ"), "2 LJ LJ") is Reason.NOT_STRONG_ENOUGH


def test_reinforcing_shows_the_whole_count():
    assert show(CLASSIC, "1 HT", "1 HT HT").standing.count == 2
    assert refused(CLASSIC, show(CLASSIC, "1 HT"), "1 HT") is Reason.NOT_STRONG_ENOUGH
    off = CLASSIC.with_overrides({"reinforce": False})
    assert refused(off, show(off, "1 HT"), "1 HT HT") is Reason.MUST_NOT_COUNTER_OWN


def test_self_counter_only_where_it_is_allowed():
    assert show(CLASSIC, "1 HT", "1 DT DT").standing.trump == 3
    assert show(CLASSIC, "1 HT", "1 LJ LJ").standing.trump == NO_TRUMP
    assert show(THREE, "1 LJ LJ", "1 BJ BJ BJ").standing.cards == bytes([BIG_JOKER] * 3)
    assert refused(CLASSIC, show(CLASSIC, "1 HT HT"), "1 DT DT") is Reason.NOT_STRONG_ENOUGH
    for name in ("bigkitty-4d", "closed-2d", "basic-2d", "classic-4d", "classic-1d"):
        rules = preset(name)
        own = "1 DT" if rules.decks == 1 else "1 DT DT"
        assert refused(rules, show(rules, "1 HT HT" if name == "closed-3d" else "1 HT"), own) is (
            Reason.MUST_NOT_COUNTER_OWN
        )
    # Who has been overridden is free to counter again.
    closed = preset("closed-3d")
    assert show(closed, "1 HT HT", "2 LJ LJ", "1 DT DT DT").standing.seat == 1


def test_the_partner_adds_and_the_declaration_stays_where_it_was():
    state = show(THREE, "1 HT", "3 HT")
    assert (state.standing.seat, state.standing.count, state.standing.added) == (1, 2, parse_cards(["HT"]))
    assert refused(THREE, state, "2 DT DT") is Reason.NOT_STRONG_ENOUGH
    assert show(THREE, "1 HT", "3 HT", "3 HT").standing.count == 3
    assert show(THREE, "1 HT", "3 HT", "1 HT HT").standing.count == 3
    assert refused(THREE, show(THREE, "1 HT HT", "3 HT"), "3 HT") is Reason.NOT_A_DECLARATION
    assert refused(THREE, show(THREE, "1 HT HT", "3 HT"), "1 HT HT HT") is Reason.NOT_STRONG_ENOUGH
    assert show(THREE, "1 LJ LJ", "3 LJ").standing.count == 3
    assert refused(THREE, show(THREE, "1 LJ LJ"), "3 BJ") is Reason.NOT_A_DECLARATION
    assert refused(THREE, show(THREE, "1 HT"), "2 HT") is Reason.NOT_STRONG_ENOUGH


def test_a_partner_counters_with_another_card_or_where_adding_is_off():
    assert show(CLASSIC, "1 HT", "3 DT DT").standing.seat == 3
    closed = preset("closed-2d")
    assert refused(closed, show(closed, "1 HT"), "3 HT") is Reason.NOT_STRONG_ENOUGH
    assert show(closed, "1 HT", "3 HT HT").standing.seat == 3


def test_what_must_be_held():
    state = show(THREE, "1 HT", "3 HT")
    ten = parse_cards(["HT"])
    assert must_hold(state, 3, ten) == ten * 2
    assert must_hold(state, 1, ten * 2) == ten * 2
    assert must_hold(state, 2, ten) == ten
    assert must_hold(state, 3, parse_cards(["DT", "DT", "DT"])) == parse_cards(["DT", "DT", "DT"])
    assert must_hold(Declarations(), 3, ten) == ten


def test_the_last_flip_wins_and_nobody_repeats_one():
    state = show(BASIC, "0 HT", "1 DT", "0 CT", "3 HT")
    assert (state.standing.seat, state.standing.trump) == (3, 1)
    assert refused(BASIC, state, "0 HT") is Reason.ALREADY_SHOWN
    assert refused(BASIC, show(BASIC, "0 HT"), "0 DT") is Reason.MUST_NOT_COUNTER_OWN
    assert show(BASIC, "0 LJ LJ", "1 BJ BJ").standing.seat == 1
    assert refused(BASIC, show(BASIC, "0 LJ LJ"), "1 HT HT") is Reason.NOT_STRONG_ENOUGH
    assert refused(BASIC, show(BASIC, "0 HT HT"), "1 DT") is Reason.NOT_STRONG_ENOUGH
    strict = preset("basic-3d")
    assert refused(strict, show(strict, "0 HT"), "1 DT") is Reason.NOT_STRONG_ENOUGH


def test_two_colours_pair_and_add_by_colour():
    rules = preset("classic-1d-2c")
    state = show(rules, "0 HT", "2 DT")
    assert (state.standing.trump, state.standing.count) == (1, 2)
    assert refused(rules, state, "1 ST CT") is Reason.NOT_STRONG_ENOUGH
    assert show(rules, "3 ST", "3 ST CT").standing.trump == 0
    assert show(rules, "3 ST", "3 HT DT").standing.trump == 1
    assert refused(rules, Declarations(), "0 HT ST") is Reason.NOT_A_DECLARATION


def test_passes_close_the_window_and_declarations_reopen_it():
    state = show(CLASSIC, "1 HT")
    for seat in (0, 1, 2):
        state = judge_pass(state, seat)
        assert asked(CLASSIC, FIRST_DEAL, state)
    assert judge_pass(state, 2) == Refusal(Reason.ALREADY_PASSED)
    assert refused(CLASSIC, state, "2 DT DT") is Reason.ALREADY_PASSED
    reopened = attempt(CLASSIC, state, "3 DT DT")
    assert [reopened.has_passed(seat) for seat in range(4)] == [False] * 4
    own_pass_stands = attempt(CLASSIC, judge_pass(show(CLASSIC, "1 HT"), 2), "3 DT DT")
    assert [own_pass_stands.has_passed(seat) for seat in range(4)] == [False] * 4
    assert not asked(CLASSIC, FIRST_DEAL, judge_pass(state, 3))


@pytest.mark.parametrize(
    ("name", "declarer"),
    [("classic-2d", 1), ("closed-2d", 1), ("bigkitty-4d", 1), ("basic-2d", 2), ("classic-4d", 2)],
)
def test_first_declarer(name, declarer):
    """D12."""
    rules = preset(name)
    assert settle(rules, FIRST_DEAL, show(rules, "1 HT", "2 DT DT"), b"").declarer == declarer


def test_later_deals_settle_trump_only():
    for name in LEVEL_PRESETS:
        rules = preset(name)
        showing = "2 " + " ".join(["HT"] * rules.minimum_cards)
        settled = settle(rules, later(3), show(rules, showing, deal=later(3)), b"")
        assert (settled.trump, settled.declarer, settled.turned) == (1, 3, None)


KITTY = parse_cards(["S2", "H3", "C4", "D5", "S6", "H7", "C8", "D9"])


@pytest.mark.parametrize(
    ("name", "kitty", "trump", "turned"),
    [
        ("classic-2d", KITTY, 2, "C4"),
        ("closed-2d", KITTY, 0, "S2"),
        ("classic-2d", bytes([0, 0, LITTLE_JOKER]), NO_TRUMP, "LJ"),
        ("classic-2d", b"", NO_TRUMP, None),
        ("classic-4d", b"", 0, None),
        ("classic-1d-2c", KITTY, 0, "C4"),
    ],
)
def test_nobody_declares(name, kitty, trump, turned):
    settled = settle(preset(name), FIRST_DEAL, Declarations(), kitty)
    assert settled.trump == trump
    assert settled.declarer == 0
    assert settled.turned == (None if turned is None else parse_card(turned))
    assert settle(preset(name), later(2), Declarations(), kitty).declarer == 2


def test_no_trump_as_fallback():
    rules = CLASSIC.with_overrides({"fallback": "no_trump"})
    assert settle(rules, FIRST_DEAL, Declarations(), KITTY).trump == NO_TRUMP


def test_the_twin_holder_declares():
    """D11, D17: the first in turn order from who drew first, on a first deal or on every deal."""
    hands = [parse_cards([text]) for text in ("S3", "C4", "C5", "C4")]
    from_two = Deal(FIRST_DEAL.level, declarer=None, first_drawer=2)
    assert settle(CLASSIC, FIRST_DEAL, Declarations(), KITTY, hands).declarer == 1
    assert settle(CLASSIC, from_two, Declarations(), KITTY, hands).declarer == 3
    assert settle(CLASSIC, later(2), Declarations(), KITTY, hands).declarer == 2
    always = CLASSIC.with_overrides({"match_declares": "always"})
    assert settle(always, later(2), Declarations(), KITTY, hands).declarer == 3
    never = CLASSIC.with_overrides({"match_declares": "never"})
    assert settle(never, FIRST_DEAL, Declarations(), KITTY, hands).declarer == 0
    nobody = [b"", b"", b"", b""]
    assert settle(always, later(2), Declarations(), KITTY, nobody).declarer == 2
    two_colour = preset("classic-1d-2c")
    assert (
        settle(two_colour, FIRST_DEAL, Declarations(), KITTY, [b"", b"", parse_cards(["S4"]), b""]).declarer
        == 2
    )


KINDS = st.sampled_from([parse_card("ST"), parse_card("HT"), LITTLE_JOKER, BIG_JOKER])


@given(st.sampled_from(LEVEL_PRESETS), st.lists(st.tuples(KINDS, st.integers(1, 4)), min_size=3, max_size=3))
def test_strength_is_a_strict_order(name, showings):
    one, two, three = (strength(preset(name), card, count) for card, count in showings)
    assert not one < two < one
    assert not one < two < three or one < three
    assert (one[0] < two[0]) <= (one < two)


SHOWINGS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.lists(st.sampled_from([*(parse_card(s + "T") for s in "SHCD"), 52, 53, 0]), max_size=4).map(bytes)
        | st.tuples(st.sampled_from([*(parse_card(s + "T") for s in "SHCD"), 52, 53]), st.integers(1, 4)).map(
            lambda pair: bytes([pair[0]] * pair[1])
        ),
    ),
    max_size=10,
)


@given(st.sampled_from(LEVEL_PRESETS), SHOWINGS, st.booleans())
def test_standing_declarations_only_rise(name, showings, first_deal):
    rules = preset(name)
    deal = FIRST_DEAL if first_deal else later(3)
    state = Declarations()
    for seat, cards in showings:
        answer = judge_showing(rules, deal, state, seat, cards)
        assert judge_showing(rules, deal, state, seat, cards) == answer
        if isinstance(answer, Refusal):
            continue
        before, after = state.standing, answer.standing
        assert answer.shown[-1] == (seat, bytes(sorted(cards)))
        assert after.count <= rules.copies
        if before is not None:
            old, new = (strength(rules, s.cards[0], s.count) for s in (before, after))
            assert new > old or (rules.equal_overrides and new[0] == old[0] and seat != before.seat)
        assert len({rank_of(c) if c < LITTLE_JOKER else c for c in after.cards + after.added}) == 1
        state = answer
    settled = settle(rules, deal, state, KITTY)
    if state.standing is not None:
        assert settled.trump == state.standing.trump
        assert settled.declarer in ({seat for seat, _ in state.shown} if first_deal else {3})


@given(st.sampled_from(LEVEL_PRESETS), st.integers(0, CARDS - 1), st.integers(0, 12), st.integers(1, 4))
def test_only_level_cards_and_jokers_declare(name, card, level, count):
    assume(card < LITTLE_JOKER and rank_of(card) != level)
    deal = Deal(level, declarer=None, first_drawer=0)
    answer = judge_showing(preset(name), deal, Declarations(), 0, bytes([card] * count))
    assert answer == Refusal(Reason.NOT_A_DECLARATION), card_text(card)
