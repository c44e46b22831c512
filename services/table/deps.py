"""What the tables of a process stand on."""

from collections.abc import Callable
from typing import NamedTuple

from services.game.keys import Keyring
from services.shell.live import LiveFeed
from services.shell.log_store import LogStore
from services.shell.logs import Log
from services.shell.snapshots import Snapshots
from services.shell.timers import Timers
from services.table.metrics import TableMetrics


class Deps(NamedTuple):
    """The ports and tools that the parts of the table service share."""

    log_store: LogStore
    feed: LiveFeed
    timers: Timers
    snapshots: Snapshots
    keyring: Keyring
    metrics: TableMetrics
    log: Log
    now_us: Callable[[], int]
    """The clock, microseconds of Unix time."""
