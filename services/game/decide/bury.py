"""The bury: who took the kitty puts back as many cards as it has (RULES §7 Kitty)."""

from services.game.commands import BuryCards, Refusal
from services.game.decide.common import Decision, first_missing, known, not_in_hand, own_seat, turn_fault
from services.game.state import Bury, Table
from services.game.wire import cards_to_wire
from services.pb.event.v1 import event_pb2 as pb
from services.rules.bury import fixed_bury, refuse_bury
from services.rules.reasons import Reason


def bury(state: Table, command: BuryCards) -> Decision:
    """Bury cards, any of the hand with the kitty in it."""
    seat = own_seat(state, command.player_id)
    if isinstance(seat, Refusal):
        return seat
    phase = state.phase
    if not isinstance(phase, Bury):
        return Refusal(Reason.WRONG_PHASE)
    fault = turn_fault(state, command.version, seat, phase.seat)
    if fault is not None:
        return fault
    rules = state.rules
    hand = known(phase.hands[seat], "the hand")
    reason = refuse_bury(rules, hand, command.cards)
    if reason is Reason.NOT_IN_HAND:
        return not_in_hand(first_missing(hand, command.cards) or 0)
    if reason is not None:
        most = rules.bury_points_max if reason is Reason.BURY_TOO_MANY_POINTS else rules.kitty
        return Refusal(reason, {"count": most})
    return (buried(seat, command.cards),)


def buried(seat: int, cards: bytes) -> pb.Event:
    """These cards lie in the kitty now."""
    return pb.Event(buried=pb.Buried(seat=seat, cards=cards_to_wire(bytes(sorted(cards)))))


def automatic(state: Table, phase: Bury) -> pb.Event:
    """The server's bury when the time is up (RULES §7 Time)."""
    hand = known(phase.hands[phase.seat], "the hand")
    order = state.rules.engine().order(phase.deal.level, phase.settled.trump)
    return buried(phase.seat, fixed_bury(state.rules, order, hand))
