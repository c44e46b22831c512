"""Leading, following, throwing, and winning tricks (RULES §4-§6)."""

from typing import Final

import engine_ext
from engine_ext.codes import Verdict
from services.game.commands import Play, Refusal
from services.game.decide import ending
from services.game.decide.common import (
    Decision,
    Events,
    first_missing,
    known,
    not_in_hand,
    own_seat,
    turn_fault,
)
from services.game.facts import Facts
from services.game.state import SEATS, Table, Tricks, side_of
from services.game.wire import cards_to_wire
from services.pb.event.v1 import event_pb2 as pb
from services.rules.autoplay import automatic_follow, automatic_lead
from services.rules.cards import counts_of
from services.rules.options import ThrowBlockers, Throws
from services.rules.reasons import Reason

_REASONS: Final = {
    Verdict.WRONG_COUNT: Reason.WRONG_COUNT,
    Verdict.NOT_IN_HAND: Reason.NOT_IN_HAND,
    Verdict.MUST_FOLLOW_SUIT: Reason.MUST_FOLLOW_SUIT,
    Verdict.MUST_FOLLOW_SHAPE: Reason.MUST_FOLLOW_SHAPE,
    Verdict.MIXED_SUITS: Reason.MIXED_SUITS,
    Verdict.THROW_NOT_ALLOWED: Reason.THROW_NOT_ALLOWED,
}


def order_of(state: Table, phase: Tricks) -> engine_ext.Order:
    """The order of cards in the open deal."""
    return state.rules.engine().order(phase.deal.level, phase.settled.trump)


def play(state: Table, command: Play, facts: Facts) -> Decision:
    """Lead or follow."""
    seat = own_seat(state, command.player_id)
    if isinstance(seat, Refusal):
        return seat
    phase = state.phase
    if not isinstance(phase, Tricks):
        return Refusal(Reason.WRONG_PHASE)
    fault = turn_fault(state, command.version, seat, phase.to_move)
    if fault is not None:
        return fault
    order = order_of(state, phase)
    cards = bytes(sorted(command.cards))
    hand = known(phase.hands[seat], "the hand")
    missing = first_missing(hand, cards)
    if missing is not None:
        return not_in_hand(missing)
    if phase.trick:
        return _follow(order, phase, hand, cards) or laid(state, phase, cards, facts)
    return _lead(state, order, phase, cards, facts)


def _follow(order: engine_ext.Order, phase: Tricks, hand: bytes, cards: bytes) -> Refusal | None:
    """Why the cards cannot follow; ``None`` when they can."""
    lead = order.lead(phase.trick[0])
    verdict = Verdict(lead.check_cards(hand, cards))
    if verdict is Verdict.OK:
        return None
    detail: dict[str, object] = {"count": lead.size}
    if verdict in (Verdict.MUST_FOLLOW_SUIT, Verdict.MUST_FOLLOW_SHAPE):
        owed = lead.owed(counts_of(hand))
        detail |= {"shapes": owed, "owed": owed_text(owed)}
    return Refusal(_REASONS[verdict], detail)


def owed_text(owed: tuple[tuple[tuple[int, int], ...], ...]) -> str:
    """Groups owed as RULES §5 writes them: ``2x3`` three pairs in a row, ``3`` a triple, ``1`` any card."""
    groups = [f"{width}x{length}" if length > 1 else str(width) for part in owed for width, length in part]
    return ", ".join(groups) or "1"


def _lead(state: Table, order: engine_ext.Order, phase: Tricks, cards: bytes, facts: Facts) -> Decision:
    """A plain lead, or a throw (RULES §4): it stands, plays what is forced, or is not allowed.

    Where a throw is not allowed *because of the other hands* (D5), the attempt is recorded for all to see,
    and no second throw is looked at in this turn: a refusal would be a free look into those hands.
    """
    if not cards:
        return Refusal(Reason.WRONG_COUNT, {"count": 1})
    if len({order.suit(card) for card in cards}) > 1:
        return Refusal(Reason.MIXED_SUITS)
    if len(order.shape(cards)) == 1:
        return laid(state, phase, cards, facts)
    if state.rules.throws is Throws.NONE or phase.throw_refused:
        return Refusal(Reason.THROW_NOT_ALLOWED)
    seat = phase.to_move
    others = [known(phase.hands[(seat + step) % SEATS], "a hand") for step in range(1, SEATS)]
    throw = order.throw(cards, others)
    if throw.verdict != Verdict.OK:
        return (pb.Event(throw_refused=pb.ThrowRefused(seat=seat, cards=cards_to_wire(cards))),)
    if throw.played == cards:
        return laid(state, phase, cards, facts)
    shown = state.rules.throw_blockers is ThrowBlockers.SHOWN
    blocked_by = _blocking_seats(seat, throw.blockers) if shown else ()
    return laid(state, phase, throw.played, facts, attempted=cards, blocked_by=blocked_by)


def _blocking_seats(thrower: int, blockers: int) -> tuple[int, ...]:
    """The engine's bits for the three other hands as seats, in turn order from the thrower on."""
    return tuple((thrower + step) % SEATS for step in range(1, SEATS) if blockers >> (step - 1) & 1)


def laid(
    state: Table,
    phase: Tricks,
    cards: bytes,
    facts: Facts,
    attempted: bytes = b"",
    blocked_by: tuple[int, ...] = (),
) -> Events:
    """Cards are laid, and whatever follows from it: the trick is taken, the deal is scored.

    Args:
        state: the table.
        phase: its phase.
        cards: what the seat to move lays, ascending.
        facts: the next deal's seed, should this be the last play.
        attempted: the whole of a failed throw.
        blocked_by: the seats that the table is told blocked it.
    """
    seat = phase.to_move
    played = pb.CardsPlayed(
        seat=seat, cards=cards_to_wire(cards), attempted=cards_to_wire(attempted), blocked_by=blocked_by
    )
    events: Events = (pb.Event(cards_played=played),)
    plays = (*phase.trick, cards)
    if len(plays) < SEATS:
        return events
    order = order_of(state, phase)
    winner = (phase.leader + order.winner(plays)) % SEATS
    points = sum(order.points(laid_by) for laid_by in plays)
    attacks = side_of(winner) != side_of(phase.settled.declarer)
    total = phase.attackers_points + (points if attacks else 0)
    taken = pb.TrickTaken(seat=winner, points=points, attackers_points=total)
    events = (*events, pb.Event(trick_taken=taken))
    if phase.left > len(cards):
        return events
    return (*events, *ending.deal_scored(state, phase, plays, winner, points, facts))


def automatic(state: Table, phase: Tricks, facts: Facts) -> Events:
    """The server's play for the seat to move when the time is up (RULES §7 Time)."""
    order = order_of(state, phase)
    hand = known(phase.hands[phase.to_move], "the hand")
    if phase.trick:
        return laid(state, phase, automatic_follow(order, order.lead(phase.trick[0]), hand), facts)
    return laid(state, phase, automatic_lead(order, hand), facts)
