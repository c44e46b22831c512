"""The end of a deal: scoring, escapes, the next seed, and the end of the match (RULES §8, §9)."""

from services.game.decide.common import Events, fresh_seed, known, reveal
from services.game.facts import Facts
from services.game.state import Table, Tricks, side_of
from services.game.wire import cards_to_wire, level_to_wire
from services.pb.event.v1 import event_pb2 as pb
from services.rules import levels, scoring
from services.rules.cards import points as points_of
from services.rules.hook_back import hooks_back
from services.rules.options import Multiplier


def deal_scored(
    state: Table, phase: Tricks, plays: tuple[bytes, ...], winner: int, points: int, facts: Facts
) -> Events:
    """The deal's score, who has escaped by being away, and the match's end if this was it.

    Args:
        state: the table.
        phase: its phase before the last play.
        plays: the last trick from its leader on.
        winner: the seat that won it.
        points: the points in it.
        facts: the seed of the next deal.
    """
    rules, declarer = state.rules, phase.settled.declarer
    order = rules.engine().order(phase.deal.level, phase.settled.trump)
    kitty = known(phase.buried, "the buried cards")
    last = scoring.LastTrick(
        attackers_won=side_of(winner) != side_of(declarer), points=points, multiplier=order.multiplier(plays)
    )
    total = scoring.attackers_total(rules, phase.attackers_points, last, points_of(kitty), phase.fines)
    result = scoring.result(rules.level_table, total)
    hooked = hooks_back(
        rules, order, plays[0], plays[(winner - phase.leader) % 4], attackers_won=last.attackers_won
    )
    match = levels.after_deal(rules, state.match, declarer, phase.deal.level, result, hooked=hooked)
    multiplied = last.attackers_won or rules.multiplier is Multiplier.LAST_TRICK
    scored = pb.DealScored(
        deal=phase.deal.number,
        attackers_points=total,
        kitty=cards_to_wire(kitty),
        kitty_points=points_of(kitty),
        multiplier=last.multiplier if multiplied else 0,
        winning_side=side_of(declarer) ^ result.attackers_take_over,
        nominal_levels=result.gained,
        levels=[level_to_wire(level) for level in match.levels],
        next_declarer=match.declarer or 0,
        reveal=reveal(phase.deal.seed),
        hooked_back=hooked,
        fines=phase.fines,
        failed_throws=phase.failed_throws,
    )
    if match.outcome is None:
        scored.next_seed.CopyFrom(fresh_seed(phase.deal.number + 1, facts))
    return (pb.Event(deal_scored=scored), *_escapes(state), *_match_ended(match))


def _escapes(state: Table) -> Events:
    """Who was away and is not back when the deal ends has escaped (RULES §9)."""
    return tuple(
        pb.Event(seat_left=pb.SeatLeft(seat=seat, player_id=held.player_id, escaped=True))
        for seat, held in enumerate(state.seats)
        if held.away
    )


def _match_ended(match: levels.Match) -> Events:
    if match.outcome is None:
        return ()
    ended = pb.MatchEnded(
        winning_side=None if match.outcome is levels.Outcome.DRAW else int(match.outcome),
        levels=[level_to_wire(level) for level in match.levels],
        advanced=match.advanced,
        deals=match.deals,
    )
    return (pb.Event(match_ended=ended),)
