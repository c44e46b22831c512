"""Winning a trick (RULES §6) and what its last one multiplies (RULES §8)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from engine_ext.codes import TRUMP, Multiplier, Overruff
from engine_ext.reference.shapes import Held, Size, cut, held_of, take, take_all
from engine_ext.reference.tiers import Rank, SuitOrder

if TYPE_CHECKING:
    from engine_ext.reference.order import Order


class Answer(NamedTuple):
    """How a play that can win answers the lead; the greater answer wins."""

    trump: bool
    width: int
    """Of the component that answers the lead's largest; wider than that only with ``wider_beats``."""
    rank: Rank
    sizes: tuple[Size, ...]
    """The components with which it answers, largest first (D21)."""

    def beats(self, other: "Answer") -> bool:
        """Whether it is higher; equal answers do not beat each other."""
        return self[:3] > other[:3]


def winning(order: "Order", plays: Sequence[bytes]) -> tuple[int, Answer]:
    """The index of the winning play and how it answers the lead.

    Raises:
        ValueError: no plays, plays of unequal length, or a lead of mixed suits.
    """
    if not plays:
        raise ValueError("a trick needs plays")
    if any(len(play) != len(plays[0]) for play in plays):
        raise ValueError("the plays of a trick must be of equal length")
    suit = order.one_suit(plays[0])
    sizes = tuple(placed.size for placed in cut(order.suits[suit], plays[0]))
    answers = [_answer(order, suit, sizes, play) for play in plays]
    winner, best = 0, answers[0]
    for index, answer in enumerate(answers):
        if answer is not None and best is not None and answer.beats(best):
            winner, best = index, answer
    if best is None:
        raise AssertionError("a lead answers itself")
    return winner, best


def _answer(order: "Order", led_suit: int, led: tuple[Size, ...], play: bytes) -> Answer | None:
    """How a play answers a lead, at its highest; None for a discard."""
    suits = {order.suit(card) for card in play}
    if suits not in ({led_suit}, {TRUMP}):
        return None
    (suit,) = suits
    suit_order = order.suits[suit]
    held = held_of(suit_order, play)
    answers = []
    for sizes in [led, *_wider_answers(order, led)]:
        rank = _highest_cut(order, suit_order, held, sizes)
        if rank is None:
            continue
        if len(led) > 1 and order.rules.overruff == Overruff.HIGHEST_CARD:
            rank = max(order.tier(card) for card in play), 0  # D29
        answers.append(Answer(suit == TRUMP, sizes[0][0], rank, sizes))
    return max(answers, default=None)


def _wider_answers(order: "Order", led: tuple[Size, ...]) -> list[tuple[Size, ...]]:
    """Single wider components that answer a lead of one tractor (classic-4d)."""
    return [(size,) for size in order.wider_sizes(led[0])] if len(led) == 1 else []


def _highest_cut(order: "Order", suit_order: SuitOrder, held: Held, sizes: tuple[Size, ...]) -> Rank | None:
    """The highest rank with which cards can answer the largest of the sizes and be cut into all of them.

    Wider and longer groups may serve, unless groups must stay together (D28): then each group must have
    exactly the copies that the play holds. What the groups leave over serves for the singles.
    """
    (width, length), *rest = sizes
    for run in suit_order.runs.get(length, ()):
        usable = _usable(order, held, width)
        if usable is not None and not usable.issuperset(run.kinds):
            continue
        left = take(held, width, run)
        if left is not None and _can_be_cut(order, suit_order, held, left, rest):
            return run.rank
    return None


def _can_be_cut(order: "Order", suit_order: SuitOrder, held: Held, left: Held, sizes: list[Size]) -> bool:
    """Whether what is left of a play holds disjoint groups of all the sizes."""
    lefts = {left}
    for width, length in sizes:
        if width > 1:
            lefts = take_all(suit_order, lefts, [(width, length)], _usable(order, held, width))
    return bool(lefts)


def _usable(order: "Order", held: Held, width: int) -> set[int] | None:
    """The kinds of a play that a group of a width may be made of, None for all (D28)."""
    if not order.rules.groups_stay_together or width == 1:
        return None
    return {place for place, count in enumerate(held) if count == width}


def multiplier_of(kind: int, sizes: tuple[Size, ...]) -> int:
    """The multiplier for a last trick won with components of these sizes, largest first (RULES §8)."""
    width, length = sizes[0]
    if kind == Multiplier.POWER:
        return min(1 << width * length, 64)
    if kind == Multiplier.TITANIC:
        # Wider first, whatever is tractor or group; of one width the longest.
        width, length = max(sizes)
        return 2 * int(width**length) if length > 1 else 2 * width
    if kind == Multiplier.CLOSED:
        return {2: 8, 3: 16, 4: 32}[width] if length > 1 else 2 * width
    if kind == Multiplier.PAIRS:
        return 2 * width * length
    return width * length
