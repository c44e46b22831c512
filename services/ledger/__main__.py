"""``python -m services.ledger``: the ledger, told by ``SHENGJI_*`` variables (flags: ``shengji ledger``)."""

import sys

from services.ledger.app import run
from services.ledger.config import LedgerConfig
from services.shell.broker import BrokerError
from services.shell.config import ConfigError, load
from services.shell.keys import KeyFileError


def main() -> None:
    """Read the variables and run until a signal."""
    try:
        run(load(LedgerConfig, {}))
    except (ConfigError, KeyFileError, BrokerError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
