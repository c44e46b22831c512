"""From a Play to the last of a table's four watchers."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable
from typing import Any, Final

from nats.aio.msg import Msg

from services.bench import load
from services.bench.figures import Bar, Figure, percentile
from services.bench.lanes import Lane, lanes
from services.bench.rig import Rig, Service, rig
from services.bench.scale import Scale
from services.game.state import SEATS
from services.pb.log.v1.log_pb2 import Commit
from services.pb.table.v1.table_service_pb2 import WatchRequest, WatchResponse
from services.shell.broker import Broker

LINE: Final = "fanout"
TABLES: Final = 20
PLAYS_S: Final = 10
"""Plays a second at each table."""
RUNS: Final = 3
_SETTLE_S: Final = 1.0

Step = tuple[str, int]
"""A table and the version that a play made."""


class _Times:
    """When each play was sent, recorded and answered, and when its watchers heard of it."""

    def __init__(self) -> None:
        self.sent: dict[Step, float] = {}
        self.recorded: dict[Step, float] = {}
        self.answered: dict[Step, float] = {}
        self.heard: defaultdict[Step, list[float]] = defaultdict(list)

    def to_last(self, since: dict[Step, float]) -> list[float]:
        """Milliseconds from a moment of each play to its last watcher, 0 for one who heard before it."""
        return [max(0.0, max(self.heard[step]) - since[step]) * 1000 for step in self.sent]


async def fanout(scale: Scale) -> list[Figure]:
    """20 tables with 10 plays a second each and four watchers each."""
    runs: list[_Times] = []
    async with rig() as made:
        table = await made.table()
        broker = await Broker.connect(made.nats.url, "bench")

        async def recorded(message: Msg) -> None:
            now = time.perf_counter()
            commit = Commit.FromString(message.data)
            runs[-1].recorded[commit.table_id, commit.version] = now

        await broker.subscribe("sj.v1.live.>", recorded)
        for number in range(1 if scale.quick else RUNS):
            runs.append(_Times())
            await _run(made, table, runs[-1])
            plays = len(runs[-1].sent)
            late = sum(len(runs[-1].heard[step]) < SEATS for step in runs[-1].sent)
            if late:
                raise RuntimeError(f"{late} of {plays} plays were not told to all within {_SETTLE_S} s")
            scale.say(f"run {number + 1}: {plays:,} plays")
        await broker.close()
    return [
        Figure(
            LINE,
            "record of a Play → last of four watchers, p99",
            "ms",
            tuple(percentile(times.to_last(times.recorded), 0.99) for times in runs),
            Bar("<=", 20),
            note=f"{sum(len(times.sent) for times in runs):,} plays; recorded: when its live copy came here",
        ),
        *(
            Figure(LINE, f"{what} → last of four watchers, {name}", "ms", values)
            for name, share in (("p50", 0.5), ("p99", 0.99))
            for what, values in (
                ("answer to a Play", tuple(percentile(t.to_last(t.answered), share) for t in runs)),
                ("sending of a Play", tuple(percentile(t.to_last(t.sent), share) for t in runs)),
            )
        ),
    ]


async def _run(made: Rig, table: Service, times: _Times) -> None:
    """Play a deal at fresh tables, watched by their players."""
    tables, _ = await lanes(made, table, TABLES)
    await load.begin(tables)
    watching = [
        asyncio.create_task(_watch(table, lane.table_id, metadata, times))
        for lane in tables
        for metadata in made.metadata
    ]
    await asyncio.sleep(_SETTLE_S)
    rounds = min(len(lane.plays) for lane in tables)
    start = time.perf_counter()
    await asyncio.gather(
        *(_play(lane, rounds, start + number / TABLES / PLAYS_S, times) for number, lane in enumerate(tables))
    )
    await asyncio.sleep(_SETTLE_S)
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)


async def _play(lane: Lane, rounds: int, start: float, times: _Times) -> None:
    """Send plays by the clock."""
    first = len(lane.before) + 2  # the founding made version 1, and each call one more
    for number, shot in enumerate(lane.plays[:rounds]):
        await asyncio.sleep(max(0.0, start + number / PLAYS_S - time.perf_counter()))
        await _timed(shot(), (lane.table_id, first + number), times)


async def _timed(call: Awaitable[object], step: Step, times: _Times) -> None:
    times.sent[step] = time.perf_counter()
    await call
    times.answered[step] = time.perf_counter()


async def _watch(table: Service, table_id: str, metadata: Any, times: _Times) -> None:
    """Note when each version comes."""
    request = WatchRequest(table_id=table_id).SerializeToString()
    async for message in table.stream("Watch")(request, metadata=metadata):
        now = time.perf_counter()
        response = WatchResponse.FromString(message)
        if response.HasField("update"):
            times.heard[table_id, response.update.version].append(now)
