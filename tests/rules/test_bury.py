"""Burying (RULES §7)."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine_ext
from engine_ext.codes import TRUMP
from services.rules.bury import fixed_bury, refuse_bury
from services.rules.cards import deck, parse_cards, points
from services.rules.presets import PRESET_NAMES, preset
from services.rules.reasons import Reason

CLASSIC = preset("classic-2d")


def cards(text):
    return parse_cards(text.split())


HAND = cards("SA SK S5 S3 S2 H9 H9 HT CA CK CQ CJ C9 C8 C7 C6 C5 C4 C3 C2") + cards(
    "D3 D4 D5 DT DK LJ BJ DA DQ D2 DJ D9 D8"
)


def test_refusals():
    eight = HAND[:8]
    assert refuse_bury(CLASSIC, HAND, eight) is None
    assert refuse_bury(CLASSIC, HAND, HAND[:7]) is Reason.BURY_WRONG_COUNT
    assert refuse_bury(CLASSIC, HAND, HAND[:9]) is Reason.BURY_WRONG_COUNT
    assert refuse_bury(CLASSIC, HAND, eight[:7] + cards("SA")) is Reason.NOT_IN_HAND
    limited = CLASSIC.with_overrides({"bury_points_max": 10})
    assert points(eight) == 25
    assert refuse_bury(limited, HAND, eight) is Reason.BURY_TOO_MANY_POINTS
    assert refuse_bury(limited, HAND, cards("SK S3 S2 C9 C8 C7 C6 C4")) is None


def test_the_servers_bury():
    """Shortest side suits first, lowest first, no points, no trumps."""
    order = CLASSIC.engine().order(8, 3)  # tens, diamonds
    long_spades = cards("S2 S3 S4 S6 S7 S8 S9 SJ H4 H3 HK C6 C7 C8 D2 D3 DA BJ")
    assert fixed_bury(CLASSIC, order, long_spades) == bytes(sorted(cards("H3 H4 C6 C7 C8 S2 S3 S4")))
    assert fixed_bury(CLASSIC, order, HAND) == bytes(sorted(cards("H9 H9 S2 S3 SA C2 C3 C4")))


def test_points_and_trumps_only_when_nothing_else_is_left():
    order = CLASSIC.engine().order(8, 3)
    hand = cards("SK S5 S3 H5 D2 D3 D5 DT LJ BJ")
    assert fixed_bury(CLASSIC, order, hand) == bytes(sorted(cards("S3 H5 S5 SK D2 D3 LJ BJ")))
    limited = CLASSIC.with_overrides({"bury_points_max": 10})
    assert fixed_bury(limited, order, hand) == bytes(sorted(cards("S3 D2 D3 LJ BJ H5 S5 D5")))


def test_a_hand_must_be_large_enough():
    with pytest.raises(ValueError, match="cannot bury 8"):
        fixed_bury(CLASSIC, CLASSIC.engine().order(8, 3), HAND[:7])


@given(st.sampled_from(PRESET_NAMES), st.data())
def test_the_servers_bury_is_valid_and_depends_on_the_hand_alone(name, data):
    rules = preset(name)
    if data.draw(st.booleans()):
        rules = rules.with_overrides({"bury_points_max": data.draw(st.sampled_from([0, 5, 20]))})
    trump = data.draw(st.sampled_from([0, 1, 4]))
    order = rules.engine().order(data.draw(st.integers(0, 12)), trump)
    shuffled = data.draw(st.randoms(use_true_random=False)).sample(list(deck(rules.decks)), rules.decks * 54)
    hand = bytes(shuffled[: rules.hand_size + rules.kitty])
    buried = fixed_bury(rules, order, hand)
    assert refuse_bury(rules, hand, buried) is None
    assert fixed_bury(rules, order, bytes(reversed(hand))) == buried
    kept = Counter(hand) - Counter(buried)
    assert kept.total() == rules.hand_size
    plain = [card for card in hand if order.suit(card) != TRUMP and not points(bytes([card]))]
    if len(plain) >= rules.kitty:
        assert set(buried) <= set(plain)


@pytest.mark.parametrize("name", [name for name in PRESET_NAMES if preset(name).kitty])
def test_the_engines_playouts_bury_by_the_same_rule(name):
    rules = preset(name)
    for index, trump in enumerate((0, 1, 4) * 8):
        played = engine_ext.playout(rules.engine(), index % 13, trump, 11, index, kitty=rules.kitty)
        order = rules.engine().order(index % 13, trump)
        assert fixed_bury(rules, order, played.hands[0] + played.kitty) == played.kitty
