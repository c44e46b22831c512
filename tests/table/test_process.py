"""The service as a process: its start, its stop, and what it refuses."""

import asyncio
import os
import signal
import sys
import time

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from support.serving import Refused, Watching, founding, metadata

from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1.table_service_pb2_grpc import TableServiceStub
from services.shell.nats_server import free_port


async def run(nats_server, data, *flags, **environ):
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.table", "--data", str(data), "--nats", nats_server.url),
        *("--metrics", "", *flags),
        env={**os.environ, **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@pytest.fixture
async def process(nats_server, data):
    address = f"127.0.0.1:{free_port()}"
    child = await run(nats_server, data, "--listen", address)
    line = await asyncio.wait_for(child.stderr.readline(), 10)
    assert b'"serving"' in line
    yield child, address
    if child.returncode is None:
        child.kill()
    await child.communicate()


async def test_a_signal_drains_and_ends_it(process, data):
    child, address = process
    async with grpc.aio.insecure_channel(address) as channel:
        stub = TableServiceStub(channel)
        who = metadata(data, "ann")
        founded = await stub.CreateTable(founding(), metadata=who)
        watch = Watching(stub.Watch(pb.WatchRequest(table_id=founded.table_id), metadata=who))
        await watch.next()
        began = time.monotonic()
        child.send_signal(signal.SIGTERM)
        health = HealthStub(channel)
        await asyncio.sleep(0.3)
        status = await health.Check(HealthCheckRequest())
        assert status.status == HealthCheckResponse.NOT_SERVING
        with pytest.raises(Refused, match="DRAINING"):
            await watch.next()
        assert 1.5 < time.monotonic() - began < 4
        assert await asyncio.wait_for(child.wait(), 15) == 0
        assert time.monotonic() - began < 15


async def test_a_second_signal_ends_it_at_once(process):
    child, _ = process
    child.send_signal(signal.SIGTERM)
    await asyncio.sleep(0.3)
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(child.wait(), 5) == 1
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("flags", "environ", "named"),
    [
        (("--listen", "0.0.0.0:0"), {}, "--tls-cert"),
        (("--open-tables", "0"), {}, "--open-tables"),
        ((), {"SHENGJI_INSECURE_ENTROPY": "seed"}, "--insecure-entropy"),
        ((), {"SHENGJI_MASTER_KEYS": "k1:short"}, "SHENGJI_MASTER_KEYS"),
    ],
)
async def test_it_says_what_is_wrong_and_does_not_start(
    nats_server, data, flags, environ, named, monkeypatch
):
    child = await run(nats_server, data, *flags, **environ)
    _, said = await asyncio.wait_for(child.communicate(), 20)
    assert child.returncode == 1
    assert named in said.decode()
    assert "Traceback" not in said.decode()
