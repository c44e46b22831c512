"""Burying (RULES §7): whether a bury is valid, and the bury that the server makes when the time is up."""

from typing import TYPE_CHECKING

from engine_ext.codes import TRUMP
from services.rules.cards import CARD_POINTS, contains, points
from services.rules.options import RuleSet
from services.rules.reasons import Reason

if TYPE_CHECKING:
    import engine_ext


def refuse_bury(rules: RuleSet, hand: bytes, cards: bytes) -> Reason | None:
    """Why these cards cannot be buried; ``None`` when they can.

    Args:
        rules: the size of the kitty and ``bury_points_max``.
        hand: the cards of the declarer with the kitty taken up.
        cards: the cards to bury.
    """
    if len(cards) != rules.kitty:
        return Reason.BURY_WRONG_COUNT
    if not contains(hand, cards):
        return Reason.NOT_IN_HAND
    if rules.bury_points_max is not None and points(cards) > rules.bury_points_max:
        return Reason.BURY_TOO_MANY_POINTS
    return None


def fixed_bury(rules: RuleSet, order: "engine_ext.Order", hand: bytes) -> bytes:
    """The server's bury: lowest cards without points outside trump, shortest suits first; ascending indices.

    When those do not suffice it goes on to the point cards outside trump, then to trumps without points, then
    to the rest, each lowest first; with ``bury_points_max`` all cards without points come before the cheapest
    points. Suits of equal length go in suit order. The cards depend on the hand alone, not on its order.

    Args:
        rules: the size of the kitty and ``bury_points_max``.
        order: the order of cards of the deal.
        hand: the cards of the declarer with the kitty taken up.

    Raises:
        ValueError: the hand holds fewer cards than must be buried.
    """
    if len(hand) < rules.kitty:
        raise ValueError(f"a hand of {len(hand)} cannot bury {rules.kitty}")
    lengths = [0] * (TRUMP + 1)
    for card in hand:
        lengths[order.suit(card)] += 1
    sparing = rules.bury_points_max is not None

    def turn(card: int) -> tuple[int, ...]:
        suit, worth = order.suit(card), CARD_POINTS[card]
        where = (lengths[suit], suit, order.tier(card), card)
        if sparing:
            return (worth, suit == TRUMP, *where)
        return (suit == TRUMP, worth > 0, *where)

    return bytes(sorted(sorted(hand, key=turn)[: rules.kitty]))
