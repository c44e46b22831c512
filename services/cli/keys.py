"""`shengji keys`: the keys that sign players' tokens, and their change."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click

from services.cli.data import NoData, default_data, existing, writable
from services.shell.key_ring import LEAD_S, STAY_S, KeyRing
from services.shell.keys import KeyFileError
from services.shell.trust import LOBBY_ISSUER

_DATA = click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder with keys/ [$SHENGJI_DATA, else $XDG_DATA_HOME/shengji].",
)


@click.group(short_help="The keys that sign players' tokens, and their change.")
def keys() -> None:
    """The keys that the lobby signs players' tokens with.

    Services on this data folder see a change within a second; others trust DATA/keys/lobby.jwks, so copy it
    to them, or take it from PlayerService.GetKeys.
    """


@keys.command(short_help="Replace the signing key; the old one ends an hour later.")
@_DATA
def rotate(data: Path | None) -> None:
    """Replace the signing key: a new one signs in a minute, and the old one ends an hour after that."""
    with _faults():
        added = KeyRing(writable(data), LOBBY_ISSUER, time.time).rotate()
    click.echo(f"{added.kid} signs in {LEAD_S} s; the key before it counts {STAY_S // 60} min longer")


@keys.command(name="list", short_help="Show every key that a token may name.")
@_DATA
def list_(data: Path | None) -> None:
    """Show every key that a token may name: its kid and the time (UTC) from which it signs."""
    with _faults():
        ring = KeyRing(existing(data or default_data()), LOBBY_ISSUER, time.time)
    current = ring.current()
    for key in ring.listed():
        since = datetime.fromtimestamp(key.not_before, UTC).isoformat(" ").removesuffix("+00:00")
        state = "signs" if key == current else "to come" if key.not_before > time.time() else "retired"
        click.echo(f"{key.kid}  {since if key.not_before else 'from the first':<19}  {state}")


@contextmanager
def _faults() -> Iterator[None]:
    """What cannot be done is said in one line."""
    try:
        yield
    except (KeyFileError, NoData) as error:
        raise click.ClickException(str(error)) from None
