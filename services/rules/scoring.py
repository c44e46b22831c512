"""From the attackers' points to the result of a deal (RULES §8): pure arithmetic on points."""

from dataclasses import dataclass

from services.rules.level_tables import LevelTable
from services.rules.options import Multiplier, RuleSet


@dataclass(frozen=True, slots=True)
class Result:
    """What a deal gives.

    Attributes:
        declarers_up: levels that the declaring side gains, 0 unless it stays in.
        attackers_up: levels that the attackers gain, 0 unless they take over.
        attackers_take_over: whether the attackers become the declaring side.
    """

    declarers_up: int
    attackers_up: int
    attackers_take_over: bool

    @property
    def gained(self) -> int:
        """Nominal levels gained by the winners, whatever the match still lets them use (RULES §9)."""
        return max(self.declarers_up, self.attackers_up)


def result(table: LevelTable, attackers_points: int) -> Result:
    """The result that a level table gives for a total, which may be negative (D13)."""
    for below, up in table.declarers:
        if attackers_points < below:
            return Result(up, 0, attackers_take_over=False)
    up = max(up for start, up in table.attackers if attackers_points >= start)
    last_start = table.attackers[-1][0]
    if table.step and attackers_points > last_start:
        up += (attackers_points - last_start) // table.step
    if table.cap is not None:
        up = min(up, table.cap)
    return Result(0, up, attackers_take_over=True)


@dataclass(frozen=True, slots=True)
class LastTrick:
    """The last trick of a deal as scoring sees it.

    Attributes:
        attackers_won: whether an attacker won it.
        points: the points in it.
        multiplier: what the engine's ``Order.multiplier`` gives for it.
    """

    attackers_won: bool
    points: int
    multiplier: int


def kitty_capture(rules: RuleSet, last: LastTrick, kitty_points: int) -> int:
    """Points of the kitty that the attackers score: all times the multiplier, or none (RULES §8)."""
    if rules.multiplier is Multiplier.LAST_TRICK or not last.attackers_won:
        return 0
    return kitty_points * last.multiplier


def attackers_total(
    rules: RuleSet, earlier_points: int, last: LastTrick, kitty_points: int, fine_points: int = 0
) -> int:
    """The attackers' points of a deal.

    Args:
        rules: the options ``multiplier``.
        earlier_points: points in the tricks that attackers won before the last one.
        last: the last trick.
        kitty_points: points in the kitty, not multiplied.
        fine_points: the balance of ``throw_fine`` over the deal.

    Returns:
        The total; below 0 is possible with ``last_trick`` (D13) and with fines.
    """
    total = earlier_points + fine_points
    if rules.multiplier is Multiplier.LAST_TRICK:
        worth = last.points * last.multiplier
        return total + (worth if last.attackers_won else -worth)
    return total + (last.points if last.attackers_won else 0) + kitty_capture(rules, last, kitty_points)


def throw_fine(rules: RuleSet, returned_cards: int, *, by_attacker: bool) -> int:
    """What a failed throw adds to the attackers' points (RULES §4, ``throw_fine_points``)."""
    fine = rules.throw_fine_points * returned_cards
    return -fine if by_attacker else fine


def failed_throw_stake(rules: RuleSet, base_stake: int) -> int:
    """What a failed throw costs its thrower for *each* of the two opponents, in chips (D6)."""
    return rules.failed_throw_quarters * (base_stake // 4)
