"""The `shengji` command. Each subcommand is imported only when it runs, so that `judge` starts at once."""

import importlib
from typing import Final

import click

from services.cli.plain import make_printable

_COMMANDS: Final = {
    "demo": "services.cli.demo",
    "up": "services.cli.up",
    "table": "services.cli.services",
    "lobby": "services.cli.services",
    "bot": "services.cli.services",
    "play": "services.cli.play.command",
    "ledger": "services.cli.services",
    "token": "services.cli.token",
    "keys": "services.cli.keys",
    "operator": "services.cli.operator",
    "replay": "services.cli.log",
    "verify": "services.cli.log",
    "audit": "services.cli.audit",
    "prune": "services.cli.prune",
    "rules": "services.cli.rules",
    "judge": "services.cli.judge",
    "bench": "services.cli.bench",
}
"""Subcommand → the module that defines it, under the same name."""


class _Lazy(click.Group):
    """A group that imports a subcommand's module on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The subcommands in the order of the table above."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand, or None for an unknown name."""
        module = _COMMANDS.get(cmd_name)
        if module is None:
            return None
        command = getattr(importlib.import_module(module), cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="shengji")
def main() -> None:
    """Shengji (升级, 拖拉机, Tractor, 80 points): a table server, its bots and its tools.

    Start with `shengji demo`: it runs everything on this machine and plays one match before your eyes.
    """
    make_printable()
