"""A hand built so that it can follow every component in kind owes just that: no packing is overlooked.

The hands are long and tight, where the search for a packing prunes most.
"""

import random
from collections import defaultdict

import pytest
from support.cards import counts, names
from support.engines import core, rules_of

from engine_ext.codes import CARDS, NO_TRUMP, TRUMP, Verdict

ALL = 1_000_000
LEADS = 200
TRIES = 40

RULES = {
    "classic-3d": rules_of("core", "classic-3d"),
    "classic-4d": rules_of("core", "classic-4d"),
    "bigkitty-4d": rules_of("core", "bigkitty-4d"),
    "generic": core.Rules(decks=4),
    "generic, wider first": core.Rules(decks=4, preference=1, permanent_twos=True),
    "printed ranks": core.Rules(decks=4, adjacency=1),
}
WEIGHTS = ((1, 1, 1, 1, 1), (0, 0, 2, 1, 1), (1, 0, 3, 1, 0), (1, 0, 1, 2, 1))


def places(deal, decks):
    """Where each shape can lie in an empty trump suit: {(width, length): [cards, ...]}."""
    whole = bytes(decks if deal.suit(card) == TRUMP else 0 for card in range(CARDS))
    by_shape = defaultdict(list)
    for play in deal.leads(whole, ALL).plays:
        (part,) = deal.shape(play)
        by_shape[part.width, part.length].append(play)
    return by_shape


def random_lead(rng, deal, decks):
    weights = rng.choice(WEIGHTS)
    kinds = sorted((card for card in range(CARDS) if deal.suit(card) == TRUMP), key=deal.tier)
    lead = [card for card in kinds for _ in range(min(decks, rng.choices(range(5), weights)[0]))]
    return bytes(lead[: rng.randint(4, 44)])


def placed(rng, shapes, by_shape, decks):
    """Counts of cards that hold all shapes side by side, or None when no room was found."""
    have = [0] * CARDS
    for shape in shapes:
        for _ in range(TRIES):
            cards = rng.choice(by_shape[shape])
            if all(have[card] + cards.count(card) <= decks for card in set(cards)):
                break
        else:
            return None
        for card in cards:
            have[card] += 1
    return have


@pytest.mark.parametrize("name", RULES)
def test_what_can_be_followed_in_kind_is_owed_in_kind(name):
    rules, rng, met = RULES[name], random.Random(name), 0
    for level, trump in ((0, 0), (1, 1), (12, 2), (8, NO_TRUMP)):
        deal = rules.order(level, trump)
        by_shape = places(deal, rules.decks)
        for _ in range(LEADS):
            lead = deal.lead(random_lead(rng, deal, rules.decks) or bytes([53]))
            shapes = [(part.width, part.length) for part in lead.components]
            wide = [shape for shape in shapes if shape[0] > 1]
            have = placed(rng, wide, by_shape, rules.decks)
            if have is None:
                continue
            spare = [
                card
                for card in range(CARDS)
                if deal.suit(card) == TRUMP
                for _ in range(rules.decks - have[card])
            ]
            rng.shuffle(spare)
            singles = lead.size - sum(have)
            if len(spare) <= singles:
                continue
            play = counts(card for card in range(CARDS) for _ in range(have[card]))
            play = bytes(map(sum, zip(play, counts(spare[:singles]), strict=True)))
            more = counts(spare[singles : singles + rng.randint(1, 6)])
            hand = bytes(map(sum, zip(play, more, strict=True)))
            where = (level, trump, names(lead.cards), list(hand))
            assert lead.check(hand, play) == Verdict.OK, where
            assert lead.owed(hand) == tuple((shape,) if shape[0] > 1 else () for shape in shapes), where
            met += 1
    assert met >= 40
