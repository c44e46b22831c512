"""How long one look at everybody who waits takes, whatever the mix."""

import gc
import time
from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import Final

from services.bench.figures import Bar, Figure
from services.bench.scale import Scale
from services.lobby.matching import Waiting, match

LINE: Final = "matching"
TICKETS: Final = 10_000
PASSES: Final = 11
_NOW_MS: Final = 1_800_000_000_000
_SEED: Final = 4

Draw = Callable[[Random, int], tuple[int, float, float, int, int]]
"""From the number of a ticket: its people, rating, age in seconds, stake, seconds until bots."""


def _anybody(rng: Random, _: int) -> tuple[int, float, float, int, int]:
    pool = rng.choice((0, 0, 0, 100, 1000))
    return rng.choice((1, 1, 1, 2)), rng.gauss(1500, 300), rng.uniform(0, 60), pool, rng.choice((0, 20, 60))


def _sparse(rng: Random, number: int) -> tuple[int, float, float, int, int]:
    """Three tickets within reach of each other, then nobody: looked for in vain."""
    return 1, number // 3 * 801.0 + number % 3 * 20, rng.uniform(0, 100), 0, 0


def _towers(rng: Random, _: int) -> tuple[int, float, float, int, int]:
    """Crowds just out of each other's reach, unless both have waited."""
    return rng.choice((1, 2)), rng.randrange(12) * 90.0, rng.uniform(0, 40), 0, 0


def _scattered(rng: Random, number: int) -> tuple[int, float, float, int, int]:
    """Singles that wait longest and reach many pairs, but no other single."""
    if number < 60:
        return 1, number * 51.0, 0.0, 0, 0
    return 2, rng.uniform(0, 3000), 0.0, 0, 0


MIXES: Final[dict[str, Draw]] = {
    "a mix of everything": _anybody,
    "one pool, all ratings equal": lambda rng, _: (1, 1500.0, rng.uniform(0, 60), 0, 0),
    "one pool, ratings spread": lambda rng, _: (1, rng.uniform(0, 4000), rng.uniform(0, 60), 0, 0),
    "one pool, just arrived": lambda rng, _: (1, rng.uniform(0, 4000), rng.uniform(0, 1), 0, 0),
    "one pool, all waiting for ever": lambda rng, _: (1, rng.uniform(0, 4000), rng.uniform(120, 600), 0, 0),
    "only pairs": lambda rng, _: (2, rng.uniform(0, 4000), rng.uniform(0, 60), 0, 0),
    "pairs and few singles": lambda rng, n: (2 - (n % 50 == 0), 1500.0, rng.uniform(0, 60), 0, 0),
    "pairs and one single": lambda rng, n: (2 - (n == 0), 1500.0, 60.0 + n if n else 1e6, 0, 0),
    "crowds apart": _towers,
    "singles apart among pairs": _scattered,
    "2,500 pools": lambda rng, n: (1, rng.gauss(1500, 100), rng.uniform(0, 60), n % 2500, 0),
    "10,000 pools": lambda rng, n: (1, 1500.0, rng.uniform(0, 60), n, 30),
    "nobody matches": _sparse,
    "nobody matches, all take bots": lambda rng, n: (*_sparse(rng, n)[:4], 1),
}


def matching(scale: Scale) -> list[Figure]:
    """CPU milliseconds of a pass over 10,000 tickets, for each mix."""
    return [_figure(what, draw, scale.of(TICKETS)) for what, draw in MIXES.items()]


def _figure(what: str, draw: Draw, size: int) -> Figure:
    times: list[float] = []
    groups = 0
    for number in range(PASSES):
        pool = list(waiting(draw, size, Random(f"{_SEED} {what} {number}")))
        gc.collect()
        started = time.process_time()
        groups = len(match(pool, _NOW_MS))
        times.append((time.process_time() - started) * 1000)
    note = f"{size:,} tickets, {groups:,} groups; the longest pass took {max(times):.0f} ms"
    return Figure(LINE, what, "ms a pass", tuple(times), Bar("<=", 200), note=note)


def waiting(draw: Draw, size: int, rng: Random) -> Iterator[Waiting]:
    """Tickets of a mix, in no order."""
    numbers = list(range(size))
    rng.shuffle(numbers)
    for number, ticket in zip(numbers, count(), strict=False):
        people, rating, age_s, stake, bots_after_s = draw(rng, number)
        yield Waiting(
            ticket_id=f"tkt_{ticket:026}",
            size=people,
            operator="",
            preset="classic-2d",
            stake=stake,
            rating=rating,
            created_at_ms=_NOW_MS - round(age_s * 1000),
            bots_after_s=bots_after_s,
            bots=2,
            present=True,
        )
