"""``python -m services.lobby``: the lobby service, told by ``SHENGJI_*`` variables (or `shengji lobby`)."""

import sys

from services.lobby.app import run
from services.lobby.config import LobbyConfig
from services.shell.broker import BrokerError
from services.shell.config import ConfigError, load
from services.shell.keys import KeyFileError


def main() -> None:
    """Read the variables and run until a signal."""
    try:
        run(load(LobbyConfig, {}))
    except (ConfigError, KeyFileError, BrokerError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
