"""The printed ladders of RULES §5: what a follower owes, from best to worst, where a source prints it.

They are written as RULES prints them: steps divided by ``·``, groups by commas, ``{a or b}`` for a step that
either satisfies; ``2x3`` is a tractor of three pairs, ``2`` a pair, and singles ("1" = any card of the suit)
are left out, since whatever is not a group is any card. A shape without an entry has the generic ladder.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

Shape = tuple[int, int]
"""A component or group as (width, length)."""
Step = tuple[tuple[Shape, ...], ...]
"""One rung: alternatives, each the groups of width >= 2 that it asks for."""
Ladder = tuple[Step, ...]
LadderTable = Mapping[Shape, Ladder]


def _shape(text: str) -> Shape:
    width, _, length = text.partition("x")
    return int(width), int(length or 1)


def _ladder(text: str) -> Ladder:
    """Read a printed ladder; ``text`` ends in the step that asks for no group ("1")."""
    steps = (step.strip(" {}").split(" or ") for step in text.split("·"))
    return tuple(
        tuple(
            tuple(_shape(group) for group in alternative.split(",") if group != "1") for alternative in step
        )
        for step in steps
    )


def _table(**ladders: str) -> LadderTable:
    """A table from ladders named by their lead: ``lead_3x2="3x2 · 3,3 · 1"``."""
    return MappingProxyType(
        {_shape(name.removeprefix("lead_")): _ladder(text) for name, text in ladders.items()}
    )


_TRIPLE: Final = "3 · 2 · 1"
_QUAD: Final = "4 · 3 · 2,2 · 2 · 1"
# The common tail of eight-card ladders in 000 §3.4.5 and 004, from the quads on.
_EIGHT: Final = "4,2,2 · 4,2 · 4 · 3,3 · 3,2,2 · 3,2 · 3 · 2,2,2,2 · 2,2,2 · 2,2 · 2 · 1"
_CLASSIC_EIGHT: Final = f"2x3,2 · 2x3 · 2x2,2,2 · 2x2,2 · 2x2 · {_EIGHT}"

LADDERS: Final[Mapping[str, LadderTable]] = MappingProxyType(
    {
        "generic": _table(),
        # 000 §3.3.3
        "classic-3d": _table(
            lead_3x1=_TRIPLE,
            lead_3x2="3x2 · 2x2 · 3,3 · 3,2 · 3 · 2,2 · 2 · 1",
        ),
        # 001 二.2: two triples come before the tractor
        "basic-3d": _table(
            lead_3x1=_TRIPLE,
            lead_3x2="3x2 · 3,3 · 2x2 · 3,2 · 3 · 2,2 · 2 · 1",
        ),
        # 002 跟牌
        "closed-3d": _table(lead_3x1=_TRIPLE),
        # 002 跟牌, D32
        "closed-4d": _table(lead_3x1=_TRIPLE, lead_4x1=_QUAD),
        # 004 item 14
        "bigkitty-4d": _table(
            lead_4x1=_QUAD,
            lead_4x2=f"4x2 · 3x2 · 2x2,2,2 · 2x2,2 · 2x2 · 4,4 · {_EIGHT}",
        ),
        # 000 §3.4.5, D7, D8
        "classic-4d": _table(
            lead_2x2="{2x2 or 4} · 2,2 · 2 · 1",
            lead_2x3="{2x3 or 3x2} · 4,2 · 2x2,2 · 2,2,2 · 2,2 · 2 · 1",
            lead_2x4=f"{{2x4 or 4,4}} · {_CLASSIC_EIGHT}",
            lead_3x2="3x2 · 2x3 · 4,2 · 2x2,2 · 3,3 · 3,2 · 2,2,2 · 2,2 · 2 · 1",
            lead_4x1="4 · 2x2 · 2,2 · 3 · 2 · 1",
            lead_4x2=f"4x2 · 4,4 · 2x4 · {_CLASSIC_EIGHT}",
        ),
    }
)
"""Ladder tables by the name that the option ``ladders`` takes."""


def engine_ladders(name: str) -> dict[Shape, Ladder]:
    """The ladder table of a name as the engine takes it."""
    return dict(LADDERS[name])
