"""Mutiny: before the kitty is taken, a redeal may be claimed with a bad hand (RULES §7, D10)."""

from services.game.commands import CallMutiny, Pass, Refusal
from services.game.decide.common import (
    Decision,
    Events,
    fresh_seed,
    is_stale,
    kitty_taken,
    known,
    own_seat,
    passed,
    reveal,
    server_passed,
)
from services.game.facts import Facts
from services.game.state import Mutiny, Table
from services.game.waits import asked
from services.game.wire import cards_to_wire
from services.pb.event.v1 import event_pb2 as pb
from services.rules import mutiny
from services.rules.reasons import Reason


def is_possible(state: Table) -> bool:
    """Whether the table's rules and pace leave time for a mutiny once trump is settled."""
    return mutiny.is_possible(state.rules) and state.pace.mutiny_ms > 0


def call(state: Table, command: CallMutiny, facts: Facts) -> Decision:
    """Claim the redeal: the hand is shown, and the deal ends without a result."""
    seat = own_seat(state, command.player_id)
    if isinstance(seat, Refusal):
        return seat
    phase = state.phase
    if not isinstance(phase, Mutiny):
        return Refusal(Reason.WRONG_PHASE)
    if is_stale(state, command.version):
        return Refusal(Reason.STALE_VERSION)
    if phase.has_passed(seat):
        return Refusal(Reason.ALREADY_PASSED)
    declarer = phase.settled.declarer
    if seat not in mutiny.asked(state.rules, declarer):
        return Refusal(Reason.NO_MUTINY)
    hand = known(phase.hands[seat], "the hand")
    order = state.rules.engine().order(phase.deal.level, phase.settled.trump)
    if not mutiny.may_call(state.rules, order, declarer, seat, hand):
        return Refusal(Reason.NO_MUTINY)
    called = pb.MutinyCalled(
        seat=seat,
        cards=cards_to_wire(hand),
        deal=phase.deal.number,
        declarer=declarer,
        reveal=reveal(phase.deal.seed),
        next_seed=fresh_seed(phase.deal.number + 1, facts),
    )
    return (pb.Event(mutiny_called=called),)


def decline(state: Table, phase: Mutiny, command: Pass) -> Decision:
    """Let it be; when all who are asked do, the deal goes on."""
    seat = own_seat(state, command.player_id)
    if isinstance(seat, Refusal):
        return seat
    if seat not in mutiny.asked(state.rules, phase.settled.declarer):
        return Refusal(Reason.NOT_YOUR_TURN)
    if phase.has_passed(seat):
        return Refusal(Reason.ALREADY_PASSED)
    return (passed(seat), *_gone_on(state, phase, (seat,)))


def time_up(state: Table, phase: Mutiny, seats: tuple[int, ...]) -> Events:
    """The server declines for these seats."""
    return (*server_passed(seats), *_gone_on(state, phase, seats))


def _gone_on(state: Table, phase: Mutiny, seats: tuple[int, ...]) -> Events:
    """What follows when these seats decline: the declarer takes the kitty, if they were the last."""
    if not state.rules.kitty or not set(seats) >= set(asked(state, phase)):
        return ()
    return (kitty_taken(phase.settled.declarer, known(phase.kitty, "the kitty")),)
