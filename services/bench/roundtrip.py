"""A Play from the client to the durable acknowledgement and back, beside the floor of this stack."""

import statistics
from random import Random
from typing import Final

from services.bench import load
from services.bench.figures import Bar, Figure, percentile
from services.bench.lanes import Lane, floor_lanes, lanes
from services.bench.load import Sent
from services.bench.rig import Rig, Service, rig
from services.bench.scale import Scale

LINE: Final = "play"
TABLES: Final = 32
RUNS: Final = 5
_RUNS_QUICK: Final = 3
_WINDOWS: Final = 2
"""Fresh sets of tables, a deal each, that one run is made of."""
_SEED: Final = 32


async def roundtrip(scale: Scale) -> list[Figure]:
    """A closed loop over 32 tables, then an open one at half the floor's rate, interleaved with the floor."""
    runs = _RUNS_QUICK if scale.quick else RUNS
    async with rig() as made:
        table, floor = await made.table(), await made.floor()
        bench = _Bench(made, table, floor, 1 if scale.quick else _WINDOWS)
        await bench.pair(None)  # what is loaded and compiled at the first call is not what is measured
        closed = []
        for number in range(runs):
            closed.append(await bench.pair(None))
            ours, bare = closed[-1]
            scale.say(f"closed loop {number + 1} of {runs}: {ours.rate:.0f}/s, floor {bare.rate:.0f}/s")
        cpu = bench.cpu_us()
        rate = statistics.median(floor_run.rate for _, floor_run in closed) / 2
        opened = []
        for number in range(runs):
            opened.append(await bench.pair(rate))
            p99 = [percentile(run.seconds, 0.99) * 1000 for run in opened[-1]]
            scale.say(f"open loop {number + 1} of {runs}: p99 {p99[0]:.1f} ms, floor {p99[1]:.1f} ms")
    return _figures(closed, opened, rate, cpu)


class _Bench:
    """Runs on fresh tables, ours and the floor's turn and turn about."""

    def __init__(self, made: Rig, table: Service, floor: Service, windows: int) -> None:
        self._rig = made
        self._table = table
        self._floor = floor
        self._windows = windows
        self._rng = Random(_SEED)
        self._cpu = [(0.0, 0), (0.0, 0)]

    async def pair(self, rate: float | None) -> tuple[Sent, Sent]:
        """One run of ours and one of the floor: at a rate, or closed."""
        ours, floors = [], []
        for _ in range(self._windows):
            made, moves = await lanes(self._rig, self._table, TABLES)
            ours.append(await self._run(0, self._table, made, rate))
            bare = floor_lanes(self._floor, self._rig.metadata[0], moves, self._rng)
            floors.append(await self._run(1, self._floor, bare, rate))
        return _joined(ours), _joined(floors)

    async def _run(self, which: int, service: Service, made: list[Lane], rate: float | None) -> Sent:
        await load.begin(made)
        before = service.cpu_s()
        run = await (load.closed(made) if rate is None else load.opened(made, rate, Random(len(made))))
        spent, calls = self._cpu[which]
        self._cpu[which] = (spent + service.cpu_s() - before, calls + len(run.seconds))
        return run

    def cpu_us(self) -> tuple[float, float]:
        """CPU microseconds of a call in the server's process so far: ours, the floor's."""
        ours, floor = (spent / calls * 1e6 for spent, calls in self._cpu)
        return ours, floor


def _joined(windows: list[Sent]) -> Sent:
    """Several windows as one run."""
    calls = sum(len(window.seconds) for window in windows)
    seconds = sum(len(window.seconds) / window.rate for window in windows)
    return Sent(calls / seconds, [second for window in windows for second in window.seconds])


def _figures(
    closed: list[tuple[Sent, Sent]], opened: list[tuple[Sent, Sent]], rate: float, cpu: tuple[float, float]
) -> list[Figure]:
    def of(runs: list[tuple[Sent, Sent]], which: int, share: float) -> tuple[float, ...]:
        return tuple(percentile(run[which].seconds, share) * 1000 for run in runs)

    reached = statistics.median(run[0].rate for run in opened)
    return [
        Figure(
            LINE,
            f"Play, closed loop over {TABLES} tables",
            "plays/s",
            tuple(run[0].rate for run in closed),
            Bar(">=", 0.8, "ratio"),
            tuple(run[1].rate for run in closed),
            f"{sum(len(run[0].seconds) for run in closed):,} plays; the sender shares the cores",
        ),
        Figure(LINE, "Play, closed loop, p50", "ms", of(closed, 0, 0.5), floor=of(closed, 1, 0.5)),
        Figure(LINE, "Play, closed loop, p99", "ms", of(closed, 0, 0.99), floor=of(closed, 1, 0.99)),
        Figure(LINE, "CPU of the server's process for a play", "µs", (cpu[0],), floor=(cpu[1],)),
        Figure(
            LINE,
            f"Play, open loop at {rate:.0f}/s, p99",
            "ms",
            of(opened, 0, 0.99),
            Bar("<=", 1.5, "ratio"),
            of(opened, 1, 0.99),
            f"half the floor's rate; {reached:.0f}/s were answered",
        ),
        Figure(
            LINE, f"Play, open loop at {rate:.0f}/s, p50", "ms", of(opened, 0, 0.5), floor=of(opened, 1, 0.5)
        ),
    ]
