"""`shengji replay` and `shengji verify`: what the log of a data folder, or of any NATS, holds."""

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from services.cli.data import DataInUse, NoData, default_data
from services.cli.reading import LogReader, reader_at, reader_of
from services.cli.render import MatchPrinter
from services.cli.verifying import print_report, verify_in
from services.game.errors import ShengjiError
from services.game.ids import TableId
from services.game.keys import Keyring, seal_after, with_revealed
from services.game.seal import open_commit
from services.game.verify import read_chain
from services.game.wire import rules_from_wire
from services.ledger.archive import Archive, ArchiveDamaged
from services.pb.log.v1.log_pb2 import Commit
from services.shell.broker import BrokerError
from services.shell.log_store import Unavailable
from services.shell.nats_server import NatsServerError

_data = click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder to read [$SHENGJI_DATA, else $XDG_DATA_HOME/shengji].",
)
_nats = click.option(
    "--nats", metavar="URL", default=None, help="Read this NATS, as its user reader, rather than a folder."
)
_archive = click.option(
    "--archive",
    type=click.Path(path_type=Path),
    default=None,
    help="Beside --nats: the folder of archived logs. With --data it is DATA/archive.",
)
_ENDLESS: Final = 10_000
_FAULTS = (DataInUse, NoData, NatsServerError, BrokerError, Unavailable, ShengjiError, ArchiveDamaged)


def _reader(
    data: Path | None, nats: str | None, archive: Path | None
) -> AbstractAsyncContextManager[LogReader]:
    """The log that a command's flags name."""
    if nats is None:
        if archive is not None:
            raise click.UsageError("--archive goes with --nats")
        return reader_of(data or default_data())
    if data is not None:
        raise click.UsageError("--data and --nats exclude each other")
    return reader_at(nats, None if archive is None else Archive(archive))


@click.command(short_help="Verify a table's log, or all: chain, shuffles, seals, decisions.")
@click.argument("table", required=False)
@_data
@_nats
@_archive
@click.option(
    "--head", default=None, help="The hash (hex) of the newest commit of TABLE, known from elsewhere."
)
def verify(
    table: str | None, data: Path | None, nats: str | None, archive: Path | None, head: str | None
) -> None:
    """Verify a table's log, or all of them: chain, shuffles, seals and every decision.

    What the stream has dropped is read from the archive.

    Works while services run on the folder and when none does. Exit status 0 only when everything is sound.
    What is checked and how, so that you can write your own verifier, stands in services/game/README.md.
    """
    if head and not table:
        raise click.UsageError("--head goes with a TABLE")
    try:
        expected = bytes.fromhex(head) if head else None
    except ValueError:
        raise click.UsageError("--head is not hex") from None
    try:
        sound = asyncio.run(_verify(_reader(data, nats, archive), table, expected))
    except _FAULTS as error:
        raise click.ClickException(str(error)) from None
    sys.exit(0 if sound else 1)


async def _verify(
    opening: AbstractAsyncContextManager[LogReader], table: str | None, head: bytes | None
) -> bool:
    console = Console(highlight=False, soft_wrap=True)
    sound = True
    async with opening as reader:
        for table_id in [table] if table else await reader.tables():
            try:
                report = await verify_in(reader, table_id, head)
            except ArchiveDamaged as error:
                console.print(f"  {table_id}: NOT SOUND: {error}", style="bold red")
                sound = False
                continue
            print_report(console, table_id, report)
            sound = sound and report.ok and report.versions > 0
    return sound


@click.command(short_help="Print a recorded match, or list the tables.")
@click.argument("table", required=False)
@_data
@_nats
@_archive
def replay(table: str | None, data: Path | None, nats: str | None, archive: Path | None) -> None:
    """Print a recorded match from the log or its archive, or list the tables when there are several.

    The list tells of each when it was founded (UTC), its preset and its first players. Deals that are over
    are shown with all hands; an open deal shows what is public.
    """
    try:
        asyncio.run(_replay(_reader(data, nats, archive), table))
    except _FAULTS as error:
        raise click.ClickException(str(error)) from None


async def _replay(opening: AbstractAsyncContextManager[LogReader], table: str | None) -> None:
    async with opening as reader:
        tables = [table] if table else await reader.tables()
        if len(tables) != 1:
            for table_id in tables:
                click.echo(entry(table_id, (await reader.commits(table_id))[:1]))
            return
        await _print_match(reader, tables[0])


def entry(table_id: str, founding: Sequence[bytes]) -> str:
    """A table in the list of all: since when (UTC), what is played, and who sat down at first."""
    if not founding:
        return table_id
    commit = Commit.FromString(founding[0])
    since = datetime.fromtimestamp(commit.recorded_at_us / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M")
    opened = commit.events[0].table_opened
    seats = ", ".join("bot" if seat.difficulty else seat.player_id or "free" for seat in opened.seats)
    return f"{table_id}  {since}  {opened.rules.preset}  {seats}"


def _wide_console() -> Console:
    """As wide as the terminal; what goes into a pipe or a file is folded only where COLUMNS says so."""
    folded = sys.stdout.isatty() or os.environ.get("COLUMNS")
    return Console(highlight=False, width=None if folded else _ENDLESS)


async def _print_match(reader: LogReader, table_id: str) -> None:
    commits = read_chain(TableId.parse(table_id), await reader.commits(table_id))
    events = [event for commit in commits for event in commit.events]
    keyring = with_revealed(Keyring(), table_id, events)
    founded = events[0].table_opened
    players = [seat.player_id or "free" for seat in founded.seats]
    printer = MatchPrinter(_wide_console(), rules_from_wire(founded.rules), players)
    printer.heading(table_id)
    current = None
    for commit in commits:
        printer.events(open_commit(commit, current=current, keyring=keyring).events)
        for event in commit.events:
            current = seal_after(event, current)
    printer.summary()
