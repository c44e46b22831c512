"""Mutiny (暴动, RULES §7, D10) and the other redeals: claimed once trump is settled, before the first bury.

Each is an option of its own; what follows from a claim is the same for all: the hand is shown, declarations
are void, nothing is paid, and the next deal goes to the same declarer.
"""

from typing import TYPE_CHECKING, Final

from engine_ext.codes import NO_TRUMP, TRUMP
from services.rules.cards import SEATS, points
from services.rules.options import RuleSet

if TYPE_CHECKING:
    import engine_ext

MUTINY_BELOW: Final = 15
"""A mutiny needs a hand with fewer points than this (003)."""


def is_possible(rules: RuleSet) -> bool:
    """Whether anybody may ever claim a redeal by these rules."""
    return rules.mutiny or _open_to_all(rules)


def asked(rules: RuleSet, declarer: int) -> tuple[int, ...]:
    """The seats that may claim a redeal, ascending, whatever they hold: who is asked must tell nothing."""
    if _open_to_all(rules):
        return tuple(range(SEATS))
    return _attackers_of(declarer) if rules.mutiny else ()


def may_call(rules: RuleSet, order: "engine_ext.Order", declarer: int, seat: int, dealt: bytes) -> bool:
    """Whether a seat with these dealt cards may claim a redeal.

    That the window has closed and nobody has buried is for the caller.

    Args:
        rules: ``mutiny``, ``redeal_no_points`` and ``redeal_few_trumps``.
        order: the order of cards of the deal, trump settled.
        declarer: who is to play as declarer.
        seat: who claims.
        dealt: the dealt hand.
    """
    if rules.mutiny and seat in _attackers_of(declarer) and points(dealt) < MUTINY_BELOW:
        return True
    if rules.redeal_no_points and points(dealt) == 0:
        return True
    # Of the six trumps that a deck has in no-trump a hand holds hardly any: that is no misfortune.
    return order.trump != NO_TRUMP and trumps(order, dealt) < rules.redeal_few_trumps


def trumps(order: "engine_ext.Order", cards: bytes) -> int:
    """How many of the cards are trumps: jokers, level cards, the trump suit, permanent twos."""
    return sum(order.suit(card) == TRUMP for card in cards)


def _open_to_all(rules: RuleSet) -> bool:
    return rules.redeal_no_points or rules.redeal_few_trumps > 0


def _attackers_of(declarer: int) -> tuple[int, int]:
    """The two seats against a declarer, ascending."""
    return (0, 2) if declarer % 2 else (1, 3)
