"""The service as a process: its start, its stop, and what it refuses."""

import asyncio
import json
import os
import signal
import sys
import time

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from support.house import patience
from support.serving import PATIENCE_S, Refused, Watching, founding, metadata

from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1.table_service_pb2_grpc import TableServiceStub


async def run(nats_server, data, *flags, **environ):
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.table", "--data", str(data), "--nats", nats_server.url),
        *("--metrics", "", *flags),
        env={**os.environ, **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def line_of(child, event):
    """Read what the process logs until it logs this."""
    async with asyncio.timeout(PATIENCE_S):
        while line := await child.stderr.readline():
            said = json.loads(line)
            if said["event"] == event:
                return said
    raise AssertionError(f"it ended without {event}")


@pytest.fixture
async def process(nats_server, data):
    child = await run(nats_server, data, "--listen", "127.0.0.1:0")
    try:
        yield child, (await line_of(child, "serving"))["address"]
    finally:
        if child.returncode is None:
            child.kill()
        await child.communicate()


async def not_serving(channel):
    """A stream of the health service that ends once it says so; it holds nobody up."""
    watch = HealthStub(channel).Watch(HealthCheckRequest())
    assert (await watch.read()).status == HealthCheckResponse.SERVING

    async def told():
        status = (await watch.read()).status
        watch.cancel()
        return status

    return asyncio.create_task(told())


async def test_a_signal_drains_and_ends_it(process, data):
    child, address = process
    async with grpc.aio.insecure_channel(address) as channel:
        stub = TableServiceStub(channel)
        who = metadata(data, "ann")
        founded = await stub.CreateTable(founding(), metadata=who)
        watch = Watching(stub.Watch(pb.WatchRequest(table_id=founded.table_id), metadata=who))
        await watch.next()
        health = await not_serving(channel)
        began = time.monotonic()
        child.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(health, PATIENCE_S) == HealthCheckResponse.NOT_SERVING
        with pytest.raises(Refused, match="DRAINING"):
            await watch.next()
        assert time.monotonic() - began > 1.5, "load balancers look elsewhere first"
        assert await asyncio.wait_for(child.wait(), patience(15)) == 0


async def test_a_second_signal_ends_it_at_once(process):
    """A call that goes on, here a watch of health, would hold an orderly end up for ten seconds."""
    child, address = process
    async with grpc.aio.insecure_channel(address) as channel:
        watch = HealthStub(channel).Watch(HealthCheckRequest())
        await watch.read()
        child.send_signal(signal.SIGTERM)
        await line_of(child, "stopping")
        child.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(child.wait(), PATIENCE_S) == 1
        watch.cancel()


@pytest.mark.parametrize(
    ("flags", "environ", "named"),
    [
        (("--listen", "0.0.0.0:0"), {}, "--tls-cert"),
        (("--open-tables", "0"), {}, "--open-tables"),
        ((), {"SHENGJI_INSECURE_ENTROPY": "seed"}, "--insecure-entropy"),
        ((), {"SHENGJI_MASTER_KEYS": "k1:short"}, "SHENGJI_MASTER_KEYS"),
    ],
)
async def test_it_says_what_is_wrong_and_does_not_start(nats_server, data, flags, environ, named):
    child = await run(nats_server, data, *flags, **environ)
    _, said = await asyncio.wait_for(child.communicate(), PATIENCE_S)
    assert child.returncode == 1
    assert named in said.decode()
    assert "Traceback" not in said.decode()
