"""Points to levels (RULES §8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.rules.presets import PRESET_NAMES, preset
from services.rules.scoring import (
    LastTrick,
    Result,
    attackers_total,
    failed_throw_stake,
    kitty_capture,
    result,
    throw_fine,
)

# Printed lines of RULES §8: (points, declarers up) while the declarers stay in, (points, attackers up) beyond
STAYS = {
    ("classic-1d", "classic-1d-2c"): [(0, 3), (5, 2), (15, 2), (20, 1), (35, 1)],
    ("basic-1d", "basic-1d-power", "closed-1d"): [(0, 2), (5, 1), (35, 1)],
    ("classic-2d", "classic-2d-fixed2", "basic-2d", "basic-2d-power", "closed-2d", "tournament-2d"): [
        (0, 3),
        (5, 2),
        (35, 2),
        (40, 1),
        (75, 1),
    ],
    ("classic-3d", "basic-3d", "closed-3d"): [(0, 3), (5, 2), (55, 2), (60, 1), (115, 1)],
    ("classic-4d", "bigkitty-4d", "closed-4d"): [(0, 3), (-40, 3), (5, 2), (75, 2), (80, 1), (155, 1)],
}
OUT = {
    ("classic-1d", "classic-1d-2c"): [(40, 0), (55, 0), (60, 1), (75, 1), (80, 2), (100, 3), (200, 8)],
    ("basic-1d", "basic-1d-power", "closed-1d"): [(40, 0), (75, 0), (80, 1), (95, 1), (100, 2), (400, 2)],
    ("classic-2d", "classic-2d-fixed2"): [(80, 0), (115, 0), (120, 1), (160, 2), (200, 3), (280, 5)],
    ("basic-2d", "basic-2d-power", "closed-2d"): [(80, 1), (115, 1), (120, 2), (160, 3), (320, 7)],
    ("tournament-2d",): [(80, 0), (120, 1), (160, 2), (280, 5), (320, 6), (360, 6), (1000, 6)],
    ("classic-3d", "basic-3d", "closed-3d"): [(120, 0), (175, 0), (180, 1), (240, 2), (300, 3)],
    ("classic-4d",): [(160, 1), (235, 1), (240, 2), (320, 3), (960, 11)],
    ("bigkitty-4d", "closed-4d"): [(160, 0), (235, 0), (240, 1), (320, 2), (400, 3), (480, 4), (900, 4)],
}


def lines(table):
    return [(name, points, up) for names, rows in table.items() for name in names for points, up in rows]


@pytest.mark.parametrize(("name", "points", "up"), lines(STAYS))
def test_the_declarers_stay_in(name, points, up):
    assert result(preset(name).level_table, points) == Result(up, 0, attackers_take_over=False)


@pytest.mark.parametrize(("name", "points", "up"), lines(OUT))
def test_the_attackers_take_over(name, points, up):
    assert result(preset(name).level_table, points) == Result(0, up, attackers_take_over=True)


@given(st.sampled_from(PRESET_NAMES), st.integers(-500, 2000), st.integers(0, 400))
def test_more_points_are_never_worth_less(name, points, more):
    low, high = (result(preset(name).level_table, total) for total in (points, points + more))
    assert worth(low) <= worth(high)
    assert low.declarers_up == 0 or low.attackers_up == 0


def worth(outcome):
    """A number that rises with what the attackers have of a result."""
    return outcome.attackers_up if outcome.attackers_take_over else -outcome.declarers_up - 0.5


@pytest.mark.parametrize(("attackers_won", "total"), [(True, 180), (False, 20)])
def test_last_trick_counts_for_and_against(attackers_won, total):
    """D13: attackers at 100, 40 points in a last trick won by a pair."""
    last = LastTrick(attackers_won, points=40, multiplier=2)
    assert attackers_total(preset("classic-4d"), 100, last, kitty_points=0) == total


def test_last_trick_can_fall_below_nothing():
    last = LastTrick(attackers_won=False, points=20, multiplier=1)
    total = attackers_total(preset("classic-4d"), 0, last, kitty_points=0)
    assert total == -20
    assert result(preset("classic-4d").level_table, total).declarers_up == 3


def test_the_kitty_goes_to_attackers_who_win_the_last_trick():
    rules = preset("classic-2d")
    won, lost = (LastTrick(attackers_won, points=15, multiplier=4) for attackers_won in (True, False))
    assert kitty_capture(rules, won, 25) == 100
    assert kitty_capture(rules, lost, 25) == 0
    assert attackers_total(rules, 60, won, 25) == 60 + 15 + 100
    assert attackers_total(rules, 60, lost, 25) == 60


def test_fines_count_against_the_throwers_side():
    rules = preset("classic-2d").with_overrides({"throw_fine_points": 10})
    assert throw_fine(rules, 3, by_attacker=True) == -30
    assert throw_fine(rules, 3, by_attacker=False) == 30
    assert throw_fine(preset("classic-2d"), 3, by_attacker=False) == 0
    last = LastTrick(attackers_won=False, points=0, multiplier=2)
    assert attackers_total(rules, 20, last, 0, fine_points=-30) == -10


def test_a_failed_throw_costs_half_the_stake_where_003_is_played():
    """D6: 2·⌊B/4⌋, half of it to each opponent."""
    assert failed_throw_stake(preset("tournament-2d"), 10) == 2
    assert failed_throw_stake(preset("tournament-2d"), 3) == 0
    assert failed_throw_stake(preset("classic-2d"), 100) == 0


def test_nominal_gains():
    assert result(preset("classic-2d").level_table, 0).gained == 3
    assert result(preset("classic-2d").level_table, 165).gained == 2
    assert result(preset("classic-2d").level_table, 85).gained == 0
