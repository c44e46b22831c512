"""Leading: cash what cannot be beaten, throw what is provably safe, keep groups together, hand over cheaply.

Leads are whole components of each suit, so tractors and pairs are never broken to lead, and throws of
components that no other hand can beat by public knowledge alone. Each is weighed like a follow: points times
the chance to get them, less the price.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from engine_ext.codes import TRUMP, Verdict
from services.bot.follow import LEAD_WORTH
from services.bot.follows import take_away
from services.bot.odds import Holder, keeps
from services.bot.situation import Situation, points_of
from services.bot.values import Prices, last_trick_worth
from services.rules.cards import SEATS
from services.rules.options import Throws

if TYPE_CHECKING:
    from engine_ext import Component

GIVEN: Final = 2.6
"""Points that fall for each card of a lead that our side wins, a partner giving what it can."""
TAKEN: Final = 1.2
"""The same for one that our side loses: the partner gives nothing."""
RISKED: Final = 1.3
"""How much dearer a led point is lost than it is won: kept in hand, it may still go to a partner's trick."""
CASHING: Final = 0.35
"""The share of a side card's price that leading it costs: to be led is what winners are kept for."""
SHORTENING: Final = 0.7
"""What it is worth to come nearer to a void by a lead, divided by the cards left in the suit."""
HIGH_SINGLES: Final = 2
"""Of the single cards of a suit the highest ones are weighed, and the lowest."""


def lead(s: Situation) -> bytes:
    """The cards to lead."""
    prices = Prices(s)
    best, best_score = b"", float("-inf")
    for components in _candidates(s):
        cards = bytes(sorted(card for part in components for card in part.cards))
        score = _score(s, components, cards, prices)
        if score > best_score:
            best, best_score = cards, score
    return best


def _candidates(s: Situation) -> Iterator[tuple["Component", ...]]:
    for cards in s.suits:
        if not cards:
            continue
        components = s.order.shape(cards)
        groups = [part for part in components if len(part.cards) > 1]
        singles = components[len(groups) :]
        for part in (*groups, *singles[:HIGH_SINGLES], *singles[HIGH_SINGLES:][-1:]):
            yield (part,)
        safe = safe_throw(s, components)
        if safe:
            yield safe


def safe_throw(s: Situation, components: tuple["Component", ...]) -> tuple["Component", ...]:
    """The components of one suit that can be thrown together and surely stand; empty when there are not two.

    Whatever the others may hold by public knowledge is given to the engine as if they held it all: a throw
    that stands against that stands against the real hands. What it says could be beaten is left out, and so
    again.
    """
    if s.rules.throws in {Throws.NONE, Throws.NOT_WHEN_OTHERS_VOID}:
        return ()
    suit = s.table.suit[components[0].cards[0]]
    others = [s.may_hold((s.seat + step) % SEATS, suit) for step in range(1, SEATS)]
    if s.rules.throws is Throws.ONLY_WHEN_OTHERS_VOID and any(others):
        return ()
    left = list(components)
    while len(left) > 1:
        cards = bytes(sorted(card for part in left for card in part.cards))
        judged = s.order.throw(cards, others)
        if judged.verdict != Verdict.OK:
            return ()
        if judged.played == cards:
            return tuple(left)
        left = [part for part in left if part.cards != judged.played]
    return ()


def _score(s: Situation, components: tuple["Component", ...], cards: bytes, prices: Prices) -> float:
    suit = s.table.suit[cards[0]]
    me = Holder(s.seat, suit, s.top(components[0].cards))
    behind = tuple((s.seat + step) % SEATS for step in range(1, SEATS))
    ours = keeps(s, components, suit, me, behind)
    stake = float(points_of(cards))
    if len(cards) == len(s.hand):
        stake += last_trick_worth(s)
    won, lost = stake + GIVEN * len(cards), RISKED * stake + TAKEN * len(cards)
    price = prices.of(cards) * (1.0 if suit == TRUMP else CASHING)
    score = ours * (won + LEAD_WORTH) - (1.0 - ours) * lost - price
    if suit != TRUMP and s.trumps:
        score += SHORTENING / (1 + len(take_away(s.suits[suit], cards)))
    return score
