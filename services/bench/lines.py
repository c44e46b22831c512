"""All benchmarks by name, in the order they run: first what one core does alone, then the running house."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Final

from services.bench.cold import cold
from services.bench.deals import deals
from services.bench.fanout import fanout
from services.bench.figures import Figure
from services.bench.fold import fold
from services.bench.ledger import ledger
from services.bench.legality import legality
from services.bench.matching import matching
from services.bench.memory import memory
from services.bench.roundtrip import roundtrip
from services.bench.scale import Scale
from services.bench.worst import worst

ALONE: Final[dict[str, Callable[[Scale], list[Figure]]]] = {
    "follow": legality,
    "worst": worst,
    "deals": deals,
    "fold": fold,
    "matching": matching,
}
"""Benchmarks of pure code, in this process."""
HOUSE: Final[dict[str, Callable[[Scale], Awaitable[list[Figure]]]]] = {
    "play": roundtrip,
    "fanout": fanout,
    "cold": cold,
    "memory": memory,
    "ledger": ledger,
}
"""Benchmarks of services, each on a nats-server of its own."""
NAMES: Final = (*ALONE, *HOUSE)


def measure(name: str, scale: Scale) -> list[Figure]:
    """Run one benchmark.

    Raises:
        KeyError: there is none of that name.
    """
    if name in ALONE:
        return ALONE[name](scale)
    running = HOUSE[name](scale)

    async def run() -> list[Figure]:
        return await running

    if sys.platform == "win32":
        return asyncio.run(run())
    import uvloop  # noqa: PLC0415 - there is none for Windows

    return uvloop.run(run())
