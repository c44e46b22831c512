"""What a card is worth to keep, in points: the price of playing it.

A trick is weighed in points, so the worth of keeping a card decides what is spent on what: a joker on twenty
points, a small card on nothing. Side cards cost next to nothing unless they may win, trumps always cost more
than side cards, and the best trumps cost most; groups cost extra when they are broken.
"""

from typing import Final

from engine_ext.codes import BIG_JOKER, LITTLE_JOKER, TRUMP
from services.bot.situation import Situation, points_of
from services.rules.cards import rank_of

GUARD_HORIZON: Final = 9
"""From so many cards in hand on, the best unit is kept for the last trick."""
_BREAK_SIDE: Final = 1.0
_BREAK_TRUMP: Final = 2.0


class Prices:
    """The price of every card of one hand, and of every play from it."""

    def __init__(self, s: Situation) -> None:
        self._s = s
        suit, same = s.table.suit, s.table.same
        self._held: dict[int, int] = {}
        for card in s.hand:
            self._held[same[card]] = self._held.get(same[card], 0) + 1
        self.single: dict[int, float] = {card: _worth(s, card) for card in set(s.hand)}
        """What each card is worth, its group left out of account."""
        self._guard(s)
        self.loose: dict[int, float] = {
            card: worth + (self._breaking(suit[card]) if self._held[same[card]] > 1 else 0.0)
            for card, worth in self.single.items()
        }
        """What each card costs when it is played alone."""

    def _guard(self, s: Situation) -> None:
        """Near the end the highest trump is worth what the last trick decides."""
        if len(s.hand) > GUARD_HORIZON or not s.trumps:
            return
        top = s.top(s.trumps)
        worth = last_trick_worth(s)
        for card in set(s.trumps):
            if s.table.tier[card] == top:
                self.single[card] += worth

    @staticmethod
    def _breaking(suit: int) -> float:
        return _BREAK_TRUMP if suit == TRUMP else _BREAK_SIDE

    def of(self, cards: bytes) -> float:
        """The price of a play: its cards, and the groups that it breaks."""
        same = self._s.table.same
        price = 0.0
        used: dict[int, int] = {}
        for card in cards:
            price += self.single[card]
            used[same[card]] = used.get(same[card], 0) + 1
        for card in set(cards):
            identity = same[card]
            if used.pop(identity, self._held[identity]) < self._held[identity]:
                price += self._breaking(self._s.table.suit[card])
        return price


def last_trick_worth(s: Situation) -> float:
    """What the last trick is worth beyond its own points: the kitty's multiplied (RULES §8)."""
    if s.kitty_size == 0:
        return 4.0
    if s.buried:
        return 3.0 + 1.5 * points_of(s.buried)
    return 8.0


def _worth(s: Situation, card: int) -> float:
    tier = s.table.tier[card]
    if s.table.suit[card] != TRUMP:
        return _side_worth(s, card, tier)
    worth = 2.5 + 0.12 * tier
    if card == BIG_JOKER:
        return worth + 5.0
    if card == LITTLE_JOKER:
        return worth + 4.0
    if rank_of(card) == s.memory.level:
        return worth + 2.0
    return worth


def _side_worth(s: Situation, card: int, tier: int) -> float:
    """A side card counts when few cards outside stand above it."""
    above = sum(copies for outside, copies in s.outside(s.table.suit[card]) if outside > tier)
    worth = 0.04 * tier
    if above == 0:
        return worth + 2.0
    if above == 1:
        return worth + 1.0
    return worth
