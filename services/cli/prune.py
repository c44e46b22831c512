"""`shengji prune`: take out of the log what was archived long ago."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

import click
from nats import errors
from nats.js.errors import APIError

from services.cli.audit import FAULTS, archive_option, data_option, database_option, open_database
from services.cli.data import default_data
from services.cli.reading import archive_of, broker_of
from services.ledger.archive import Archive
from services.ledger.pruning import Outcome, Pruner
from services.shell.broker import Broker

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_AGE: Final = re.compile(r"(\d{1,6})([smhd])")


def _age(_: click.Context, __: click.Parameter, text: str) -> int:
    matched = _AGE.fullmatch(text)
    if matched is None:
        raise click.BadParameter("must be a number and s, m, h or d, such as 7d")
    return int(matched[1]) * _UNITS[matched[2]]


@click.command()
@data_option
@click.option("--nats", metavar="URL", default=None, help="This NATS, as its user archiver.")
@database_option
@archive_option
@click.option(
    "--older-than",
    "older_than_s",
    default="7d",
    show_default=True,
    callback=_age,
    help="Only what was archived longer ago: more than the time between two backups of the database.",
)
def prune(
    data: Path | None, nats: str | None, database: str | None, archive: Path | None, older_than_s: int
) -> None:
    """Take archived tables out of the log, all but their last commits.

    Each archive is verified again before. A table stays while any reader of the log, or the ledger, has not
    got past it. Exit status 0 unless an archive does not verify.
    """
    folder = data or default_data()
    kept = archive_of(folder) if archive is None else Archive(archive)
    opening = broker_of(folder, "archiver") if nats is None else _at(nats)
    try:
        sound = asyncio.run(_prune(opening, folder, database, kept, older_than_s))
    except (*FAULTS, errors.Error, APIError) as error:
        raise click.ClickException(str(error)) from None
    sys.exit(0 if sound else 1)


@asynccontextmanager
async def _at(url: str) -> AsyncIterator[Broker]:
    """A connection to the NATS at a URL."""
    broker = await Broker.connect(url, "archiver")
    try:
        yield broker
    finally:
        await broker.close()


async def _prune(
    opening: AbstractAsyncContextManager[Broker],
    folder: Path,
    url: str | None,
    archive: Archive,
    older_than_s: int,
) -> bool:
    counts = dict.fromkeys(Outcome, 0)
    database = open_database(folder, url)
    try:
        async with opening as broker:
            async for table_id, outcome, detail in Pruner(database, broker, archive).prune(older_than_s):
                counts[outcome] += 1
                if outcome is not Outcome.PRUNED:
                    click.echo(f"{table_id}: stays, {outcome.value}: {detail}")
    finally:
        await database.close()
    click.echo(f"{counts[Outcome.PRUNED]} tables pruned")
    return not counts[Outcome.DAMAGED]
