"""The twin against brute force on tiny hands, for every preset and some mixed options."""

import random
from dataclasses import fields
from itertools import product
from math import prod

import pytest
from support import shaped
from support.cards import RANKS, cards, counts, names
from support.differential import told
from support.mixes import OPTIONS, plain_sizes, throw_sizes
from support.oracle import Oracle

from engine_ext import reference as twin
from engine_ext.codes import Verdict

LEAD = 7
"""Most cards of a lead."""
HAND = 9
"""Most cards of the led suit in a hand; brute force tries all their groupings."""
DEFAULTS = {field.name: field.default for field in fields(twin.Rules) if field.init and field.name != "decks"}


def oracle_for(rules, options, order):
    trumps = ("B", "R", "", "", "NT") if rules.two_colour else ("S", "H", "C", "D", "NT")
    full = DEFAULTS | options
    full["ladders"] = full["ladders"] or {}
    return Oracle(full, RANKS[order.level], trumps[order.trump])


def tiny_sizes(rng, rules):
    """Component sizes of a small lead."""
    sizes = [(size,) for size in plain_sizes(rules)] + throw_sizes(rules)
    return rng.choice([size for size in sizes if sum(map(prod, size)) <= LEAD])


def tiny(rng, rules, how_many, make):
    """So many results of ``make`` that are not None."""
    found = 0
    for _ in range(how_many * 80):
        made = make(rng, rules, tiny_sizes(rng, rules))
        if made is not None:
            found += 1
            yield made
            if found == how_many:
                return
    raise AssertionError(f"only {found} of {how_many} positions")


@pytest.fixture(params=OPTIONS)
def variant(request):
    options = OPTIONS[request.param]
    return random.Random(f"oracle {request.param}"), options, twin.Rules(**options)


def test_shapes_are_those_of_brute_force(variant):
    rng, options, rules = variant
    for deal, play in tiny(rng, rules, 60, any_cards_of_a_suit):
        oracle = oracle_for(rules, options, deal.order)
        expected = [(w, length, cards(part)) for w, length, _, part in oracle.shape(names(play))]
        assert [tuple(part) for part in deal.order.shape(play)] == expected, names(play)


def any_cards_of_a_suit(rng, rules, sizes):
    deal = shaped.random_deal(rng, rules)
    play = shaped.make_answer(rng, deal, sizes, rng.randint(1, 8))
    return (deal, play) if len({deal.order.suit(card) for card in play}) == 1 else None


def test_follows_are_those_of_brute_force(variant):
    rng, options, rules = variant
    verdicts = set()
    for deal, hand, lead in tiny(rng, rules, 80, tiny_follow):
        oracle = oracle_for(rules, options, deal.order)
        for play in shaped.make_plays(rng, deal, lead.cards, hand, lead.owed(counts(hand)), 4):
            expected = oracle.verdict(names(lead.cards), names(hand), names(play))
            got = Verdict(lead.check_cards(hand, play)).name.lower()
            verdicts.add(got)
            assert got == expected, told(deal.order, lead=lead.cards, hand=hand, play=play)
    assert {"ok", "must_follow_suit"} <= verdicts
    assert "must_follow_shape" in verdicts or rules.copies == 1


def tiny_follow(rng, rules, sizes):
    step = rng.randrange(len(rules.ladder(sizes[0])))
    made = shaped.make_follow(rng, rules, sizes, step)
    if made is None:
        return None
    deal, lead, hand = made
    own = sum(deal.order.suit(card) == deal.suit for card in hand)
    # A throw has many vectors to try, and a hand as short as the lead owes no shape.
    if (
        not hand
        or own > HAND
        or (own <= len(lead) and rng.random() < 0.8)
        or max(map(hand.count, hand)) > rules.decks
    ):
        return None
    return deal, hand, deal.order.lead(lead)


def test_winners_are_those_of_brute_force(variant):
    rng, options, rules = variant
    winners = set()
    for deal, plays in tiny(rng, rules, 80, shaped.make_trick):
        oracle = oracle_for(rules, options, deal.order)
        winner = deal.order.winner(plays)
        winners.add(winner)
        assert winner == oracle.winner([names(play) for play in plays]), [names(play) for play in plays]
    assert winners == {0, 1, 2, 3}


def test_throws_are_those_of_brute_force(variant):
    rng, options, rules = variant
    failed = 0
    for deal, lead, others in tiny(rng, rules, 60, shaped.make_throw):
        oracle = oracle_for(rules, options, deal.order)
        expected, blockers = oracle.throw(names(lead), [names(hand) for hand in others])
        throw = deal.order.throw(lead, others)
        got = Verdict(throw.verdict).name.lower() if throw.verdict else sorted(names(throw.played))
        assert got == expected, (names(lead), [names(hand) for hand in others])
        assert throw.blockers == sum(1 << seat for seat in blockers)
        failed += bool(blockers)
    assert failed or rules.throws in (1, 3)


def test_the_order_is_that_of_the_text(variant):
    rng, options, rules = variant
    for _ in range(10):
        order = shaped.random_order(rng, rules)
        oracle = oracle_for(rules, options, order)
        known = [(order.suit(card), order.tier(card)) for card in range(54)]
        expected = [(oracle.suit(name), oracle.value(name)) for name in names(range(54))]
        for one, two in product(range(54), repeat=2):
            together = known[one][0] == known[two][0]
            assert together == (expected[one][0] == expected[two][0])
            if together:
                assert (known[one][1] > known[two][1]) == (expected[one][1] > expected[two][1])
