"""Burying: get rid of short side suits, without points, without winners, without trumps.

Every choice of side suits to void is tried, the rest of the kitty filled with the cards least worth keeping,
and the best plan in points is taken. Points are buried only by a hand that will defend the last trick.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Final

from engine_ext.codes import TRUMP
from services.bot.situation import Situation
from services.rules.bury import fixed_bury, refuse_bury
from services.rules.cards import CARD_POINTS

VOID_WORTH: Final = 5.0
"""What it is worth to have no card of a side suit; half of it in no-trump."""
_WINNER: Final = 9.0
_GROUP: Final = 3.5
_TRUMP: Final = 14.0


def bury(s: Situation) -> bytes:
    """The cards to bury from a hand that has taken the kitty up, ascending."""
    worth = _worths(s)
    fallback = fixed_bury(s.rules, s.order, s.hand)
    best, best_cost = fallback, _cost(s, fallback, worth)
    for cards in _plans(s, worth):
        cost = _cost(s, cards, worth)
        if cost < best_cost and refuse_bury(s.rules, s.hand, cards) is None:
            best, best_cost = cards, cost
    return best


def _plans(s: Situation, worth: dict[int, float]) -> Iterator[bytes]:
    """For every choice of side suits that fit into the kitty: these whole, then the cheapest other cards."""
    kitty = s.rules.kitty
    held = [suit for suit in range(TRUMP) if s.suits[suit]]
    for count in range(len(held) + 1):
        for chosen in combinations(held, count):
            whole = b"".join(s.suits[suit] for suit in chosen)
            if len(whole) > kitty:
                continue
            others = [card for card in s.hand if s.table.suit[card] not in chosen]
            others.sort(key=lambda card: (worth[card], card))
            yield bytes(sorted(whole + bytes(others[: kitty - len(whole)])))


def _cost(s: Situation, cards: bytes, worth: dict[int, float]) -> float:
    """What burying these cards gives up, less what the new voids bring."""
    cost = sum(worth[card] for card in cards)
    void = VOID_WORTH if len(s.trumps) * 2 > s.rules.hand_size // 2 else VOID_WORTH / 2
    for suit in range(TRUMP):
        if s.suits[suit] and all(s.hand.count(card) <= cards.count(card) for card in s.suits[suit]):
            cost -= void
    return cost


def _worths(s: Situation) -> dict[int, float]:
    """What each card is worth in the hand, its points counted as far as the kitty may be lost."""
    risk = _risk(s)
    return {card: _worth(s, card) + risk * CARD_POINTS[card] for card in set(s.hand)}


def _worth(s: Situation, card: int) -> float:
    suit, tier = s.table.suit[card], s.table.tier[card]
    if suit == TRUMP:
        return _TRUMP + tier
    same = s.table.same[card]
    worth = 0.1 * tier
    above = sum(copies for outside, copies in s.outside(suit) if outside > tier)
    if above == 0:
        worth += _WINNER
    elif above <= s.rules.decks:
        worth += _WINNER / 3
    if sum(s.table.same[other] == same for other in s.suits[suit]) > 1:
        worth += _GROUP
    return worth


def _risk(s: Situation) -> float:
    """The price of a buried point: low with many strong trumps, dear without (it may be multiplied)."""
    trumps = len(s.trumps)
    share = trumps / max(1, s.rules.hand_size)
    top = max(s.table.tier[card] for card in s.table.members[TRUMP])
    bosses = sum(s.table.tier[card] == top for card in s.trumps)
    if share >= 0.44 and bosses:
        return 0.25
    return 0.7 if share >= 0.36 else 1.2
