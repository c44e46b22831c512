"""What must not change an answer of the core: names of suits, order of cards, seats, cards of other suits."""

import random
from itertools import permutations

import pytest
from support import shaped
from support.cards import counts, names
from support.engines import core, twin
from support.mixes import OPTIONS, plain_sizes, throw_sizes

from engine_ext.codes import CARDS, NO_TRUMP, Verdict

ROUNDS = 100


class Variant:
    """A rule set in the core, with dice and places from the twin."""

    def __init__(self, name):
        self.rng = random.Random(f"metamorphic {name}")
        self.core = core.Rules(**OPTIONS[name])
        self.twin = twin.Rules(**OPTIONS[name])
        self.either_gap = [core.Rules(**OPTIONS[name] | {"level_gap": gap}) for gap in (False, True)]
        self.sizes = [(size,) for size in plain_sizes(self.twin)] + throw_sizes(self.twin)

    def order(self, deal):
        return self.core.order(deal.order.level, deal.order.trump)

    def orders_of_either_gap(self, deal):
        return [rules.order(deal.order.level, deal.order.trump) for rules in self.either_gap]

    def made(self, make):
        """Positions of one of the shaped makers."""
        for _ in range(ROUNDS):
            sizes = self.rng.choice(self.sizes)
            if make is shaped.make_follow:
                result = make(self.rng, self.twin, sizes, self.rng.randrange(len(self.twin.ladder(sizes[0]))))
            else:
                result = make(self.rng, self.twin, sizes)
            if result is not None:
                yield result

    def follows(self):
        """(order, lead, hand, play), several plays a hand."""
        for deal, lead, hand in self.made(shaped.make_follow):
            owed = deal.order.lead(lead).owed(counts(hand))
            for play in shaped.make_plays(self.rng, deal, lead, hand, owed, 4):
                if max(counts(play)) <= self.twin.decks:
                    yield deal, lead, hand, play

    def relabelling(self):
        """A permutation of the suits that keeps what the rules tell apart: (of cards, of trumps)."""
        if self.twin.two_colour:
            # Suits of a colour may change places, and the colours as wholes.
            suits = self.rng.choice([(0, 1, 2, 3), (2, 1, 0, 3), (2, 3, 0, 1), (1, 0, 3, 2), (3, 0, 1, 2)])
            trumps = {0: suits[0] % 2, 1: suits[1] % 2}
        else:
            suits = self.rng.choice(list(permutations(range(4))))
            trumps = dict(enumerate(suits))
        return [suits[card // 13] * 13 + card % 13 if card < 52 else card for card in range(CARDS)], trumps

    def renamed(self, deal):
        """The order with other suits, and how to rename cards for it."""
        card_names, trumps = self.relabelling()
        order = self.core.order(deal.order.level, trumps.get(deal.order.trump, NO_TRUMP))
        return order, lambda cards: bytes(card_names[card] for card in cards)


@pytest.fixture(params=OPTIONS)
def variant(request):
    return Variant(request.param)


def sizes_of(shape):
    return [(part.width, part.length) for part in shape]


def test_names_of_suits_do_not_matter_to_follows(variant):
    for deal, lead, hand, play in variant.follows():
        other, rename = variant.renamed(deal)
        before = variant.order(deal).lead(lead)
        after = other.lead(rename(lead))
        assert sizes_of(before.components) == sizes_of(after.components)
        assert before.check_cards(hand, play) == after.check_cards(rename(hand), rename(play)), names(play)
        assert before.owed(counts(hand)) == after.owed(counts(rename(hand)))


def test_names_of_suits_do_not_matter_to_tricks(variant):
    for deal, plays in variant.made(shaped.make_trick):
        other, rename = variant.renamed(deal)
        renamed = [rename(play) for play in plays]
        assert variant.order(deal).winner(plays) == other.winner(renamed), [names(play) for play in plays]
        assert variant.order(deal).multiplier(plays) == other.multiplier(renamed)


def test_names_of_suits_do_not_matter_to_throws(variant):
    for deal, lead, others in variant.made(shaped.make_throw):
        other, rename = variant.renamed(deal)
        order = variant.order(deal)
        before = order.throw(lead, others)
        after = other.throw(rename(lead), [rename(hand) for hand in others])
        assert (before.verdict, len(before.played)) == (after.verdict, len(after.played)), names(lead)
        # Which of two equals is forced goes by suit order, so only its height is compared.
        heights = sorted(map(order.tier, before.played)), sorted(map(other.tier, after.played))
        assert heights[0] == heights[1], names(lead)


def test_the_order_of_cards_does_not_matter(variant):
    def shuffled(cards):
        return bytes(variant.rng.sample(list(cards), len(cards)))

    for deal, lead, hand, play in variant.follows():
        order = variant.order(deal)
        again = order.lead(shuffled(lead))
        assert again.components == order.lead(lead).components
        assert again.check_cards(shuffled(hand), shuffled(play)) == order.lead(lead).check_cards(hand, play)
    for deal, plays in variant.made(shaped.make_trick):
        assert variant.order(deal).winner(plays) == variant.order(deal).winner([shuffled(p) for p in plays])
    for deal, lead, others in variant.made(shaped.make_throw):
        order = variant.order(deal)
        assert order.throw(lead, others) == order.throw(shuffled(lead), [shuffled(hand) for hand in others])


def test_the_level_leaves_a_gap_only_below_cards_that_are_there(variant):
    def no_gap(deal, *some):
        level = deal.order.level
        return level == 0 or not any(c % 13 == level + 1 for c in b"".join(some) if c < 52)

    met = 0
    for deal, lead, hand, play in variant.follows():
        if no_gap(deal, lead, hand):
            met += 1
            without, gap = (order.lead(lead) for order in variant.orders_of_either_gap(deal))
            assert without.components == gap.components
            assert without.check_cards(hand, play) == gap.check_cards(hand, play), names(play)
            assert without.owed(counts(hand)) == gap.owed(counts(hand))
    assert met
    for deal, plays in variant.made(shaped.make_trick):
        if no_gap(deal, *plays):
            without, gap = variant.orders_of_either_gap(deal)
            assert without.winner(plays) == gap.winner(plays), list(map(names, plays))
            assert without.multiplier(plays) == gap.multiplier(plays)


def test_turning_the_followers_round_turns_the_winner(variant):
    ties = 0
    for deal, (lead, *follows) in variant.made(shaped.make_trick):
        order = variant.order(deal)
        winner = [lead, *follows][order.winner([lead, *follows])]
        for turn in (1, 2):
            turned = [lead, *follows[turn:], *follows[:turn]]
            other = turned[order.winner(turned)]
            if sorted(other) == sorted(winner):
                continue
            # Another play wins only if the two are equal: then the earlier of them does.
            ties += 1
            assert lead not in (winner, other)
            assert order.winner([lead, winner, other]) == order.winner([lead, other, winner]) == 1
    assert ties or variant.twin.decks == 1


def test_cards_of_other_suits_do_not_matter_while_the_suit_lasts(variant):
    met = 0
    for deal, lead, hand, play in variant.follows():
        own = sum(deal.order.suit(card) == deal.suit for card in hand)
        if own <= len(lead):
            continue
        missing = {card for card in play if play.count(card) > hand.count(card)}
        others = [c for c in range(CARDS) if deal.order.suit(c) != deal.suit and c not in {*hand, *missing}]
        more = hand + bytes(variant.rng.sample(others, min(len(others), 6)))
        compiled = variant.order(deal).lead(lead)
        assert compiled.check_cards(more, play) == compiled.check_cards(hand, play), names(play)
        met += 1
    assert met > ROUNDS


def test_an_illegal_shape_stays_illegal_with_a_better_hand(variant):
    """A hand that gains cards of the suit owes at least as much, where groups may be broken."""
    met = 0
    for deal, lead, hand, play in variant.follows():
        compiled = variant.order(deal).lead(lead)
        if variant.twin.keep_groups_whole or compiled.check_cards(hand, play) != Verdict.MUST_FOLLOW_SHAPE:
            continue
        suit = [c for kind in deal.kinds for c in kind if hand.count(c) < variant.twin.decks]
        if suit:
            better = hand + bytes([variant.rng.choice(suit)])
            assert compiled.check_cards(better, play) == Verdict.MUST_FOLLOW_SHAPE, names(play)
            met += 1
    assert met or variant.twin.keep_groups_whole or variant.twin.copies == 1
