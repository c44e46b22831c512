"""Lists of legal plays."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple, Self


class Listing(NamedTuple):
    """Legal plays, best first."""

    plays: tuple[bytes, ...]
    """Each play as ascending card indices; no play twice."""
    complete: bool
    """False when the cap cut the list."""

    @classmethod
    def of(cls, plays: Sequence[bytes], cap: int) -> Self:
        """The first ``cap`` of all plays.

        Raises:
            ValueError: a cap below 1.
        """
        if cap < 1:
            raise ValueError(f"cap must be at least 1, not {cap}")
        return cls(tuple(plays[:cap]), len(plays) <= cap)


def selections(cards: Iterable[int], size: int) -> set[bytes]:
    """All ways to choose so many of the cards, copies of one card not told apart."""
    chosen = {b""}
    for card, copies in sorted(Counter(cards).items()):
        chosen = {
            some + bytes([card] * count)
            for some in chosen
            for count in range(min(copies, size - len(some)) + 1)
        }
    return {some for some in chosen if len(some) == size}


def copies_of(cards: Sequence[int], width: int) -> set[bytes]:
    """All ways to choose ``width`` of some identical cards."""
    return {bytes(sorted(some)) for some in combinations(cards, width)}
