"""The one active writer: takes the log in batches as large as it lags; other processes stand by."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from nats import errors
from nats.js.errors import APIError
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from services.ledger.applying import Projection, apply_batch, apply_carefully
from services.ledger.bulk import run_many
from services.ledger.database import Database, DatabaseAway, Writer
from services.ledger.folding import Entry, Fold
from services.ledger.holding import EXPIRES_US, Holding, clock_us
from services.ledger.metrics import LedgerMetrics
from services.ledger.moving import Why
from services.ledger.reader import Place, Reader
from services.ledger.schema import parked, positions
from services.shell.broker import Broker
from services.shell.logs import Log, fault_of

BATCH: Final = 5000
"""Commits of one transaction at most."""
STANDBY_S: Final = 0.5
"""How often a process that stands by asks whether it may write."""
TICK_S: Final = 1.0
"""How often the writer looks after what no commit brings about."""
_BACK_OFF_S: Final = (0.1, 0.2, 0.5, 1.0, 2.0)


class Applier:
    """Applies batches to the database, whatever is in them.

    Attributes:
        unfunded: set whenever something was applied of a match that a seat cannot pay for.
    """

    def __init__(
        self,
        database: Database,
        grant: int,
        metrics: LedgerMetrics,
        log: Log,
        projections: Sequence[Projection] = (),
    ) -> None:
        self._database = database
        self._grant = grant
        self._metrics = metrics
        self._log = log
        self._projections = projections
        self.unfunded = asyncio.Event()

    async def apply(self, entries: Sequence[Entry]) -> None:
        """Apply messages in one transaction; where one of them cannot be written, the others in some more.

        Raises:
            DatabaseAway: the database is not there. Some may have been applied; all may be given again.
        """
        now_us = clock_us()
        began = time.perf_counter()
        try:
            fold = await self._database.write(
                lambda connection: apply_batch(
                    connection, entries, grant=self._grant, now_us=now_us, projections=self._projections
                )
            )
        except DBAPIError as error:
            await self._apart(entries, error)
            return
        self._metrics.batch_seconds.observe(time.perf_counter() - began)
        self._metrics.batch_size.observe(len(entries))
        self._done(fold, entries)

    async def _apart(self, entries: Sequence[Entry], error: DBAPIError) -> None:
        """Apply the halves of a batch that could not be written, down to the one message at fault."""
        if len(entries) > 1:
            half = len(entries) // 2
            await self.apply(entries[:half])
            await self.apply(entries[half:])
            return
        self._log.error("not_written", table_id=entries[0].table_id, fault=fault_of(error))
        now_us = clock_us()
        fold = await self._database.write(
            lambda connection: apply_carefully(
                connection, entries[0], grant=self._grant, now_us=now_us, projections=self._projections
            )
        )
        self._done(fold, entries)

    async def retry(self, why: Sequence[Why]) -> None:
        """Try tables again that are parked for such a reason.

        Raises:
            DatabaseAway: not now.
        """
        wanted = select(parked.c.table_id).where(parked.c.why.in_([one.value for one in why]))

        async def find(connection: AsyncConnection) -> list[str]:
            return list((await connection.execute(wanted.order_by(parked.c.table_id))).scalars())

        for table_id in await self._database.read(find):
            self._done(await self._database.write(partial(self._again, table_id)), ())

    async def _again(self, table_id: str, connection: AsyncConnection) -> Fold:
        return await apply_batch(
            connection,
            (),
            grant=self._grant,
            now_us=clock_us(),
            retry=(table_id,),
            projections=self._projections,
        )

    async def count_parked(self) -> None:
        """Set the gauge of parked tables.

        Raises:
            DatabaseAway: not now.
        """

        async def count(connection: AsyncConnection) -> dict[str, int]:
            rows = await connection.execute(select(parked.c.why, func.count()).group_by(parked.c.why))
            return dict(rows.all())

        counted = await self._database.read(count)
        for why, gauge in self._metrics.parked.items():
            gauge.set(counted.get(why.value, 0))

    def _done(self, fold: Fold, entries: Sequence[Entry]) -> None:
        self._metrics.applied(fold)
        now = time.time()
        observe = self._metrics.posting_lag.observe
        for message in entries:
            if message.commit is not None:
                observe(max(0.0, now - message.commit.recorded_at_us / 1e6))
        if any(fold.books[table_id].unfunded for table_id in fold.changed):
            self.unfunded.set()
        for table_id, why in fold.alarms:
            self._log.error("parked", table_id=table_id, reason=why.value)


class Consumer:
    """Applies the log as long as this process is the writer.

    Attributes:
        leading: whether it is.
    """

    def __init__(
        self,
        database: Database,
        broker: Broker,
        applier: Applier,
        holding: Holding,
        metrics: LedgerMetrics,
        log: Log,
        before: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Nothing runs yet; ``before`` is done by the writer each time before it reads the log."""
        self._database = database
        self._broker = broker
        self._before = before
        self._applier = applier
        self._holding = holding
        self._metrics = metrics
        self._log = log
        self._task: asyncio.Task[None] | None = None
        self.leading = False

    def start(self) -> None:
        """Begin: to write, or to stand by."""
        self._task = asyncio.create_task(self._run())

    def check(self) -> None:
        """That it still works; a fault that nobody foresaw ends the process, and another takes over."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()

    async def stop(self) -> None:
        """Apply no more; what is under way is given up or committed, and both are right."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                async with self._database.writer() as writer:
                    if writer is None:
                        failures = 0
                    else:
                        await self._lead(writer)
            except (DatabaseAway, APIError, errors.Error, OSError) as error:
                failures += 1
                if isinstance(error, DatabaseAway):
                    self._metrics.away.inc()
                if failures == 1:
                    self._log.warning("cannot_apply", fault=fault_of(error))
            finally:
                if self.leading:
                    failures = min(failures, 1)
                self.leading = False
                self._metrics.writer.set(0)
            pause = _BACK_OFF_S[min(failures, len(_BACK_OFF_S)) - 1] if failures else STANDBY_S
            await asyncio.sleep(pause)

    async def _lead(self, writer: Writer) -> None:
        """Be the writer until the database or the log goes away."""
        reader = Reader(self._broker, await self._places(), self._log)
        await self._begin(reader)
        if self._before is not None:
            await self._before()
        reader.start()
        self.leading = True
        self._metrics.writer.set(1)
        self._log.info("writing")
        try:
            await self._applier.retry((Why.POISON, Why.GAP, Why.WAITS))
            ticked = 0.0
            while True:
                entries = await reader.take(BATCH, TICK_S)
                if entries:
                    await self._applier.apply(entries)
                    await reader.done(entries)
                for stream, gauge in enumerate(self._metrics.lag_messages):
                    gauge.set(reader.remaining(stream))
                now = asyncio.get_running_loop().time()
                if now - ticked >= TICK_S:
                    ticked = now
                    await writer.check()
                    await self._tick(reader)
        finally:
            await reader.stop()

    async def _tick(self, reader: Reader) -> None:
        """What no commit brings about: holds that expire, tables that wait for such a hold."""
        if reader.caught_up and await self._holding.expire(clock_us() - EXPIRES_US):
            self._log.info("holds_expired")
        await self._applier.retry((Why.WAITS,))
        await self._applier.count_parked()

    async def _places(self) -> dict[int, Place]:
        async def load(connection: AsyncConnection) -> dict[int, Place]:
            rows = await connection.execute(select(positions))
            return {row.stream: Place(row.created, row.sequence) for row in rows}

        return await self._database.read(load)

    async def _begin(self, reader: Reader) -> None:
        """Record which streams are read from now on; new ones are read from their beginning."""
        places = await reader.places()
        if reader.behind:
            self._log.error("log_behind", count=len(reader.behind))
        self._metrics.behind.set(len(reader.behind))
        rows = [(number, place.created, place.sequence) for number, place in sorted(places.items())]
        statement = "UPDATE positions SET created = :2, sequence = :3 WHERE stream = :1"
        await self._database.write(lambda connection: run_many(connection, statement, rows))
