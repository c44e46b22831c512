"""Hook-back (钩回去, RULES §8): losing the kitty to level cards sends a side back to the start level."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine_ext.codes import BIG_JOKER, LITTLE_JOKER, NO_TRUMP
from services.rules.cards import identity, is_joker, rank_of, trump_of
from services.rules.options import Adjacency, RuleSet

if TYPE_CHECKING:
    import engine_ext


def hooks_back(
    rules: RuleSet, order: "engine_ext.Order", lead: bytes, winning: bytes, *, attackers_won: bool
) -> bool:
    """Whether the last trick sends the declaring side back to the start level.

    That is so at a level of ``rules.hook_back`` when an attacker wins the last trick and the component with
    which the winning play answers the lead's largest component consists of level cards.

    Args:
        rules: the option ``hook_back``.
        order: the order of cards of the deal.
        lead: the cards led to the last trick.
        winning: the cards that won it (the lead itself when it won).
        attackers_won: whether an attacker won it.
    """
    if order.level not in rules.hook_back or not attackers_won:
        return False
    components = order.shape(lead)
    width, length, led = components[0]
    if winning == lead:
        return _all_level(order.level, led)
    if length == 1:
        return _answers_with_group(rules, order, width, winning)
    if len(components) == 1 and rules.wider_beats:
        answer, *others = order.shape(winning)
        if not others and answer.width > width:
            return _all_level(order.level, winning)
    return length == 2 and _answers_with_tractor(rules, order, width, winning)


def _all_level(level: int, cards: bytes) -> bool:
    return all(not is_joker(card) and rank_of(card) == level for card in cards)


def _serving(rules: RuleSet, width: int, winning: bytes) -> bytes:
    """The cards of a play that can stand in a group of this width (D28: exactly, singles apart)."""
    copies = Counter(identity(card, two_colour=rules.two_colour) for card in winning)
    exact = rules.groups_stay_together and width > 1

    def serves(card: int) -> bool:
        count = copies[identity(card, two_colour=rules.two_colour)]
        return count == width if exact else count >= width

    return bytes(card for card in winning if serves(card))


def _answers_with_group(rules: RuleSet, order: "engine_ext.Order", width: int, winning: bytes) -> bool:
    """A group is answered by the highest group that can serve; it may change places with any other."""
    serving = _serving(rules, width, winning)
    return bool(serving) and _all_level(order.level, bytes([max(serving, key=order.tier)]))


def _answers_with_tractor(rules: RuleSet, order: "engine_ext.Order", width: int, winning: bytes) -> bool:
    """The one tractor of level cards is off level + main level, unless a joker makes a higher one."""
    if rules.adjacency is Adjacency.PRINTED_RANK or order.trump == NO_TRUMP:
        return False
    serving = _serving(rules, width, winning)

    def holds(wanted: Callable[[int], bool]) -> bool:
        return any(wanted(card) for card in serving)

    def is_level(card: int, *, main: bool) -> bool:
        of_trump = trump_of(card, two_colour=rules.two_colour) == order.trump
        return not is_joker(card) and rank_of(card) == order.level and of_trump == main

    main = holds(lambda card: is_level(card, main=True))
    little = LITTLE_JOKER in serving
    if little and (BIG_JOKER in serving or (main and rules.level_joker_adjacent)):
        return False
    return main and holds(lambda card: is_level(card, main=False))
