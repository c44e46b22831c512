"""The server's play at an expired turn (RULES §7)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_ext.codes import Verdict
from services.rules.autoplay import automatic_follow, automatic_lead
from services.rules.cards import contains, counts_of, deck, parse_cards, points
from services.rules.presets import PRESET_NAMES, preset

CLASSIC = preset("classic-2d")
ORDER = CLASSIC.engine().order(8, 0)  # tens, spades


def cards(text):
    return parse_cards(text.split())


@pytest.mark.parametrize(
    ("hand", "led"),
    [("SA HK H3 D4", "H3"), ("HK H5 S3", "S3"), ("HK H5 CT", "H5"), ("SA LJ D5", "SA"), ("D3 C3 H3", "H3")],
)
def test_leads(hand, led):
    assert automatic_lead(ORDER, cards(hand)) == cards(led)


@pytest.mark.parametrize(
    ("lead", "hand", "play"),
    [
        ("HA", "HK H4 H5 D2", "H4"),
        ("HA", "D5 C9 S2 DK", "C9"),
        ("HA", "SK S9 ST", "S9"),
        ("HA HA", "HK HK H3 H4", "HK HK"),
        ("HA HA", "HK HK H3 H3 H2", "H3 H3"),
        ("HA HA", "HK H9 H3 D2 D2", "H3 H9"),
        ("HA HA", "HK D2 D3 S2", "HK D2"),
        ("HA HA HK HK", "H3 H3 H4 H4 H6 H6 H7 H7 H2", "H3 H3 H4 H4"),
        ("HA HA HK HK", "H5 H5 H6 H6 H7 H7 H9 H9 HQ HJ", "H6 H6 H7 H7"),
        ("HA HA HK", "H3 H3 H4 H4 H5 HQ", "H3 H3 H4"),
        ("HA HK HQ HJ", "H2 H3 H4 H5 H6 H7 H8 H9 H9 HJ HQ HK HA", "H2 H3 H4 H6"),
    ],
)
def test_follows(lead, hand, play):
    assert automatic_follow(ORDER, ORDER.lead(cards(lead)), cards(hand)) == bytes(sorted(cards(play)))


def test_a_follow_far_from_the_listed_ones_is_found():
    """The list of follows is cut here, and none of the listed ones is cheap."""
    order = preset("classic-4d").engine().order(8, 0)
    lead = order.lead(cards("BJ S4 S4 S8 SA ST"))
    hand = cards("LJ S6 S9 S4 HT DT LJ C2 H2 S9 SJ S7 BJ")
    assert not lead.follows(counts_of(hand), 256).complete
    assert automatic_follow(order, lead, hand) == bytes(sorted(cards("S4 S6 S7 S9 S9 SJ")))


def test_impossible_positions_are_refused():
    with pytest.raises(ValueError, match="empty hand"):
        automatic_lead(ORDER, b"")
    with pytest.raises(ValueError, match="cannot follow 2"):
        automatic_follow(ORDER, ORDER.lead(cards("HA HA")), cards("H3"))


@settings(max_examples=60)
@given(
    st.sampled_from(PRESET_NAMES),
    st.randoms(use_true_random=False),
    st.integers(0, 12),
    st.sampled_from([0, 1, 4]),
)
def test_every_automatic_play_is_legal(name, random, level, trump):
    rules = preset(name)
    order = rules.engine().order(level, trump)
    dealt = bytes(random.sample(list(deck(rules.decks)), 26))
    leader, hand = dealt[:13], dealt[13:]
    assert contains(leader, automatic_lead(order, leader))
    plain = order.leads(counts_of(leader)).plays
    lead = order.lead(random.choice(plain))
    play = automatic_follow(order, lead, hand)
    assert play == bytes(sorted(play))
    assert lead.check_cards(hand, play) == Verdict.OK
    assert automatic_follow(order, lead, bytes(reversed(hand))) == play
    listing = lead.follows(counts_of(hand), 4096)
    if listing.complete:
        assert play in listing.plays
        if lead.size <= 2:
            assert points(play) == min(points(other) for other in listing.plays)
