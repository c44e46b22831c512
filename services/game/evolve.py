"""The fold: a table's state from its commits, one after another (ARCHITECTURE §1).

``evolve`` trusts what was recorded and never checks it; that it was right is ``decide``'s part before it is
recorded, and ``verify``'s ever after. It reads the events' secret fields where ``seal.open_commit`` has
filled them; those that are empty stay unknown in the state, so that the same fold serves the table, the
ledger and strangers.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from services.game import recent
from services.game.errors import UnknownEvent
from services.game.folding import declaring, ending, seating, tricks
from services.game.folding.draft import Draft
from services.game.ids import D_EVENTS
from services.game.state import FREE_SEAT, NOBODY, SEATS, Table
from services.pb.log.v1.log_pb2 import Commit

FOLD_VERSION: Final = 3
"""Rises whenever the same commits would fold into another state; snapshots of other versions are ignored."""


def evolve(state: Table | None, commit: Commit) -> Table:
    """The table after one more commit.

    Args:
        state: the table before it; ``None`` before the first.
        commit: the next commit, opened as far as the reader has keys. That it is the next one is ``chain``'s
            check.

    Raises:
        UnknownEvent: an event of a kind that this code does not know.
        CorruptLog: events that cannot follow each other.
    """
    events = commit.events[:]
    if state is None:
        state = seating.founded(commit, events[0])
    draft = Draft(state, commit.version, commit.recorded_at_us)
    for event in events:
        kind = event.WhichOneof("kind")
        handler = _HANDLERS.get(kind)
        if kind is None or handler is None:
            raise UnknownEvent(commit.version, "an event of a kind that this version does not know")
        handler(draft, getattr(event, kind))
        if kind in D_EVENTS:
            draft.newest_d = draft.version
    if command_id := commit.command_id:
        _remember(draft, commit, command_id)
    return draft.freeze()


def fold(commits: Iterable[Commit], state: Table | None = None) -> Table:
    """The table after all these commits.

    Raises:
        UnknownEvent: as ``evolve``.
        ValueError: there are no commits and no state.
    """
    for commit in commits:
        state = evolve(state, commit)
    if state is None:
        raise ValueError("no commits, no table")
    return state


def _remember(draft: Draft, commit: Commit, command_id: bytes) -> None:
    """Keep the command's id (``recent``); who acts in person is not away."""
    actor = commit.actor
    player_id, slot = actor.player_id, actor.seat
    held = draft.seats[slot]
    if held.player_id != player_id:
        slot = next((seat for seat in range(SEATS) if draft.seats[seat].player_id == player_id), NOBODY)
        held = draft.seats[slot] if slot < SEATS else FREE_SEAT
    if draft.version == 1:
        slot = NOBODY
    if held.missed:
        draft.set_seat(slot, held._replace(missed=0))
    slots = draft.recent
    kept = recent.remember(slots[slot], command_id, commit.command_check, draft.version)
    draft.recent = cast("tuple[bytes, bytes, bytes, bytes, bytes]", (*slots[:slot], kept, *slots[slot + 1 :]))


_HANDLERS: Final[dict[str | None, Callable[[Draft, Any], None]]] = {
    "table_opened": seating.table_opened,
    "seat_taken": seating.seat_taken,
    "seat_left": seating.seat_left,
    "seed_committed": seating.seed_committed,
    "seat_ready": seating.seat_ready,
    "deal_started": declaring.deal_started,
    "declared": declaring.declared,
    "passed": declaring.passed,
    "declaring_closed": declaring.declaring_closed,
    "kitty_taken": declaring.kitty_taken,
    "buried": declaring.buried,
    "cards_played": tricks.cards_played,
    "trick_taken": tricks.trick_taken,
    "deal_scored": ending.deal_scored,
    "match_ended": ending.match_ended,
    "table_closed": ending.table_closed,
    "auto_play_set": seating.auto_play_set,
    "time_given": ending.time_given,
    "deal_voided": ending.deal_voided,
    "turn_expired": seating.turn_expired,
    "throw_refused": tricks.throw_refused,
    "mutiny_called": declaring.mutiny_called,
    "countered": declaring.countered,
}
