"""The level tables of RULES §8 as data: what the attackers' points are worth in levels."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Final

Band = tuple[int, int]
"""(points, levels)."""


@dataclass(frozen=True, slots=True)
class LevelTable:
    """What a total of attackers' points gives.

    Attributes:
        declarers: ``(below, up)`` rising: the first band whose ``below`` exceeds the points keeps the
            declaring side in with so many levels. The first band takes every total down to any negative one.
        attackers: ``(start, up)`` rising from the last ``below`` on: the attackers take over with ``up`` of
            the last band that has started.
        step: beyond the last attackers' band each further so many points give one level more; 0 = none.
        cap: the most levels that the attackers can gain; ``None`` = no limit.
    """

    declarers: tuple[Band, ...]
    attackers: tuple[Band, ...]
    step: int = 0
    cap: int | None = None

    def __post_init__(self) -> None:
        """Refuse a table with gaps, overlaps or falling results.

        Raises:
            ValueError: such a table, with the reason.
        """
        if not self.declarers or not self.attackers:
            raise ValueError("needs bands for the declarers and for the attackers")
        limits = [points for points, _ in (*self.declarers, *self.attackers[1:])]
        if any(low >= high for low, high in pairwise(limits)):
            raise ValueError("bands must rise")
        if self.attackers[0][0] != self.declarers[-1][0]:
            raise ValueError("the attackers' first band must start where the declarers' last one ends")
        ups = [-up for _, up in self.declarers] + [up for _, up in self.attackers]
        if any(low > high for low, high in pairwise(ups)):
            raise ValueError("more points must never be worth less")
        if min(up for _, up in (*self.declarers, *self.attackers)) < 0 or self.step < 0:
            raise ValueError("levels and step must not be negative")
        if self.cap is not None and self.cap < self.attackers[-1][1]:
            raise ValueError("the cap is below the last band")


LEVEL_TABLES: Final[Mapping[str, LevelTable]] = MappingProxyType(
    {
        # 000 §3.2: two decks' bands halved
        "classic-1d": LevelTable(((1, 3), (20, 2), (40, 1)), ((40, 0), (60, 1)), step=20),
        # 001: 80-95 one level, 100 two; also 002 closed (D30)
        "basic-1d": LevelTable(((1, 2), (40, 1)), ((40, 0), (80, 1), (100, 2))),
        # 000 §3.1.6, D25
        "classic-2d": LevelTable(((1, 3), (40, 2), (80, 1)), ((80, 0), (120, 1)), step=40),
        # 001; also 002 closed (D30)
        "basic-2d": LevelTable(((1, 3), (40, 2), (80, 1)), ((80, 1), (120, 2)), step=40),
        # 003
        "tournament-2d": LevelTable(((1, 3), (40, 2), (80, 1)), ((80, 0), (120, 1)), step=40, cap=6),
        # 000 §3.3.4, 001 三; also 002 closed (D30)
        "classic-3d": LevelTable(((1, 3), (60, 2), (120, 1)), ((120, 0), (180, 1)), step=60),
        # 000 §3.4.6
        "classic-4d": LevelTable(((1, 3), (80, 2), (160, 1)), ((160, 1), (240, 2)), step=80),
        # 004 item 15; also 002 closed (D30)
        "bigkitty-4d": LevelTable(((1, 3), (80, 2), (160, 1)), ((160, 0), (240, 1)), step=80, cap=4),
    }
)
"""The printed tables by the preset that names them."""
