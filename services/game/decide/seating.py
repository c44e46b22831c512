"""Founding a table, sitting down, leaving, being ready, and letting the server play (RULES §9 Escape)."""

import re
from collections.abc import Iterator
from typing import Final

from services.game.commands import Leave, OpenTable, Ready, Refusal, SetAutoPlay, Sit
from services.game.decide.common import Decision, Events, auto_play_set, fresh_seed, own_seat, reveal
from services.game.decide.dealing import deal_started
from services.game.facts import Facts
from services.game.ids import is_service
from services.game.shuffle import SEED_SIZE
from services.game.state import SEATS, Dealt, Scored, Seating, SeatState, Table
from services.game.wire import pace_to_wire, rules_to_wire
from services.pb.event.v1 import event_pb2 as pb
from services.rules.reasons import Reason

MAX_STAKE: Final = 1_000_000_000
MAX_RAKE_PERMILLE: Final = 100
MAX_PRIZE: Final = 1_000_000_000_000
MAX_WAIT_MS: Final = 600_000
MAX_TEXT: Final = 128
"""Characters of a player id, a key of entropy or a table id."""
_OPERATOR: Final = re.compile(r"[a-z0-9-]{2,32}", re.ASCII)
_PACE_RANGES: Final = {
    "draw_ms": (0, 10_000),
    "declare_ms": (0, MAX_WAIT_MS),
    "mutiny_ms": (0, MAX_WAIT_MS),
    "bury_ms": (1000, MAX_WAIT_MS),
    "turn_ms": (1000, MAX_WAIT_MS),
    "next_deal_ms": (0, MAX_WAIT_MS),
    "away_turns": (1, 100),
}


def open_table(command: OpenTable, facts: Facts) -> Decision:
    """Found a table; the seed of its first deal is committed to with it."""
    fault = next(_faults(command), None)
    if fault is not None:
        return fault
    opened = pb.TableOpened(
        creator_id=command.player_id,
        rules=rules_to_wire(command.rules),
        pace=pace_to_wire(command.pace),
        stake=command.stake,
        spectators=pb.Spectators.ValueType(command.spectators or pb.SPECTATORS_OFF),
        spectator_delay_ms=command.spectator_delay_ms,
        seats=[
            pb.Seat(seat=seat, player_id=plan.player_id, difficulty=pb.Difficulty.ValueType(plan.difficulty))
            for seat, plan in enumerate(command.seats)
        ],
        next_seed=fresh_seed(1, facts),
        previous_table_id=command.previous_table_id,
        insecure_entropy=command.insecure_entropy,
        operator=command.operator,
        rake_permille=command.rake_permille,
        prize=command.prize,
    )
    return (pb.Event(table_opened=opened),)


def _faults(command: OpenTable) -> Iterator[Refusal]:
    if not 0 < len(command.player_id) <= MAX_TEXT:
        yield _bad("player_id", f"must have 1 to {MAX_TEXT} characters")
    for name, (low, high) in _PACE_RANGES.items():
        if not low <= getattr(command.pace, name) <= high:
            yield _bad(f"pace.{name}", f"must be from {low} to {high}")
    if not 0 <= command.stake <= MAX_STAKE:
        yield _bad("stake", f"must be from 0 to {MAX_STAKE}")
    if command.operator and not _OPERATOR.fullmatch(command.operator):
        yield _bad("operator", "must have 2 to 32 of a-z, 0-9 and -")
    if not 0 <= command.rake_permille <= MAX_RAKE_PERMILLE:
        yield _bad("rake_permille", f"must be from 0 to {MAX_RAKE_PERMILLE}")
    if not 0 <= command.prize <= MAX_PRIZE:
        yield _bad("prize", f"must be from 0 to {MAX_PRIZE}")
    if command.spectators not in pb.Spectators.values():
        yield _bad("spectators", "is no such value")
    if not 0 <= command.spectator_delay_ms <= MAX_WAIT_MS:
        yield _bad("spectator_delay_ms", f"must be from 0 to {MAX_WAIT_MS}")
    players = [plan.player_id for plan in command.seats if plan.player_id]
    if command.stake and is_service(command.player_id) and len(players) < SEATS:
        yield _bad("seats", "are all taken where there is a stake")
    if len(players) != len(set(players)):
        yield _bad("seats", "one player cannot have two seats")
    for plan in command.seats:
        if len(plan.player_id) > MAX_TEXT:
            yield _bad("seats", f"a player id has at most {MAX_TEXT} characters")
        if plan.difficulty not in pb.Difficulty.values() or (plan.difficulty and not plan.player_id):
            yield _bad("seats", "a seat has a difficulty exactly when a bot sits there")


