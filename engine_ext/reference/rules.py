"""The engine's share of a rule set: options in, orders of cards out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from engine_ext.codes import (
    MAX_WIDTH,
    NO_TRUMP,
    Adjacency,
    ForcedComponent,
    Multiplier,
    Overruff,
    Preference,
    ThrowPolicy,
)
from engine_ext.reference.ladders import Ladder, generic_ladder
from engine_ext.reference.order import Order
from engine_ext.reference.shapes import Size

_CODES: dict[str, type[IntEnum]] = {
    "adjacency": Adjacency,
    "preference": Preference,
    "throws": ThrowPolicy,
    "forced_component": ForcedComponent,
    "overruff": Overruff,
    "multiplier": Multiplier,
}


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The engine's share of a rule set; equal options are equal rules.

    Raises:
        ValueError: an option out of range, named in the message.
    """

    decks: int
    """Packs of 54 cards, 1..4."""
    permanent_twos: bool = False
    """All twos are trumps (RULES §2)."""
    two_colour: bool = False
    """Suits are BLACK and RED (000 §3.2.2)."""
    tractors: bool = True
    """Whether groups form tractors at all; not in closed-4d (002)."""
    level_joker_adjacent: bool = True
    """Whether the level and the little joker are neighbours (D2)."""
    level_gap: bool = False
    """Whether the ranks above and below the level stay apart (RULES §2: elsewhere they are neighbours)."""
    adjacency: int = Adjacency.TIERS
    preference: int = Preference.TRACTORS_FIRST
    ladders: Mapping[Size, Ladder] | None = None
    """Printed ladders (RULES §5); a shape without one has the generic ladder of ``preference``."""
    keep_groups_whole: bool = False
    """A hand need not break a group wider than the component led (RULES §5, 002)."""
    throws: int = ThrowPolicy.STANDARD
    forced_component: int = ForcedComponent.LOWEST_BEATABLE
    wider_beats: bool = False
    """A wider component of the same card count beats a tractor (RULES §6, classic-4d)."""
    groups_stay_together: bool = False
    """D28."""
    overruff: int = Overruff.LARGEST_COMPONENT
    multiplier: int = Multiplier.POWER
    _orders: dict[tuple[int, int], Order] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.decks not in range(1, MAX_WIDTH + 1):
            raise ValueError(f"decks must be 1..{MAX_WIDTH}, not {self.decks}")
        if self.copies > MAX_WIDTH:
            raise ValueError(
                f"two_colour makes {self.copies} cards identical, at most {MAX_WIDTH} are allowed"
            )
        for name, codes in _CODES.items():
            if getattr(self, name) not in list(codes):
                raise ValueError(f"{name} must be 0..{len(codes) - 1}, not {getattr(self, name)}")
        object.__setattr__(self, "ladders", dict(self.ladders or {}))
        for size, ladder in (self.ladders or {}).items():
            _check_ladder(size, ladder)

    def __hash__(self) -> int:
        return hash((self.decks, self.permanent_twos, self.adjacency, self.throws, self.multiplier))

    @property
    def copies(self) -> int:
        """The most identical cards that the decks hold."""
        return self.decks * 2 if self.two_colour else self.decks

    def ladder(self, size: Size) -> Ladder:
        """The ladder of a lead component, best step first (RULES §5)."""
        printed = self.ladders or {}
        return printed[size] if size in printed else generic_ladder(size, Preference(self.preference))

    def order(self, level: int, trump: int) -> Order:
        """The order of cards in one deal; see ``_core.pyi``.

        Raises:
            ValueError: level or trump out of range.
        """
        if level not in range(13):
            raise ValueError(f"level must be 0..12, not {level}")
        trumps = (0, 1, NO_TRUMP) if self.two_colour else range(5)
        if trump not in trumps:
            raise ValueError(f"trump must be one of {list(trumps)}, not {trump}")
        if (level, trump) not in self._orders:
            self._orders[level, trump] = Order(self, level, trump)
        return self._orders[level, trump]


def _check_ladder(size: Size, ladder: Ladder) -> None:
    """Refuse a printed ladder with groups that do not exist or do not fit into the component.

    Raises:
        ValueError: naming the ladder.
    """
    width, length = size
    if width not in range(1, MAX_WIDTH + 1) or length < 1:
        raise ValueError(f"ladders: no component is {width}x{length}")
    for groups in (groups for step in ladder for groups in step):
        if any(wide not in range(2, MAX_WIDTH + 1) or long < 1 for wide, long in groups):
            raise ValueError(f"ladders: {width}x{length} names a group that cannot be: {groups}")
        if sum(wide * long for wide, long in groups) > width * length:
            raise ValueError(f"ladders: a step of {width}x{length} has too many cards: {groups}")
