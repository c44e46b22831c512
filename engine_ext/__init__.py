"""The game engine: RULES §2-§6 and the multipliers of §8, compiled.

``engine_ext._core`` is the engine that everything uses; ``engine_ext.reference`` is its independent twin in
plain Python, which tests hold against it, and ``engine_ext.codes`` are the number codes that both share.
There is no silent change to the twin: where the core has not been built, importing this package fails.
"""

from typing import Final

from engine_ext.codes import (
    BIG_JOKER,
    CARDS,
    LITTLE_JOKER,
    MAX_WIDTH,
    NO_TRUMP,
    TRUMP,
    Adjacency,
    ForcedComponent,
    Multiplier,
    Overruff,
    Preference,
    ThrowPolicy,
    Verdict,
)

try:
    from engine_ext._core import (
        Component,
        Lead,
        Listing,
        Order,
        Playout,
        Rules,
        Throw,
        playout,
        playouts,
    )
except ModuleNotFoundError as error:
    if error.name != "engine_ext._core":
        raise
    raise ImportError(
        f"engine_ext._core is not compiled in {__path__[0]}. In a checkout, which hides an installed "
        "package: pip install -e . there, or run python -P. Elsewhere: pip install ."
    ) from error

IMPLEMENTATION: Final = "cython"
"""Which engine this package exports, for build information."""

__all__ = [
    "BIG_JOKER",
    "CARDS",
    "IMPLEMENTATION",
    "LITTLE_JOKER",
    "MAX_WIDTH",
    "NO_TRUMP",
    "TRUMP",
    "Adjacency",
    "Component",
    "ForcedComponent",
    "Lead",
    "Listing",
    "Multiplier",
    "Order",
    "Overruff",
    "Playout",
    "Preference",
    "Rules",
    "Throw",
    "ThrowPolicy",
    "Verdict",
    "playout",
    "playouts",
]
