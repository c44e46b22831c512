"""Sentences of the rules one by one, in both engines; the sources' own examples are among the judge cases."""

import pytest
from support.cards import cards, names, order
from support.engines import ENGINES, rules_of
from support.worked import legal, owed, shape

from engine_ext.codes import Adjacency, ForcedComponent, Multiplier, ThrowPolicy, Verdict


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def deal(engine, preset, level="T", trump="S"):
    return order(rules_of(engine, preset), level, trump)


def custom(engine, level="T", trump="S", **options):
    return order(ENGINES[engine].Rules(**options), level, trump)


# §2


@pytest.mark.parametrize(
    ("preset", "trump", "some", "expected"),
    [
        ("classic-2d", "S", "HT HT DT DT SA SA", ["2x2", "2x1"]),
        ("classic-2d", "S", "SK SK SA SA DT DT ST ST LJ LJ BJ BJ", ["2x6"]),
        ("classic-2d-fixed2", "S", "SA SA H2 H2 S2 S2 HT HT ST ST LJ LJ", ["2x6"]),
        ("classic-2d-fixed2", "S", "S3 S3 S2 S2", ["2x1", "2x1"]),
        ("classic-2d-fixed2", "NT", "H2 H2 HT HT LJ LJ BJ BJ", ["2x4"]),
        ("classic-2d-fixed2", "NT", "H2 H2 S2 S2 HT HT ST ST LJ LJ", ["2x3", "2x2"]),
        ("classic-2d", "NT", "ST ST LJ LJ", ["2x2"]),
        ("tournament-2d", "NT", "ST ST LJ LJ", ["2x1", "2x1"]),
        ("tournament-2d", "S", "LJ LJ BJ BJ", ["2x2"]),
        ("tournament-2d", "S", "HT HT ST ST", ["2x2"]),
    ],
)
def test_adjacent_tiers(engine, preset, trump, some, expected):
    assert shape(deal(engine, preset, trump=trump), some) == expected


def test_at_level_two_the_level_tiers_stand_for_the_twos(engine):
    in_order = deal(engine, "classic-2d-fixed2", level="2")
    assert shape(in_order, "SA SA H2 H2 S2 S2 LJ LJ") == ["2x4"]
    assert in_order.winner([cards("SA"), cards("H2"), cards("S2"), cards("D2")]) == 2


@pytest.mark.parametrize(
    ("level", "some", "expected"),
    [
        ("3", "SQ SQ SK SK SA SA", ["2x3"]),
        ("3", "SA SA S2 S2 S3 S3 S4 S4", ["2x4"]),
        ("3", "SK SK SA SA S2 S2", ["2x2", "2x1"]),
        ("3", "S3 S3 H3 H3", ["2x1", "2x1"]),
        ("3", "SA SA H2 H2", ["2x1", "2x1"]),
        ("3", "H2 H2 H2 H3 H3 H3", ["3x2"]),
        ("A", "HA HA H2 H2", ["2x2"]),
        ("K", "SK SK LJ LJ BJ BJ", ["2x2", "2x1"]),
    ],
)
def test_printed_rank_in_trump(engine, level, some, expected):
    assert shape(deal(engine, "classic-4d", level), some) == expected


def test_printed_runs_compare_by_top_rank_then_trump_suit(engine):
    in_order = deal(engine, "classic-4d", "3")
    falling = ["LJ LJ BJ BJ", "SK SK SA SA", "S3 S3 S4 S4", "S2 S2 S3 S3", "H2 H2 H3 H3", "SA SA S2 S2"]
    plays = [cards(play) for play in falling]
    for place, play in enumerate(plays):
        lower = plays[place + 1 :] or [play]
        assert in_order.winner([lower[0], play]) == (1 if lower[0] != play else 0)
        assert in_order.winner([play, *lower]) == 0
    assert in_order.winner([cards("H2 H2 H3 H3"), cards("D2 D2 D3 D3")]) == 0
    assert in_order.winner([cards("D2 D2 D3 D3"), cards("H2 H2 H3 H3")]) == 0


# §3


def test_wider_tractors_are_larger_than_longer_ones(engine):
    in_order = deal(engine, "classic-3d")
    assert shape(in_order, "H3 H3 H4 H4 H5 H5 H8 H8 H8 H9 H9 H9") == ["3x2", "2x3"]
    assert shape(in_order, "H3 H3 H4 H4 HK HK HK H7") == ["2x2", "3x1", "1x1"]


