"""The core's lists against its own predicate, by brute force on small hands, and the order promised."""

import random
from itertools import combinations

import pytest
from support.cards import cards, counts, order
from support.engines import PRESET_NAMES, core, rules_of

from engine_ext.codes import CARDS, NO_TRUMP, TRUMP, Verdict

ALL = 100_000
"""A cap that no listing here reaches."""
ROUNDS = 25

MIXED = {
    "two colours, two decks": {"decks": 2, "two_colour": True},
    "printed ranks, kept whole": {
        "decks": 3,
        "adjacency": 1,
        "permanent_twos": True,
        "keep_groups_whole": True,
    },
    "four decks, kept whole": {"decks": 4, "keep_groups_whole": True},
    "a gap at the level": {"decks": 3, "level_gap": True},
}


@pytest.fixture(params=[*PRESET_NAMES, *MIXED])
def position(request):
    """Makes random orders and cards of one rule set."""
    name = request.param
    rules = core.Rules(**MIXED[name]) if name in MIXED else rules_of("core", name)
    return Position(
        rules, random.Random(name), two_colour=name in ("classic-1d-2c", "two colours, two decks")
    )


class Position:
    def __init__(self, rules, rng, *, two_colour):
        self.rules, self.rng = rules, rng
        self.trumps = [0, 1, NO_TRUMP] if two_colour else range(5)

    def new_order(self):
        return self.rules.order(self.rng.choice([0, 1, 8, 12, 5]), self.rng.choice(self.trumps))

    def pile(self, deal, suit, size):
        """At most so many cards of a suit, in groups side by side."""
        kinds = sorted((c for c in range(CARDS) if deal.suit(c) == suit), key=deal.tier)
        wide = min(len(kinds), self.rng.randint(3, 8))
        first = self.rng.randint(0, len(kinds) - wide)
        pile = [
            card for card in kinds[first : first + wide] for _ in range(self.rng.randint(1, self.rules.decks))
        ]
        self.rng.shuffle(pile)
        return pile[:size]

    def lead_and_hand(self):
        deal = self.new_order()
        suit = self.rng.choice(
            [TRUMP, *(s for s in range(TRUMP) if any(deal.suit(c) == s for c in range(CARDS)))]
        )
        lead = self.pile(deal, suit, self.rng.randint(1, 5))
        hand = self.pile(deal, suit, self.rng.randint(0, 8))
        while len(hand) < len(lead) + 3:
            card = self.rng.randrange(CARDS)
            if hand.count(card) < self.rules.decks:
                hand.append(card)
        return deal, deal.lead(bytes(lead)), bytes(sorted(hand))


def parts(hand, size):
    return {bytes(part) for part in combinations(hand, size)}


def test_follows_are_the_plays_that_check_allows(position):
    for _ in range(ROUNDS):
        _, lead, hand = position.lead_and_hand()
        legal = {p for p in parts(hand, lead.size) if lead.check(counts(hand), counts(p)) == Verdict.OK}
        listing = lead.follows(counts(hand), ALL)
        assert listing.complete
        assert len(listing.plays) == len(legal)
        assert set(listing.plays) == legal
        cap = position.rng.randint(1, 8)
        few = lead.follows(counts(hand), cap)
        assert few.complete == (len(legal) <= cap)
        assert 0 < len(few.plays) <= cap
        assert len(set(few.plays)) == len(few.plays)
        assert set(few.plays) <= legal


def test_leads_are_the_parts_of_one_component(position):
    for _ in range(ROUNDS // 3):
        deal, _, hand = position.lead_and_hand()
        hand = hand[:8]
        single = {
            part
            for size in range(1, len(hand) + 1)
            for part in parts(hand, size)
            if len({deal.suit(card) for card in part}) == 1 and len(deal.shape(part)) == 1
        }
        listing = deal.leads(counts(hand), ALL)
        assert listing.complete
        assert len(listing.plays) == len(single)
        assert set(listing.plays) == single
        assert deal.leads(counts(hand), 3).plays == listing.plays[:3]


def test_leads_are_listed_larger_first():
    deal = order(rules_of("core", "classic-2d"), "T", "S")
    hand = cards("H3 H3 H4 H4 C8 C8 SA SA D9 LJ")
    expected = ["H3 H3 H4 H4", "SA SA", "C8 C8", "H4 H4", "H3 H3", "LJ", "SA", "D9", "C8", "H4", "H3"]
    assert deal.leads(counts(hand)).plays == tuple(bytes(sorted(cards(play))) for play in expected)


def test_owed_groups_are_listed_higher_first():
    lead = order(rules_of("core", "classic-2d"), "T", "S").lead(cards("HA HA HK HK"))
    hand = cards("H3 H3 H4 H4 H5 H5 H7 HJ")
    assert lead.follows(counts(hand)).plays == (cards("H4 H4 H5 H5"), cards("H3 H3 H4 H4"))


def test_a_cut_list_of_free_cards_keeps_both_ends_and_the_ruffs():
    lead = order(rules_of("core", "classic-2d"), "T", "S").lead(cards("HA HA"))
    hand = cards("BJ S3 S3 S2 S2 C2 C3 C4 C5 C6 C7 C8 D3 D3 D4 D5 D6 D7 D8")
    listing = lead.follows(counts(hand), 16)
    assert not listing.complete
    assert listing.plays[:2] == (cards("S3 S3"), cards("S2 S2"))
    assert listing.plays[2] == bytes(sorted(cards("BJ S3")))
    assert listing.plays[-1] == bytes(sorted(cards("D3 C2")))


def test_a_cut_list_of_owed_plays_keeps_both_ends():
    lead = order(rules_of("core", "classic-2d"), "T", "S").lead(cards("SA SA BJ SK S9 S7"))
    hand = cards("S2 S2 S3 S3 S4 S5 S6 S8 SJ SQ LJ HT CT")
    whole = lead.follows(counts(hand), ALL)
    few = lead.follows(counts(hand), 10)
    assert whole.complete
    assert not few.complete
    assert few.plays[:5] == whole.plays[:5]
    assert set(few.plays[5:]) <= set(whole.plays)
    assert len(set(few.plays)) == 10


def test_a_hand_smaller_than_the_lead_has_no_follows():
    lead = order(rules_of("core", "classic-2d"), "T", "S").lead(cards("HA HA"))
    assert lead.follows(counts(cards("H3"))) == ((), True)
