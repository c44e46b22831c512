"""Option level_gap: the place that the level leaves in a suit stays open; in both engines, worked by hand."""

from itertools import combinations

import pytest
from support.cards import RANKS, cards, names, order
from support.engines import ENGINES
from support.worked import legal, owed, shape

from engine_ext.codes import Adjacency, Verdict


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def custom(engine, level, trump="S", **options):
    return order(ENGINES[engine].Rules(**options), level, trump)


TWOS = {"permanent_twos": True}
BY_PRINT = {"adjacency": Adjacency.PRINTED_RANK}


@pytest.mark.parametrize(
    ("options", "level", "trump", "some", "joined", "apart"),
    [
        # 6 and 8 at level 7, in a side suit, in trump and in no-trump
        ({}, "7", "S", "H6 H6 H8 H8", ["2x2"], ["2x1", "2x1"]),
        ({}, "7", "S", "S6 S6 S8 S8", ["2x2"], ["2x1", "2x1"]),
        ({}, "7", "NT", "S6 S6 S8 S8", ["2x2"], ["2x1", "2x1"]),
        ({}, "7", "S", "H5 H5 H6 H6 H8 H8 H9 H9", ["2x4"], ["2x2", "2x2"]),
        ({"decks": 3}, "7", "S", "H6 H6 H6 H8 H8 H8 H9 H9 H9", ["3x3"], ["3x2", "3x1"]),
        ({}, "K", "S", "SQ SQ SA SA HK HK SK SK LJ LJ", ["2x5"], ["2x4", "2x1"]),
        # at an end there is no gap
        ({}, "2", "S", "S3 S3 S4 S4", ["2x2"], ["2x2"]),
        ({}, "2", "S", "SA SA H2 H2 S2 S2 LJ LJ", ["2x4"], ["2x4"]),
        ({}, "A", "S", "SQ SQ SK SK HA HA SA SA LJ LJ BJ BJ", ["2x6"], ["2x6"]),
        ({}, "3", "S", "H2 H2 H4 H4", ["2x2"], ["2x1", "2x1"]),
        (TWOS, "3", "S", "S4 S4 S2 S2", ["2x1", "2x1"], ["2x1", "2x1"]),
        (TWOS, "3", "S", "S4 S4 S5 S5", ["2x2"], ["2x2"]),
        (TWOS, "4", "S", "H3 H3 H5 H5", ["2x2"], ["2x1", "2x1"]),
        (TWOS, "4", "S", "SA SA H2 H2 S2 S2 H4 H4 S4 S4", ["2x5"], ["2x5"]),
        (TWOS, "2", "S", "S3 S3 S4 S4", ["2x2"], ["2x2"]),
        # of two colours each is a suit
        ({"two_colour": True}, "7", "B", "H6 D6 H8 D8", ["2x2"], ["2x1", "2x1"]),
        ({"two_colour": True}, "7", "B", "S6 C6 S8 C8", ["2x2"], ["2x1", "2x1"]),
        # D3: the level stands at its place in trump, and is missing in side suits
        (BY_PRINT, "7", "S", "S6 S6 S8 S8", ["2x1", "2x1"], ["2x1", "2x1"]),
        (BY_PRINT, "7", "S", "S6 S6 S7 S7 S8 S8", ["2x3"], ["2x3"]),
        (BY_PRINT, "7", "S", "H6 H6 H8 H8", ["2x2"], ["2x1", "2x1"]),
        (BY_PRINT | TWOS, "3", "S", "H2 H2 H3 H3", ["2x2"], ["2x2"]),
    ],
)
def test_the_level_may_leave_a_gap(engine, options, level, trump, some, joined, apart):
    options = {"decks": 2} | options
    assert shape(custom(engine, level, trump, **options), some) == joined
    assert shape(custom(engine, level, trump, **options, level_gap=True), some) == apart


@pytest.mark.parametrize("level", RANKS)
def test_with_the_gap_neighbours_are_those_that_are_printed_so(engine, level):
    ranks = [rank for rank in RANKS if rank != level]
    for suit, trump in [("H", "S"), ("S", "S"), ("D", "NT")]:
        in_order = custom(engine, level, trump, decks=2, level_gap=True)
        for low, high in combinations(ranks, 2):
            beside = abs(RANKS.index(low) - RANKS.index(high)) == 1
            some = f"{suit}{low} {suit}{low} {suit}{high} {suit}{high}"
            assert shape(in_order, some) == (["2x2"] if beside else ["2x1", "2x1"]), (some, trump)


def test_what_follows_from_the_gap(engine):
    """A lead and a follow, a throw, a trick and its multiplier, at level 7."""
    without, gap = (custom(engine, "7", decks=2, level_gap=on) for on in (False, True))
    lead, hand = "HQ HQ HK HK", "H6 H6 H8 H8 H3 H3 HT"
    assert (owed(without, lead, hand), owed(gap, lead, hand)) == ((((2, 2),),), (((2, 1), (2, 1)),))
    for play, before, now in [
        ("H6 H6 H8 H8", True, True),
        ("H6 H6 H3 H3", False, True),
        ("H6 H6 H8 HT", False, False),
    ]:
        assert (legal(without, lead, hand, play), legal(gap, lead, hand, play)) == (before, now), play
    # Led, they are two pairs, each of which is answered and may be beaten alone.
    pairs, other = "H6 H6 H8 H8", [cards("HT HT"), b"", b""]
    assert owed(gap, pairs, "HT HT HJ HJ H3") == (((2, 1),), ((2, 1),))
    assert names(without.throw(cards(pairs), other).played) == pairs.split()
    assert names(gap.throw(cards(pairs), other).played) == ["H6", "H6"]
    # Held, they beat no thrown tractor.
    throw, holder = cards("H3 H3 H4 H4 HA"), [b"", cards(pairs), b""]
    assert names(without.throw(throw, holder).played) == ["H3", "H3", "H4", "H4"]
    assert gap.throw(throw, holder) == (Verdict.OK, throw, 0)
    for follow in (pairs, "S6 S6 S8 S8"):
        plays = [cards("H3 H3 H4 H4"), cards(follow)]
        assert (without.winner(plays), gap.winner(plays)) == (1, 0)
    assert (without.multiplier([cards(pairs)]), gap.multiplier([cards(pairs)])) == (16, 4)


def test_the_gap_sets_rules_apart(engine):
    rules = ENGINES[engine].Rules
    assert rules(decks=2, level_gap=True) == rules(decks=2, level_gap=True) != rules(decks=2)
    assert rules(decks=2, level_gap=False) == rules(decks=2)
