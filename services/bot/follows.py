"""Legal follows worth thinking about: the cheapest ones, and those that take the trick.

A hand may have thousands of legal follows, so they are built, not listed: the groups that are owed first,
then the cheapest cards. The engine checks every one; what it refuses is replaced from its own list.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from engine_ext.codes import TRUMP, Verdict
from services.bot.situation import Situation
from services.rules.cards import counts_of

if TYPE_CHECKING:
    from engine_ext import Component, Lead

Price = Callable[[int], float]
"""What playing one card costs."""

LISTED = 64
"""The most plays that the engine is asked to list where building fails."""
_UNITS = 256
"""The most plain components that are looked through in one suit."""


def units(s: Situation, cards: bytes, width: int, length: int) -> list[bytes]:
    """All components of one shape within cards of one effective suit, lowest first."""
    if length == 1:
        return _groups(s, cards, width)
    found = s.order.leads(counts_of(cards), _UNITS).plays
    fit = [play for play in found if len(play) == width * length and _is_shape(s, play, width, length)]
    fit.reverse()
    return fit


def _groups(s: Situation, cards: bytes, width: int) -> list[bytes]:
    same, tier = s.table.same, s.table.tier
    by_identity: dict[int, list[int]] = {}
    for card in sorted(cards, key=lambda card: (tier[card], card)):
        by_identity.setdefault(same[card], []).append(card)
    return [bytes(group[:width]) for group in by_identity.values() if len(group) >= width]


def _is_shape(s: Situation, play: bytes, width: int, length: int) -> bool:
    first = s.order.shape(play)[0]
    return first.width == width and first.length == length


def take_away(cards: bytes, used: Iterable[int]) -> bytes:
    """Cards less some of them, in the same order."""
    left = list(cards)
    for card in used:
        left.remove(card)
    return bytes(left)


def cheapest(s: Situation, lead: "Lead", price: Price) -> bytes:
    """A legal follow of about the lowest price."""
    suited = s.suits[lead.suit]
    if len(suited) <= lead.size:
        rest = sorted(take_away(s.hand, suited), key=lambda card: (price(card), card))
        return bytes(sorted(suited + bytes(rest[: lead.size - len(suited)])))
    play = _with_owed(s, lead, suited, price)
    counts = s.counts()
    if play is not None and lead.check(counts, counts_of(play)) == Verdict.OK:
        return play
    listed = lead.follows(counts, LISTED).plays
    return min(listed, key=lambda cards: sum(price(card) for card in cards))


def _with_owed(s: Situation, lead: "Lead", suited: bytes, price: Price) -> bytes | None:
    """Owed groups first, each the cheapest that is left; then the cheapest single cards."""
    chosen: list[int] = []
    left = suited
    owed = [group for groups in lead.owed(s.counts()) for group in groups]
    for width, length in sorted(owed, key=lambda group: (-group[1], -group[0])):
        fit = units(s, left, width, length)
        if not fit:
            return None
        group = min(fit, key=lambda cards: sum(price(card) for card in cards))
        chosen.extend(group)
        left = take_away(left, group)
    rest = sorted(left, key=lambda card: (price(card), card))
    return bytes(sorted([*chosen, *rest[: lead.size - len(chosen)]]))


def taking(s: Situation, lead: "Lead", price: Price) -> list[bytes]:
    """Legal follows that hold the trick for now, lowest first."""
    suited = s.suits[lead.suit]
    if len(suited) >= lead.size:
        found = _same_suit(s, lead, suited)
    elif suited or lead.suit == TRUMP or len(s.trumps) < lead.size:
        return []
    else:
        found = _ruffs(s, lead.components, s.trumps, price)
    plays = [cards for _, cards in s.memory.trick]
    counts = s.counts()
    return [
        play
        for play in found
        if s.order.winner([*plays, play]) == len(plays) and lead.check(counts, counts_of(play)) == Verdict.OK
    ]


def _same_suit(s: Situation, lead: "Lead", suited: bytes) -> list[bytes]:
    """A throw that stood cannot be beaten in its suit; a plain lead by a higher component of its shape."""
    if len(lead.components) > 1:
        return []
    part = lead.components[0]
    found = units(s, suited, part.width, part.length)
    if s.rules.wider_beats and part.length > 1:
        for width in range(part.width + 1, s.rules.copies + 1):
            if lead.size % width == 0:
                found += units(s, suited, width, lead.size // width)
    return found


def _ruffs(s: Situation, components: tuple["Component", ...], trumps: bytes, price: Price) -> list[bytes]:
    """Trumps of the lead's shape: each choice for its largest component, the rest as cheap as possible."""
    first, *others = components
    found = []
    for group in units(s, trumps, first.width, first.length):
        rest = _fill(s, others, take_away(trumps, group), price)
        if rest is not None:
            found.append(bytes(sorted(group + rest)))
    return found


def _fill(s: Situation, components: list["Component"], cards: bytes, price: Price) -> bytes | None:
    chosen = b""
    for part in components:
        fit = units(s, cards, part.width, part.length)
        if not fit:
            return None
        group = min(fit, key=lambda some: sum(price(card) for card in some))
        chosen += group
        cards = take_away(cards, group)
    return chosen
