"""The number codes that both engines, the rules and the services share.

A card is an index 0..53: suit * 13 + (rank - 2) with suits S, H, C, D = 0..3 and ranks 2..A = 0..12;
the little joker is 52 and the big joker 53. Cards come as ``bytes`` of indices ("cards") or as 54 ``bytes``
of how many copies of each index there are ("counts").
"""

from enum import IntEnum
from typing import Final

CARDS: Final = 54
"""Distinct cards, and the length of a counts vector."""
LITTLE_JOKER: Final = 52
BIG_JOKER: Final = 53
TRUMP: Final = 4
"""The effective suit of trumps; side suits are 0..3 (S, H, C, D). Two-colour: BLACK = 0, RED = 1."""
NO_TRUMP: Final = 4
"""As the ``trump`` argument of an order: no suit is trump."""
MAX_WIDTH: Final = 4
"""Most identical cards that rule options allow."""


class Adjacency(IntEnum):
    """Which trump tiers may stand side by side in a tractor (RULES §2)."""

    TIERS = 0
    """Neighbours in the order of cards once absent tiers are taken out."""
    PRINTED_RANK = 1
    """Trumps go by printed rank inside one printed suit (D3)."""


class Preference(IntEnum):
    """The order of shapes in a generic ladder (RULES §5)."""

    TRACTORS_FIRST = 0
    WIDTH_FIRST = 1


class ThrowPolicy(IntEnum):
    """When several components may be led at once (RULES §4, D5)."""

    STANDARD = 0
    ONLY_WHEN_OTHERS_VOID = 1
    NOT_WHEN_OTHERS_VOID = 2
    NONE = 3


class ForcedComponent(IntEnum):
    """What a failed throw plays (RULES §4, D4)."""

    LOWEST_BEATABLE = 0
    """The lowest-ranked component among those that can be beaten."""
    LOWEST = 1
    """The lowest-ranked component, beaten or not (D4)."""
    SMALLEST = 2
    """Among those that can be beaten: fewest cards first, then the lowest."""


class Overruff(IntEnum):
    """What is compared between plays that qualify against a throw (RULES §6, D29)."""

    LARGEST_COMPONENT = 0
    HIGHEST_CARD = 1


class Multiplier(IntEnum):
    """How the last trick multiplies the kitty (RULES §8)."""

    POWER = 0
    TITANIC = 1
    CLOSED = 2
    PAIRS = 3
    LAST_TRICK = 4


class Verdict(IntEnum):
    """What a check answers; a refusal is the first reason that applies, in this order."""

    OK = 0
    WRONG_COUNT = 1
    NOT_IN_HAND = 2
    MUST_FOLLOW_SUIT = 3
    MUST_FOLLOW_SHAPE = 4
    MIXED_SUITS = 5
    THROW_NOT_ALLOWED = 6
