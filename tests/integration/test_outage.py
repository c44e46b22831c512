"""An outage never plays a card: who could not act is given the time back (ARCHITECTURE §7)."""

import asyncio
import random
import time

import pytest
from support.house import COMES_S, RESUME_S, UNLIMITED, opened_house, patience
from support.seats import AT_ONCE, advance, founding, seated

from services.pb.event.v1.event_pb2 import Pace
from services.pb.log.v1.log_pb2 import Commit
from services.pb.table.v1.view_pb2 import PHASE_TRICKS

NAMES = ("north", "east", "south", "west")
TURN_S = 2.0
QUICK = Pace()
QUICK.CopyFrom(AT_ONCE)
QUICK.turn_ms = round(TURN_S * 1000)


@pytest.fixture
async def house(tmp_path):
    async with opened_house(tmp_path, replicas=2, env=UNLIMITED) as house:
        yield house


async def kinds_until(house, table_id, condition, within_s=COMES_S):
    """The kinds of all events in the log, commit by commit, once a condition holds for them."""
    commits = await commits_until(house, table_id, lambda commits: condition(kinds_of(commits)), within_s)
    return kinds_of(commits)


async def commits_until(house, table_id, condition, within_s=COMES_S):
    """The log, once a condition holds for it."""
    give_up = time.monotonic() + within_s
    while True:
        stored = (await house.stored([table_id]))[table_id]
        commits = [Commit.FromString(raw) for raw in stored]
        if condition(commits):
            return commits
        assert time.monotonic() < give_up, f"the table hangs: {kinds_of(commits)[-3:]}"
        await asyncio.sleep(0.1)


def kinds_of(commits):
    return [[event.WhichOneof("kind") for event in commit.events] for commit in commits]


async def test_no_turn_runs_out_while_nobody_serves(house, calls):
    """All replicas are dead while a turn runs out; after the restart nobody calls, and time is given."""
    founded = await calls.settle("CreateTable", founding(pace=QUICK), "north")
    table_id = founded.table_id
    players = seated(calls, table_id, NAMES, random.Random(4))
    view = await advance(players, PHASE_TRICKS)
    for replica in house.replicas:
        replica.kill()
    before = await commits_until(house, table_id, lambda _: True)
    # If this test was not let run, turns have run out before the kill; whose turn it is, the log tells below.
    in_time = len(before) == view.version
    assert ["time_given"] not in kinds_of(before)
    await asyncio.sleep(TURN_S + 1.5)
    for replica in house.replicas:
        replica.start()
    await asyncio.gather(*(replica.ready() for replica in house.replicas))
    # The durable timer fired into the void 1 s after the deadline; it is handed over again.
    kinds = await kinds_until(house, table_id, lambda kinds: len(kinds) > len(before), patience(5 + RESUME_S))
    assert kinds[len(before)] == ["time_given"], "time is given once and nothing is played"
    again = await players[0].view(len(before) + 1)
    assert again.deadline_ms - again.server_now_ms <= TURN_S * 1000
    # A turn that runs out while somebody serves is played, so the table goes on even if nobody comes back.
    commits = await commits_until(house, table_id, lambda commits: len(commits) > len(before) + 1)
    kinds, (expired, *_) = kinds_of(commits), commits[len(before) + 1].events
    assert not in_time or [expired.turn_expired.seat] == list(view.to_act), "it was still the same turn"
    after = kinds[len(before) + 1 :]
    assert all(commit[0] == "turn_expired" for commit in after), after
    assert sum(commit == ["time_given"] for commit in kinds) == 1
    report = await house.sound(table_id)
    assert report.versions >= len(kinds)


async def test_a_player_who_returns_in_time_plays_on(house, calls):
    """A restart within the turn gives nothing back, and the first command after it is accepted at once."""
    pace = Pace()
    pace.CopyFrom(AT_ONCE)
    founded = await calls.settle("CreateTable", founding(pace=pace), "north")
    players = seated(calls, founded.table_id, NAMES, random.Random(5))
    view = await advance(players, PHASE_TRICKS)
    for replica in house.replicas:
        replica.kill()
        replica.start()
    await asyncio.gather(*(replica.ready() for replica in house.replicas))
    began = time.monotonic()
    mover = players[view.to_act[0]]
    assert await mover.move(await mover.view(view.version)) == view.version + 1
    assert time.monotonic() - began < patience(RESUME_S)
    kinds = await kinds_until(house, founded.table_id, lambda _: True)
    assert ["time_given"] not in kinds
