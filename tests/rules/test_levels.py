"""Levels, the next declarer and the end of a match (RULES §8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.rules.cards import ACE, LEVEL_INDEX
from services.rules.levels import Match, Outcome, after_deal, begin, next_declarer, partner_of, side_of, steps
from services.rules.presets import PRESET_NAMES, preset
from services.rules.scoring import Result, result

REACH = preset("classic-2d")
PASS = preset("basic-2d")
LOOP = preset("tournament-2d")


def stay(up):
    return Result(up, 0, attackers_take_over=False)


def out(up):
    return Result(0, up, attackers_take_over=True)


def match(first, second, declarer=0, **more):
    return Match((LEVEL_INDEX[first], LEVEL_INDEX[second]), declarer, **more)


def played(rules, before, given_result, *, declarer=None, hooked=False):
    seat = before.declarer if declarer is None else declarer
    return after_deal(rules, before, seat, before.deal_level, given_result, hooked=hooked)


def levels(after):
    return "".join("23456789TJQKA"[level] for level in after.levels)


@pytest.mark.parametrize(("name", "level"), [("classic-2d", 0), ("classic-2d-fixed2", 1), ("classic-4d", 1)])
def test_start(name, level):
    begun = begin(preset(name))
    assert begun.levels == (level, level)
    assert begun.deal_level == level
    assert begun.declarer is None
    assert begun.outcome is None


def test_seats_sides_and_partners():
    assert [side_of(seat) for seat in range(4)] == [0, 1, 0, 1]
    assert [partner_of(seat) for seat in range(4)] == [2, 3, 0, 1]


def test_the_next_declarer():
    assert [next_declarer(seat, stay(1)) for seat in range(4)] == [2, 3, 0, 1]
    assert [next_declarer(seat, out(0)) for seat in range(4)] == [1, 2, 3, 0]


def test_each_side_keeps_its_own_level():
    after = played(REACH, match("5", "8"), stay(2))
    assert levels(after) == "78"
    assert (after.declarer, after.deals, after.advanced, after.deal_level) == (2, 1, (2, 0), 5)
    after = played(REACH, after, out(1))
    assert levels(after) == "79"
    assert (after.declarer, after.deals, after.advanced, after.deal_level) == (3, 2, (2, 1), 7)


@pytest.mark.parametrize(
    ("start", "up", "winner"), [("J", 3, Outcome.SIDE_0), ("K", 1, Outcome.SIDE_0), ("Q", 1, None)]
)
def test_reaching_the_ace_wins_at_once(start, up, winner):
    after = played(REACH, match(start, "2"), stay(up))
    assert after.outcome is winner
    assert after.levels[0] == min(LEVEL_INDEX[start] + up, ACE)


def test_attackers_can_reach_the_ace_too():
    assert played(REACH, match("5", "Q"), out(2)).outcome is Outcome.SIDE_1


def test_the_ace_must_be_passed():
    before = match("K", "A")
    after = played(PASS, before, stay(3))
    assert (levels(after), after.outcome) == ("AA", None)
    assert after.advanced == (1, 0)
    assert played(PASS, after, stay(1)).outcome is Outcome.SIDE_0
    lost = played(PASS, after, out(1))
    assert (levels(lost), lost.outcome, lost.declarer) == ("AA", None, 3)
    assert played(PASS, lost, stay(1)).outcome is Outcome.SIDE_1


def test_the_ace_is_passed_by_who_plays_it():
    """D11, D27: the deal's level may be the other side's."""
    before = match("A", "6", declarer=0)
    assert after_deal(PASS, before, 1, ACE, stay(2)).outcome is None
    other = match("A", "6", declarer=1)
    assert after_deal(PASS, other, 0, 4, stay(2)).outcome is None


def test_a_loop_goes_on_with_the_two():
    after = played(LOOP, match("K", "2"), stay(3))
    assert (levels(after), after.outcome, after.advanced) == ("32", None, (3, 0))
    assert levels(played(LOOP, match("A", "2"), stay(1))) == "22"


@pytest.mark.parametrize(
    ("advanced", "given_result", "outcome"),
    [((3, 5), stay(2), Outcome.DRAW), ((3, 5), stay(3), Outcome.SIDE_0), ((3, 5), out(0), Outcome.SIDE_1)],
)
def test_a_number_of_deals_ends_a_match(advanced, given_result, outcome):
    before = match("6", "5", deals=15, advanced=advanced)
    assert played(LOOP, before, given_result).outcome is outcome
    assert played(LOOP, match("6", "5", deals=14, advanced=advanced), given_result).outcome is None


def test_the_ace_comes_before_the_number_of_deals():
    rules = REACH.with_overrides({"deals": 1})
    assert played(rules, match("K", "2", advanced=(0, 9)), stay(1)).outcome is Outcome.SIDE_0


def test_stop_levels_are_not_jumped():
    rules = REACH.with_overrides({"stop_levels": ["5", "T", "K"]})
    assert levels(played(rules, match("4", "2"), stay(3))) == "52"
    assert levels(played(rules, match("5", "2"), stay(3))) == "82"
    assert levels(played(rules, match("3", "2"), stay(2))) == "52"
    after = played(rules, match("Q", "2"), stay(3))
    assert (levels(after), after.outcome) == ("K2", None)
    loop = LOOP.with_overrides({"stop_levels": ["2"]})
    assert levels(played(loop, match("K", "2"), stay(3))) == "22"
    assert steps(PASS.with_overrides({"stop_levels": ["2"]}), ACE, 3, defended=True) == 0


def test_levels_to_defend_stop_an_advance_and_are_left_as_declarers_only():
    rules = REACH.with_overrides({"must_defend": ["5", "K"]})
    assert levels(played(rules, match("4", "2"), stay(3))) == "52"
    assert levels(played(rules, match("2", "4"), out(3))) == "25"
    assert levels(played(rules, match("5", "2"), stay(3))) == "82"
    after = played(rules, match("2", "5"), out(3))
    assert (levels(after), after.declarer, after.advanced) == ("25", 1, (0, 0))
    assert played(rules, match("2", "K"), out(3)).outcome is None
    assert levels(played(rules, match("Q", "2"), stay(3))) == "K2"
    assert played(rules, match("K", "2"), stay(1)).outcome is Outcome.SIDE_0


def test_a_level_is_defended_in_a_deal_at_that_level_only():
    """The deal's level is not the declaring side's own where another seat became declarer (D11, D27)."""
    rules = PASS.with_overrides({"must_defend": ["5"]})
    before = match("5", "7")
    assert levels(after_deal(rules, before, 0, LEVEL_INDEX["7"], stay(2))) == "57"
    assert levels(after_deal(rules, before, 0, LEVEL_INDEX["5"], stay(2))) == "77"
    assert levels(after_deal(rules, before, 1, LEVEL_INDEX["5"], stay(2))) == "59"


def test_levels_to_defend_beside_the_other_hindrances():
    both = PASS.with_overrides({"must_defend": ["5", "J"], "stop_levels": ["5", "8"], "hook_back": ["J"]})
    assert levels(played(both, match("5", "2"), stay(4))) == "82"
    assert levels(played(both, match("2", "5"), out(1))) == "25"
    after = played(both, match("J", "J"), out(2), hooked=True)
    assert levels(after) == "2J"
    assert levels(played(both, match("J", "5"), stay(1), hooked=True)) == "25"
    loop = LOOP.with_overrides({"must_defend": ["A", "2"]})
    assert levels(played(loop, match("K", "A"), stay(3))) == "AA"
    assert levels(played(loop, match("K", "A"), out(3))) == "KA"
    assert levels(played(loop, match("A", "A"), stay(3))) == "2A"


def test_hook_back_sends_the_declaring_side_to_the_start():
    rules = PASS.with_overrides({"hook_back": ["J", "A"]})
    after = played(rules, match("J", "5"), out(2), hooked=True)
    assert (levels(after), after.declarer, after.advanced) == ("27", 1, (-9, 2))
    after = played(rules, match("J", "5"), stay(1), hooked=True)
    assert (levels(after), after.declarer) == ("25", 2)
    after = played(rules, match("A", "5"), stay(1), hooked=True)
    assert (levels(after), after.outcome) == ("25", None)


def test_hook_back_in_a_loop_counts_the_way_back():
    rules = LOOP.with_overrides({"hook_back": ["4"], "start_level": "6"})
    after = played(rules, match("4", "6", advanced=(11, 0)), out(0), hooked=True)
    assert (levels(after), after.advanced) == ("66", (0, 0))


@given(st.sampled_from(PRESET_NAMES), st.lists(st.integers(-40, 900), max_size=60), st.data())
def test_a_match_never_leaves_its_bounds(name, totals, data):
    rules = preset(name)
    if data.draw(st.booleans()):
        rules = rules.with_overrides(
            {
                "stop_levels": data.draw(st.lists(st.sampled_from("23456789TJQKA"))),
                "must_defend": data.draw(st.lists(st.sampled_from("23456789TJQK"))),
            }
        )
    now = begin(rules)
    for total in totals:
        declarer = data.draw(st.integers(0, 3)) if now.declarer is None else now.declarer
        given_result = result(rules.level_table, total)
        after = after_deal(
            rules, now, declarer, now.deal_level, given_result, hooked=data.draw(st.booleans())
        )
        assert all(0 <= level <= ACE for level in after.levels)
        assert after.deals == now.deals + 1
        assert (after.declarer - declarer) % 4 == (1 if given_result.attackers_take_over else 2)
        assert all(
            gain <= given_result.gained
            for gain in (a - b for a, b in zip(after.advanced, now.advanced, strict=True))
        )
        if after.outcome is not None:
            return
        now = after
