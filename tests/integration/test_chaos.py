"""Hundreds of deals while processes are killed at random moments: nothing acknowledged is lost or doubled.

Twenty-odd tables at once, bots in some seats and test-driven players in others, two table replicas. Again and
again a replica, the bot service or nats-server is killed by SIGKILL and started again, on a schedule that a
seed fixes (as far as a machine's timing lets it). The log and what was told are looked at afterwards.
"""

import asyncio
import os
import random
import time
from bisect import bisect_right
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from support.house import UNLIMITED, House
from support.seats import EASY, NORMAL, Player, Watching, founding

from services.game.verify import verify
from services.pb.log.v1.log_pb2 import Commit

SEED = int(os.environ.get("SHENGJI_CHAOS_SEED", "2026"))
TABLES = 22
DEALS = 10
"""Of each table."""
WITHIN_S = 200
"""For everything; about half of it on two idle cores."""
QUIET_S = (1.5, 4.0)
"""Between a recovery and the next fault."""
DOWN_S = (0.0, 0.8)
"""How long what was killed stays away."""
SEATS = (
    ("ann", NORMAL, EASY, NORMAL),
    ("ann", EASY, "cid", NORMAL),
    (NORMAL, "bob", "cid", "dan"),
    ("ann", "bob", "cid", "dan"),
    (EASY, NORMAL, NORMAL, EASY),
)


@dataclass
class Fault:
    """One process killed and started again; times of the wall clock."""

    what: str
    killed: float
    serving: float = 0.0


@dataclass
class Table:
    """One table under test."""

    table_id: str
    players: list[Player]
    watches: list[Watching]
    commits: list[Commit] = field(default_factory=list)


@pytest.fixture
async def house(tmp_path):
    house = House(tmp_path, replicas=2, env=UNLIMITED)
    await house.start(bots=True)
    yield house
    house.kill()


async def found(calls, number, rng):
    """Found a table, and seat and begin to watch whoever is not a bot."""
    held = SEATS[number % len(SEATS)]
    names = [f"{name}-{number}" if isinstance(name, str) else name for name in held]
    preset = "classic-1d-2c" if number % 4 == 3 else "classic-1d"
    request = founding(preset, names, deals=str(DEALS), match_end='"loop"')
    founded = await calls.settle("CreateTable", request, "founder")
    table_id, resume = founded.table_id, founded.resume
    players = [
        Player(calls, table_id, name, seat, random.Random(rng.random()), resume, bold=0.2)
        for seat, name in enumerate(names)
        if isinstance(name, str)
    ]
    looking = ["onlooker", "onlooker", *(player.player for player in players[:1])]
    watches = [Watching(calls, table_id, who, resume, at % 2) for at, who in enumerate(looking)]
    return Table(table_id, players, watches)


async def faults(house, rng):
    """Kill and restart one thing after another until cancelled; yields what was done."""
    kinds = []
    done = []
    house.faults = done
    while True:
        await asyncio.sleep(rng.uniform(*QUIET_S))
        if not kinds:
            kinds = ["table 0", "table 1", "bot", "nats", "nats"]
            rng.shuffle(kinds)
        what = kinds.pop()
        fault = Fault(what, time.time())
        if what == "nats":
            house.nats.kill()
            await asyncio.sleep(rng.uniform(*DOWN_S))
            await house.nats.start()
        else:
            service = house.bots if what == "bot" else house.replicas[int(what[-1])]
            service.kill()
            await asyncio.sleep(rng.uniform(*DOWN_S))
            service.start()
            await service.ready()
        fault.serving = time.time()
        done.append(fault)


async def test_nothing_is_lost_doubled_or_stuck(house, calls):
    rng = random.Random(SEED)
    tables = [await found(calls, number, rng) for number in range(TABLES)]
    began = time.monotonic()
    chaos = asyncio.create_task(faults(house, rng))
    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as group:
        for table in tables:
            for player in table.players:
                group.create_task(player.play())
            for watch in table.watches:
                group.create_task(watch.run())
    print(f"played in {time.monotonic() - began:.1f} s")
    chaos.cancel()
    with suppress(asyncio.CancelledError):
        await chaos
    done = house.faults
    logs = await house.stored([table.table_id for table in tables])
    for table in tables:
        table.commits = [Commit.FromString(raw) for raw in logs[table.table_id]]
    print(Counter(fault.what for fault in done), [f"{f.what} {f.serving - f.killed:.1f}" for f in done])
    print(
        "retries",
        calls.retries,
        "acks",
        len(calls.acknowledged),
        "repeated",
        calls.repeated,
        "commits",
        sum(len(t.commits) for t in tables),
    )
    print(
        "breaks",
        Counter(b for t in tables for w in (*t.watches, *(p.watch for p in t.players)) for b in w.breaks),
    )
    print("refused", sum((p.refused for t in tables for p in t.players), Counter()))
    gaps = sorted(
        ((b.recorded_at_us - a.recorded_at_us) / 1e6, t.table_id, b.version)
        for t in tables
        for a, b in zip(t.commits, t.commits[1:])
    )
    print("gaps", [(round(g, 2), v) for g, _, v in gaps[-12:]])
    for fault in done:
        worst = []
        for number, table in enumerate(tables):
            times = [c.recorded_at_us / 1e6 for c in table.commits]
            at = bisect_right(times, fault.serving)
            if at < len(times) - 1:
                worst.append((round(times[at] - fault.serving, 2), number % 5))
        print(fault.what, "down", round(fault.serving - fault.killed, 2), "resumed", sorted(worst)[-4:])
    (house.folder / "done").write_text("x")
    print("\n".join(sorted(Counter(l.split('"event"')[1][:150] if '"level":"error"' not in l and '"level": "error"' not in l else l[-400:] for l in house.printed().splitlines() if '"event"' in l).__repr__().split(","))[:0]))
    import shutil
    shutil.copytree(house.folder / "logs", "/tmp/w/i_logs", dirs_exist_ok=True)
    t0 = time.monotonic()
    for table in tables:
        report = verify(table.table_id, logs[table.table_id])
        assert report.ok, (table.table_id, report.problem)
        assert report.finished
        assert len(report.deals) == DEALS
    print("verify", time.monotonic() - t0)
