"""How soon a table that no process has in memory can be played on."""

import dataclasses
import time
from collections.abc import Iterator
from random import Random
from typing import Final

from services.bench.figures import Bar, Figure, percentile
from services.bench.filler import Message, fill, relaxed
from services.bench.matches import Match, new_table_id
from services.bench.rig import ENTROPY, Rig, Service, rig
from services.bench.scale import Scale
from services.bench.stored import snapshot_message
from services.game.ids import STREAMS, Kind, TableId, every_subject, partition, subject
from services.game.keys import Keyring
from services.game.state import Table
from services.pb.table.v1.table_service_pb2 import GetViewRequest, GetViewResponse
from services.rules.options import RuleSet
from services.rules.presets import preset
from services.shell.broker import Broker, ensure_streams

LINE: Final = "cold"
MESSAGES: Final = 1_000_000
DEALS: Final = 100
TABLES: Final = 8
_FILLER_TABLES: Final = 10_000
_FILLER_OPEN: Final = 1_000
"""Other tables that are played at the same time."""
_AHEAD_US: Final = 3_600_000_000
"""The tables' last moves are so far in the future that no turn runs out while they are measured."""
_TAIL: Final = 12
"""Commits since the snapshot: a service writes one every 12."""
_ROUNDS: Final = 25
_ROUNDS_WITHOUT: Final = 3
_STREAM: Final = 0


@dataclasses.dataclass(slots=True)
class _Past:
    """A table that has been played for long."""

    table_id: TableId
    commits: list[tuple[Kind, bytes]]
    saved: Table
    """The state ``_TAIL`` commits before the end."""
    sequences: list[int]
    """Where its commits stand in the stream, once that is settled."""


async def cold(scale: Scale) -> list[Figure]:
    """GetView of a table after 100 deals that was not in memory, with a snapshot and without one."""
    async with rig() as made:
        rng = Random(LINE)
        pasts = []
        for number in range(2 if scale.quick else TABLES):
            pasts.append(_play(rng, made.keyring, scale.of(DEALS)))
            scale.say(f"table {number + 1}: {len(pasts[-1].commits):,} commits")
        total = scale.of(MESSAGES)
        await _store(made, pasts, total, rng, scale)
        without = await _measure(made, pasts, _ROUNDS_WITHOUT)
        scale.say(f"without snapshots: {max(without):.0f} ms at most")
        await _save(made, pasts)
        with_them = await _measure(made, pasts, scale.of(_ROUNDS))
    what = f"cold table after {scale.of(DEALS)} deals, in a stream of {total:,}"
    commits = sum(len(past.commits) for past in pasts) // len(pasts)
    return [
        Figure(
            LINE,
            f"{what}, with a snapshot, p99",
            "ms",
            (percentile(with_them, 0.99),),
            Bar("<=", 30),
            note=f"{len(with_them)} loads of {len(pasts)} tables, {_TAIL} commits after the snapshot; "
            f"median {percentile(with_them, 0.5):.1f} ms, the first of each table after a restart included",
        ),
        Figure(
            LINE,
            f"{what}, without one, p99",
            "ms",
            (percentile(without, 0.99),),
            Bar("<=", 1000),
            note=f"{len(without)} loads, {commits:,} commits each; median {percentile(without, 0.5):.0f} ms",
        ),
    ]


# --------------------------------------------------------------------------------------------- the past


def _endless() -> RuleSet:
    """classic-2d, but a match that goes on past the ace, so that a table can have so many deals."""
    return preset("classic-2d").with_overrides({"match_end": "loop", "deals": 1000})


def _play(rng: Random, keyring: Keyring, deals: int) -> _Past:
    """A table with so many deals behind it, in the middle of the next one."""
    table_id = new_table_id(rng)
    while partition(table_id) % STREAMS != _STREAM:
        table_id = new_table_id(rng)
    now_us = time.time_ns() // 1000 + _AHEAD_US
    match = Match(table_id, _endless(), ENTROPY, keyring, now_us)
    commits: list[tuple[Kind, bytes]] = [("d", match.founding)]
    for _ in range(deals):
        commits.extend((move.kind, move.stored) for move in match.deal())
    saved = match.state
    middle = len(commits) + 40
    for move in match.deal():
        commits.append((move.kind, move.stored))
        if len(commits) == middle - _TAIL:
            saved = match.state
        if len(commits) == middle:
            break
    return _Past(table_id, commits, saved, [])


