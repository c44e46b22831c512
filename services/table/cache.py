"""The tables in memory: how they come in, how they follow the log, and how they leave."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from google.protobuf.message import DecodeError

from services.game import chain, snapshot
from services.game.errors import BadId, CorruptLog, ShengjiError
from services.game.evolve import FOLD_VERSION
from services.game.ids import TableId
from services.game.seal import open_snapshot
from services.pb.log.v1.log_pb2 import Snapshot
from services.rules.reasons import Reason
from services.shell.errors import RefusedError, unavailable
from services.shell.log_store import Stored, Unavailable, pages
from services.shell.logs import fault_of
from services.table.deps import Deps
from services.table.hot import Folded, HotTable, fold

FROZEN_S: Final = 5.0
"""How long a table that cannot be read or written is left alone before it is tried again."""
LOADS: Final = 256
"""Tables that may be on their way into memory; the log reads 16 of them at a time."""
BREATH: Final = 200
"""Commits folded in one go while a table is loaded."""


class TableCache:
    """Tables in memory, at most ``limit``; the one untouched for the longest leaves first.

    Attributes:
        on_change: called with a table that has come in or has one more commit.
    """

    def __init__(self, deps: Deps, limit: int) -> None:
        self.deps = deps
        self.on_change: Callable[[HotTable], None] = lambda _: None
        self._limit = limit
        self._hot: OrderedDict[str, HotTable] = OrderedDict()
        self._loading: dict[str, asyncio.Task[HotTable]] = {}
        self._frozen: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._hot)

    def all(self) -> list[HotTable]:
        """All tables in memory."""
        return list(self._hot.values())

    def holds(self, hot: HotTable) -> bool:
        """Whether the table is still in memory."""
        return self._hot.get(hot.table_id) is hot

    # --------------------------------------------------------------------------------------- in and out

    async def open(self, table_id: str) -> HotTable:
        """The table, loaded if it is not in memory.

        Raises:
            RefusedError: BAD_ID, UNKNOWN_TABLE, or the log cannot serve it now.
        """
        hot = self._hot.get(table_id)
        if hot is None:
            try:
                hot = await self._load_once(TableId.parse(table_id))
            except BadId:
                raise RefusedError(Reason.BAD_ID, {"id": table_id}) from None
        else:
            self._hot.move_to_end(table_id)
        hot.touched = time.monotonic()
        return hot

    async def _load_once(self, table_id: str) -> HotTable:
        """Load a table; whoever asks meanwhile waits for the same load."""
        if self._frozen.get(table_id, 0.0) > time.monotonic():
            raise RefusedError(Reason.CANNOT_RECORD)
        task = self._loading.get(table_id)
        if task is None and len(self._loading) >= LOADS:
            raise RefusedError(Reason.BUSY, retry_after_s=1.0)
        if task is None:
            task = self._loading[table_id] = asyncio.create_task(self._load(table_id))
            task.add_done_callback(lambda done: self._loaded(table_id, done))
        try:
            return await asyncio.shield(task)
        except Unavailable as error:
            raise unavailable(error) from None
        except CorruptLog as error:
            raise self.freeze(table_id, error) from None

    def _loaded(self, table_id: str, done: asyncio.Task[HotTable]) -> None:
        del self._loading[table_id]
        if not done.cancelled():
            # Whoever waited has been told; that nobody may be waiting any more is no fault.
            done.exception()

    async def _load(self, table_id: str) -> HotTable:
        started = time.perf_counter()
        folded = await self._from_snapshot(table_id)
        source = "log" if folded is None else "snapshot"
        if folded is None:
            async with aclosing(pages(self.deps.log_store, table_id)) as coming:
                async for commits in coming:
                    folded = await self._fold_all(folded, commits)
        if folded is None:
            raise RefusedError(Reason.UNKNOWN_TABLE)
        hot = self.admit(folded, started)
        hot.unsaved = 0
        self.deps.metrics.cold_loads[source].inc()
        self.deps.metrics.cold_load_seconds.observe(time.perf_counter() - started)
        return hot

    async def _from_snapshot(self, table_id: str) -> Folded | None:
        """The table by its snapshot and the log's tail; None unless the log agrees with the snapshot."""
        kept = await self.deps.snapshots.get(table_id)
        if kept is None:
            return None
        try:
            sealed = Snapshot.FromString(kept.payload)
            if sealed.fold_version != FOLD_VERSION or sealed.table_id != table_id:
                return None
            state = snapshot.unpack(open_snapshot(sealed, self.deps.keyring))
        except (ShengjiError, DecodeError) as error:
            self.deps.log.warning("snapshot_ignored", table_id=table_id, fault=fault_of(error))
            return None
        tail = await self.deps.log_store.read(table_id, max(0, sealed.stream_sequence - 1))
        if not tail or tail[0].sequence != sealed.stream_sequence or state.version != sealed.version:
            return None
        if chain.commit_hash(tail[0].payload) != sealed.commit_hash:
            return None
        base = Folded(chain.decode(tail[0].payload), state, tail[0].sequence, sealed.commit_hash)
        return await self._fold_all(base, tail[1:])

    async def _fold_all(self, folded: Folded | None, commits: list[Stored]) -> Folded | None:
        for count, stored in enumerate(commits, 1):
            state, head = (None, b"") if folded is None else (folded.after, folded.head)
            folded = fold(state, head, stored, self.deps.keyring)
            if count % BREATH == 0:
                await asyncio.sleep(0)
        return folded

    def admit(self, folded: Folded, checked: float) -> HotTable:
        """Take a table into memory, known to be the newest at the time ``checked``."""
        hot = HotTable(folded.after, folded.sequence, folded.head, checked)
        if self._frozen.pop(hot.table_id, None) is not None:
            self.deps.metrics.frozen_tables.set(len(self._frozen))
        self._hot[hot.table_id] = hot
        while len(self._hot) > self._limit:
            oldest = next((old for old in self._hot.values() if _idle(old) and old is not hot), None)
            if oldest is None:
                break
            self.evict(oldest)
        self._count_seats(hot)
        self.deps.metrics.open_tables.set(len(self._hot))
        self.on_change(hot)
        return hot

    def evict(self, hot: HotTable) -> None:
        """Take a table out of memory."""
        if self.holds(hot):
            del self._hot[hot.table_id]
        if hot.timer is not None:
            hot.timer.cancel()
            hot.timer = None
        self.deps.metrics.seated_players.dec(hot.seated)
        hot.seated = 0
        self.deps.metrics.open_tables.set(len(self._hot))

    def evict_idle(self, idle_s: float) -> None:
        """Take out what nobody has touched for so long."""
        since = time.monotonic() - idle_s
        for hot in [hot for hot in self._hot.values() if hot.touched < since and _idle(hot)]:
            self.evict(hot)

    def freeze(self, table_id: str, error: Exception) -> RefusedError:
        """Leave a table alone for a while, with an alarm: its log is not what this code may add to."""
        hot = self._hot.get(table_id)
        if hot is not None:
            self.evict(hot)
            hot.unsure = True
            if hot.timeline is not None:
                hot.timeline.end_for(Reason.CANNOT_RECORD)
        self._frozen[table_id] = time.monotonic() + FROZEN_S
        self.deps.metrics.frozen_tables.set(len(self._frozen))
        version = error.version if isinstance(error, CorruptLog) else 0
        self.deps.log.error("table_frozen", table_id=table_id, version=version, fault=fault_of(error))
        return RefusedError(Reason.CANNOT_RECORD)

    # ----------------------------------------------------------------------------------------- the fold

    async def refresh(self, hot: HotTable) -> None:
        """Read what the log holds beyond the table in memory.

        Raises:
            RefusedError: the log cannot be read now.
        """
        now = time.perf_counter()
        try:
            for stored in await self.deps.log_store.read(hot.table_id, hot.sequence):
                self.take(hot, stored)
        except Unavailable as error:
            raise unavailable(error) from None
        except CorruptLog as error:
            raise self.freeze(hot.table_id, error) from None
        hot.checked = now
        hot.unsure = False

    def take(self, hot: HotTable, stored: Stored) -> None:
        """Fold one commit of the log into a table, unless it is in already.

        Raises:
            CorruptLog: it is not the next one, or cannot be read.
        """
        if stored.sequence > hot.sequence:
            self.advance(hot, fold(hot.state, hot.head, stored, self.deps.keyring))

    def hear(self, hot: HotTable, stored: Stored) -> None:
        """A live copy came, the next one after what was heard before."""
        if not self.holds(hot):
            return
        if hot.appending or hot.held:
            # Very likely the commit that is being appended, whose events are at hand already; what comes
            # before those that are held have been heard waits behind them.
            hot.held.append(stored)
            return
        try:
            self.take(hot, stored)
        except CorruptLog as error:
            self.freeze(hot.table_id, error)

    def advance(self, hot: HotTable, folded: Folded) -> None:
        """The table has one more commit: the only place where a table in memory changes."""
        before = hot.state
        hot.state, hot.sequence, hot.head = folded.after, folded.sequence, folded.head
        hot.unsaved += 1
        hot.changed = time.monotonic()
        if folded.after.seats is not before.seats:
            self._count_seats(hot)
        self.on_change(hot)
        if hot.timeline is not None:
            hot.timeline.add(folded.commit, folded.after, folded.sequence)

    def _count_seats(self, hot: HotTable) -> None:
        seated = sum(1 for seat in hot.state.seats if seat.player_id)
        if seated != hot.seated:
            self.deps.metrics.seated_players.inc(seated - hot.seated)
            hot.seated = seated


def _idle(hot: HotTable) -> bool:
    return hot.timeline is None and not hot.waiting and not hot.lock.locked()
