"""The server's play at an expired turn (RULES §7): the lowest legal cards with the fewest points."""

from typing import TYPE_CHECKING, Final

from engine_ext.codes import TRUMP, Verdict
from services.rules.cards import CARD_POINTS, counts_of, without

if TYPE_CHECKING:
    import engine_ext

_CAP: Final = 256
"""Listed follows to begin with; from the cheapest of them single cards are exchanged for cheaper ones."""

_Cost = tuple[int, int, int, int]


def automatic_lead(order: "engine_ext.Order", hand: bytes) -> bytes:
    """The single card with the fewest points, then outside trump, then the lowest.

    Args:
        order: the order of cards of the deal.
        hand: the cards held, at least one.

    Raises:
        ValueError: an empty hand.
    """
    if not hand:
        raise ValueError("an empty hand cannot lead")
    return bytes([min(hand, key=lambda card: _cost(order, card))])


def automatic_follow(order: "engine_ext.Order", lead: "engine_ext.Lead", hand: bytes) -> bytes:
    """A legal follow with few points and low cards, ascending; the same for the same position.

    Args:
        order: the order of cards of the deal.
        lead: what was led.
        hand: the cards held, at least as many as were led.

    Raises:
        ValueError: the hand holds fewer cards than were led.
    """
    if len(hand) < lead.size:
        raise ValueError(f"a hand of {len(hand)} cannot follow {lead.size} cards")
    suited = bytes(card for card in hand if order.suit(card) == lead.suit)
    if len(suited) <= lead.size:
        others = sorted(
            (card for card in hand if order.suit(card) != lead.suit), key=lambda card: _cost(order, card)
        )
        return bytes(sorted((*suited, *others[: lead.size - len(suited)])))
    counts = counts_of(suited)
    listed = lead.follows(counts, _CAP).plays
    play = min(listed, key=lambda cards: _total(order, cards))
    return _improve(order, lead, counts, suited, play)


def _cost(order: "engine_ext.Order", card: int) -> _Cost:
    return CARD_POINTS[card], int(order.suit(card) == TRUMP), order.tier(card), card


def _total(order: "engine_ext.Order", cards: bytes) -> tuple[int, list[_Cost]]:
    """Points first, then the dearest card downwards."""
    return sum(CARD_POINTS[card] for card in cards), sorted(
        (_cost(order, card) for card in cards), reverse=True
    )


def _improve(
    order: "engine_ext.Order", lead: "engine_ext.Lead", counts: bytes, suited: bytes, play: bytes
) -> bytes:
    """Exchange the dearest card that can be for the cheapest one, as long as the play stays legal."""
    while True:
        spare = sorted(set(without(suited, play)), key=lambda card: _cost(order, card))
        better = next(
            (
                exchanged
                for card in sorted(set(play), key=lambda card: _cost(order, card), reverse=True)
                for other in spare
                if _cost(order, other) < _cost(order, card)
                and lead.check(counts, counts_of(exchanged := _exchange(play, card, other))) == Verdict.OK
            ),
            None,
        )
        if better is None:
            return play
        play = better


def _exchange(play: bytes, card: int, other: int) -> bytes:
    at = play.index(card)
    return bytes(sorted((*play[:at], other, *play[at + 1 :])))
