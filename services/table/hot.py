"""One table in memory: its state, where it stands in the log, and what hangs on it in this process."""

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple

from services.game import chain
from services.game.errors import CorruptLog
from services.game.evolve import evolve
from services.game.ids import TableId
from services.game.keys import Keyring, seal_of
from services.game.seal import open_commit
from services.game.state import Table
from services.pb.log.v1.log_pb2 import Commit
from services.shell.log_store import Stored

if TYPE_CHECKING:
    from services.table.timeline import Timeline


class HotTable:
    """A table in memory.

    Attributes:
        table_id: its id.
        lock: held by whoever decides on it.
        state: the fold as far as this process knows the log.
        sequence: the log's sequence of the commit that the state includes last.
        head: the SHA-256 of that commit's stored bytes.
        changed: when it last got a commit, ``time.monotonic()``.
        checked: when the state was last known to be the newest, ``time.perf_counter()``.
        unsure: an append had no answer, so the log must be read before anything is decided.
        appending: an append is under way; live copies wait in ``held`` until it has its answer.
        waiting: commands that wait for the lock.
        timer: the timer of this process, and ``timer_us`` what it is set to.
        unsaved: commits since the last snapshot, which was made at ``saved``, ``time.monotonic()``.
        touched: when it was last used, ``time.monotonic()``.
        timeline: what its watchers are told; None without watchers.
        seated: seats taken, as counted in the metric.
    """

    __slots__ = (
        "appending",
        "changed",
        "checked",
        "head",
        "held",
        "lock",
        "saved",
        "seated",
        "sequence",
        "state",
        "table_id",
        "timeline",
        "timer",
        "timer_us",
        "touched",
        "unsaved",
        "unsure",
        "waiting",
    )

    def __init__(self, state: Table, sequence: int, head: bytes, checked: float) -> None:
        self.table_id = TableId(state.table_id)
        self.lock = asyncio.Lock()
        self.state = state
        self.sequence = sequence
        self.head = head
        self.changed = time.monotonic()
        self.checked = checked
        self.unsure = False
        self.appending = False
        self.held: list[Stored] = []
        self.waiting = 0
        self.timer: asyncio.TimerHandle | None = None
        self.timer_us = 0
        self.unsaved = 0
        self.saved = self.changed
        self.touched = self.changed
        self.timeline: Timeline | None = None
        self.seated = 0


class Folded(NamedTuple):
    """A commit and the table after it."""

    commit: Commit
    """With its secrets in the clear, as far as the keyring opens them."""
    after: Table
    sequence: int
    """The log's sequence of the commit."""
    head: bytes
    """The SHA-256 of its stored bytes."""


def fold(state: Table | None, head: bytes, stored: Stored, keyring: Keyring) -> Folded:
    """Fold one stored commit, checking that it is the next one.

    Args:
        state: the table before it; None before the first.
        head: the SHA-256 of the stored bytes of the commit before it; empty before the first.
        stored: the commit.
        keyring: opens its secrets.

    Raises:
        CorruptLog: it is not the next commit, or not one that this code can read.
    """
    version = 1 if state is None else state.version + 1
    commit = chain.decode(stored.payload, version)
    if commit.version != version or commit.prev_hash != head or (state and commit.table_id != state.table_id):
        raise CorruptLog(version, "it does not follow the commit before it")
    opened = open_commit(commit, current=seal_of(state), keyring=keyring)
    return Folded(opened, evolve(state, opened), stored.sequence, chain.commit_hash(stored.payload))
