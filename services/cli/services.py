"""`shengji table`, `lobby`, `bot` and `ledger`: one service alone, with flags from its settings."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_origin

import click

from services.bot.app import run as run_bot
from services.bot.config import BotConfig
from services.ledger.app import run as run_ledger
from services.ledger.config import LedgerConfig
from services.lobby.app import run as run_lobby
from services.lobby.config import LobbyConfig
from services.shell.broker import BrokerError
from services.shell.config import ConfigError, load, settings
from services.shell.keys import KeyFileError
from services.table.app import run as run_table
from services.table.config import TableConfig

_CLICK_TYPES: dict[Any, Any] = {
    int: int,
    float: float,
    str: str,
    bool: bool,
    Path: click.Path(path_type=Path),
}


def flags_of(config: type) -> Callable[[Any], Any]:
    """A decorator that gives a command one flag for each public setting of a configuration."""

    def decorate(command: Any) -> Any:
        for item in reversed(settings(config)):
            if item.setting.hidden or item.setting.secret:
                continue
            listed = get_origin(item.kind) is tuple
            shown = ",".join(item.default) if listed else item.default
            command = click.option(
                item.flag,
                item.name,
                type=str if listed else _CLICK_TYPES[item.kind],
                default=None,
                help=f"{item.setting.help} [{item.variable}; default {shown if shown != '' else 'none'}]",
            )(command)
        return command

    return decorate


def loaded(config: type[Any], flags: dict[str, object]) -> Any:
    """A configuration from flags, variables and defaults, in that order; what cannot be ends the command."""
    try:
        return load(config, flags)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _run(service: Callable[[Any], None], config: Any) -> None:
    """Run a service; what keeps it from running is said in one line."""
    try:
        service(config)
    except (ConfigError, KeyFileError, BrokerError) as error:
        raise click.ClickException(str(error)) from None


@click.command()
@flags_of(TableConfig)
def table(**flags: object) -> None:
    """Run a table service: the gRPC API of tables.

    Any number of replicas may run on one NATS; each can serve every table.
    """
    config: TableConfig = loaded(TableConfig, flags)
    if config.insecure_entropy:
        raise click.UsageError("SHENGJI_INSECURE_ENTROPY is for `shengji demo --seed` alone")
    _run(run_table, config)


@click.command()
@flags_of(BotConfig)
def bot(**flags: object) -> None:
    """Run a bot service: it plays every seat that a bot was named for.

    Any number of replicas may run on one NATS. It holds no master key and never writes to the log.
    """
    _run(run_bot, loaded(BotConfig, flags))


@click.command(short_help="Run a lobby service: signing in, rooms, opponents, presence.")
@flags_of(LobbyConfig)
def lobby(**flags: object) -> None:
    """Run a lobby service: signing in, rooms, finding opponents, presence.

    Any number of replicas may run on one NATS; what they know is kept there.
    """
    config: LobbyConfig = loaded(LobbyConfig, flags)
    if config.insecure_entropy:
        raise click.UsageError("SHENGJI_INSECURE_ENTROPY is for `shengji demo --seed` alone")
    _run(run_lobby, config)


@click.command(short_help="Run a ledger service: chips, results and ratings.")
@flags_of(LedgerConfig)
def ledger(**flags: object) -> None:
    """Run a ledger service: chips, results and ratings, from the tables' log.

    One of all replicas on a database applies the log; the others answer questions and stand by.
    """
    _run(run_ledger, loaded(LedgerConfig, flags))
