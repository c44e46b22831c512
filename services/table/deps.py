"""What the tables of a process stand on."""

from collections.abc import Callable
from typing import NamedTuple

from services.game.keys import Keyring
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.live import LiveFeed
from services.shell.log_store import LogStore, Unavailable, Why
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


_REASONS = {Why.STORE_FULL: Reason.CANNOT_RECORD, Why.BUSY: Reason.BUSY}


def unavailable(error: Unavailable) -> RefusedError:
    """The log's "not now" as the caller is told it."""
    return RefusedError(_REASONS.get(error.why, Reason.UNAVAILABLE), retry_after_s=error.retry_after_s)
