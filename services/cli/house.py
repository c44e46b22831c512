"""The whole house on one machine: nats-server, then table, ledger, lobby and bot services."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from services.shell.key_ring import KeyRing
from services.shell.keys import master_keys, signing_key
from services.shell.nats_server import NatsServer, free_port
from services.shell.nats_users import passwords, url_as
from services.shell.supervisor import ChildDied, Supervisor, service_command
from services.shell.trust import BOT_ISSUER, LOBBY_ISSUER, PLAYER_ISSUER, SERVICE_ISSUER

_READY_SECONDS: Final = 60.0
"""A service that ends is noticed at once; one that serves late is on a slow machine."""
_OFTEN: Final = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 200))
"""Else a channel waits longer after each look, and a service that serves is found seconds later."""


@dataclass(frozen=True, slots=True)
class HouseOptions:
    """How a house is started."""

    data: Path
    table_listen: str = "127.0.0.1:0"
    lobby_listen: str = "127.0.0.1:0"
    ledger_listen: str = "127.0.0.1:0"
    think_ms: int = 0
    """Least time between a change of a table and a bot's answer, so that people can follow."""
    founders: str = "services"
    """Who founds tables: ``services`` leaves it to the lobby, ``all`` lets players do it too."""
    insecure_entropy: str = ""
    master_keys: str = ""
    """``id:hex``; empty: DATA/keys."""


@dataclass(frozen=True, slots=True)
class House:
    """A running house."""

    nats: str
    """The address of NATS for a reader of the log."""
    supervisor: Supervisor
    table: str
    """The address of the table service, host:port."""
    lobby: str
    """The address of the lobby service, host:port."""
    ledger: str
    """The address of the ledger service, host:port."""


@asynccontextmanager
async def open_house(options: HouseOptions) -> AsyncIterator[House]:
    """Start everything, and drain everything at the end, clients' side first.

    Raises:
        NatsServerError: nats-server cannot run.
        ChildDied: a service ended while it was starting.
    """
    data = options.data
    for issuer in (PLAYER_ISSUER, BOT_ISSUER, SERVICE_ISSUER):
        signing_key(data, issuer)
    KeyRing(data, LOBBY_ISSUER, time.time)
    master_keys(data, options.master_keys)
    known = passwords(data)
    nats = NatsServer(data / "nats", passwords=known)
    await nats.start()
    try:
        async with Supervisor(data) as supervisor:
            yield await _start(options, supervisor, nats.url, known)
    finally:
        await nats.stop()


async def _start(options: HouseOptions, supervisor: Supervisor, nats: str, known: Mapping[str, str]) -> House:
    """Start the services one after another, each told where those before it are."""

    def told(user: str, listen: str, **more: str) -> dict[str, str]:
        return {
            "SHENGJI_DATA": str(options.data),
            "SHENGJI_NATS": url_as(nats, user, known),
            "SHENGJI_LISTEN": listen,
            **more,
        }

    table, lobby, ledger = map(_settled, (options.table_listen, options.lobby_listen, options.ledger_listen))
    secret = {"SHENGJI_MASTER_KEYS": options.master_keys} if options.master_keys else {}
    foreseen = (
        {"SHENGJI_INSECURE_ENTROPY": options.insecure_entropy, "SHENGJI_DEVELOPMENT": "yes"}
        if options.insecure_entropy
        else {}
    )
    founding = told("table", table, SHENGJI_FOUNDERS=options.founders, **secret, **foreseen)
    await supervisor.start("table", service_command("table"), founding)
    await _ready(supervisor, "table", table)
    booking = told("ledger", ledger, SHENGJI_TABLE=table)
    await supervisor.start("ledger", service_command("ledger"), booking)
    meeting = told("lobby", lobby, SHENGJI_TABLE=table, SHENGJI_LEDGER=ledger, **foreseen)
    await supervisor.start("lobby", service_command("lobby"), meeting)
    thinking = {"SHENGJI_TABLE": table, "SHENGJI_THINK_MS": str(options.think_ms)}
    await supervisor.start("bot", service_command("bot"), told("bot", "127.0.0.1:0", **thinking))
    await _ready(supervisor, "ledger", ledger)
    await _ready(supervisor, "lobby", lobby)
    return House(url_as(nats, "reader", known), supervisor, table, lobby, ledger)


def _settled(listen: str) -> str:
    """An address whose port 0 has become a free one."""
    return f"{listen.removesuffix(':0')}:{free_port()}" if listen.endswith(":0") else listen


async def _ready(supervisor: Supervisor, name: str, address: str) -> None:
    """Wait until a service says SERVING."""
    dead = asyncio.create_task(supervisor.watch())
    try:
        async with (
            grpc.aio.insecure_channel(address, options=_OFTEN) as channel,
            asyncio.timeout(_READY_SECONDS),
        ):
            health = HealthStub(channel)
            while True:
                if dead.done():
                    dead.result()
                try:
                    answer = await health.Check(HealthCheckRequest(), wait_for_ready=False)
                    if answer.status == HealthCheckResponse.SERVING:
                        return
                except grpc.aio.AioRpcError:
                    pass
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise ChildDied(f"the {name} service", 0, supervisor.log_of(name)) from None
    finally:
        dead.cancel()
        await asyncio.gather(dead, return_exceptions=True)
