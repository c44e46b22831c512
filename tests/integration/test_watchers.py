"""Many watchers of one table, and some who do not read: all are told the same, and memory stays bounded."""

import asyncio
import time
import urllib.request

import grpc
import psutil
import pytest
from support.broker import until
from support.calls import Calls, Refused
from support.house import COMES_S, UNLIMITED, opened_house, own_port
from support.seats import EASY, Watching, founding

from services.pb.table.v1 import table_service_pb2 as pb

WATCHERS = 200
IDLERS = 20
"""Watchers who do not read."""
GROWTH_MB = 60
SMALL_WINDOW = (
    ("grpc.http2.lookahead_bytes", 1024),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.use_local_subchannel_pool", 1),
)
"""What a client's side takes in without being read."""


@pytest.fixture
async def house(tmp_path):
    metrics = f"127.0.0.1:{own_port()}"
    env = {**UNLIMITED, "SHENGJI_METRICS": metrics}
    async with opened_house(tmp_path, bots=True, env=env) as house:
        yield house


def metric(house, name):
    """A metric of the table service."""
    with urllib.request.urlopen(f"http://{house.env['SHENGJI_METRICS']}/metrics") as page:
        for line in page.read().decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
    raise AssertionError(f"there is no metric {name}")


class Idler:
    """Begins a watch and does not read."""

    def __init__(self, house, table_id, after):
        self._channel = grpc.aio.insecure_channel(house.replicas[0].address, options=SMALL_WINDOW)
        watch = self._channel.unary_stream(
            "/shengji.table.v1.TableService/Watch", request_serializer=pb.WatchRequest.SerializeToString
        )
        metadata = (("authorization", f"Bearer {house.token('idler')}"),)
        self._call = watch(pb.WatchRequest(table_id=table_id, after=after), metadata=metadata)

    async def read_at_last(self):
        """What had come all the same, and why it ended."""
        steps = []
        try:
            while (raw := await self._call.read()) is not grpc.aio.EOF:
                steps.append(raw)
        except grpc.aio.AioRpcError as error:
            return steps, Refused(error)
        raise AssertionError("it was not cut off")

    async def close(self):
        await self._channel.close()


async def note_stalls(stalls):
    """Note for how long this process did not come to read, each time."""
    while True:
        began = time.monotonic()
        await asyncio.sleep(0.05)
        stalls.append(time.monotonic() - began - 0.05)


async def test_all_watchers_are_told_the_same_and_who_does_not_read_is_cut_off(house, calls):
    founded = await calls.settle(
        "CreateTable", founding("classic-1d", [EASY] * 4, deals="5", match_end='"loop"'), "founder"
    )
    table_id = founded.table_id
    process = psutil.Process(house.replicas[0].pid)
    watches = [Watching(calls, table_id, f"w{n}", founded.resume).start() for n in range(WATCHERS)]
    idlers = [Idler(house, table_id, founded.resume) for _ in range(IDLERS)]
    stalls = []
    looking = asyncio.create_task(note_stalls(stalls))
    await watches[0].until(lambda: watches[0].deals == 1, 2 * COMES_S)
    before = process.memory_info().rss
    for watch in watches:
        await watch.until(lambda watch=watch: watch.over, 2 * COMES_S)
        await watch.stop()
    assert process.memory_info().rss - before < GROWTH_MB * 2**20
    assert {tuple(watch.steps) for watch in watches} == {tuple(watches[0].steps)}
    looking.cancel()
    assert max(stalls) > 0.5 or not any(watch.breaks for watch in watches), "who reads is not cut off"
    whole, resumes = watches[0].steps, watches[0].resumes
    await until(lambda: metric(house, "shengji_slow_readers_total") == IDLERS, COMES_S)
    for idler in idlers:
        steps, refused = await idler.read_at_last()
        assert (refused.code, refused.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "SLOW_READER")
        assert refused.retry_s is not None
        assert steps == whole[: len(steps)]
        assert len(steps) < len(whole)
        await idler.close()
    # The last idler goes on where it was cut off.
    rest = Watching(calls, table_id, "idler", resumes[len(steps) - 1] if steps else founded.resume).start()
    await rest.until(lambda: rest.over)
    await rest.stop()
    assert rest.steps == whole[len(steps) :]


async def test_a_watch_that_nobody_listens_to_any_more_is_forgotten(house):
    """Clients that vanish leave nothing behind."""
    calls = Calls([house.replicas[0].address], house.token)
    founded = await calls.settle("CreateTable", founding("classic-2d"), "founder")
    watches = [Watching(calls, founded.table_id, f"w{n}").start() for n in range(20)]
    for watch in watches:
        await watch.until(lambda watch=watch: watch.starts == 1)
    assert metric(house, "shengji_watchers") == 20
    for watch in watches:
        await watch.stop()
    await calls.close()
    await until(lambda: metric(house, "shengji_watchers") == 0, COMES_S)
