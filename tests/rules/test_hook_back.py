"""When level cards win the kitty (RULES §8 hook_back)."""

import pytest

from services.rules.cards import parse_cards, parse_level, parse_trump
from services.rules.hook_back import hooks_back
from services.rules.presets import preset

CLASSIC = preset("classic-2d").with_overrides({"hook_back": ["J"]})


def hooked(lead, winning, *, rules=CLASSIC, level="J", trump="S", attackers_won=True):
    order = rules.engine().order(parse_level(level), parse_trump(trump, two_colour=rules.two_colour))
    cards = [parse_cards(text.split()) for text in (lead, winning)]
    return hooks_back(rules, order, *cards, attackers_won=attackers_won)


@pytest.mark.parametrize(
    ("lead", "winning", "expected"),
    [
        ("HJ", "HJ", True),
        ("HA", "HA", False),
        ("HA", "DJ", True),
        ("HA", "S9", False),
        ("SA", "SJ", True),
        ("SA", "LJ", False),
        ("HA HA", "DJ DJ", True),
        ("HA HA", "S9 S9", False),
        ("HA HA H9", "DJ DJ SA", True),
        ("HA HA H9", "S9 S9 DJ", False),
        ("HA HA H9", "S9 S9 SJ", False),
        ("HA HK", "DJ S3", True),
        ("HA HK", "DJ LJ", False),
        ("HA HK", "DJ DJ", True),
        ("HA HA HK HK", "SJ SJ DJ DJ", True),
        ("HA HA HK HK", "DJ DJ SA SA", False),
        ("HA HA HK HK", "LJ LJ SJ SJ", False),
        ("HA HA HK HK H9 H9", "SJ SJ DJ DJ S3 S3", True),
        ("HA HA HK HK HQ HQ", "SJ SJ DJ DJ SA SA", False),
        ("SJ SJ DJ DJ", "SJ SJ DJ DJ", True),
        ("HA HA HK HK H9 H9", "LJ LJ SJ SJ DJ DJ", False),
    ],
)
def test_the_component_that_answers_decides(lead, winning, expected):
    assert hooked(lead, winning) is expected


def test_only_attackers_and_only_at_such_a_level():
    assert not hooked("HA", "DJ", attackers_won=False)
    assert not hooked("HA", "DT", level="T")
    assert not hooked("HA", "DJ", rules=preset("classic-2d"))


def test_no_trump_has_no_tractor_of_level_cards():
    assert hooked("SJ", "SJ", trump="NT")
    assert not hooked("HA HA HK HK", "LJ LJ BJ BJ", trump="NT")


def test_a_wider_group_answers_where_wider_beats():
    rules = preset("classic-4d").with_overrides({"hook_back": ["J"]})
    assert hooked("HA HA HK HK", "DJ DJ DJ DJ", rules=rules)
    assert not hooked("HA HA HK HK", "S9 S9 S9 S9", rules=rules)
    assert not hooked("HA HA HK HK", "S9 S9 S8 S8", rules=rules)


def test_groups_that_stay_together_are_not_broken():
    rules = preset("bigkitty-4d").with_overrides({"hook_back": ["J"]})
    assert not hooked("HA HA HK HQ HT", "S9 S9 DJ DJ DJ", rules=rules)
    assert hooked("HA HA HA HQ HT", "S9 S9 DJ DJ DJ", rules=rules)
    assert hooked("HA HK", "DJ DJ", rules=rules)


def test_two_colours():
    rules = preset("classic-1d-2c").with_overrides({"hook_back": ["J"]})
    assert hooked("SA CA", "HJ DJ", rules=rules, trump="R")
    assert hooked("SA CA SK CK", "HJ DJ SJ CJ", rules=rules, trump="R")
    assert not hooked("SA CA SK CK", "SJ CJ HA DA", rules=rules, trump="R")
