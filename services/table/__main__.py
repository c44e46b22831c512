"""``python -m services.table``: the table service alone, its flags made from its declared settings."""

import argparse
import sys
from typing import get_origin

from services.shell.broker import BrokerError
from services.shell.config import ConfigError, load, settings
from services.shell.keys import KeyFileError
from services.table.app import run
from services.table.config import TableConfig


def main() -> None:
    """Read the flags and run until a signal."""
    parser = argparse.ArgumentParser(prog="python -m services.table", description="Serve tables over gRPC.")
    for item in settings(TableConfig):
        if item.setting.secret:
            continue
        shown = ",".join(item.default) if get_origin(item.kind) is tuple else item.default
        text = f"{item.setting.help} [{item.variable}; default {shown if shown != '' else 'none'}]"
        shown_help = argparse.SUPPRESS if item.setting.hidden else text.replace("%", "%%")
        parser.add_argument(item.flag, dest=item.name, default=None, help=shown_help)
    try:
        run(load(TableConfig, vars(parser.parse_args())))
    except (ConfigError, KeyFileError, BrokerError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
