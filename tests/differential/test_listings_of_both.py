"""Lists of legal plays: the core lists what the twin's predicate allows, no more and no less."""

import random
from itertools import islice

import pytest
from support import shaped
from support.cards import cards, counts, expand
from support.differential import told
from support.engines import core, twin
from support.mixes import OPTIONS, plain_sizes, throw_sizes

from engine_ext.codes import CARDS, Verdict

ALL = 100_000
"""A cap that no listing here reaches."""


@pytest.fixture(params=OPTIONS)
def pair(request):
    options = OPTIONS[request.param]
    return random.Random(f"listings {request.param}"), core.Rules(**options), twin.Rules(**options)


def shaped_hands(rng, rules, most):
    """(deal, lead, hand) with a hand of at most so many cards."""
    sizes = [(size,) for size in plain_sizes(rules)] + throw_sizes(rules)
    while True:
        some = rng.choice(sizes)
        made = shaped.make_follow(rng, rules, some, rng.randrange(len(rules.ladder(some[0]))))
        if made is not None and len(made[2]) <= most:
            yield made


def test_follows_are_all_legal_plays(pair):
    rng, core_rules, twin_rules = pair
    for deal, lead, hand in islice(shaped_hands(rng, twin_rules, 12), 40):
        order = core_rules.order(deal.order.level, deal.order.trump)
        expected = deal.order.lead(lead).follows(counts(hand), cap=ALL)
        got = order.lead(lead).follows(counts(hand), cap=ALL)
        where = told(deal.order, lead=lead, hand=hand)
        assert got.complete, where
        assert len(set(got.plays)) == len(got.plays), where
        assert set(got.plays) == set(expected.plays), where
        assert got.plays or len(hand) < len(lead), where


def test_a_cap_cuts_and_never_invents(pair):
    rng, core_rules, twin_rules = pair
    cut = 0
    for deal, lead, hand in islice(shaped_hands(rng, twin_rules, 30), 40):
        order = core_rules.order(deal.order.level, deal.order.trump)
        mine, other = deal.order.lead(lead), order.lead(lead)
        few = other.follows(counts(hand), cap=3)
        more = other.follows(counts(hand), cap=64)
        cut += not few.complete
        assert len(few.plays) <= 3
        assert few.complete == (more.complete and len(more.plays) <= 3)
        where = told(deal.order, lead=lead, hand=hand)
        for play in more.plays:
            assert mine.check(counts(hand), counts(play)) == Verdict.OK, where
            assert play == bytes(sorted(play))
        assert more.plays or len(hand) < len(lead), where
    assert cut


def test_leads_are_all_single_components(pair):
    rng, core_rules, twin_rules = pair
    for _ in range(12):
        deal = shaped.random_deal(rng, twin_rules)
        hand = expand(counts(dense_hand(rng, deal)))
        order = core_rules.order(deal.order.level, deal.order.trump)
        got, expected = order.leads(counts(hand), cap=ALL), deal.order.leads(counts(hand), cap=ALL)
        assert got.complete
        assert expected.complete
        assert len(set(got.plays)) == len(got.plays)
        assert set(got.plays) == set(expected.plays), told(deal.order, hand=hand)
        few = order.leads(counts(hand), cap=4)
        assert few.plays == got.plays[:4]
        assert few.complete == (len(got.plays) <= 4)
        larger = [(len(shape) == 1 and shape[0].length > 1) for shape in map(deal.order.shape, got.plays)]
        assert larger == sorted(larger, reverse=True), "tractors come first"


def dense_hand(rng, deal):
    """Up to sixteen cards, many of them groups of one suit, with some of the others."""
    held = shaped.lay(rng, deal, [(rng.choice((1, 2)), 1)] * rng.randint(1, 6), range(len(deal.kinds)))
    own = shaped.cards_of(rng, deal, held) if held else b""
    return own + bytes(rng.sample([c for c in range(CARDS) if deal.order.suit(c) != deal.suit], 4))


def test_a_listing_of_a_full_cap_is_complete():
    for engine in (core, twin):
        lead = engine.Rules(decks=1).order(8, 0).lead(cards("HK"))
        assert lead.follows(counts(cards("H3 H4 H5")), cap=3).complete
        assert not lead.follows(counts(cards("H3 H4 H5")), cap=2).complete
