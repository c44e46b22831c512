import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from services.shell import server
from services.shell.config import ConfigError


async def test_health_alone_may_be_asked_from_outside_in_plaintext():
    running = await server.start((), ("a.service",), "0.0.0.0:0")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{running.port}") as channel:
        answer = await HealthStub(channel).Check(HealthCheckRequest(service="a.service"))
    assert answer.status == HealthCheckResponse.SERVING
    await running.server.stop(None)


async def test_anything_else_needs_tls_there():
    handler = grpc.method_handlers_generic_handler("a.service", {})
    with pytest.raises(ConfigError, match="--tls-cert"):
        await server.start((handler,), ("a.service",), "0.0.0.0:0")
