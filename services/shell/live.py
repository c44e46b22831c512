"""Every commit of a watched table, in order and without gaps, however live copies come.

Live copies are fast and promise nothing: a change of leader can swallow the newest one. Each copy names the
table's commit before it, so a gap shows with the next copy; a poll finds the gap that has no next copy. Gaps
are filled from the log, so whoever watches sees exactly the table's commits after the one it began with.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from services.game.ids import TableId
from services.shell.log_store import Listening, LogStore, Stored, Unavailable

POLL_S: Final = 2.0
"""How often the newest commit of every watched table is asked for."""
HELD_MAX: Final = 256
"""Copies of a table kept while a gap before them is being filled; more are read from the log."""

CommitCallback = Callable[[Stored], None]
"""Takes the next commit of a table; must not block and must not raise."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Watched:
    """One watched table."""

    table_id: str
    callback: CommitCallback
    reached: int
    """Sequence of the newest commit handed over."""
    listening: Listening | None = None
    held: deque[Stored] = field(default_factory=deque)
    """Copies that came after a gap."""
    filling: asyncio.Task[None] | None = None
    wanted: int = 0
    """The log is known to reach this sequence."""


class LiveFeed:
    """The live commits of all watched tables of one process.

    Attributes:
        gaps: gaps that were filled from the log, for metrics.
        polled: commits that only the poll made known.
    """

    def __init__(self, log: LogStore, *, poll_s: float = POLL_S) -> None:
        self._log = log
        self._poll_s = poll_s
        self._watched: dict[str, _Watched] = {}
        self._poller: asyncio.Task[None] | None = None
        self._poke = asyncio.Event()
        self.gaps = 0
        self.polled = 0

    async def start(self) -> None:
        """Begin to poll."""
        self._poller = asyncio.create_task(self._poll_for_ever())

    async def stop(self) -> None:
        """Stop polling and unwatch every table."""
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
            self._poller = None
        for table_id in list(self._watched):
            await self.unwatch(table_id)

    def poke(self) -> None:
        """Poll now; for the broker's ``on_reconnect``."""
        self._poke.set()

    async def watch(self, table_id: str, after: int, callback: CommitCallback) -> None:
        """Have every commit after sequence ``after`` handed over, once and in order.

        Raises:
            BadId: no table id.
            ValueError: the table is watched already.
            Unavailable: no connection to NATS.
        """
        table_id = TableId(table_id)
        if table_id in self._watched:
            raise ValueError(f"{table_id} is watched already")
        watched = self._watched[table_id] = _Watched(table_id, callback, after)
        try:
            watched.listening = await self._log.listen(table_id, lambda commit: self._take(watched, commit))
        except Unavailable:
            del self._watched[table_id]
            raise
        # What came between ``after`` and the subscription has no live copy.
        self._fill(watched)

    async def unwatch(self, table_id: str) -> None:
        """Hand nothing more over of a table; harmless if it is not watched."""
        watched = self._watched.pop(table_id, None)
        if watched is None:
            return
        if watched.filling is not None:
            watched.filling.cancel()
        if watched.listening is not None:
            await watched.listening.stop()

    def offer(self, table_id: str, commit: Stored) -> None:
        """Take a commit that this process wrote or lost to; its live copy then comes as a repetition."""
        watched = self._watched.get(table_id)
        if watched is not None:
            self._take(watched, commit)

    def _take(self, watched: _Watched, commit: Stored) -> None:
        """One copy came: hand it over if it is the next, hold it if commits before it are missing."""
        if watched.table_id not in self._watched or commit.sequence <= watched.reached:
            return
        watched.wanted = max(watched.wanted, commit.sequence)
        if commit.previous == watched.reached:
            self._hand_over(watched, commit)
            self._hand_over_held(watched)
            return
        if len(watched.held) < HELD_MAX:
            watched.held.append(commit)
        self._fill(watched)

    def _hand_over(self, watched: _Watched, commit: Stored) -> None:
        watched.reached = commit.sequence
        watched.callback(commit)

    def _hand_over_held(self, watched: _Watched) -> None:
        for commit in sorted(watched.held, key=lambda held: held.sequence):
            if commit.previous == watched.reached:
                self._hand_over(watched, commit)
        watched.held = deque(commit for commit in watched.held if commit.sequence > watched.reached)

    def _fill(self, watched: _Watched) -> None:
        if watched.filling is None:
            watched.filling = asyncio.create_task(self._fill_gap(watched))

    async def _fill_gap(self, watched: _Watched) -> None:
        try:
            while self._watched.get(watched.table_id) is watched:
                commits = await self._log.read(watched.table_id, watched.reached, min_sequence=watched.wanted)
                for commit in commits:
                    # Live copies go on coming while the log is read, and the callback may have unwatched.
                    if commit.sequence > watched.reached and self._watched.get(watched.table_id) is watched:
                        self._hand_over(watched, commit)
                self.gaps += bool(commits)
                self._hand_over_held(watched)
                if watched.wanted <= watched.reached:
                    return
        except Unavailable as error:
            # The next copy or the next poll asks again.
            _log.warning("live_gap", extra={"table_id": watched.table_id, "reason": error.why.value})
        finally:
            watched.filling = None

    async def _poll_for_ever(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._poll_s):
                    await self._poke.wait()
            self._poke.clear()
            if self._watched:
                await self._poll()

    async def _poll(self) -> None:
        try:
            newest: Mapping[str, int] = await self._log.last(list(self._watched))
        except Unavailable as error:
            _log.warning("live_poll", extra={"reason": error.why.value})
            return
        for table_id, sequence in newest.items():
            watched = self._watched.get(table_id)
            if watched is not None and sequence > watched.reached:
                self.polled += 1
                watched.wanted = max(watched.wanted, sequence)
                self._fill(watched)