def test_the_longest_run_is_cut_first(engine):
    # KA and A2 by printed rank share the aces: the higher of two equally long runs is cut.
    assert shape(deal(engine, "classic-4d", "5"), "SK SK SA SA S2 S2") == ["2x2", "2x1"]
    higher, pair = deal(engine, "classic-4d", "5").shape(cards("SK SK SA SA S2 S2"))
    assert (names(higher.cards), names(pair.cards)) == (["SK", "SK", "SA", "SA"], ["S2", "S2"])


# §4


def test_equal_tops_force_the_fewer_cards_then_suit_order(engine):
    in_order = deal(engine, "classic-2d")
    others = [cards("LJ LJ"), b"", b""]
    assert names(in_order.throw(cards("HT HT DT"), others).played) == ["DT"]
    assert names(in_order.throw(cards("DT CT HT"), others).played) == ["HT"]


def test_equals_do_not_beat_a_throw(engine):
    in_order = deal(engine, "classic-2d")
    assert in_order.throw(cards("HK HK HQ"), [cards("HQ"), b"", b""]).played == cards("HQ HK HK")


def test_the_lowest_component_may_be_forced_unbeaten(engine):
    in_order = deal(engine, "closed-2d")
    throw = in_order.throw(cards("HK H4 H4"), [b"", b"", cards("HA H3")])
    assert (names(throw.played), throw.blockers) == (["H4", "H4"], 0b100)


def test_a_wider_group_is_broken_to_beat_a_throw(engine):
    in_order = deal(engine, "bigkitty-4d")
    throw = in_order.throw(cards("HA H4 H4"), [b"", cards("H5 H5 H5"), b""])
    assert (names(throw.played), throw.blockers) == (["H4", "H4"], 0b010)


def test_throw_policies(engine):
    held, void = [cards("H3"), b"", cards("C3")], [cards("C3")] * 3
    lead = cards("HA HK")
    for policy, with_suit, without in [
        (ThrowPolicy.STANDARD, Verdict.OK, Verdict.OK),
        (ThrowPolicy.ONLY_WHEN_OTHERS_VOID, Verdict.THROW_NOT_ALLOWED, Verdict.OK),
        (ThrowPolicy.NOT_WHEN_OTHERS_VOID, Verdict.OK, Verdict.THROW_NOT_ALLOWED),
        (ThrowPolicy.NONE, Verdict.THROW_NOT_ALLOWED, Verdict.THROW_NOT_ALLOWED),
    ]:
        in_order = custom(engine, decks=2, throws=policy)
        assert in_order.throw(lead, held).verdict == with_suit
        assert in_order.throw(lead, void).verdict == without
        assert in_order.throw(cards("HK HK"), held).verdict == Verdict.OK


def test_the_smallest_component_may_be_forced(engine):
    lead, others = cards("H9 H4 H4"), [cards("HK HK"), b"", b""]
    lowest = custom(engine, decks=2)
    smallest = custom(engine, decks=2, forced_component=ForcedComponent.SMALLEST)
    assert names(lowest.throw(lead, others).played) == ["H4", "H4"]
    assert names(smallest.throw(lead, others).played) == ["H9"]


# §5


def test_a_step_with_two_ways_leaves_the_better_one_for_the_next_component(engine):
    in_order = deal(engine, "classic-4d")
    lead = "H8 H8 H9 H9 HJ HJ HK HK HA HA"
    hand = "H4 H4 H4 H5 H5 H5 H6 H6 H3 H7 HQ"
    # 445566 would leave no pair for the second tractor, 444555 leaves one.
    assert owed(in_order, lead, hand) == (((3, 2),), ((2, 1),))
    assert legal(in_order, lead, hand, "H4 H4 H4 H5 H5 H5 H6 H6 H3 H7")
    assert not legal(in_order, lead, hand, "H4 H4 H5 H5 H6 H6 H4 H3 H7 HQ")


def test_the_larger_component_goes_first_even_if_the_rest_suffers(engine):
    in_order = deal(engine, "classic-3d")
    lead = "HA HA HK HK H9 H9 H9"
    # 66 77 and 77 88 both answer the tractor; 666 stays whole with the second.
    hand = "H6 H6 H6 H7 H7 H8 H8 H3 H4"
    assert owed(in_order, lead, hand) == (((2, 2),), ((3, 1),))
    assert legal(in_order, lead, hand, "H7 H7 H8 H8 H6 H6 H6")
    assert not legal(in_order, lead, hand, "H6 H6 H7 H7 H8 H8 H3")


