"""Folding what happens to seats: founding, sitting, leaving, readiness, auto-play."""

from typing import cast

from services.game.errors import CorruptLog
from services.game.folding.draft import Draft
from services.game.state import FREE_SEAT, Declaring, Founding, Mutiny, Seating, SeatState, Seed, Table
from services.game.wire import pace_from_wire, rules_from_wire
from services.pb.event.v1 import event_pb2 as pb
from services.pb.log.v1.log_pb2 import Commit
from services.rules import levels


def founded(commit: Commit, first: pb.Event) -> Table:
    """The table that the first event founds; its seats are filled by the handler."""
    if first.WhichOneof("kind") != "table_opened":
        raise CorruptLog(commit.version, "the first event must found the table")
    event = first.table_opened
    rules = rules_from_wire(event.rules)
    return Table(
        version=0,
        recorded_at_us=commit.recorded_at_us,
        turn_version=commit.version,
        waiting_since_us=commit.recorded_at_us,
        given_us=0,
        seats=(FREE_SEAT, FREE_SEAT, FREE_SEAT, FREE_SEAT),
        recent=(b"", b"", b"", b"", b""),
        phase=Seating(),
        match=levels.begin(rules),
        next_seed=None,
        last_score=b"",
        newest_d=0,
        founding=Founding(
            table_id=commit.table_id,
            creator_id=event.creator_id,
            rules=rules,
            pace=pace_from_wire(event.pace),
            stake=event.stake,
            spectators=event.spectators,
            spectator_delay_ms=event.spectator_delay_ms,
            previous_table_id=event.previous_table_id,
            insecure_entropy=event.insecure_entropy,
            operator=event.operator,
            rake_permille=event.rake_permille,
            prize=event.prize,
        ),
    )


def table_opened(draft: Draft, event: pb.TableOpened) -> None:
    """The seats as founded, and the first commitment."""
    for seat in event.seats:
        draft.set_seat(seat.seat, SeatState(player_id=seat.player_id, difficulty=seat.difficulty))
    draft.next_seed = seed_of(event.next_seed)


def seat_taken(draft: Draft, event: pb.SeatTaken) -> None:
    """A seat gets its player, who inherits nothing."""
    seat = event.seat.seat
    draft.set_seat(seat, SeatState(player_id=event.seat.player_id, difficulty=event.seat.difficulty))
    draft.recent = cast(
        "tuple[bytes, bytes, bytes, bytes, bytes]", (*draft.recent[:seat], b"", *draft.recent[seat + 1 :])
    )


def seat_left(draft: Draft, event: pb.SeatLeft) -> None:
    """A seat is free, or its player has escaped and the server plays on."""
    held = draft.seats[event.seat]
    if event.escaped:
        draft.set_seat(event.seat, held._replace(escaped=True, auto_play=True, away=False, missed=0))
    else:
        draft.set_seat(event.seat, FREE_SEAT)


def seed_committed(draft: Draft, event: pb.SeedCommitted) -> None:
    """Another seed counts; whoever was ready for the old one is not any more."""
    draft.next_seed = seed_of(event.next_seed)
    draft.nobody_ready()


def seat_ready(draft: Draft, event: pb.SeatReady) -> None:
    """A seat is ready."""
    held = draft.seats[event.seat]
    draft.set_seat(event.seat, held._replace(ready=True, client_seed=event.client_seed))


def seed_of(message: pb.SeedCommitment) -> Seed:
    """The seed that a commitment speaks of."""
    return Seed(message.deal, message.commitment, message.salt, message.key_id, message.server_seed)


def auto_play_set(draft: Draft, event: pb.AutoPlaySet) -> None:
    """The server plays a seat, or no longer."""
    held = draft.seats[event.seat]
    away = event.on and not event.by_player
    draft.set_seat(event.seat, held._replace(auto_play=event.on, away=away, missed=0))


def turn_expired(draft: Draft, event: pb.TurnExpired) -> None:
    """Count a missed turn. To let the declaring window or a mutiny run out is to pass, and misses nothing."""
    held = draft.seats[event.seat]
    if not held.auto_play and not isinstance(draft.phase, Declaring | Mutiny):
        draft.set_seat(event.seat, held._replace(missed=held.missed + 1))
