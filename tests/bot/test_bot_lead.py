"""Leading, one principle a test: classic-2d, level 2, spades are trump, seat 0 leads."""

from services.bot.lead import lead, safe_throw
from services.rules.cards import card_texts


def led(scene, hand, **more):
    return " ".join(card_texts(lead(scene(hand, **more))))


def test_cashes_an_ace_before_leading_small(scene):
    assert led(scene, "HA H5 C4 C7 D6 D9 S3 S4 S6", size=20) == "HA"


def test_cashes_a_pair_of_aces_together(scene):
    assert led(scene, "HA HA H5 C4 C7 D6 D9 S3 S4 S6", size=20) == "HA HA"


def test_leads_a_tractor_whole(scene):
    assert led(scene, "HK HK HA HA C4 C7 D6 D9 S3 S4 S6", size=20) == "HK HK HA HA"


def test_does_not_lead_bare_points(scene):
    rest = " C3 C4 C6 C7 C8 D3 D4 D6 D7 D8 D9 S3 S4 S6 S7 S8 S9 H3 H4 H6"
    assert "HK" not in led(scene, "HK" + rest, size=21)
    assert "HT" not in led(scene, "HT" + rest, size=21)


def test_throws_what_is_provably_safe(scene):
    """The other ace and king of hearts are gone, so HA HQ HQ? no: HA HK stands."""
    seen = [[(0, "HA"), (1, "HK"), (2, "H3"), (3, "H4")]]
    assert led(scene, "HA HK C4 C7 D6 S3", tricks=seen, size=18) == "HK HA"


def test_leaves_out_of_a_throw_what_could_be_beaten(scene):
    seen = [[(0, "HA"), (1, "HK"), (2, "H3"), (3, "H4")]]
    s = scene("HA HK HJ C4 C7 D6 S3", tricks=seen, size=18)
    thrown = safe_throw(s, s.order.shape(s.suits[1]))
    assert sorted(card for part in thrown for card in card_texts(part.cards)) == ["HA", "HK"]


def test_never_throws_on_a_guess(scene):
    s = scene("HA HK C4 C7 D6 S3", size=20)
    assert safe_throw(s, s.order.shape(s.suits[1])) == ()


def test_a_seat_without_pairs_makes_pairs_safe(scene):
    """Nobody but seats that showed no pair of hearts could hold the kings, so queens and the ace stand."""
    no_pairs = [
        [(0, "H3 H3"), (1, "H4 H5"), (2, "H6 H7"), (3, "H8 H9")],
    ]
    s = scene("HA HA HQ HQ C4 S3", tricks=no_pairs, size=18)
    thrown = safe_throw(s, s.order.shape(s.suits[1]))
    assert sum(len(part.cards) for part in thrown) == 4


def test_throws_only_when_others_are_void_where_the_rules_ask_for_it(scene):
    s = scene("HA HK C4 S3", name="classic-4d", level="3", size=40)
    assert safe_throw(s, s.order.shape(s.suits[1])) == ()
    void = [[(0, "H5"), (1, "C6"), (2, "C7"), (3, "C8")]]
    s = scene("HA HK C4 S4", name="classic-4d", level="3", tricks=void, size=40)
    assert len(safe_throw(s, s.order.shape(s.suits[1]))) == 2


def test_never_throws_in_a_system_without_throws(scene):
    void = [[(0, "H5"), (1, "C6"), (2, "C7"), (3, "C8")]]
    s = scene("HA HK C4 S4", name="closed-4d", level="3", tricks=void, size=40)
    assert safe_throw(s, s.order.shape(s.suits[1])) == ()


def test_does_not_lead_winners_into_a_known_ruff(scene):
    """Seat 1 has no hearts and ruffed before; the ace of clubs is as high."""
    seen = [[(0, "H3"), (1, "S5"), (2, "H4"), (3, "H6")]]
    assert led(scene, "HA H7 CA C9 D6 S3", tricks=seen, size=18) == "CA"


def test_keeps_the_joker_for_the_last_trick(scene):
    assert led(scene, "BJ C4 D6", size=3) in {"C4", "D6"}
