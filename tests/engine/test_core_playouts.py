"""Whole deals inside the core: cards are conserved, plays are listed and picked uniformly, points add up."""

import random
from collections import Counter

import pytest
from support.cards import counts
from support.engines import PRESET_NAMES, core, rules_of

from engine_ext.codes import CARDS, Multiplier, Verdict
from services.rules.bury import fixed_bury
from services.rules.presets import preset

DEALS = 6
CAP = 64


def deals(name, cap=CAP, count=DEALS):
    """(order, recorded deal) of several levels and trumps."""
    rules, kitty = rules_of("core", name), preset(name).kitty
    rng = random.Random(name)
    trumps = [0, 1, 4] if preset(name).two_colour else range(5)
    for index in range(count):
        level, trump = rng.randrange(13), rng.choice(trumps)
        yield rules.order(level, trump), core.playout(rules, level, trump, 7, index, kitty=kitty, cap=cap)


def tricks(deal):
    """(hands before it, plays as (seat, cards), the seats in turn order) of each trick."""
    hands = [Counter(hand) for hand in deal.hands]
    for first in range(0, len(deal.plays), 4):
        trick = deal.plays[first : first + 4]
        yield [Counter(hand) for hand in hands], trick
        for seat, play in trick:
            hands[seat] -= Counter(play)


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_every_card_is_dealt_and_played_once(name):
    decks = preset(name).decks
    for _, deal in deals(name):
        played = Counter(card for _, play in deal.plays for card in play)
        assert played == sum(map(Counter, deal.hands), Counter())
        assert played + Counter(deal.kitty) == Counter(dict.fromkeys(range(CARDS), decks))
        assert len({len(hand) for hand in deal.hands}) == 1
        assert len(deal.kitty) == preset(name).kitty


@pytest.mark.parametrize("name", PRESET_NAMES)
@pytest.mark.parametrize("cap", [CAP, 5])
def test_every_play_is_in_its_list_and_the_winner_leads(name, cap):
    for order, deal in deals(name, cap, count=2):
        leader = 0
        for hands, trick in tricks(deal):
            assert [seat for seat, _ in trick] == [(leader + i) % 4 for i in range(4)]
            (_, first), follows = trick[0], trick[1:]
            assert first in order.leads(counts(hands[leader].elements()), cap).plays
            lead = order.lead(first)
            assert len(lead.components) == 1
            for seat, play in follows:
                hand = counts(hands[seat].elements())
                assert lead.check(hand, counts(play)) == Verdict.OK
                assert play in lead.follows(hand, cap).plays
            leader = (leader + order.winner([play for _, play in trick])) % 4
        assert leader == deal.last_winner


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_points_are_those_of_the_tricks_and_the_kitty(name):
    last_trick = preset(name).multiplier.name == Multiplier.LAST_TRICK.name
    for order, deal in deals(name):
        points = 0
        *before, last = [trick for _, trick in tricks(deal)]
        for trick in [*before, last]:
            plays = [play for _, play in trick]
            winner = trick[order.winner(plays)][0]
            worth = sum(map(order.points, plays))
            multiplier = order.multiplier(plays)
            if trick is last and last_trick:
                points += (worth if winner % 2 else -worth) * multiplier
                assert deal.multiplier == multiplier
            elif winner % 2:
                points += worth
                if trick is last:
                    points += order.points(deal.kitty) * multiplier
                    assert deal.multiplier == multiplier
            elif trick is last:
                assert deal.multiplier == 0
        assert deal.attackers_points == points


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_the_bury_is_the_fixed_one(name):
    rules = preset(name)
    for order, deal in deals(name):
        assert deal.kitty == fixed_bury(rules, order, deal.hands[0] + deal.kitty)


@pytest.mark.parametrize("name", ["classic-2d", "classic-4d", "closed-3d", "classic-1d-2c"])
def test_playouts_are_the_sum_of_their_deals(name):
    rules, kitty = rules_of("core", name), preset(name).kitty
    recorded = [core.playout(rules, 8, 0, 99, index, kitty=kitty) for index in range(20)]
    sums = core.playouts(rules, 8, 0, 20, 99, kitty=kitty)
    assert sums == (
        sum(deal.attackers_points for deal in recorded),
        sum(deal.last_winner % 2 for deal in recorded),
        sum(len(deal.plays) for deal in recorded),
    )
    assert core.playouts(rules, 8, 0, 20, 100, kitty=kitty) != sums


def distance_from_uniform(ranks):
    """Chi-squared of (index, length) pairs: the index of a pick in its list, in ten bins of equal chance."""
    rng = random.Random(1)
    bins = Counter(int(10 * (index + rng.random()) / length) for index, length in ranks)
    expected = len(ranks) / 10
    return sum((bins[b] - expected) ** 2 / expected for b in range(10))


CHI_SQUARED_9 = 33.7
"""Exceeded once in ten thousand."""


@pytest.mark.parametrize("cap", [CAP, 7])
@pytest.mark.parametrize("name", ["classic-2d", "basic-3d", "classic-1d-2c"])
def test_picks_are_uniform_over_the_lists(name, cap):
    leads, singles, owed, free = [], [], [], []
    for order, deal in deals(name, cap, count=250):
        for hands, trick in tricks(deal):
            seat, first = trick[0]
            listed = order.leads(counts(hands[seat].elements()), cap).plays
            leads.append((listed.index(first), len(listed)))
            lead = order.lead(first)
            for follower, play in trick[1:]:
                hand = counts(hands[follower].elements())
                listed = lead.follows(hand, cap).plays
                kind = singles if lead.size == 1 else owed if any(lead.owed(hand)) else free
                kind.append((listed.index(play), len(listed)))
    for ranks in (leads, singles, owed, free):
        several = [rank for rank in ranks if rank[1] > 1]
        if name != "classic-1d-2c":
            assert len(several) >= 50
        if len(several) >= 50:
            assert distance_from_uniform(several) < CHI_SQUARED_9


def test_the_cards_of_a_deal_are_uniform():
    rules = rules_of("core", "classic-2d")
    seats = Counter()
    for index in range(400):
        deal = core.playout(rules, 8, 0, 5, index)
        for seat in range(1, 4):
            seats[seat] += deal.hands[seat].count(53)
    # 2 big jokers in 400 deals, 25 of 108 places each.
    assert all(abs(seats[seat] - 800 * 25 / 108) < 60 for seat in range(1, 4))


@pytest.mark.parametrize(
    ("change", "named"),
    [({"kitty": 7}, "kitty"), ({"kitty": 108}, "kitty"), ({"kitty": -4}, "kitty"), ({"cap": 0}, "cap")],
)
def test_a_deal_that_cannot_be_is_refused(change, named):
    with pytest.raises(ValueError, match=named):
        core.playout(rules_of("core", "classic-2d"), 8, 0, 1, 0, **change)
    with pytest.raises(ValueError, match="count"):
        core.playouts(rules_of("core", "classic-2d"), 8, 0, -1, 1)
