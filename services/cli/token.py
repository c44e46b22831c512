"""`shengji token`: a signed token for development."""

from pathlib import Path

import click

from services.cli.data import NoData, writable
from services.shell.keys import KeyFileError, signing_key
from services.shell.tokens import LIFETIME_S, sign
from services.shell.trust import PLAYER_ISSUER


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
def token(player: str, data: Path | None, lifetime: int) -> None:
    """Sign a token for a player with this machine's own key.

    Send it as `authorization: Bearer <token>` with every call. For development: in production a lobby signs
    tokens.
    """
    try:
        key = signing_key(writable(data), PLAYER_ISSUER)
        click.echo(sign(key, PLAYER_ISSUER, player, lifetime_s=lifetime))
    except (KeyFileError, NoData, ValueError) as error:
        raise click.ClickException(str(error)) from None
