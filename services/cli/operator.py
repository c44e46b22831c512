"""`shengji operator`: third parties with front ends of their own, and their API keys."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import click

from services.cli.data import DataInUse, NoData, default_data, existing, held, running, writable
from services.lobby.operators import OperatorError, Operators
from services.lobby.store_jetstream import JetStreamStore
from services.pb.lobby.v1.stored_pb2 import OperatorRecord
from services.rules.reasons import message
from services.shell.broker import Broker, BrokerError, ensure_lobby_streams
from services.shell.errors import RefusedError
from services.shell.log_store import Unavailable
from services.shell.nats_server import NatsServer, NatsServerError
from services.shell.nats_users import passwords, url_as

T = TypeVar("T")
_DATA = click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder of the house [$SHENGJI_DATA, else $XDG_DATA_HOME/shengji].",
)


@click.group(short_help="Third parties that sign in users of their own; their API keys.")
def operator() -> None:
    """Operators: third parties that sign in users of their own with an API key.

    The house on the data folder may run meanwhile; changes count at once.
    """


@operator.command(short_help="Add an operator and print its first API key.")
@click.argument("name")
@_DATA
def add(name: str, data: Path | None) -> None:
    """Add an operator (2 to 32 of a-z 0-9 -) and print its first API key, which is shown only now."""
    click.echo(_with(data, lambda operators: operators.add(name)))


@operator.command(name="list")
@_DATA
def list_(data: Path | None) -> None:
    """Show all operators and the ids of their API keys."""
    for record in _with(data, lambda operators: operators.list(), reads=True):
        click.echo(_line(record))


@operator.command(short_help="Serve an operator no more, or again.")
@click.argument("name")
@click.option("--undo", is_flag=True, help="Serve it again.")
@_DATA
def suspend(name: str, undo: bool, data: Path | None) -> None:
    """Serve an operator no more: neither its API keys nor its players' sign-ins."""
    _with(data, lambda operators: operators.suspend(name, not undo))


@operator.command(name="new-key", short_help="Print one more API key of an operator.")
@click.argument("name")
@_DATA
def new_key(name: str, data: Path | None) -> None:
    """Print one more API key of an operator, which is shown only now."""
    click.echo(_with(data, lambda operators: operators.new_key(name)))


@operator.command(name="drop-key", short_help="Take an API key from an operator.")
@click.argument("name")
@click.argument("key_id")
@_DATA
def drop_key(name: str, key_id: str, data: Path | None) -> None:
    """Take an API key from an operator by its id, as `shengji operator list` shows it."""
    _with(data, lambda operators: operators.drop_key(name, key_id))


def _line(record: OperatorRecord) -> str:
    since = datetime.fromtimestamp(record.created_at_ms / 1000, UTC).date().isoformat()
    keys = " ".join(key.key_id for key in record.keys) or "no key"
    return f"{record.name}  since {since}  {'suspended' if record.suspended else 'serving'}  {keys}"


def _with(data: Path | None, work: Callable[[Operators], Awaitable[T]], *, reads: bool = False) -> T:
    """Do something with the operators of a data folder; what cannot be done is said in one line."""

    async def main() -> T:
        folder = existing(data or default_data()) if reads else writable(data)
        async with operators_of(folder) as operators:
            return await work(operators)

    try:
        return asyncio.run(main())
    except RefusedError as error:
        raise click.ClickException(message(error.reason)) from None
    except (OperatorError, Unavailable, BrokerError, NatsServerError, DataInUse, NoData) as error:
        raise click.ClickException(str(error)) from None


@asynccontextmanager
async def operators_of(data: Path) -> AsyncIterator[Operators]:
    """The operators of a data folder: of the house that runs on it, else on a nats-server of this command's.

    Raises:
        DataInUse: somebody holds the folder and does not say where to reach it.
        NatsServerError: nats-server cannot run.
        BrokerError: NATS cannot be used.
    """
    who = running(data)
    with nullcontext() if who else held(data):
        known = passwords(data)
        if who:
            place = urlsplit(who.nats)
            async with _operators_at(url_as(f"nats://{place.hostname}:{place.port}", "lobby", known)) as it:
                yield it
            return
        server = NatsServer(data / "nats", passwords=known)
        await server.start()
        try:
            async with _operators_at(url_as(server.url, "lobby", known)) as it:
                yield it
        finally:
            await server.stop()


@asynccontextmanager
async def _operators_at(url: str) -> AsyncIterator[Operators]:
    broker = await Broker.connect(url, "lobby")
    try:
        await ensure_lobby_streams(broker)
        yield Operators(JetStreamStore(broker), lambda: time.time_ns() // 1_000_000, os.urandom)
    finally:
        await broker.close()
