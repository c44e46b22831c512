"""Hundreds of deals while processes are killed at random moments: nothing acknowledged is lost or doubled.

Twenty-odd tables at once, bots in some seats and test-driven players in others, two table replicas. Again and
again a replica, the bot service or nats-server is killed by SIGKILL and started again, on a schedule that a
seed fixes (as far as a machine's timing lets it). The log and what was told are looked at afterwards.
"""

import asyncio
import os
import random
import time
import uuid
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import pytest
from support.house import READY_S, RESUME_S, UNLIMITED, opened_house, patience
from support.seats import EASY, NORMAL, Player, Watching, founding

from services.game.verify import verify
from services.pb.log.v1.log_pb2 import Commit
from services.pb.table.v1 import table_service_pb2 as pb

SEED = int(os.environ.get("SHENGJI_CHAOS_SEED", "2026"))
TABLES = 20
DEALS = 10
"""Of each table."""
WITHIN_S = 500
"""For everything; a tenth of it on two idle cores."""
QUIET_S = (1.0, 3.5)
"""Between a recovery and the next fault."""
DOWN_S = (0.0, 0.8)
"""How long what was killed stays away."""
SEATS = (
    ("ann", EASY, EASY, NORMAL),
    ("ann", EASY, "cid", EASY),
    (EASY, "bob", "cid", "dan"),
    ("ann", "bob", "cid", "dan"),
    (EASY, EASY, NORMAL, EASY),
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
    async with opened_house(tmp_path, replicas=2, env=UNLIMITED, bots=True) as house:
        yield house


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
    # Two of one audience, and somebody who may see no hand.
    looking = ["onlooker", players[0].player if players else "onlooker"]
    watches = [Watching(calls, table_id, who, resume, at % 2) for at, who in enumerate(looking)]
    return Table(table_id, players, watches)


async def faults(house, rng, done):
    """Kill and start again one thing after another, for ever."""
    kinds = []
    while True:
        await asyncio.sleep(rng.uniform(*QUIET_S))
        if not kinds:
            kinds = ["table 0", "table 1", "bot", "nats", "nats"]
            rng.shuffle(kinds)
        fault = Fault(kinds.pop(), time.time())
        if fault.what == "nats":
            house.nats.kill()
            await asyncio.sleep(rng.uniform(*DOWN_S))
            await house.nats.start(READY_S)
        else:
            service = house.bots if fault.what == "bot" else house.replicas[int(fault.what[-1])]
            service.kill()
            await asyncio.sleep(rng.uniform(*DOWN_S))
            service.start()
            await service.ready()
        fault.serving = time.time()
        done.append(fault)


async def play_under_faults(house, tables, rng):
    """Play all matches to their ends; what was killed meanwhile."""
    done = []
    chaos = asyncio.create_task(faults(house, rng, done))
    try:
        async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as group:
            for table in tables:
                for player in table.players:
                    group.create_task(player.play())
                for watch in table.watches:
                    group.create_task(watch.run())
    finally:
        chaos.cancel()
        await asyncio.gather(chaos, return_exceptions=True)
    if not house.nats.running:
        await house.nats.start(READY_S)
    return done


@pytest.mark.timeout(WITHIN_S + 100)
async def test_nothing_is_lost_doubled_or_stuck(house, calls):
    rng = random.Random(SEED)
    tables = [await found(calls, number, rng) for number in range(TABLES)]
    began = time.monotonic()
    done = await play_under_faults(house, tables, rng)
    seconds = time.monotonic() - began
    logs = await house.stored([table.table_id for table in tables])
    for table in tables:
        table.commits = [Commit.FromString(raw) for raw in logs[table.table_id]]
    deals = check_logs(tables, logs)
    check_acknowledged(tables, calls)
    for table in tables:
        check_told(table)
    slowest = check_resumed(tables, done)
    check_printed(house)
    killed = Counter(fault.what for fault in done)
    assert min(killed[what] for what in ("table 0", "table 1", "bot", "nats")) > 0
    print(
        f"{deals} deals, {len(calls.acknowledged)} acknowledged commands, {calls.retries} calls made again, "
        f"{dict(killed)} killed, in {seconds:.0f} s; slowest to go on after each: {slowest}"
    )


def check_logs(tables, logs):
    """Every log is sound to its end, and no turn ever ran out; the number of deals."""
    deals = 0
    for table in tables:
        report = verify(table.table_id, logs[table.table_id])
        assert report.ok, f"{table.table_id}: {report.problem}"
        assert report.finished
        assert len(report.deals) == DEALS
        deals += len(report.deals)
        kinds = {event.WhichOneof("kind") for commit in table.commits for event in commit.events}
        assert not kinds & {"turn_expired", "time_given", "deal_voided"}, "a table stood still for a minute"
    assert deals >= 200
    return deals


def check_acknowledged(tables, calls):
    """What was acknowledged is in the log once and where it was said to be; what was refused is not."""
    found = defaultdict(list)
    for table in tables:
        for commit in table.commits:
            if commit.command_id:
                found[table.table_id, str(uuid.UUID(bytes=commit.command_id))].append(commit.version)
    for one in calls.acknowledged:
        assert found[one.table_id, one.command_id] == [one.version], one
    for table_id, command_id in calls.refused:
        assert not found[table_id, command_id], f"{command_id} was refused for good and is in {table_id}"
    assert len(calls.acknowledged) > 20 * len(tables)
    assert calls.retries


def check_told(table):
    """All watchers were told every version once and in order, whatever broke, and alike for one audience."""
    watches = [*table.watches, *(player.watch for player in table.players)]
    told = {}
    for watch in watches:
        versions = [pb.WatchResponse.FromString(step).update.version for step in watch.steps]
        assert versions == list(range(2, len(table.commits) + 1)), watch.player
        assert not watch.starts
        assert told.setdefault(watch.player, watch.steps) == watch.steps, watch.player
    assert any(watch.breaks for watch in watches)


def check_resumed(tables, done):
    """Every table went on in the promised time after each restart, and meanwhile where it could."""
    slowest = defaultdict(float)
    for fault in done:
        for table in tables:
            # The other replica carries on at once; bots have one only.
            alone = len(table.players) == 4 and fault.what.startswith("table")
            since = fault.killed if alone else fault.serving
            times = [commit.recorded_at_us / 1e6 for commit in table.commits]
            at = bisect_right(times, since)
            if at < len(times):
                waited = times[at] - since
                assert waited < patience(RESUME_S), f"{table.table_id} went on {waited:.2f} s after {fault}"
                slowest[fault.what] = round(max(slowest[fault.what], waited), 2)
    return dict(slowest)


def check_printed(house):
    """What the services met were faults that heal by themselves."""
    for line in house.printed().splitlines():
        assert '"level": "error"' not in line, line
        assert not line.startswith("Traceback"), house.printed()[-4000:]
