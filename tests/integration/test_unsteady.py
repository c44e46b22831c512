"""NATS that loses answers, breaks off, dawdles or stands still: each command counts once or is UNAVAILABLE.

One of two table replicas reaches NATS through a proxy that misbehaves on demand, so the other one shows what
is truly in the log.
"""

import asyncio
import random
import time
import uuid

import grpc
import pytest
from support.calls import Calls, Refused
from support.house import COMES_S, RESUME_S, UNLIMITED, House, opened_house, patience
from support.proxy import Proxy
from support.seats import Player, Watching, advance, founding, seated

from services.pb.log.v1.log_pb2 import Commit
from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1.view_pb2 import PHASE_TRICKS

NAMES = ("north", "east", "south", "west")
LOSSES = ("swallow", "cut", "hold")
COMMANDS = 8
"""Commands given under each fault."""
LOST_S = (0.05, 0.4)
"""How long a fault lasts; longer than a command takes, shorter than it is tried."""


@pytest.fixture
async def proxied(tmp_path):
    """(house, proxy): replica 0 reaches NATS through the proxy, replica 1 directly."""
    house = House(tmp_path, replicas=2, env=UNLIMITED)
    async with Proxy(house.nats.port) as proxy:
        house.replicas[0].env["SHENGJI_NATS"] = house.nats_url("table", proxy.port)
        try:
            await house.start()
            yield house, proxy
        finally:
            house.kill()


@pytest.fixture
async def house(tmp_path):
    async with opened_house(tmp_path, replicas=2, env=UNLIMITED, bots=True) as house:
        yield house


async def disturb(proxy, how, rng):
    """Misbehave once: from a command's start, or from a moment at which it is under way, for a while."""
    await asyncio.sleep(rng.choice([0, rng.uniform(0, 0.004)]))
    match how:
        case "swallow":
            proxy.swallow = True
        case "hold":
            proxy.hold = True
        case "cut":
            proxy.refuse = True
            proxy.cut()
    await asyncio.sleep(rng.uniform(*LOST_S))
    proxy.swallow = proxy.hold = proxy.refuse = False
    if how == "swallow":
        proxy.cut()  # what was swallowed leaves the stream of bytes broken


async def log_of(house, table_id):
    return [Commit.FromString(raw) for raw in (await house.stored([table_id]))[table_id]]


@pytest.mark.parametrize("how", LOSSES)
async def test_a_lost_answer_loses_and_doubles_nothing(proxied, how):
    house, proxy = proxied
    rng = random.Random(f"unsteady {how}")
    calls = Calls([replica.address for replica in house.replicas], house.token)
    founded = await calls.settle("CreateTable", founding(), NAMES[0])
    players = seated(calls, founded.table_id, NAMES, rng)
    version = (await advance(players, PHASE_TRICKS)).version
    took = []
    for _ in range(COMMANDS):
        view = await players[0].view(version)
        mover = players[view.to_act[0]]
        name, request = (await mover.choices(await mover.view(view.version)))[-1]
        began = time.monotonic()
        fault = asyncio.create_task(disturb(proxy, how, rng))
        refused = None
        try:
            await calls.call(name, request, mover.player, 0)
        except Refused as error:
            refused = error
        took.append(time.monotonic() - began)
        if refused is not None:  # nobody knows, until it is asked again with the same id
            assert refused.code == grpc.StatusCode.UNAVAILABLE, refused
            assert refused.retry_s is not None
        await fault
        version = (await calls.settle(name, request, mover.player, 0)).version
        assert version == view.version + 1
        for replica in (0, 1):
            again = await calls.settle(name, request, mover.player, replica)
            assert (again.version, again.repeated) == (version, True)
        ids = [commit.command_id for commit in await log_of(house, founded.table_id)]
        assert len(ids) == version
        assert ids.count(uuid.UUID(request.context.command_id).bytes) == 1
    assert max(took) > LOST_S[0], "no command met the fault"
    await house.sound(founded.table_id)
    await calls.close()


async def test_a_long_loss_is_unavailable_and_nobody_else_feels_it(proxied):
    """A replica hears nothing for longer than a command is tried; it says so, and the other one plays on."""
    house, proxy = proxied
    calls = Calls([replica.address for replica in house.replicas], house.token)
    founded = await calls.settle("CreateTable", founding(), NAMES[0])
    players = seated(calls, founded.table_id, NAMES, random.Random(3))
    view = await advance(players, PHASE_TRICKS)
    mover = players[view.to_act[0]]
    name, request = (await mover.choices(await mover.view(view.version)))[-1]
    proxy.hold = True
    began = time.monotonic()
    first = asyncio.create_task(calls.call(name, request, mover.player, 0, timeout_s=60))
    await asyncio.sleep(0.2)
    receipt = await calls.settle(name, request, mover.player, 1)
    assert time.monotonic() - began < patience(RESUME_S)
    with pytest.raises(Refused) as caught:
        await first
    assert caught.value.code == grpc.StatusCode.UNAVAILABLE
    assert time.monotonic() - began < patience(15)
    proxy.hold = False
    await asyncio.sleep(0.5)
    for replica in (0, 1):
        again = await calls.settle(name, request, mover.player, replica)
        assert (again.version, again.repeated) == (receipt.version, True)
    assert len(await log_of(house, founded.table_id)) == receipt.version, "nothing landed late"
    await house.sound(founded.table_id)
    await calls.close()


async def test_a_frozen_nats_server_stops_nobody_for_good(house, calls):
    """SIGSTOP for 3 s under load, as a paused machine: commands wait or are UNAVAILABLE, then all goes on."""
    rng = random.Random(7)
    tables = []
    for number in range(6):
        names = [f"{name}-{number}" for name in NAMES]
        founded = await calls.settle("CreateTable", founding("classic-1d", names, deals="2"), "founder")
        watch = Watching(calls, founded.table_id, "onlooker", founded.resume, number % 2)
        seats = [
            Player(calls, founded.table_id, name, seat, random.Random(rng.random()), founded.resume)
            for seat, name in enumerate(names)
        ]
        tables.append((founded.table_id, watch, seats))
    thawed = asyncio.create_task(freeze(house, tables[0][1], 3.0))
    async with asyncio.timeout(4 * COMES_S), asyncio.TaskGroup() as group:
        for _, watch, seats in tables:
            group.create_task(watch.run())
            for player in seats:
                group.create_task(player.play())
    thawed_at = await thawed
    resumed = []
    for table_id, watch, _ in tables:
        commits = await log_of(house, table_id)
        assert (await house.sound(table_id)).finished
        versions = [pb.WatchResponse.FromString(step).update.version for step in watch.steps]
        assert versions == list(range(2, len(commits) + 1))
        after = [c.recorded_at_us / 1e6 - thawed_at for c in commits if c.recorded_at_us / 1e6 > thawed_at]
        assert after, "the match was not over before the fault"
        resumed.append(after[0])
        ids = [commit.command_id for commit in commits if commit.command_id]
        assert len(ids) == len(set(ids))
    assert max(resumed) < patience(RESUME_S)
    kept = {(one.table_id, one.version) for one in calls.acknowledged}
    assert len(kept) == len({(one.table_id, one.command_id) for one in calls.acknowledged})


async def freeze(house, watch, seconds):
    """Stop and continue nats-server once a match is under way; when it was continued."""
    await watch.until(lambda: watch.version > 20)
    house.nats.freeze()
    await asyncio.sleep(seconds)
    house.nats.thaw()
    return time.time()
