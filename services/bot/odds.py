"""How likely another seat beats a play: public knowledge and counting, no hidden card.

All numbers are approximations in which every unseen card lies in a seat's hand with the same chance, its
*share*.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING

from engine_ext.codes import TRUMP
from services.bot.situation import Situation

if TYPE_CHECKING:
    from engine_ext import Component

WILL = 0.9
"""How often a seat that can take a trick is taken to do so."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The play that holds a trick.

    Attributes:
        seat: who played it.
        suit: its effective suit.
        top: the highest tier of the component that answers the lead's largest one.
    """

    seat: int
    suit: int
    top: int


def share(s: Situation, seat: int) -> float:
    """The chance that one given unseen card lies in a seat's hand."""
    return min(1.0, s.sizes[seat] / s.hidden)


@lru_cache(maxsize=8192)
def at_least(wanted: int, copies: int, chance: float) -> float:
    """The chance of at least ``wanted`` among ``copies`` independent cards."""
    if copies < wanted:
        return 0.0
    missed = 1.0 - chance
    if wanted <= 1:
        return 1.0 if wanted < 1 else 1.0 - missed**copies
    if wanted == copies:
        return float(chance**copies)
    less = sum(comb(copies, k) * chance**k * missed ** (copies - k) for k in range(wanted))
    return max(0.0, 1.0 - less)


def is_void(s: Situation, seat: int, suit: int) -> float:
    """The chance that a seat holds no card of an effective suit."""
    if s.memory.void[seat][suit]:
        return 1.0
    if s.known(seat, suit):
        return 0.0
    return float((1.0 - share(s, seat)) ** s.outside_count(suit))


def holds_higher(s: Situation, seat: int, suit: int, shape: tuple[int, int], top: int) -> float:
    """The chance that a seat which is not known to be void holds such a component above a tier."""
    width, length = shape
    if width > 1 and s.memory.no_pair[seat][suit]:
        return 0.0
    if length == 1 and any(copies >= width and tier > top for tier, copies in s.known(seat, suit)):
        return 1.0
    chance = share(s, seat)
    none = 1.0
    for tier, copies in s.outside(suit):
        if tier <= top:
            break
        if copies >= width:
            none *= 1.0 - at_least(width, copies, chance) ** length
    return 1.0 - none


def can_ruff(s: Situation, seat: int, components: tuple["Component", ...], top: int) -> float:
    """The chance that a seat which is void in the led suit holds trumps of the lead's shape above a tier.

    Args:
        s: the situation.
        seat: whose trumps.
        components: the lead's components, largest first.
        top: the tier that the answer to the largest must exceed, -1 for any.
    """
    if s.memory.void[seat][TRUMP]:
        return 0.0
    first = components[0]
    size = sum(part.width * part.length for part in components)
    chance = holds_higher(s, seat, TRUMP, (first.width, first.length), top)
    if size > 1:
        chance = min(chance, at_least(size, s.outside_count(TRUMP), share(s, seat)))
    for part in components[1:]:
        if part.width > 1:
            chance *= holds_higher(s, seat, TRUMP, (part.width, part.length), -1)
    return chance


def beats(s: Situation, seat: int, lead: tuple["Component", ...], suit: int, holder: Holder) -> float:
    """The chance that a seat yet to play can beat the play that holds the trick.

    Args:
        s: the situation.
        seat: who may beat it.
        lead: the lead's components, largest first.
        suit: the led suit.
        holder: the play to beat.
    """
    in_suit = 0.0
    void = is_void(s, seat, suit)
    if holder.suit == suit and len(lead) == 1 and void < 1.0:
        part = lead[0]
        in_suit = (1.0 - void) * holds_higher(s, seat, suit, (part.width, part.length), holder.top)
    if suit == TRUMP or not void:
        return in_suit
    top = holder.top if holder.suit == TRUMP else -1
    return in_suit + void * can_ruff(s, seat, lead, top)


def keeps(
    s: Situation, lead: tuple["Component", ...], suit: int, holder: Holder, behind: tuple[int, ...]
) -> float:
    """The chance that the holder's side still has the trick after the seats behind, in their order."""
    own = 1.0
    """The chance that the holder's side has it now."""
    for seat in behind:
        chance = beats(s, seat, lead, suit, holder)
        if (seat - holder.seat) % 2:
            own *= 1.0 - WILL * chance
        else:
            own += (1.0 - own) * 0.5 * chance
    return own
