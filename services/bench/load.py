"""The two ways to send: closed, where each table's next play waits for the answer, and open, by the clock."""

import asyncio
import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import NamedTuple

from services.bench.lanes import Lane


class Sent(NamedTuple):
    """What a run came to."""

    rate: float
    """Answers a second."""
    seconds: list[float]
    """Of each play: in a closed loop from its sending, in an open one from when it was due."""


async def begin(lanes: Sequence[Lane]) -> None:
    """Bring all tables to their first trick."""

    async def bring(lane: Lane) -> None:
        for shot in lane.before:
            await shot()

    await asyncio.gather(*map(bring, lanes))


async def closed(lanes: Sequence[Lane]) -> Sent:
    """Play all tables at once, each as fast as its answers come, until the first of them is through."""
    seconds: list[float] = []
    through = asyncio.Event()

    async def play(lane: Lane) -> None:
        for shot in lane.plays:
            if through.is_set():
                return
            started = time.perf_counter()
            await shot()
            seconds.append(time.perf_counter() - started)
        through.set()

    with _undisturbed():
        tasks = [asyncio.create_task(play(lane)) for lane in lanes]
        started = time.perf_counter()
        await through.wait()
        rate = len(seconds) / (time.perf_counter() - started)
        await asyncio.gather(*tasks)
    return Sent(rate, seconds)


async def opened(lanes: Sequence[Lane], rate: float, rng: Random) -> Sent:
    """Send plays by a clock of their own, table after table, until the first table is through.

    Args:
        lanes: the tables.
        rate: plays a second of all of them, with random (exponential) gaps.
        rng: makes the gaps.
    """
    rounds = min(len(lane.plays) for lane in lanes)
    due = [0.0]
    for _ in range(rounds * len(lanes) - 1):
        due.append(due[-1] + rng.expovariate(rate))
    seconds: list[float] = []

    async def play(number: int, lane: Lane, start: float) -> None:
        for shot, offset in zip(lane.plays, due[number :: len(lanes)], strict=False):
            early = start + offset - time.perf_counter()
            if early > 0:
                await asyncio.sleep(early)
            await shot()
            seconds.append(time.perf_counter() - start - offset)

    with _undisturbed():
        start = time.perf_counter() + 0.01
        await asyncio.gather(*(play(number, lane, start) for number, lane in enumerate(lanes)))
        taken = time.perf_counter() - start
    return Sent(len(seconds) / taken, seconds)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No collection of garbage in this process while something is measured."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
