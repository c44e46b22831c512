"""``python -m services.bot``: the bot service, told by ``SHENGJI_*`` variables (flags: ``shengji bot``)."""

import sys

from services.bot.app import run
from services.bot.config import BotConfig
from services.shell.broker import BrokerError
from services.shell.config import ConfigError, load
from services.shell.keys import KeyFileError


def main() -> None:
    """Read the variables and run until a signal."""
    try:
        run(load(BotConfig, {}))
    except (ConfigError, KeyFileError, BrokerError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