def test_generic_ladders_by_preference(engine):
    lead, hand = "H9 H9 H9 HJ HJ HJ", "H3 H3 H4 H4 H6 H6 H6 H8 H8 H8 HK"
    tractors_first = custom(engine, decks=3)
    width_first = custom(engine, decks=3, preference=1)
    assert owed(tractors_first, lead, hand) == (((2, 2), (2, 1)),)
    assert owed(width_first, lead, hand) == (((3, 1), (3, 1)),)


def test_three_by_three_takes_the_wider_tractor_before_the_longer(engine):
    lead = "H9 H9 H9 HJ HJ HJ HQ HQ HQ"
    hand = "H2 H2 H3 H3 H4 H4 H6 H6 H6 H7 H7 H7"
    assert owed(custom(engine, decks=3), lead, hand) == (((3, 2), (2, 1)),)


def test_a_printed_step_is_the_whole_obligation(engine):
    # D7: three pairs under "2,2,1,1" (000 §3.3.3).
    in_order = deal(engine, "classic-3d")
    lead, hand = "H9 H9 H9 HJ HJ HJ", "H3 H3 H5 H5 H7 H7 HK HA"
    assert owed(in_order, lead, hand) == (((2, 1), (2, 1)),)
    assert legal(in_order, lead, hand, "H3 H3 H5 H5 HK HA")


def test_groups_may_be_kept_whole_by_the_hand_and_broken_by_the_play(engine):
    in_order = deal(engine, "closed-3d")
    lead, hand = "HA HA HK HK", "H5 H5 H5 H6 H6 H6 H8 H8 H3"
    assert owed(in_order, lead, hand) == (((2, 1),),)
    assert legal(in_order, lead, hand, "H8 H8 H3 H5")
    assert legal(in_order, lead, hand, "H5 H5 H6 H6")
    assert legal(in_order, lead, hand, "H5 H5 H5 H6")
    assert not legal(in_order, lead, hand, "H5 H6 H8 H3")


def test_keeping_whole_goes_by_the_component(engine):
    in_order = deal(engine, "closed-3d")
    # The thrown triple asks for the triple; the thrown pair does not ask for a second triple to be broken.
    lead, hand = "HA HA HA H9 H9", "H5 H5 H5 H7 H7 H7 H3 H4"
    assert owed(in_order, lead, hand) == (((3, 1),), ())
    assert legal(in_order, lead, hand, "H5 H5 H5 H3 H4")
    assert not legal(in_order, lead, hand, "H5 H5 H7 H7 H3")


def test_all_of_a_short_suit_is_played_and_the_rest_is_free(engine):
    in_order = deal(engine, "classic-2d")
    lead, hand = "HA HA HK HK", "H3 H4 H4 C3 C3 D5"
    assert owed(in_order, lead, hand) == ()
    assert legal(in_order, lead, hand, "H3 H4 H4 D5")
    lead = in_order.lead(cards(lead))
    assert lead.check_cards(cards(hand), cards("H4 H4 C3 C3")) == Verdict.MUST_FOLLOW_SUIT


def test_the_first_reason_that_applies(engine):
    lead = deal(engine, "classic-2d").lead(cards("HA HA"))
    hand = cards("H3 H4 H4 C3")
    for play, verdict in [
        ("H3", Verdict.WRONG_COUNT),
        ("S3 S3", Verdict.NOT_IN_HAND),
        ("H3 C3", Verdict.MUST_FOLLOW_SUIT),
        ("H3 H4", Verdict.MUST_FOLLOW_SHAPE),
        ("H4 H4", Verdict.OK),
    ]:
        assert lead.check_cards(hand, cards(play)) == verdict


# §6


