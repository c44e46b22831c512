"""Who may act, and when a wait ends (RULES §7 "Time"): pure functions of the state and the clock.

Every wait begins at a commit and has a limit. Two things follow from the state alone: ``deadline_us``, what
players are shown, and ``due_us``, when the server must act next (``Expire``): the deadline, or else the
limit of idleness.
"""

from typing import Final

from services.game.state import (
    Bury,
    Closed,
    Counter,
    Declaring,
    Mutiny,
    Over,
    Scored,
    Seating,
    Table,
    Tricks,
)
from services.rules import declaring, mutiny
from services.rules.options import Window

AUTO_PLAY_US: Final = 500_000
"""How long the server waits before it plays for a seat that is under its hand."""
CLOSING_US: Final = 120_000_000
"""From the match's end to the table's."""
IDLE_US: Final = 24 * 3_600_000_000
"""A table that nobody touched for so long is closed."""
COMMIT_CAP: Final = 20_000
"""The most commits of a table; the last is its closing."""


def drawn(state: Table, now_us: int) -> int:
    """How many cards each seat has drawn in the open deal; 0 when none is open.

    A seat draws one card every ``draw_ms`` after the deal's start: cards come in rounds of four.
    """
    phase = state.phase
    if isinstance(phase, Declaring):
        draw_us = state.pace.draw_ms * 1000
        size = state.rules.hand_size
        return min(size, (now_us - phase.deal.started_at_us) // draw_us) if draw_us else size
    return state.rules.hand_size if isinstance(phase, Tricks | Bury | Mutiny | Counter) else 0


def round_at_us(state: Table, number: int) -> int:
    """When round ``number`` of the draw comes; 0 when cards are not being drawn."""
    phase = state.phase
    if not isinstance(phase, Declaring):
        return 0
    return phase.deal.started_at_us + number * state.pace.draw_ms * 1000


def all_drawn_us(state: Table) -> int:
    """When the last card is drawn; 0 when cards are not being drawn."""
    return round_at_us(state, state.rules.hand_size)


def to_act(state: Table, now_us: int) -> tuple[int, ...]:
    """The seats that may act now, ascending; escaped seats never do."""
    return tuple(seat for seat in _awaited(state, now_us) if not state.seats[seat].escaped)


def _awaited(state: Table, now_us: int) -> tuple[int, ...]:
    phase = state.phase
    match phase:
        case Tricks():
            return (phase.to_move,)
        case Bury():
            return (phase.seat,)
        case Declaring():
            if now_us < all_drawn_us(state) and state.rules.window is Window.AFTER_DEAL:
                return ()
            return asked(state, phase)
        case Mutiny():
            return asked(state, phase)
        case Counter():
            return (phase.to_act,)
        case Seating() | Scored():
            return tuple(seat for seat, held in enumerate(state.seats) if held.player_id and not held.ready)
        case _:
            return ()


def asked(state: Table, phase: Declaring | Mutiny) -> tuple[int, ...]:
    """The seats that the declaring window, or a mutiny, still waits for, whatever they hold."""
    if isinstance(phase, Declaring):
        return declaring.asked(state.rules, phase.deal.as_declared(), phase.declarations)
    seats = mutiny.asked(state.rules, phase.settled.declarer)
    return tuple(seat for seat in seats if not phase.has_passed(seat))


def deadline_us(state: Table) -> int | None:
    """When the present wait ends; ``None`` when nothing waits for a clock."""
    phase, since = state.phase, state.waiting_since_us
    match phase:
        case Tricks():
            return _turn(state, phase.to_move, state.pace.turn_ms)
        case Bury():
            return _turn(state, phase.seat, state.pace.bury_ms)
        case Declaring():
            return window_limit_us(state, phase)
        case Mutiny():
            return since + state.given_us + state.pace.mutiny_ms * 1000
        case Counter():
            return _turn(state, phase.to_act, state.pace.turn_ms)
        case Scored():
            return since + state.given_us + state.pace.next_deal_ms * 1000
        case Over():
            return since + CLOSING_US
        case _:
            return None


def due_us(state: Table) -> int | None:
    """When the server must act next: at the deadline, or when the table has been idle too long.

    Sooner while it has to pass for a seat that it plays, at once at the commit cap; ``None`` only when the
    table is closed.
    """
    if isinstance(state.phase, Closed):
        return None
    if state.version >= COMMIT_CAP - 1:
        return state.recorded_at_us
    phase = state.phase
    deadline = deadline_us(state)
    if isinstance(phase, Declaring) and server_passes(state, phase):
        return window_opened_us(state, phase) + AUTO_PLAY_US
    if isinstance(phase, Mutiny) and server_passes(state, phase) and deadline is not None:
        return min(deadline, state.waiting_since_us + AUTO_PLAY_US)
    return state.recorded_at_us + IDLE_US if deadline is None else deadline


def is_players_wait(state: Table) -> bool:
    """Whether what is due next is a player's limit, which is given again after an outage (RULES §7).

    Not so between deals, at the match's end, and where the server plays for a seat anyway.
    """
    phase = state.phase
    match phase:
        case Tricks():
            return not state.seats[phase.to_move].auto_play
        case Bury():
            return not state.seats[phase.seat].auto_play
        case Counter():
            return not state.seats[phase.to_act].auto_play
        case Mutiny():
            return not server_passes(state, phase)
        case Declaring():
            waits = state.pace.declare_ms and asked(state, phase)
            return bool(waits) and not server_passes(state, phase)
        case _:
            return False


def limit_us(state: Table) -> int:
    """The length of the present wait's limit for a player; 0 where there is none."""
    match state.phase:
        case Tricks() | Counter():
            return state.pace.turn_ms * 1000
        case Mutiny():
            return state.pace.mutiny_ms * 1000
        case Bury():
            return state.pace.bury_ms * 1000
        case Declaring():
            return state.pace.declare_ms * 1000
        case _:
            return 0


def _turn(state: Table, seat: int, limit_ms: int) -> int:
    if state.seats[seat].auto_play:
        return state.waiting_since_us + AUTO_PLAY_US
    return state.waiting_since_us + state.given_us + limit_ms * 1000


def server_passes(state: Table, phase: Declaring | Mutiny) -> tuple[int, ...]:
    """The seats that the server passes for as soon as they are asked after the last card."""
    return tuple(seat for seat in asked(state, phase) if state.seats[seat].auto_play)


def window_opened_us(state: Table, phase: Declaring) -> int:
    """From when the window's limit counts: the last card, or what reopened it later."""
    return max(all_drawn_us(state), phase.reopened_at_us)


def window_limit_us(state: Table, phase: Declaring) -> int | None:
    """When time is up for all who are asked; ``None`` when the window closes on passes only.

    With nobody left to ask (``joker_backed``) it closes with the last card.
    """
    if not asked(state, phase):
        return all_drawn_us(state)
    if state.pace.declare_ms == 0:
        return None
    return window_opened_us(state, phase) + state.given_us + state.pace.declare_ms * 1000
