"""The declaring window: showing cards, passing, and what the window settles (RULES §7)."""

from dataclasses import replace

from services.game.commands import Declare, Pass, Refusal
from services.game.decide import mutiny
from services.game.decide.common import (
    Decision,
    Events,
    first_missing,
    kitty_taken,
    known,
    not_in_hand,
    own_seat,
    passed,
    server_passed,
)
from services.game.draw import drawn_hand
from services.game.facts import Facts
from services.game.state import SEATS, Declaring, Table
from services.game.waits import all_drawn_us
from services.game.wire import cards_to_wire, trump_to_wire
from services.pb.event.v1 import event_pb2 as pb
from services.rules import declaring as rules_of_declaring
from services.rules.declarations import Declarations
from services.rules.options import MatchDeclares, Window
from services.rules.reasons import Reason


def declare(state: Table, command: Declare, facts: Facts) -> Decision:
    """Show cards. Only those already drawn can be shown; any other is answered as one not held."""
    seat = own_seat(state, command.player_id)
    if isinstance(seat, Refusal):
        return seat
    phase = state.phase
    if not isinstance(phase, Declaring):
        return Refusal(Reason.WRONG_PHASE)
    if state.rules.window is Window.AFTER_DEAL and facts.now_us < all_drawn_us(state):
        return Refusal(Reason.WRONG_PHASE)
    held = known(drawn_hand(state, seat, facts.now_us), "the order of the deck")
    must_hold = rules_of_declaring.must_hold(phase.declarations, seat, command.cards)
    missing = first_missing(held, must_hold)
    if missing is not None:
        return not_in_hand(missing)
    answer = rules_of_declaring.judge_showing(
        state.rules, phase.deal.as_declared(), phase.declarations, seat, command.cards
    )
    if not isinstance(answer, Declarations):
        return Refusal(answer.reason)
    shown = pb.Event(declared=_declared(answer, seat, command.cards))
    if facts.now_us < all_drawn_us(state):
        return (shown,)
    return (shown, *_closed_if_done(state, phase, answer))


def _declared(after: Declarations, seat: int, cards: bytes) -> pb.Declared:
    count = after.standing.count if after.standing is not None else len(cards)
    return pb.Declared(seat=seat, cards=cards_to_wire(bytes(sorted(cards))), count=count)


def pass_window(state: Table, command: Pass, facts: Facts) -> Decision:
    """Pass, after the last card; the window closes when nobody is left to ask."""
    seat = own_seat(state, command.player_id)
    if isinstance(seat, Refusal):
        return seat
    phase = state.phase
    if not isinstance(phase, Declaring) or facts.now_us < all_drawn_us(state):
        return Refusal(Reason.WRONG_PHASE)
    answer = rules_of_declaring.judge_pass(phase.declarations, seat)
    if not isinstance(answer, Declarations):
        return Refusal(answer.reason)
    return (passed(seat), *_closed_if_done(state, phase, answer))


def _closed_if_done(state: Table, phase: Declaring, after: Declarations) -> Events:
    """The window's close if, after these declarations, there is nobody left to ask."""
    if rules_of_declaring.asked(state.rules, phase.deal.as_declared(), after):
        return ()
    return _window_closed(state, replace(phase, declarations=after))


def _window_closed(state: Table, phase: Declaring) -> Events:
    """Trump is settled; the declarer takes the kitty if there is one, unless a mutiny may be called first.

    Raises:
        SecretsUnknown: the kitty, or hands that ``match_declares`` looks into, are sealed.
    """
    rules, shown = state.rules, phase.declarations
    kitty = known(phase.kitty, "the kitty")
    hands = None
    if shown.standing is None and rules.match_declares is not MatchDeclares.NEVER:
        hands = [known(phase.hands[seat], "a hand") for seat in range(SEATS)]
    settled = rules_of_declaring.settle(rules, phase.deal.as_declared(), shown, kitty, hands)
    closed = pb.DeclaringClosed(
        trump=trump_to_wire(settled.trump, two_colour=rules.two_colour),
        declarer=settled.declarer,
        declared_by=None if shown.standing is None else shown.standing.seat,
        opened=_opened(phase) if rules.sealed else [],
    )
    if settled.turned is not None:
        closed.turned_card = cards_to_wire(bytes((settled.turned,)))[0]
        closed.turned_place = rules.kitty_card
    told = pb.Event(declaring_closed=closed)
    if mutiny.is_possible(state) or not rules.kitty:
        return (told,)
    return (told, kitty_taken(settled.declarer, kitty))


def _opened(phase: Declaring) -> list[pb.Declared]:
    """Every declaration of the deal in order, for all to see now that the window has closed."""
    return [
        pb.Declared(seat=seat, cards=cards_to_wire(cards), count=len(cards))
        for seat, cards in phase.declarations.shown
    ]


def time_up(state: Table, phase: Declaring, seats: tuple[int, ...]) -> Events:
    """The server passes for these seats, and closes the window when nobody is left to ask."""
    after = phase.declarations
    for seat in seats:
        answer = rules_of_declaring.judge_pass(after, seat)
        if isinstance(answer, Declarations):
            after = answer
    return (*server_passed(seats), *_closed_if_done(state, phase, after))