@pytest.mark.parametrize(
    ("preset", "plays", "winner"),
    [
        # a wider or longer group may serve for a smaller one
        ("classic-3d", ["H4 H4 H8", "S5 S5 S5"], 1),
        ("bigkitty-4d", ["H4 H4 H8", "S5 S5 S5"], 0),
        ("classic-2d", ["H4 H4 H9 H9", "S5 S5 S6 S6"], 1),
        ("bigkitty-4d", ["H4 H4 H5 H5 H9 H9", "S5 S5 S6 S6 S7 S7"], 1),
        # the wider of two answers wins, then the top (classic-4d)
        ("classic-4d", ["H4 H4 H5 H5", "H9 H9 HJ HJ", "H6 H6 H6 H6", "H8 H8 H8 H8"], 3),
        ("classic-4d", ["H4 H4 H5 H5", "H9 H9 H9 H9", "S3 S3 S4 S4"], 2),
        ("classic-4d", ["H4 H4 H5 H5 H6 H6", "H9 H9 H9 HJ HJ HJ", "HJ HJ HQ HQ HK HK"], 1),
        ("classic-2d", ["H4 H4 H5 H5", "H9 H9 HK HK"], 0),
        # only the largest component counts, at its highest cut
        ("classic-3d", ["H4 H4 H3", "S5 S5 SA", "S6 S6 S7", "S4 S4 S4"], 2),
        # the highest card, in closed-* and on a throw
        ("closed-3d", ["HA H4 H4", "S9 S9 S3", "S8 S8 SA"], 2),
        ("classic-3d", ["HA H4 H4", "S9 S9 S3", "S8 S8 SA"], 1),
        # a trump lead: trumps follow, nothing ruffs
        ("classic-2d", ["S4 S4", "HK HK", "S9 S9"], 2),
    ],
)
def test_who_wins(engine, preset, plays, winner):
    assert deal(engine, preset).winner([cards(play) for play in plays]) == winner


# §8


@pytest.mark.parametrize(
    ("multiplier", "lead", "expected"),
    [
        (Multiplier.POWER, "H4 H4 H4 H4 H5 H5 H5 H5", 64),
        (Multiplier.POWER, "H4 H4 H4 H9 H9", 8),
        (Multiplier.TITANIC, "H4 H4 H4 H5 H5 H5 H6 H6 H6", 54),
        (Multiplier.TITANIC, "H4 H4 H4 H8 H8 H9 H9 HJ HJ", 6),
        (Multiplier.TITANIC, "H8 H8 H9 H9 HJ HJ H3", 16),
        (Multiplier.TITANIC, "H4 H4 H9", 4),
        (Multiplier.TITANIC, "H4 H4 H4 H4", 8),
        (Multiplier.CLOSED, "H4 H4 H4 H4", 8),
        (Multiplier.CLOSED, "H4 H4 H5 H5 H6 H6", 8),
        (Multiplier.CLOSED, "H4 H4 H4 H5 H5 H5", 16),
        (Multiplier.CLOSED, "H4 H4 H4 H4 H5 H5 H5 H5", 32),
        (Multiplier.PAIRS, "H4 H4 H5 H5 H6 H6 H9", 12),
        (Multiplier.PAIRS, "H4 H9", 2),
        (Multiplier.LAST_TRICK, "H4 H9", 1),
        (Multiplier.LAST_TRICK, "H4 H4 H4 H5 H5 H5 H8 H8 H9 H9 HJ HJ HQ HQ", 6),
    ],
)
def test_multipliers(engine, multiplier, lead, expected):
    assert custom(engine, decks=4, multiplier=multiplier).multiplier([cards(lead)]) == expected


def test_the_multiplier_follows_what_answers_the_lead(engine):
    # D21: the ruff contains a tractor, but it answers a pair and two singles.
    in_order = custom(engine, decks=2, multiplier=Multiplier.POWER)
    assert in_order.multiplier([cards("H4 H4 H8 HK"), cards("S5 S5 S6 S6")]) == 4
    # A quad that eats a tractor of four counts as what it is.
    wider = custom(engine, decks=4, multiplier=Multiplier.TITANIC, wider_beats=True)
    assert wider.multiplier([cards("H4 H4 H5 H5"), cards("H9 H9 H9 H9")]) == 8
    assert wider.multiplier([cards("H4 H4 H5 H5"), cards("H9 H9 HJ HJ")]) == 8
    assert wider.multiplier([cards("H4 H4 H5 H5 H6 H6"), cards("H9 H9 H9 HJ HJ HJ")]) == 18


def test_points(engine):
    assert deal(engine, "classic-2d").points(cards("H5 HT HK LJ BJ HA S4")) == 25


def test_printed_rank_without_permanent_twos_joins_no_off_suit(engine):
    in_order = custom(engine, level="3", decks=3, adjacency=Adjacency.PRINTED_RANK)
    assert shape(in_order, "S2 S2 S3 S3") == ["2x2"]
    assert shape(in_order, "H3 H3 D3 D3") == ["2x1", "2x1"]
