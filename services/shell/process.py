"""What every service process does alike: its version, its certificate, and its life until a signal."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol

from prometheus_client import CollectorRegistry

from services.shell import server
from services.shell.broker import Broker
from services.shell.config import ConfigError, ServiceConfig
from services.shell.logs import Log
from services.shell.metrics import export
from services.shell.server import Tls


class Parts(Protocol):
    """The working parts of a service."""

    @property
    def registry(self) -> CollectorRegistry:
        """Its metrics."""

    async def start(self) -> server.Running:
        """Begin to serve."""

    async def stop(self) -> None:
        """Stop in order."""


PutTogether = Callable[[Broker, Log], Awaitable[Parts]]


async def serve(name: str, config: ServiceConfig, listen: str, put_together: PutTogether) -> None:
    """Run a service until SIGTERM or SIGINT.

    Args:
        name: the service, which is also its user at NATS.
        config: its settings.
        listen: the address that it serves.
        put_together: makes its parts on a connection to NATS.

    Raises:
        ConfigError: a setting that cannot be.
        KeyFileError: a key that cannot be used.
        BrokerError: NATS cannot be used.
    """
    log = Log(name, config.log_level).adopt_libraries()
    stopped = server.stop_signals(log, supervised=config.supervised)
    broker = await Broker.connect(config.nats, name)
    try:
        service = await put_together(broker, log)
        metrics_port = export(service.registry, config.metrics)
        running = await service.start()
        host = listen.rpartition(":")[0]
        log.info("serving", address=f"{host}:{running.port}", metrics_port=metrics_port or 0)
        try:
            await until_stopped(stopped, broker, log)
        finally:
            await service.stop()
    finally:
        await broker.close()
        log.info("stopped")


def distribution_version() -> str:
    """The version of this installation, "0" for a checkout that was never installed."""
    try:
        return version("shengji")
    except PackageNotFoundError:
        return "0"


def tls_of(certificate: str, key: str) -> Tls | None:
    """The certificate that the settings name, None for none.

    Raises:
        ConfigError: one of the two is missing.
    """
    if not certificate and not key:
        return None
    if not certificate or not key:
        raise ConfigError("--tls-cert and --tls-key go together")
    return Tls(Path(certificate), Path(key))


async def until_stopped(stopped: asyncio.Event, broker: Broker, log: Log) -> None:
    """Wait for a signal, or for the end of a connection to NATS that will not come back."""
    while not stopped.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await stopped.wait()
        if broker.closed:
            log.error("nats closed")
            return
