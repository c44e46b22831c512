"""Following: win cheaply what is worth it, feed a partner who will win, else throw away the least.

Each candidate is weighed in points: the trick's points times how surely our side gets them, less the price
of the cards. All the principles follow from that one sum: a sure winner of the partner draws points, an
opponent's draws none, a trump or joker is spent only where the points pay for it, and the last unit is kept
for the last trick.
"""

from typing import TYPE_CHECKING, Final

from engine_ext.codes import TRUMP
from services.bot.follows import cheapest, taking
from services.bot.odds import Holder, keeps
from services.bot.situation import Situation, points_of
from services.bot.values import Prices, last_trick_worth
from services.rules.cards import CARD_POINTS, SEATS

if TYPE_CHECKING:
    from engine_ext import Lead

LEAD_WORTH: Final = 1.0
"""What it is worth to lead next."""
MORE_POINTS: Final = 1.3
"""Points that a seat yet to play adds to a trick for each card."""
_TAKERS: Final = 10
"""The most taking plays that are weighed: the cheapest ones."""


def follow(s: Situation, lead: "Lead") -> bytes:
    """The cards to follow with."""
    prices = Prices(s)
    behind = _behind(s)
    holder = _holder(s, lead)
    stays = keeps(s, lead.components, lead.suit, holder, behind)
    ours = stays if s.mine(holder.seat) else 1.0 - stays
    best, best_score = b"", float("-inf")
    for play in _givers(s, lead, prices):
        score = _score(s, lead, play, ours, prices, len(behind))
        if score > best_score:
            best, best_score = play, score
    for play in taking(s, lead, prices.loose.__getitem__)[:_TAKERS]:
        mine = Holder(s.seat, s.table.suit[play[0]], _answer_top(s, lead, play))
        chance = keeps(s, lead.components, lead.suit, mine, behind)
        score = _score(s, lead, play, chance, prices, len(behind)) + LEAD_WORTH * chance
        if score > best_score:
            best, best_score = play, score
    return best


def _behind(s: Situation) -> tuple[int, ...]:
    """The seats that play after this one."""
    return tuple((s.seat + step) % SEATS for step in range(1, SEATS - len(s.memory.trick)))


def _holder(s: Situation, lead: "Lead") -> Holder:
    """Who holds the trick before this seat plays."""
    trick = s.memory.trick
    seat, cards = trick[s.order.winner([cards for _, cards in trick])]
    return Holder(seat, s.table.suit[cards[0]], _answer_top(s, lead, cards))


def _answer_top(s: Situation, lead: "Lead", cards: bytes) -> int:
    """The tier by which a play that qualifies is compared (RULES §6), as near as the odds need it."""
    if lead.components[0].width == 1 or len(cards) == 1:
        return s.top(cards)
    return s.top(s.order.shape(cards)[0].cards)


def _givers(s: Situation, lead: "Lead", prices: Prices) -> set[bytes]:
    """Follows that do not try to win: without points, with as many as possible, and simply the cheapest."""
    loose = prices.loose
    short = _short_suit_bonus(s)
    found = set()
    for weight in (1.0, 0.0, -1.0):
        worth = {card: cost + weight * CARD_POINTS[card] - short[card] for card, cost in loose.items()}
        found.add(cheapest(s, lead, worth.__getitem__))
    return found


def _short_suit_bonus(s: Situation) -> dict[int, float]:
    """Discards come from the shortest side suit first, to be rid of it while there are trumps."""
    bonus = dict.fromkeys(s.hand, 0.0)
    if not s.trumps:
        return bonus
    for cards in s.plain_suits:
        for card in cards:
            bonus[card] = 0.6 / len(cards)
    return bonus


def _score(s: Situation, lead: "Lead", play: bytes, ours: float, prices: Prices, behind: int) -> float:
    """What a play is worth when our side gets the trick with this chance."""
    stake = float(sum(points_of(cards) for _, cards in s.memory.trick) + points_of(play))
    stake += MORE_POINTS * behind * lead.size
    if len(play) == len(s.hand):
        stake += last_trick_worth(s)
    score = (2.0 * ours - 1.0) * stake - prices.of(play)
    if s.trumps and any(s.table.suit[card] != TRUMP for card in play):
        score += _voided(s, play)
    return score


def _voided(s: Situation, play: bytes) -> float:
    """What it is worth to have got rid of a side suit by this play."""
    suit = s.table.suit[play[0]]
    if suit == TRUMP or len(s.suits[suit]) > len(play):
        return 0.0
    return 0.8 if all(s.table.suit[card] == suit for card in play) else 0.0
