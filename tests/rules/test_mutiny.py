"""Who may claim a redeal before the first bury (RULES §7, D10, and the options that no source names)."""

import pytest

from services.rules import mutiny
from services.rules.cards import parse_cards, parse_level, parse_trump
from services.rules.presets import PRESETS, preset

CLASSIC = preset("classic-2d")
TOURNAMENT = preset("tournament-2d")
SEATS = range(4)


def callers(rules, hand, *, declarer=0, trump="S", level="2"):
    """The seats that may claim a redeal, did they hold this hand."""
    order = rules.engine().order(parse_level(level), parse_trump(trump, two_colour=rules.two_colour))
    return [
        seat for seat in SEATS if mutiny.may_call(rules, order, declarer, seat, parse_cards(hand.split()))
    ]


def test_a_mutiny_is_for_attackers_with_under_15_points():
    assert callers(TOURNAMENT, "SK S2") == [1, 3]
    assert callers(TOURNAMENT, "SK S2", declarer=3) == [0, 2]
    assert callers(TOURNAMENT, "SK S5") == []
    assert callers(CLASSIC, "SK S2") == []
    assert mutiny.asked(TOURNAMENT, 0) == (1, 3)
    assert mutiny.asked(TOURNAMENT, 3) == (0, 2)


def test_a_hand_without_points_is_for_any_seat():
    rules = CLASSIC.with_overrides({"redeal_no_points": True})
    assert callers(rules, "S3 SA H2 BJ") == [0, 1, 2, 3]
    assert callers(rules, "S3 SA H5 BJ") == []
    assert mutiny.asked(rules, 2) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("hand", "trump", "may"),
    [
        ("S3 S4 HA HA CT", "S", True),
        ("S3 S4 S4 HA CT", "S", False),
        ("S3 S4 H2 HA CT", "S", False),
        ("S3 S4 LJ HA CT", "S", False),
        ("S3 S4 S6 HA CT", "H", True),
        ("S3 S4 S6 SA CT", "NT", False),
    ],
)
def test_few_trumps_are_counted_as_trump_was_settled(hand, trump, may):
    """Jokers and level cards count; in no-trump nobody claims."""
    rules = CLASSIC.with_overrides({"redeal_few_trumps": 3})
    assert callers(rules, hand, trump=trump) == (list(SEATS) if may else [])


def test_permanent_twos_are_trumps_that_count():
    hand = "S3 S4 H2 HA"
    assert callers(CLASSIC.with_overrides({"redeal_few_trumps": 3}), hand, level="9") == list(SEATS)
    twos = preset("classic-2d-fixed2").with_overrides({"redeal_few_trumps": 3})
    assert callers(twos, hand, level="9") == []


def test_a_mutiny_beside_the_others_stays_with_the_attackers():
    rules = TOURNAMENT.with_overrides({"redeal_no_points": True})
    assert callers(rules, "SK S2") == [1, 3]
    assert callers(rules, "SA S2") == [0, 1, 2, 3]
    assert mutiny.asked(rules, 0) == (0, 1, 2, 3)


def test_only_some_rules_have_redeals():
    assert [name for name, rules in PRESETS.items() if mutiny.is_possible(rules)] == ["tournament-2d"]
    assert mutiny.asked(CLASSIC, 0) == ()
    assert mutiny.is_possible(CLASSIC.with_overrides({"redeal_few_trumps": 1}))
