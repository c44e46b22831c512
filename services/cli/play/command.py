"""`shengji play`: the command line."""

import asyncio
import json
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click
import grpc

from services.cli.play.account import Account, Refused
from services.cli.play.loop import Loop
from services.cli.play.profile import Profile, ProfileDamaged, ProfileInUse, opened
from services.cli.play.rooms import DIFFICULTIES, Wish
from services.cli.play.streams import Queue
from services.cli.play.terminal import Terminal
from services.cli.play.texts import tell
from services.cli.rules import locale_language
from services.rules.presets import PRESET_NAMES
from services.rules.shown import Language
from services.shell.config import ConfigError, is_loopback, split_address

_OPTIONS = (
    ("grpc.keepalive_time_ms", 45_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.initial_reconnect_backoff_ms", 200),
)


def _readable(_: click.Context, option: click.Parameter, value: str | tuple[str, ...]) -> Any:
    """The value itself; bytes of the command line that are no text cannot be sent to anybody."""
    try:
        "".join(value).encode()
    except UnicodeEncodeError:
        raise click.BadParameter("is no readable text", param=option) from None
    return value


@click.command()
@click.option("--create", is_flag=True, help="Make a room for friends and show its invite code.")
@click.option(
    "--join",
    "code",
    metavar="CODE",
    default="",
    callback=_readable,
    help="Go to a friend's room by its invite code.",
)
@click.option(
    "--match",
    is_flag=True,
    help="Look for opponents of about your strength; four are needed unless --bots-after.",
)
@click.option(
    "--preset",
    type=click.Choice(PRESET_NAMES),
    default="classic-2d",
    show_default=True,
    help="The rules (`shengji rules` tells them).",
)
@click.option(
    "--option",
    "options",
    metavar="NAME=JSON",
    multiple=True,
    callback=_readable,
    help="Change a rule; may be given again.",
)
@click.option("--stake", type=click.IntRange(0, 1_000_000_000), default=0, help="Base stake in chips [none].")
@click.option(
    "--bots", type=click.Choice(list(DIFFICULTIES)), default="normal", show_default=True, help="How strong."
)
@click.option(
    "--bots-after",
    type=click.IntRange(0, 600),
    default=0,
    help="With --match: bots fill in so many seconds after the first of a group began to look [never].",
)
@click.option(
    "--profile",
    default="default",
    show_default=True,
    help="Who you are on this machine; two terminals need two profiles.",
)
@click.option("--guest", is_flag=True, help="Be somebody new and keep nothing.")
@click.option(
    "--name", default="", callback=_readable, help="What others shall call you, 1 to 24 characters."
)
@click.option("--lang", type=click.Choice(["zh", "en"]), default=None, help="Language [of LC_ALL or LANG].")
@click.option("--lobby", default="127.0.0.1:7434", show_default=True, help="Address of the lobby, host:port.")
@click.option(
    "--table", default="127.0.0.1:7433", show_default=True, help="Address of the tables, host:port."
)
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    help="Certificates (PEM) to trust [no TLS on this machine, the usual ones elsewhere].",
)
def play(
    create: bool,
    code: str,
    match: bool,
    preset: str,
    options: tuple[str, ...],
    stake: int,
    bots: str,
    bots_after: int,
    profile: str,
    guest: bool,
    name: str,
    lang: Language | None,
    lobby: str,
    table: str,
    ca: Path | None,
) -> None:
    """Play at this terminal: against three bots, or with friends.

    Without --create, --join or --match a table with three bots begins at once. Type ? at any time for what
    can be typed. Ctrl-C loses nothing: the next `shengji play` with the same profile goes on where you were.

    A house must be running: `shengji up` on this machine, or one named with --lobby and --table.
    """
    if create + bool(code) + match > 1:
        raise click.UsageError("--create, --join and --match exclude each other")
    language = lang or locale_language(os.environ)
    wish = Wish(
        way="join" if code else "create" if create else "match" if match else "bots",
        preset=preset,
        options=_options(options),
        stake=stake,
        code=code,
        bots=bots,
        bots_after_s=bots_after,
    )
    if not profile or not all(letter.isalnum() or letter in "-_." for letter in profile):
        raise click.UsageError("--profile takes letters, digits and -_.")
    held: AbstractContextManager[Profile] = nullcontext(Profile()) if guest else opened(profile)
    try:
        with held as kept:
            asyncio.run(_play(kept, profile, wish, name, language, (lobby, table), ca))
    except ProfileInUse:
        raise click.ClickException(tell(language, "profile_in_use", profile=profile)) from None
    except (ProfileDamaged, ConfigError) as error:
        raise click.ClickException(str(error)) from None
    except Refused as refused:
        gone = "no_house" if refused.unanswered else "gone"
        detail = refused.text if refused.reason else tell(language, gone, detail=refused.text, lobby=lobby)
        raise click.ClickException(detail) from None
    except KeyboardInterrupt:
        click.echo(tell(language, "leaving_guest" if guest else "leaving"))


def _options(given: Sequence[str]) -> list[tuple[str, str]]:
    """Options as names and canonical JSON; plain words are meant as texts."""
    options = []
    for option in given:
        name, equals, text = option.partition("=")
        if not equals:
            raise click.BadParameter(f"{option!r} is not NAME=JSON", param_hint="--option")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        options.append((name, written.encode(errors="replace").decode()))
    return options


async def _play(
    profile: Profile,
    profile_name: str,
    wish: Wish,
    name: str,
    language: Language,
    addresses: tuple[str, str],
    ca: Path | None,
) -> None:
    lobby, table = addresses
    async with _channel(lobby, ca) as lobby_channel, _channel(table, ca) as table_channel:
        queue = Queue()
        account = Account(lobby_channel, table_channel, profile, language)
        await Loop(account, Terminal(queue), queue, profile_name).run(wish, name)


def _channel(address: str, ca: Path | None) -> grpc.aio.Channel:
    """A channel: TLS for other machines, or wherever certificates are named."""
    host, _ = split_address(address)
    if ca is None and is_loopback(host):
        return grpc.aio.insecure_channel(address, _OPTIONS)
    roots = None if ca is None else ca.read_bytes()
    return grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(roots), _OPTIONS)
