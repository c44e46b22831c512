"""What is done now and then: snapshots behind the writes, idle tables put away, watchers looked after."""

import asyncio
import time
from typing import Final

from services.game import snapshot
from services.game.entropy import SystemEntropy
from services.game.evolve import FOLD_VERSION
from services.game.seal import seal_snapshot
from services.shell.log_store import Unavailable
from services.shell.logs import fault_of
from services.table.cache import TableCache
from services.table.hot import HotTable
from services.table.watch import Watches

EVERY_S: Final = 1.0
COMMITS: Final = 12
"""A snapshot is due after so many commits,"""
QUIET_S: Final = 10.0
"""or so long after the last one,"""
REST_S: Final = 5.0
"""but not so soon after another one, however fast the table is played."""
AT_ONCE: Final = 4
"""Snapshots written at once."""
FLUSH_S: Final = 2.0
"""For all snapshots that are due when the process stops; they are only a cache."""
_ENTROPY: Final = SystemEntropy()


class Keeper:
    """Runs once a second."""

    def __init__(self, cache: TableCache, watches: Watches, idle_s: float) -> None:
        self._cache = cache
        self._deps = cache.deps
        self._watches = watches
        self._idle_s = idle_s
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._saving: dict[str, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Write the snapshots that are due, as far as time allows, and end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for hot in self._cache.all():
            if hot.unsaved:
                self._save(hot)
        if self._saving:
            _, late = await asyncio.wait(list(self._saving.values()), timeout=FLUSH_S)
            for task in late:
                task.cancel()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self._round()
            except Exception as error:  # one bad round must not be the last
                self._deps.log.error("keeper_failed", fault=fault_of(error))

    async def _round(self) -> None:
        await self._watches.sweep()
        now = time.monotonic()
        for hot in self._cache.all():
            many = hot.unsaved >= COMMITS and hot.saved < now - REST_S
            if many or (hot.unsaved and hot.changed < now - QUIET_S):
                self._save(hot)
        self._cache.evict_idle(self._idle_s)

    def _save(self, hot: HotTable) -> None:
        if hot.table_id not in self._saving:
            task = self._saving[hot.table_id] = asyncio.create_task(self._write(hot))
            task.add_done_callback(lambda _: self._saving.pop(hot.table_id, None))

    async def _write(self, hot: HotTable) -> None:
        async with self._turns:
            state, unsaved = hot.state, hot.unsaved
            sealed = seal_snapshot(
                snapshot.pack(state),
                table_id=hot.table_id,
                version=state.version,
                commit_hash=hot.head,
                fold_version=FOLD_VERSION,
                stream_sequence=hot.sequence,
                keyring=self._deps.keyring,
                entropy=_ENTROPY,
            )
            # What comes while it is written is not in it.
            hot.unsaved, hot.saved = 0, time.monotonic()
            try:
                if await self._deps.snapshots.put(hot.table_id, state.version, sealed.SerializeToString()):
                    self._deps.metrics.snapshots.inc()
            except Unavailable as error:
                hot.unsaved += unsaved
                self._deps.log.warning("snapshot_not_written", table_id=hot.table_id, reason=error.why.value)