async def _store(made: Rig, pasts: list[_Past], total: int, rng: Random, scale: Scale) -> None:
    """Write the stream, the pasts spread over all of it among other tables' commits."""
    broker = await Broker.connect(made.nats.url, "bench")
    await ensure_streams(broker)
    await broker.close()
    await made.nats.stop()
    quick = relaxed(made.nats)
    await quick.start()
    started = time.perf_counter()
    stored = await fill(quick, _messages(pasts, total, rng))
    scale.say(f"{stored:,} messages stored in {time.perf_counter() - started:.0f} s")
    await quick.stop()
    await made.nats.start()


def _messages(pasts: list[_Past], total: int, rng: Random) -> Iterator[Message]:
    """So many messages of one stream; notes where the commits of the pasts stand."""
    places: dict[int, int] = {}
    taken = rng.sample(range(total), sum(len(past.commits) for past in pasts))
    rng.shuffle(taken)
    for number, past in enumerate(pasts):
        mine, taken = taken[: len(past.commits)], taken[len(past.commits) :]
        past.sequences = [place + 1 for place in sorted(mine)]
        places |= dict.fromkeys(mine, number)
    following = [0] * len(pasts)
    wildcards = [every_subject(past.table_id) for past in pasts]
    others = _Others(rng, [payload for kind, payload in pasts[0].commits if kind == "m"], total)
    for place in range(total):
        number = places.get(place, -1)
        if number < 0:
            yield others.next()
            continue
        past, at = pasts[number], following[number]
        following[number] += 1
        kind, payload = past.commits[at]
        expected = past.sequences[at - 1] if at else 0
        yield Message(subject(past.table_id, kind), payload, expected, wildcards[number])


class _Others:
    """The commits of other tables: the bytes of real ones, under subjects of their own."""

    def __init__(self, rng: Random, payloads: list[bytes], total: int) -> None:
        self._rng = rng
        self._payloads = payloads
        self._each = max(1, total // _FILLER_TABLES)
        self._open = [[self._subject(), rng.randint(1, self._each)] for _ in range(_FILLER_OPEN)]

    def _subject(self) -> str:
        table_id = new_table_id(self._rng)
        while partition(table_id) % STREAMS != _STREAM:
            table_id = new_table_id(self._rng)
        return subject(table_id, "m")

    def next(self) -> Message:
        """The next commit of any table that is being played; one that has had its commits makes room."""
        at = int(self._rng.random() * _FILLER_OPEN)
        table = self._open[at]
        name, left = table
        if left == 1:
            self._open[at] = [self._subject(), self._each]
        else:
            table[1] = left - 1  # type: ignore[operator]
        return Message(str(name), self._payloads[int(self._rng.random() * len(self._payloads))])


async def _save(made: Rig, pasts: list[_Past]) -> None:
    """Write the snapshots."""
    await fill(
        made.nats,
        [
            snapshot_message(
                past.saved,
                past.commits[past.saved.version - 1][1],
                past.sequences[past.saved.version - 1],
                made.keyring,
            )
            for past in pasts
        ],
    )


# ------------------------------------------------------------------------------------------- measuring


async def _measure(made: Rig, pasts: list[_Past], rounds: int) -> list[float]:
    """Milliseconds of each GetView, at a nats-server and a table service that have just started.

    The service keeps one table in memory, so every call finds its table gone.
    """
    await made.nats.stop()
    await made.nats.start()
    table = await made.table(open_tables=1)
    times = []
    try:
        await _warm_up(made, table)
        for _ in range(rounds):
            for past in pasts:
                started = time.perf_counter()
                version = await _view(made, table, past.table_id)
                times.append((time.perf_counter() - started) * 1000)
                if version != len(past.commits):
                    raise RuntimeError(f"version {version} of a table that has {len(past.commits)}")
    finally:
        await table.stop()
    return times


async def _warm_up(made: Rig, table: Service) -> None:
    """One call that the service answers from its code alone: the first call of all is not measured."""
    await table.call("GetRules")(b"", metadata=made.metadata[0])


async def _view(made: Rig, table: Service, table_id: str) -> int:
    request = GetViewRequest(table_id=table_id).SerializeToString()
    answer = await table.call("GetView")(request, metadata=made.metadata[0])
    return GetViewResponse.FromString(answer).view.version
