"""Following, one principle a test: classic-2d, level 2, trump S; seat 0 is the bot, 2 its partner."""

from services.bot.follow import follow
from services.rules.cards import card_texts


def followed(scene, hand, trick, **more):
    s = scene(hand, trick=trick, **more)
    return " ".join(card_texts(follow(s, s.order.lead(s.memory.trick[0][1]))))


def test_gives_points_to_a_partner_who_surely_wins(scene):
    trick = [(1, "H4"), (2, "HA"), (3, "H7")]
    assert followed(scene, "H3 HT HK C4 S3", trick, size=15) == "HT"


def test_gives_no_points_to_an_opponent(scene):
    trick = [(1, "HA"), (2, "H4"), (3, "H7")]
    assert followed(scene, "H3 HT HK C4 S3", trick, size=15) == "H3"


def test_wins_as_the_last_seat_with_the_cheapest_winner(scene):
    trick = [(1, "H5"), (2, "H4"), (3, "HJ")]
    assert followed(scene, "H3 HQ HA C4 S3", trick, size=15) == "HQ"


def test_wins_with_points_where_that_is_as_sure(scene):
    trick = [(1, "H5"), (2, "H4"), (3, "H9")]
    assert followed(scene, "H3 HT HA C4 S3", trick, size=15) == "HT"


def test_does_not_take_the_trick_from_the_partner(scene):
    trick = [(1, "H4"), (2, "HQ"), (3, "H7")]
    assert followed(scene, "H3 HA C4 S3", trick, size=15) == "H3"


def test_ruffs_points_cheaply(scene):
    trick = [(1, "HK"), (2, "H4"), (3, "HT")]
    assert followed(scene, "C4 C5 D7 S4 SQ BJ", trick, size=15) == "S4"


def test_ruffs_over_a_ruff_where_points_pay(scene):
    trick = [(1, "HK"), (2, "H4"), (3, "S9")]
    assert followed(scene, "C4 D7 S4 SJ BJ", trick, size=15) == "SJ"


def test_does_not_ruff_the_partner(scene):
    trick = [(1, "H4"), (2, "HA"), (3, "H7")]
    play = followed(scene, "C4 D7 S4 SQ BJ", trick, size=15)
    assert play in {"C4", "D7"}


def test_spends_no_joker_on_an_empty_trick(scene):
    trick = [(1, "SQ"), (2, "S4"), (3, "S7")]
    assert followed(scene, "S3 LJ C4 D7", trick, size=15) == "S3"


def test_spends_a_joker_on_points(scene):
    trick = [(1, "SK"), (2, "S4"), (3, "ST")]
    assert followed(scene, "S3 LJ C4 D7", trick, size=15) == "LJ"


def test_keeps_pairs_together(scene):
    trick = [(1, "HA"), (2, "H4"), (3, "H7")]
    assert followed(scene, "H3 H3 H6 C4 S3", trick, size=15) == "H6"


def test_answers_a_pair_with_the_pair_that_is_owed(scene):
    trick = [(1, "HA HA"), (2, "H4 H6"), (3, "H7 H8")]
    assert followed(scene, "H3 H9 H9 C4 S3", trick, size=15) == "H9 H9"


def test_keeps_its_last_strong_card_for_the_last_trick(scene):
    trick = [(1, "S5"), (2, "S4"), (3, "S7")]
    assert followed(scene, "S3 BJ", trick, size=2) == "S3"


def test_an_overruff_that_threatens_costs_no_points(scene):
    """Seat 1 showed that it has no hearts and holds trumps: the ten does not go on the partner's ace."""
    seen = [[(0, "H9"), (1, "S5"), (2, "H4"), (3, "H6")]]
    trick = [(2, "HA"), (3, "H7")]
    assert followed(scene, "H3 HT C4 S3", trick, tricks=seen, size=15) == "H3"


def test_discards_from_the_shortest_suit(scene):
    trick = [(1, "HA"), (2, "H4"), (3, "H7")]
    assert followed(scene, "C4 D6 D7 D8 S4 S6", trick, size=15) == "C4"
