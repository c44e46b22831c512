"""`shengji token`: a signed token for development."""

from pathlib import Path

import click

from services.cli.data import NoData, writable
from services.ledger.servicer import ADMIN
from services.shell.keys import KeyFileError, signing_key
from services.shell.tokens import LIFETIME_S, SCOPES, sign
from services.shell.trust import PLAYER_ISSUER


def _scope(_: click.Context, __: click.Parameter, text: str) -> str:
    words, known = text.split(), [*SCOPES.split(), ADMIN]
    if not words or not set(words) <= set(known):
        raise click.BadParameter(f"is one or more of {', '.join(known)}, separated by spaces")
    return " ".join(words)


@click.command()
@click.option("--player", required=True, help="The player id that the token is for, such as ply_anna.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder with keys/ [$SHENGJI_DATA, else $XDG_DATA_HOME/shengji].",
)
@click.option(
    "--lifetime", type=click.IntRange(min=1), default=LIFETIME_S, show_default=True, help="Seconds."
)
@click.option(
    "--scope",
    default=SCOPES,
    show_default=True,
    callback=_scope,
    help="What it is for; with admin beside it, everybody's chips and matches can be seen.",
)
def token(player: str, data: Path | None, lifetime: int, scope: str) -> None:
    """Sign a token for a player with this machine's own key.

    Send it as `authorization: Bearer <token>` with every call. For development: in production a lobby signs
    tokens.
    """
    try:
        key = signing_key(writable(data), PLAYER_ISSUER)
        click.echo(sign(key, PLAYER_ISSUER, player, scope=scope, lifetime_s=lifetime))
    except (KeyFileError, NoData, ValueError) as error:
        raise click.ClickException(str(error)) from None
