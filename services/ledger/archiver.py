"""The archiver: verifies and archives the logs of tables that have closed, beside the consumer.

What is still to be done stands in the table ``archives``, noted in the transaction that applied the table's
last commit, so nothing is forgotten and doing it twice does no harm. Verifying is work for a processor, so it
happens in a process of its own, one log after another.
"""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge
from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.ledger.archive import Archive, ArchiveDamaged, Kept, fault_in, place_of
from services.ledger.bulk import run_many
from services.ledger.database import Database, DatabaseAway
from services.ledger.folding import Fold
from services.ledger.schema import applied, archives
from services.shell.log_store import LogStore, Unavailable
from services.shell.logs import Log, fault_of

PAUSE_S: Final = 2.0
"""Between two looks for tables to archive."""
TRIES: Final = 5
"""Looks at a log that lacks commits, before that is believed."""
_PAGE: Final = 100
_NOTE: Final = (
    "INSERT INTO archives (table_id, head, commits, size, place, archived_at_us, fault)"
    " VALUES (:1, :2, 0, 0, '', 0, '') ON CONFLICT (table_id) DO NOTHING"
)


async def note_closed(connection: AsyncConnection, fold: Fold) -> None:
    """Note the tables that closed with a batch as ones to be archived; see ``Projection``."""
    closed = sorted(table_id for table_id in fold.changed if fold.books[table_id].closed)
    await run_many(connection, _NOTE, [(table_id, b"") for table_id in closed])


class ArchiverMetrics:
    """What the archiver counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.archived = Counter(
            "shengji_ledger_archived_tables", "Logs that were verified and archived.", registry=registry
        )
        self.commits = Counter("shengji_ledger_archived_commits", "Commits of those logs.", registry=registry)
        self.refused = Counter(
            "shengji_ledger_refused_logs", "Logs that did not verify: an alarm.", registry=registry
        )
        self.waiting = Gauge(
            "shengji_ledger_unarchived_tables", "Closed tables that are not archived yet.", registry=registry
        )


class Archiver:
    """Archives closed tables as long as it may."""

    def __init__(
        self,
        database: Database,
        store: LogStore,
        archive: Archive,
        metrics: ArchiverMetrics,
        log: Log,
        may_run: Callable[[], bool] = lambda: True,
        at_once: int = 1,
    ) -> None:
        """Nothing runs yet.

        Args:
            database: the ledger's.
            store: the log.
            archive: where to.
            metrics: counts.
            log: gets a line for every log that is refused.
            may_run: says whether this is the process that archives; two at once do no harm.
            at_once: processes that verify; one more log is read meanwhile.
        """
        self._database = database
        self._store = store
        self._archive = archive
        self._metrics = metrics
        self._log = log
        self._may_run = may_run
        self._at_once = at_once
        self._turns = asyncio.Semaphore(at_once + 1)
        self._tries: dict[str, int] = {}
        self._pool: ProcessPoolExecutor | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End; what is not finished is done the next time."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._end_pool()

    async def _run(self) -> None:
        troubled = False
        while True:
            await asyncio.sleep(PAUSE_S)
            if not self._may_run():
                continue
            try:
                await self.archive_all()
                troubled = False
            except DatabaseAway as error:
                if not troubled:
                    self._log.warning("cannot_archive", fault=fault_of(error))
                troubled = True

    async def archive_all(self) -> None:
        """Archive everything that is noted and can be archived now.

        Raises:
            DatabaseAway: the database is not there.
        """
        after = ""
        while page := await self._page(after):
            after = page[-1]
            done = await asyncio.gather(*map(self._archive_one, page), return_exceptions=True)
            for outcome in done:
                if isinstance(outcome, BaseException):
                    raise outcome
        await self._count()

    async def _page(self, after: str) -> list[str]:
        query = (
            select(archives.c.table_id)
            .where(archives.c.archived_at_us == 0, archives.c.table_id > after)
            .order_by(archives.c.table_id)
            .limit(_PAGE)
        )

        async def load(connection: AsyncConnection) -> list[str]:
            return list((await connection.execute(query)).scalars())

        return await self._database.read(load)

    async def _count(self) -> None:
        query = select(func.count()).select_from(archives).where(archives.c.archived_at_us == 0)
        waiting = await self._database.read(lambda connection: connection.scalar(query))
        self._metrics.waiting.set(int(waiting or 0))

    async def _archive_one(self, table_id: str) -> None:
        async with self._turns:
            try:
                await self._try(table_id)
            except (Unavailable, OSError, BrokenProcessPool) as error:
                self._log.warning("cannot_archive", table_id=table_id, fault=fault_of(error))
                if isinstance(error, BrokenProcessPool):
                    self._end_pool()

    async def _try(self, table_id: str) -> None:
        settled = await self._database.read(lambda connection: settled_of(connection, table_id))
        commits = await self._commits(table_id, place_of(table_id, settled[max(settled)]))
        if len(commits) < max(settled) and self._again(table_id):
            return
        self._tries.pop(table_id, None)
        fault = await self._verify(table_id, commits, settled)
        kept = Kept("", b"", 0, 0)
        if not fault:
            try:
                kept = await asyncio.to_thread(self._archive.write, table_id, commits)
            except ArchiveDamaged as error:
                fault = str(error)
        await self._database.write(lambda connection: _record(connection, table_id, kept, fault))
        if fault:
            self._metrics.refused.inc()
            self._log.error("log_refused", table_id=table_id, detail=fault)
        else:
            self._metrics.archived.inc()
            self._metrics.commits.inc(kept.commits)

    def _again(self, table_id: str) -> bool:
        """Whether to look again at a log that lacks commits: what was read may have been stale."""
        self._tries[table_id] = self._tries.get(table_id, 0) + 1
        return self._tries[table_id] < TRIES

    async def _commits(self, table_id: str, place: str) -> Sequence[bytes]:
        """The log: from the stream, or, once that has dropped it, from an archive that is there already."""
        last = await self._store.last([table_id])
        if table_id in last:
            stored = await self._store.read(table_id, min_sequence=last[table_id])
            if stored[0].previous == 0:
                return [one.payload for one in stored]
        try:
            return await asyncio.to_thread(self._archive.read, place)
        except ArchiveDamaged:
            return []

    async def _verify(self, table_id: str, commits: Sequence[bytes], settled: Mapping[int, bytes]) -> str:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._at_once,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_be_modest,
                initargs=(os.getpid(),),
            )
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, fault_in, table_id, commits, settled)

    def _end_pool(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


async def settled_of(connection: AsyncConnection, table_id: str) -> dict[int, bytes]:
    """The hashes of a table's commits as they were applied, by version."""
    rows = await connection.execute(
        select(applied.c.version, applied.c.hash).where(applied.c.table_id == table_id)
    )
    return {row.version: row.hash for row in rows}


async def _record(connection: AsyncConnection, table_id: str, kept: Kept, fault: str) -> None:
    await connection.execute(
        update(archives)
        .where(archives.c.table_id == table_id, archives.c.archived_at_us == 0)
        .values(
            head=kept.head,
            commits=kept.commits,
            size=kept.size,
            place=kept.place,
            archived_at_us=time.time_ns() // 1000,
            fault=fault,
        )
    )


def _be_modest(parent: int) -> None:
    """The process that verifies gives way to those that people wait for, and ends with its own."""
    os.nice(10)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
