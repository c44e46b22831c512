"""Folding ends: of a deal, of the match, of the table; and time given."""

from dataclasses import replace

from services.game.folding.draft import Draft
from services.game.folding.seating import seed_of
from services.game.state import Closed, Over, Scored, Seating, Tricks, side_of
from services.game.wire import level_from_wire
from services.pb.event.v1 import event_pb2 as pb
from services.rules import levels, scoring


def deal_scored(draft: Draft, event: pb.DealScored) -> None:
    """Levels and declarer's place for the next deal."""
    phase: Tricks = draft.phase
    declarer = phase.settled.declarer
    took_over = event.winning_side != side_of(declarer)
    up = event.nominal_levels
    result = scoring.Result(0 if took_over else up, up if took_over else 0, attackers_take_over=took_over)
    match = levels.after_deal(
        draft.founding.rules, draft.match, declarer, phase.deal.level, result, hooked=event.hooked_back
    )
    low, high = (level_from_wire(level) for level in event.levels)
    draft.match = replace(match, levels=(low, high), declarer=event.next_declarer)
    kept = pb.DealScored()
    kept.CopyFrom(event)
    kept.ClearField("reveal")
    kept.ClearField("next_seed")
    draft.last_score = kept.SerializeToString(deterministic=True)
    draft.phase = Scored()
    draft.next_seed = seed_of(event.next_seed) if event.HasField("next_seed") else None
    draft.begin_wait()


def match_ended(draft: Draft, event: pb.MatchEnded) -> None:
    """Nothing more is dealt."""
    outcome = levels.Outcome(event.winning_side) if event.HasField("winning_side") else levels.Outcome.DRAW
    draft.match = replace(draft.match, outcome=outcome)
    draft.phase = Over(event.SerializeToString(deterministic=True))
    draft.next_seed = None


def table_closed(draft: Draft, event: pb.TableClosed) -> None:
    """Nothing follows."""
    result = draft.phase.result if isinstance(draft.phase, Over) else b""
    draft.phase = Closed(event.reason, result)
    draft.next_seed = None
    draft.begin_wait()


def deal_voided(draft: Draft, event: pb.DealVoided) -> None:
    """As if the deal had not been dealt; another seed counts."""
    if not isinstance(draft.phase, Seating):
        draft.phase = Scored()
    draft.next_seed = seed_of(event.next_seed)
    draft.nobody_ready()
    draft.begin_wait()


def time_given(draft: Draft, event: pb.TimeGiven) -> None:
    """The present wait is longer."""
    draft.given_us += event.added_ms * 1000
