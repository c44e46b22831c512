"""What must hold at every table, whoever plays: cards are conserved, points are 100 a deck, a match ends by
its rules.
"""

from collections import Counter

from engine_ext.codes import CARDS
from services.game.state import Counter as CounterPhase
from services.game.state import Dealt, Declaring, Mutiny, Over, Tricks
from services.game.wire import level_from_wire
from services.rules.cards import ACE
from services.rules.options import MatchEnd


def events_of_deal(commits):
    """The events of the last deal started, newest commit first."""
    for commit in reversed(commits):
        yield from commit.events
        if any(event.HasField("deal_started") for event in commit.events):
            return


def cards_are_conserved(state, commits):
    """All cards of the decks are in hands, on the table, taken, or buried."""
    phase = state.phase
    if not isinstance(phase, Dealt):
        return
    held = Counter(b"".join(phase.hands))
    if isinstance(phase, Declaring | Mutiny):
        held.update(phase.kitty)
    if isinstance(phase, Tricks | CounterPhase):
        held.update(phase.buried)
    if isinstance(phase, Tricks):
        for event in events_of_deal(commits):
            if event.HasField("cards_played"):
                held.update(card - 1 for card in event.cards_played.cards)
    assert held == dict.fromkeys(range(CARDS), state.rules.decks)


def points_are_conserved(state, commits):
    """The points of all tricks and of the kitty of a deal just scored are 100 a deck."""
    events = list(events_of_deal(commits))
    (scored,) = [event.deal_scored for event in events if event.HasField("deal_scored")]
    taken = sum(event.trick_taken.points for event in events)
    assert taken + scored.kitty_points == 100 * state.rules.decks


def ends_by_its_rules(state, commits):
    """A match is over after the deal just scored if and only if its rules say so; the right side won."""
    rules, events = state.rules, list(events_of_deal(commits))
    told = {event.WhichOneof("kind"): getattr(event, event.WhichOneof("kind")) for event in events}
    scored, ended = told["deal_scored"], told.get("match_ended")
    winner, declarer = scored.winning_side, told["declaring_closed"].declarer
    defended = winner == declarer % 2 and not scored.hooked_back
    levels = [level_from_wire(level) for level in scored.levels]
    if rules.match_end is MatchEnd.PASS_ACE:
        won = defended and level_from_wire(told["deal_started"].level) == ACE
    else:
        won = rules.match_end is MatchEnd.REACH_ACE and levels[winner] == ACE
    over = won or 0 < rules.deals <= state.match.deals
    assert isinstance(state.phase, Over) == (ended is not None) == over
    if ended is None:
        return
    mine, theirs = ended.advanced[winner], ended.advanced[1 - winner]
    if won or mine > theirs:
        assert ended.winning_side == winner
    assert ended.HasField("winning_side") == (won or mine != theirs)
    assert list(ended.levels) == list(scored.levels)
