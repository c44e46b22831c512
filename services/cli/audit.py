"""`shengji audit`: the ledger's database against the logs and archives, from the first commit on."""

import asyncio
import sys
from pathlib import Path

import click
from rich.console import Console

from services.cli.data import DataInUse, NoData, default_data
from services.cli.reading import LogReader, archive_of, reader_at, reader_of
from services.game.errors import ShengjiError
from services.ledger.archive import Archive
from services.ledger.audit import Report
from services.ledger.audit import audit as compare
from services.ledger.database import Database, DatabaseAway
from services.ledger.snapshot import load
from services.shell.broker import BrokerError
from services.shell.config import ConfigError
from services.shell.log_store import Unavailable
from services.shell.nats_server import NatsServerError

FAULTS = (
    DataInUse,
    NoData,
    NatsServerError,
    BrokerError,
    Unavailable,
    ShengjiError,
    DatabaseAway,
    ConfigError,
)


data_option = click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder of everything [$SHENGJI_DATA, else $XDG_DATA_HOME/shengji].",
)
database_option = click.option(
    "--database",
    metavar="URL",
    envvar="SHENGJI_DATABASE",
    default=None,
    help="The ledger's database [$SHENGJI_DATABASE, else DATA/ledger.db].",
)
archive_option = click.option(
    "--archive",
    type=click.Path(path_type=Path),
    default=None,
    help="The folder of archived logs [DATA/archive].",
)


@click.command(short_help="Compute every balance, result and rating again, and compare.")
@data_option
@click.option("--nats", metavar="URL", default=None, help="Read the log of this NATS, as its user reader.")
@database_option
@archive_option
def audit(data: Path | None, nats: str | None, database: str | None, archive: Path | None) -> None:
    """Compute every balance, transfer, result and rating again, and compare.

    Works while services run and when none does; what the ledger has not reached yet is no difference. Exit
    status 0 only when nothing differs. What is taken from the database and what is not stands in
    services/ledger/README.md.
    """
    folder = data or default_data()
    kept = archive_of(folder) if archive is None else Archive(archive)
    try:
        report = asyncio.run(_audit(folder, nats, database, kept))
    except FAULTS as error:
        raise click.ClickException(str(error)) from None
    sys.exit(_tell(report))


async def _audit(folder: Path, nats: str | None, url: str | None, archive: Archive) -> Report:
    database = open_database(folder, url)
    try:
        async with reader_of(folder, archive) if nats is None else reader_at(nats, archive) as reader:
            return await _compare(database, reader, archive)
    finally:
        await database.close()


async def _compare(database: Database, reader: LogReader, archive: Archive) -> Report:
    # The database first: the logs then hold at least all that it knows.
    found = await database.read(load)
    return await compare(found, reader, archive)


def open_database(folder: Path, url: str | None) -> Database:
    """A ledger's database, which must be there already."""
    if not url:
        file = folder / "ledger.db"
        if not file.exists():
            raise click.ClickException(f"there is no ledger at {file}")
        url = f"sqlite+aiosqlite:///{file}"
    return Database(url)


def _tell(report: Report) -> int:
    """Say what was found; the exit status."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"{report.tables} tables, {report.commits} commits, {report.transfers} transfers,"
        f" {report.accounts} accounts, {report.matches} matches"
    )
    if report.unreached:
        console.print(f"{report.unreached} commits are not in the ledger yet")
    for number, difference in enumerate(report.differences):
        told = "First difference" if number == 0 else "And"
        console.print(f"{told}: {difference}", style="bold red", markup=False)
    if not report.differences:
        console.print("Nothing differs.", style="green")
    return 1 if report.differences else 0
