"""A gRPC server of the house: health, reflection, limits fit for phones, TLS, and an orderly end."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
from grpc_health.v1 import health
from grpc_health.v1.health_pb2 import DESCRIPTOR as HEALTH
from grpc_health.v1.health_pb2 import HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server
from grpc_reflection.v1alpha import reflection

from services.shell.config import ConfigError, is_loopback, split_address
from services.shell.logs import Log

MESSAGE_BYTES: Final = 64 * 1024
"""Largest request; the largest honest one is below 1 kB."""
NOT_SERVING_S: Final = 2.0
"""Between saying NOT_SERVING and refusing calls, so that load balancers look elsewhere first."""
GRACE_S: Final = 10.0
"""How long calls may take to finish after that."""
OPTIONS: Final = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_metadata_size", 8 * 1024),
    ("grpc.max_concurrent_streams", 1000),
    # A phone on a mobile network: dead peers are found in about a minute, and pings are allowed as often as
    # every 20 s, also between calls, so that a front end may hold one connection open.
    ("grpc.keepalive_time_ms", 45_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 20_000),
    ("grpc.http2.max_ping_strikes", 3),
    # Connections end now and then, so that new replicas get their share; Watch resumes.
    ("grpc.max_connection_age_ms", 4 * 3600 * 1000),
    ("grpc.max_connection_age_grace_ms", 600_000),
    # Two processes on one port would share it silently.
    ("grpc.so_reuseport", 0),
)


@dataclass(frozen=True, slots=True)
class Tls:
    """A certificate chain and its key, as PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Running:
    """A server that serves."""

    server: grpc.aio.Server
    health: health.aio.HealthServicer
    port: int

    async def drain(
        self, end_streams: Callable[[], None], *, wait_s: float = NOT_SERVING_S, grace_s: float = GRACE_S
    ) -> None:
        """Stop in order: say NOT_SERVING, wait, end the streams, let calls finish, close."""
        await self.health.enter_graceful_shutdown()
        await asyncio.sleep(wait_s)
        end_streams()
        await self.server.stop(grace_s)


async def start(
    handlers: Sequence[grpc.GenericRpcHandler],
    services: Sequence[str],
    listen: str,
    tls: Tls | None = None,
) -> Running:
    """Start serving.

    Args:
        handlers: what is served.
        services: their full names, for health and reflection.
        listen: ``host:port``; port 0 takes a free one.
        tls: needed unless the host is a loopback address, or only health is served, which tells nothing.

    Raises:
        ConfigError: the address is malformed or taken, or needs TLS, or TLS cannot be read.
    """
    host, _ = split_address(listen)
    if tls is None and handlers and not is_loopback(host):
        raise ConfigError(f"{listen} can be reached from outside: --tls-cert and --tls-key are required")
    credentials = None if tls is None else _credentials(tls)
    server = grpc.aio.server(options=OPTIONS, maximum_concurrent_rpcs=50_000)
    server.add_generic_rpc_handlers(tuple(handlers))
    servicer = health.aio.HealthServicer()
    add_HealthServicer_to_server(servicer, server)
    names = (*services, HEALTH.services_by_name["Health"].full_name, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    try:
        if credentials is None:
            port = server.add_insecure_port(listen)
        else:
            port = server.add_secure_port(listen, credentials)
    except RuntimeError:
        await server.stop(None)
        raise ConfigError(f"{listen} cannot be listened on") from None
    await server.start()
    for name in ("", *services):
        await servicer.set(name, HealthCheckResponse.SERVING)
    return Running(server, servicer, port)


def _credentials(tls: Tls) -> grpc.ServerCredentials:
    try:
        pair = (tls.key.read_bytes(), tls.certificate.read_bytes())
    except OSError as error:
        raise ConfigError(f"{error.filename} cannot be read: {error.strerror}") from None
    return grpc.ssl_server_credentials([pair])


def stop_signals(log: Log, *, supervised: bool = False) -> asyncio.Event:
    """An event that SIGTERM and SIGINT set; a second signal ends the process at once.

    Install it before anything is told that the process runs, or an early signal would end it in disorder.

    Args:
        log: is told of it.
        supervised: standard input is a pipe from the supervisor; its end, however the supervisor came to its
            own, counts as a signal.
    """
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()

    def told() -> None:
        if stopped.is_set():
            log.warning("stopped at once")
            os._exit(1)
        stopped.set()
        log.info("stopping")

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told)
    if supervised:
        stdin = sys.stdin.fileno()

        def ended() -> None:
            loop.remove_reader(stdin)
            if not stopped.is_set():
                told()

        loop.add_reader(stdin, ended)
    return stopped
