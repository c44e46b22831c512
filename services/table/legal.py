"""What a seat may play now, as the engine lists it."""

from engine_ext import Listing
from services.game.decide.tricks import order_of
from services.game.state import Table, Tricks
from services.rules.cards import counts_of

_NONE = Listing((), True)


def legal_plays(state: Table, player_id: str, cap: int) -> Listing:
    """The legal plays of the player whose turn it is, strongest first, at most ``cap``; nothing for others.

    A throw is never among them: whether it stands depends on the other hands.
    """
    phase, seat = state.phase, state.seat_of(player_id)
    if seat is None or not isinstance(phase, Tricks) or phase.to_move != seat or state.seats[seat].escaped:
        return _NONE
    hand = phase.hands[seat]
    if hand is None:
        return _NONE
    order = order_of(state, phase)
    if phase.trick:
        return order.lead(phase.trick[0]).follows(counts_of(hand), cap)
    return order.leads(counts_of(hand), cap)
