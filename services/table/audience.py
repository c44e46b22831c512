"""As whom a caller sees a table: a seat, a spectator, or not at all."""

from services.game import views
from services.game.keys import Keyring
from services.game.state import Declaring, Table
from services.game.views import SPECTATOR
from services.game.waits import round_at_us
from services.pb.event.v1.event_pb2 import SPECTATORS_LINK, SPECTATORS_PUBLIC
from services.pb.table.v1.view_pb2 import TableView
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.table.secrets import is_spectator_code


def audience_of(state: Table, player_id: str, code: str, keyring: Keyring) -> int:
    """The audience that a player belongs to: a seat 0..3 or ``SPECTATOR``.

    Raises:
        RefusedError: NOT_YOURS, no seat and no right to look on.
    """
    seat = state.seat_of(player_id)
    if seat is not None:
        return seat
    spectators = state.founding.spectators
    if spectators == SPECTATORS_PUBLIC:
        return SPECTATOR
    if spectators == SPECTATORS_LINK and is_spectator_code(keyring, state.table_id, code):
        return SPECTATOR
    raise RefusedError(Reason.NOT_YOURS)


def delay_us_of(state: Table, audience: int) -> int:
    """How much later an audience is told, microseconds."""
    return state.founding.spectator_delay_ms * 1000 if audience == SPECTATOR else 0


def view_as_told(state: Table, told: int, audience: int, as_of_us: int, now_us: int) -> TableView:
    """A table for somebody who has been told so many rounds of the draw and no more.

    Args:
        state: the table.
        told: rounds of the draw.
        audience: who asks.
        as_of_us: the time that is shown.
        now_us: the clock that is shown.
    """
    if isinstance(state.phase, Declaring) and state.pace.draw_ms:
        told_us = round_at_us(state, told)
        as_of_us = told_us if told < state.rules.hand_size else max(as_of_us, told_us)
    shown = views.view(state, audience, as_of_us)
    shown.server_now_ms = now_us // 1000
    return shown