def _bad(field: str, detail: str) -> Refusal:
    return Refusal(Reason.BAD_INPUT, {"field": field, "detail": detail})


def opening_fault(command: OpenTable) -> Refusal | None:
    """Why no table can be founded by a command, if none can: for whoever plans one for later."""
    return next(_faults(command), None)


def sit(state: Table, command: Sit, facts: Facts) -> Decision:
    """Take a free seat before the match; a change of seats makes a new commitment."""
    if not 0 <= command.seat < SEATS:
        return _bad("seat", "must be from 0 to 3")
    if not 0 < len(command.player_id) <= MAX_TEXT:
        return _bad("player_id", f"must have 1 to {MAX_TEXT} characters")
    if is_service(command.player_id) or _holds_stakes(state):
        return Refusal(Reason.NOT_YOURS)
    if not isinstance(state.phase, Seating):
        return Refusal(Reason.WRONG_PHASE)
    if state.seat_of(command.player_id) is not None:
        return Refusal(Reason.ALREADY_SEATED)
    if state.seats[command.seat].player_id:
        full = all(held.player_id for held in state.seats)
        return Refusal(Reason.TABLE_FULL if full else Reason.SEAT_TAKEN)
    seat = pb.Seat(
        seat=command.seat,
        player_id=command.player_id,
        difficulty=pb.Difficulty.ValueType(command.difficulty),
    )
    return (pb.Event(seat_taken=pb.SeatTaken(seat=seat)), *_new_commitment(state, facts))


def _holds_stakes(state: Table) -> bool:
    """Chips of those who sit are held, so nobody else can sit (older tables were founded by players)."""
    return state.founding.stake > 0 and is_service(state.founding.creator_id)


def leave(state: Table, command: Leave, facts: Facts) -> Decision:
    """Free a seat before the match, or escape in mid-match: at once and for good (RULES §9)."""
    seat = own_seat(state, command.player_id)
    if isinstance(seat, Refusal):
        return seat
    left = pb.SeatLeft(seat=seat, player_id=command.player_id)
    if isinstance(state.phase, Dealt | Scored):
        left.escaped = True
        return (pb.Event(seat_left=left),)
    if not isinstance(state.phase, Seating):
        return Refusal(Reason.WRONG_PHASE)
    if any(_is_person(held) for other, held in enumerate(state.seats) if other != seat):
        return (pb.Event(seat_left=left), *_new_commitment(state, facts))
    closed = pb.TableClosed(reason=pb.CLOSE_REASON_EMPTY)
    if state.next_seed is not None:
        closed.reveal.CopyFrom(reveal(state.next_seed))
    return (pb.Event(seat_left=left), pb.Event(table_closed=closed))


def _is_person(held: SeatState) -> bool:
    return bool(held.player_id) and not held.difficulty


def _new_commitment(state: Table, facts: Facts) -> Events:
    """A fresh seed in place of the one committed to, which some seed of a player may already have met."""
    committed = pb.SeedCommitted()
    if state.next_seed is not None:
        committed.next_seed.CopyFrom(fresh_seed(state.next_seed.deal, facts))
        committed.discarded.CopyFrom(reveal(state.next_seed))
    return (pb.Event(seed_committed=committed),)


def ready(state: Table, command: Ready, facts: Facts) -> Decision:
    """Be ready; the fourth ready seat starts the deal. A seat that the server plays need not say so."""
    seat = own_seat(state, command.player_id)
    if isinstance(seat, Refusal):
        return seat
    if len(command.client_seed) > SEED_SIZE:
        return _bad("client_seed", f"has at most {SEED_SIZE} bytes")
    if not isinstance(state.phase, Seating | Scored):
        return Refusal(Reason.WRONG_PHASE)
    if state.seats[seat].ready:
        return Refusal(Reason.ALREADY_DONE)
    said = pb.Event(seat_ready=pb.SeatReady(seat=seat, client_seed=command.client_seed))
    others = (held for other, held in enumerate(state.seats) if other != seat)
    if not all(held.ready or held.auto_play for held in others):
        return (said,)
    seeds = [held.client_seed for held in state.seats]
    seeds[seat] = command.client_seed
    return (said, deal_started(state, seeds))


def set_auto_play(state: Table, command: SetAutoPlay) -> Decision:
    """Let the server play one's seat, or take it back; only in mid-match."""
    seat = own_seat(state, command.player_id)
    if isinstance(seat, Refusal):
        return seat
    if not isinstance(state.phase, Dealt | Scored):
        return Refusal(Reason.WRONG_PHASE)
    held = state.seats[seat]
    if held.auto_play == command.on and not held.away:
        return Refusal(Reason.ALREADY_DONE)
    return (pb.Event(auto_play_set=auto_play_set(seat, on=command.on, by_player=True)),)
