"""What the server does by itself: when a wait has run out, and giving time, voiding, closing (RULES §7)."""

from services.game.commands import Close, EndUnfunded, Refusal
from services.game.decide import bury, declaring, mutiny, tricks
from services.game.decide.common import Decision, Events, auto_play_set, fresh_seed, passed, reveal
from services.game.decide.dealing import deal_started
from services.game.facts import Facts
from services.game.ids import is_service
from services.game.state import (
    Bury,
    Counter,
    Dealt,
    Declaring,
    Mutiny,
    Over,
    Scored,
    Seating,
    Seed,
    Table,
    Tricks,
)
from services.game.waits import (
    COMMIT_CAP,
    IDLE_US,
    asked,
    deadline_us,
    due_us,
    is_players_wait,
    limit_us,
    server_passes,
)
from services.pb.event.v1 import event_pb2 as pb
from services.rules.reasons import Reason


def expire(state: Table, facts: Facts) -> Decision:
    """Do what is due: play for a seat, pass, bury, deal, or close the table. Refused while nothing is due."""
    due = due_us(state)
    if due is None or facts.now_us < due:
        return Refusal(Reason.WRONG_PHASE)
    if state.version >= COMMIT_CAP - 1:
        return _closed(state, pb.CLOSE_REASON_COMMIT_CAP)
    phase = state.phase
    match phase:
        case Tricks():
            return (*_expired(state, phase.to_move), *tricks.automatic(state, phase, facts))
        case Bury():
            return (*_expired(state, phase.seat), bury.automatic(state, phase))
        case Counter():
            return (*_expired(state, phase.to_act), passed(phase.to_act))
        case Declaring() if deadline_us(state) is not None or server_passes(state, phase):
            return declaring.time_up(state, phase, server_passes(state, phase) or asked(state, phase))
        case Mutiny():
            return mutiny.time_up(state, phase, server_passes(state, phase) or asked(state, phase))
        case Scored():
            return (deal_started(state, [held.client_seed for held in state.seats]),)
        case Over():
            return _closed(state, pb.CLOSE_REASON_FINISHED)
        case _:  # nothing has a limit here but idleness
            return _closed(state, pb.CLOSE_REASON_ABANDONED)


def _expired(state: Table, seat: int) -> Events:
    """A turn ran out; with too many in a row the seat is away, and the server plays it (RULES §9)."""
    expired = pb.Event(turn_expired=pb.TurnExpired(seat=seat))
    held = state.seats[seat]
    if held.auto_play or held.missed + 1 < state.pace.away_turns:
        return (expired,)
    return (expired, pb.Event(auto_play_set=auto_play_set(seat, on=True, by_player=False)))


def give_time(state: Table, facts: Facts) -> Decision:
    """A player's limit passed while nobody could act: it is given again, whole, from now on (RULES §7)."""
    deadline = deadline_us(state)
    if deadline is None or not is_players_wait(state) or facts.now_us < deadline:
        return Refusal(Reason.WRONG_PHASE)
    added_us = facts.now_us - deadline + limit_us(state)
    return (pb.Event(time_given=pb.TimeGiven(added_ms=-(-added_us // 1000))),)


def void_deal(state: Table, facts: Facts) -> Decision:
    """Give up a deal whose secrets are lost; refused while they can be opened."""
    seed = _open_seed(state)
    if seed is None or not _secrets_lost(state):
        return Refusal(Reason.WRONG_PHASE)
    voided = pb.DealVoided(deal=seed.deal, reveal=reveal(seed), next_seed=fresh_seed(seed.deal + 1, facts))
    return (pb.Event(deal_voided=voided),)


def _open_seed(state: Table) -> Seed | None:
    """The seed of the open deal, or of the one to come."""
    return state.phase.deal.seed if isinstance(state.phase, Dealt) else state.next_seed


def _secrets_lost(state: Table) -> bool:
    seed, phase = _open_seed(state), state.phase
    if seed is None or not seed.server_seed:
        return True
    if not isinstance(phase, Dealt):
        return False
    kitty = phase.buried if isinstance(phase, Tricks | Counter) else b""
    return kitty is None or any(hand is None for hand in phase.hands)


def close(state: Table, command: Close, facts: Facts) -> Decision:
    """Close the table for a reason that holds."""
    players = [held.player_id for held in state.seats]
    over, idle = isinstance(state.phase, Over), facts.now_us - state.recorded_at_us
    holds = {
        pb.CLOSE_REASON_FINISHED: over,
        pb.CLOSE_REASON_ABANDONED: idle >= IDLE_US,
        pb.CLOSE_REASON_COMMIT_CAP: state.version >= COMMIT_CAP - 1,
        pb.CLOSE_REASON_EMPTY: isinstance(state.phase, Seating) and not any(players),
    }
    reason = pb.CloseReason.ValueType(command.reason)
    if reason not in holds:
        return Refusal(Reason.BAD_INPUT, {"field": "reason", "detail": "is no reason to close a table"})
    return _closed(state, reason) if holds[reason] else Refusal(Reason.WRONG_PHASE)


def end_unfunded(state: Table, command: EndUnfunded) -> Decision:
    """End the match because a seat cannot cover its stake; only services know that (RULES §9)."""
    if not is_service(command.player_id):
        return Refusal(Reason.NOT_YOURS)
    if not state.founding.stake:
        return Refusal(Reason.BAD_INPUT, {"field": "table_id", "detail": "is of a table without a stake"})
    if not isinstance(state.phase, Seating | Scored):
        return Refusal(Reason.WRONG_PHASE)
    return _closed(state, pb.CLOSE_REASON_UNFUNDED)


def _closed(state: Table, reason: pb.CloseReason.ValueType) -> Events:
    closed = pb.TableClosed(reason=reason)
    seed = _open_seed(state)
    if seed is not None:
        closed.reveal.CopyFrom(reveal(seed))
    return (pb.Event(table_closed=closed),)
