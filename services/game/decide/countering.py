"""Countering after a bury (反主炒底): trump changes, the kitty is taken and buried again (RULES §7)."""

from services.game.commands import Pass, Refusal, TakeCounter
from services.game.decide.common import (
    Decision,
    first_missing,
    kitty_taken,
    known,
    not_in_hand,
    own_seat,
    passed,
    turn_fault,
)
from services.game.state import Counter, Table
from services.game.wire import cards_to_wire, trump_to_wire
from services.pb.event.v1 import event_pb2 as pb
from services.rules.declarations import Declarations
from services.rules.joker_backed import judge_counter, standing_of
from services.rules.reasons import Reason


def counter(state: Table, command: TakeCounter) -> Decision:
    """Show what beats the standing declaration, and take the kitty."""
    seat = own_seat(state, command.player_id)
    if isinstance(seat, Refusal):
        return seat
    phase = state.phase
    if not isinstance(phase, Counter):
        return Refusal(Reason.WRONG_PHASE)
    fault = turn_fault(state, command.version, seat, phase.to_act)
    if fault is not None:
        return fault
    missing = first_missing(known(phase.hands[seat], "the hand"), command.cards)
    if missing is not None:
        return not_in_hand(missing)
    so_far = Declarations(standing=phase.settled.standing)
    answer = judge_counter(state.rules, phase.deal.as_declared(), so_far, seat, command.cards)
    if not isinstance(answer, Declarations):
        return Refusal(answer.reason)
    standing = standing_of(seat, command.cards)
    countered = pb.Countered(
        seat=seat,
        cards=cards_to_wire(standing.cards),
        trump=trump_to_wire(standing.trump, two_colour=state.rules.two_colour),
    )
    taken = kitty_taken(seat, known(phase.buried, "the buried cards"))
    return (pb.Event(countered=countered), taken)


def decline(state: Table, phase: Counter, command: Pass) -> Decision:
    """Let the bury stand; when the three others have, the declarer leads."""
    seat = own_seat(state, command.player_id)
    if isinstance(seat, Refusal):
        return seat
    return (passed(seat),) if seat == phase.to_act else Refusal(Reason.NOT_YOUR_TURN)
