"""What every service process does alike: its version, its certificate, and waiting for its end."""

import asyncio
import contextlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from services.shell.broker import Broker
from services.shell.config import ConfigError
from services.shell.logs import Log
from services.shell.server import Tls


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
