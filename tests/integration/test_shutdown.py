"""SIGTERM: say NOT_SERVING, finish what is under way, end (ARCHITECTURE §7)."""

import asyncio
import contextlib
import math
import random
import signal
import time

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckResponse
from support.calls import Refused
from support.house import COMES_S, UNLIMITED, patience, running_house
from support.seats import Player, Watching, advance, founding, seated

from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1.view_pb2 import PHASE_TRICKS
from services.shell.server import NOT_SERVING_S
from services.table.servicer import VIEW_WAIT_S

NAMES = ("north", "east", "south", "west")
EXIT_S = 15


@pytest.fixture(scope="module")
def whole_house(tmp_path_factory):
    with running_house(tmp_path_factory.mktemp("shutdown"), replicas=2, env=UNLIMITED) as house:
        yield house


@pytest.fixture
async def house(whole_house):
    """The house with both replicas running."""
    for replica in whole_house.replicas:
        if not replica.running:
            replica.start()
            await replica.ready()
    return whole_house


async def wait_for_version(calls, table_id, version, stopping_since=math.inf):
    """A view of replica 0 once a version is there; the version, 0 if this test was too late for it."""
    began = time.monotonic()
    request = pb.GetViewRequest(table_id=table_id, min_version=version)
    with contextlib.suppress(Refused):
        return (await calls.call("GetView", request, "east", 0)).view.version
    # What the end of the process breaks is refused at once, and what comes in time is not broken.
    assert began - stopping_since > NOT_SERVING_S or time.monotonic() - began > 0.8 * VIEW_WAIT_S
    return 0


async def test_sigterm_finishes_what_is_under_way(house, calls):
    founded = await calls.settle("CreateTable", founding(), NAMES[0])
    table_id = founded.table_id
    players = seated(calls, table_id, NAMES, random.Random(2))
    view = await advance(players, PHASE_TRICKS)
    stopping = house.replicas[0]
    watch = Watching(calls, table_id, NAMES[0], founded.resume, 0).start()
    await watch.until(lambda: watch.version == view.version)
    waiting = asyncio.create_task(wait_for_version(calls, table_id, view.version + 1))
    await asyncio.sleep(0.2)
    async with stopping.healths() as healths:
        assert (await healths.read()).status == HealthCheckResponse.SERVING
        told = time.monotonic()
        stopping.signal(signal.SIGTERM)
        assert (await healths.read()).status == HealthCheckResponse.NOT_SERVING
    mover = players[view.to_act[0]]
    version = await mover.move(await mover.view(view.version), 0)
    assert version == view.version + 1, "calls are served until then"
    assert await waiting in (version, 0)
    late = asyncio.create_task(wait_for_version(calls, table_id, version + 1, told))
    await watch.until(lambda: watch.breaks)
    assert watch.breaks == ["DRAINING"]
    assert watch.broke_at[0] - told >= NOT_SERVING_S, "load balancers are given time to look elsewhere"
    # A call that was under way when streams ended is answered by what happens at the other replica.
    view = await mover.view(version)
    mover = players[view.to_act[0]]
    assert await mover.move(await mover.view(view.version), 1) == version + 1
    assert await late in (version + 1, 0)
    assert await stopping.wait(patience(EXIT_S)) == 0
    await watch.until(lambda: watch.version == version + 1)
    await watch.stop()
    versions = [pb.WatchResponse.FromString(step).update.version for step in watch.steps]
    assert versions == list(range(2, version + 2)), "the watch went on at the other replica without a gap"


async def test_watches_end_with_a_hint_when_to_come_again(house, calls):
    founded = await calls.settle("CreateTable", founding(), NAMES[0])
    stream = calls.watch(pb.WatchRequest(table_id=founded.table_id), NAMES[0], 0)
    assert pb.WatchResponse.FromString(await stream.read()).HasField("snapshot")
    house.replicas[0].signal(signal.SIGTERM)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stream.read()
    refused = Refused(caught.value)
    assert (refused.code, refused.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
    assert refused.retry_s is not None
    assert await house.replicas[0].wait(patience(EXIT_S)) == 0


async def test_nothing_is_lost_when_replicas_are_stopped_under_load(house, calls):
    """Both replicas are stopped and started in turn while matches are played, as an upgrade does it."""
    tables = []
    for number in range(4):
        names = [f"{name}-{number}" for name in NAMES]
        founded = await calls.settle("CreateTable", founding("classic-1d", names, deals="2"), "founder")
        rng = random.Random(number)
        tables += [
            Player(calls, founded.table_id, name, seat, rng, founded.resume)
            for seat, name in enumerate(names)
        ]
    async with asyncio.timeout(4 * COMES_S), asyncio.TaskGroup() as group:
        for player in tables:
            group.create_task(player.play())
        for replica in house.replicas:
            await asyncio.sleep(0.3)
            assert await replica.stop() == 0
            replica.start()
            await replica.ready()
    for table_id in {player.table_id for player in tables}:
        report = await house.sound(table_id)
        assert report.finished
        answered = [one for one in calls.acknowledged if one.table_id == table_id]
        assert {one.version for one in answered} == set(range(1, report.versions + 1))


async def test_a_second_signal_ends_it_at_once(house, calls):
    founded = await calls.settle("CreateTable", founding(), NAMES[0])
    watch = Watching(calls, founded.table_id, NAMES[0]).start()
    await watch.until(lambda: watch.starts)
    assert await house.replicas[0].end_at_once() == 1
    await watch.stop()


async def test_the_bot_service_ends_in_order(house, calls):
    house.bots.start()
    await house.bots.ready()
    house.bots.signal(signal.SIGTERM)
    assert await house.bots.wait(patience(EXIT_S)) == 0
