"""A match from deal to deal: levels, whose deal it is next, and when it is won (RULES §8).

Side 0 is seats 0 and 2, side 1 is seats 1 and 3. Levels are 0..12 for 2..A.
"""

from dataclasses import dataclass, replace
from enum import IntEnum

from services.rules.cards import ACE, RANKS, SEATS
from services.rules.options import MatchEnd, RuleSet
from services.rules.scoring import Result


class Outcome(IntEnum):
    """Who has won a match; the numbers of the sides."""

    SIDE_0 = 0
    SIDE_1 = 1
    DRAW = 2
    """After ``deals`` deals both had advanced equally."""


@dataclass(frozen=True, slots=True)
class Match:
    """A match between two deals.

    Attributes:
        levels: the level of each side.
        declarer: the seat that holds the declarer's place in the next deal; ``None`` before the first.
        deals: deals scored so far.
        advanced: levels that each side has advanced in all; a fall by hook-back counts back.
        outcome: who has won; ``None`` while the match goes on.
    """

    levels: tuple[int, int]
    declarer: int | None = None
    deals: int = 0
    advanced: tuple[int, int] = (0, 0)
    outcome: Outcome | None = None

    @property
    def deal_level(self) -> int:
        """The level of the next deal: that of the side that holds the declarer's place (RULES §8)."""
        return self.levels[0 if self.declarer is None else side_of(self.declarer)]


def begin(rules: RuleSet) -> Match:
    """A match before its first deal."""
    return Match(levels=(rules.start_level, rules.start_level))


def side_of(seat: int) -> int:
    """The side 0 or 1 of a seat."""
    return seat % 2


def partner_of(seat: int) -> int:
    """The seat opposite."""
    return (seat + 2) % SEATS


def next_declarer(declarer: int, result: Result) -> int:
    """The partner of the deal's declarer if the declaring side stays, else the declarer's next seat."""
    return (declarer + 1) % SEATS if result.attackers_take_over else partner_of(declarer)


def steps(rules: RuleSet, level: int, up: int, *, defended: bool) -> int:
    """How many of ``up`` levels a side at ``level`` really advances.

    It ends on the first of ``stop_levels`` and ``must_defend`` that it would pass, and at A unless the match
    loops; it does not begin at one of ``must_defend`` that is not defended.

    Args:
        rules: match end, stop levels, levels to defend.
        level: the side's level.
        up: what the deal gave.
        defended: the side has stayed in as declarers in a deal at its level.
    """
    if level in rules.must_defend and not defended:
        return 0
    if rules.match_end is not MatchEnd.LOOP:
        up = min(up, ACE - level)
    for step in range(1, up + 1):
        if (level + step) % RANKS in (*rules.stop_levels, *rules.must_defend):
            return step
    return up


def after_deal(
    rules: RuleSet, match: Match, declarer: int, level: int, result: Result, *, hooked: bool = False
) -> Match:
    """The match after a scored deal.

    Args:
        rules: match end, deals, stop levels, levels to defend, start level.
        match: the match before the deal.
        declarer: the seat that was declarer (not always the one that held the place: D11, D27).
        level: the level that was played.
        result: what the deal gave.
        hooked: the declaring side falls to the start level (``hook_back.hooks_back``).

    Returns:
        The match with its levels, next declarer and, when it is over, its outcome.
    """
    declarers = side_of(declarer)
    winners = 1 - declarers if result.attackers_take_over else declarers
    defended = not result.attackers_take_over and level == match.levels[declarers]
    moved = [0, 0]
    moved[winners] = steps(rules, match.levels[winners], result.gained, defended=defended)
    if hooked:
        moved[declarers] = rules.start_level - match.levels[declarers]
        if (
            moved[declarers] > 0
        ):  # a looping side below the start level has come round: it falls a whole round
            moved[declarers] -= RANKS
    after = Match(
        levels=_add(match.levels, moved, modulus=RANKS),
        declarer=next_declarer(declarer, result),
        deals=match.deals + 1,
        advanced=_add(match.advanced, moved),
    )
    stayed_at_ace = rules.match_end is MatchEnd.PASS_ACE and defended and not hooked and level == ACE
    if stayed_at_ace or (rules.match_end is MatchEnd.REACH_ACE and after.levels[winners] == ACE):
        return replace(after, outcome=Outcome(winners))
    if rules.deals and after.deals >= rules.deals:
        return replace(after, outcome=_by_advance(after.advanced))
    return after


def _add(pair: tuple[int, int], moved: list[int], modulus: int | None = None) -> tuple[int, int]:
    sums = (pair[0] + moved[0], pair[1] + moved[1])
    return sums if modulus is None else (sums[0] % modulus, sums[1] % modulus)


def _by_advance(advanced: tuple[int, int]) -> Outcome:
    if advanced[0] == advanced[1]:
        return Outcome.DRAW
    return Outcome.SIDE_0 if advanced[0] > advanced[1] else Outcome.SIDE_1
