"""Questions to an engine in the texts of cards, for examples worked by hand."""

from engine_ext.codes import Verdict
from support.cards import cards, counts


def shape(in_order, some):
    """Its components, as RULES §5 writes groups: width x length."""
    return [f"{part.width}x{part.length}" for part in in_order.shape(cards(some))]


def owed(in_order, lead, hand):
    """What a hand owes a lead."""
    return in_order.lead(cards(lead)).owed(counts(cards(hand)))


def legal(in_order, lead, hand, play):
    """Whether a play may follow a lead."""
    return in_order.lead(cards(lead)).check_cards(cards(hand), cards(play)) == Verdict.OK
