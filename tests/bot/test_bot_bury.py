"""Burying, one principle a test: classic-2d, level 2, spades are trump."""

import pytest

from services.bot.bury import bury
from services.rules.bury import refuse_bury
from services.rules.cards import card_texts, points
from services.rules.presets import PRESETS

TRUMPS = "BJ LJ S2 H2 SA SK SQ SJ S9 S8 S7 S6 S4"


def buried(scene, hand, **more):
    return card_texts(bury(scene(hand, **more)))


def test_keeps_trumps_aces_and_points(scene):
    hand = f"{TRUMPS} HA HK H9 H8 H7 H4 CA CT C9 C8 C6 C4 C3 DA DK DQ D9 D8 D6 D4"
    cards = buried(scene, hand, size=25)
    assert not set(cards) & set(TRUMPS.split())
    assert not {"HA", "CA", "DA"} & set(cards)
    assert len(cards) == 8


def test_voids_a_short_suit(scene):
    hand = f"{TRUMPS} HA HK HQ HJ H9 H8 H7 H6 H4 H3 CA CQ CJ C9 C8 C7 C6 D9 D8 D4"
    cards = buried(scene, hand, size=25)
    assert {"D9", "D8", "D4"} <= set(cards)


def test_buries_no_points_with_a_weak_hand(scene):
    hand = (
        "S4 S6 S7 H5 HT HK H9 H8 H7 H4 H3 C5 CT CK C9 C8 C6 C4 C3 D5 DT DK DQ DJ D9 D8 D7 D6 D4 D3 HQ CQ CJ"
    )
    cards = bury(scene(hand, size=25))
    assert points(cards) == 0


def test_keeps_pairs(scene):
    hand = f"{TRUMPS} HQ HQ HJ HJ H9 H7 C9 C8 C7 C6 C4 C3 CJ DJ D9 D8 D7 D6 D4 D3"
    cards = buried(scene, hand, size=25)
    assert not {"HQ", "HJ"} & set(cards)


@pytest.mark.parametrize("name", [name for name, rules in PRESETS.items() if rules.kitty])
def test_is_valid_in_every_system(scene, name):
    rules = PRESETS[name]
    size = rules.hand_size + rules.kitty
    deck = card_texts(bytes(range(54))) * rules.decks
    hand = " ".join(deck[index * 7 % len(deck)] for index in range(size))
    level = "3" if rules.permanent_twos else "2"
    trump = "R" if rules.two_colour else "H"
    s = scene(hand, name=name, level=level, trump=trump, size=rules.hand_size)
    assert refuse_bury(rules, s.hand, bury(s)) is None


def test_respects_a_limit_of_points(scene):
    rich = " ".join(f"{suit}{rank}" for suit in "SHCD" for rank in "5TK5TK")
    s = scene(f"{rich} BJ LJ S2 H2 SA HA CA DA H3", size=25)
    s.rules = s.rules.with_overrides({"bury_points_max": 5})
    assert refuse_bury(s.rules, s.hand, bury(s)) is None
