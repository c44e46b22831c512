"""The time of tables: an exact timer in this process, a durable one that outlives it, and what they do.

Both only ask for a look at the table. What is due is decided from its state (``waits``), so a timer that
fires twice, early or at two replicas does no harm.
"""

import asyncio
from typing import Final

from services.game.commands import Expire, GiveTime, Refusal
from services.game.waits import due_us, is_players_wait
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.log_store import Unavailable, Why
from services.shell.timers import Done, Due, Rearm, Verdict
from services.table.hot import HotTable
from services.table.tables import ATTEMPTS, Tables

LATE_US: Final = 2_000_000
"""A wait that ran out longer ago than this is given again, not played (RULES §7 Time)."""
STARTING_US: Final = 30_000_000
"""So long after its start a process gives back also what ran out before it was there."""


class Deadlines:
    """Keeps the time of all tables in memory, and of the others when their durable timers fire."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._deps = tables.cache.deps
        self._started_us = self._deps.now_us()
        self._rings: set[asyncio.Task[None]] = set()
        tables.cache.on_change = self.set_timer

    def set_timer(self, hot: HotTable) -> None:
        """See that this process looks at the table when its wait ends; an earlier timer may stay."""
        due = due_us(hot.state)
        if due is None or (hot.timer is not None and hot.timer_us <= due):
            return
        if hot.timer is not None:
            hot.timer.cancel()
        hot.timer_us = due
        delay_s = max(0.0, (due - self._deps.now_us()) / 1e6)
        hot.timer = asyncio.get_running_loop().call_later(delay_s, self._ring, hot)

    def _ring(self, hot: HotTable) -> None:
        hot.timer = None
        due = due_us(hot.state)
        if due is None or not self._tables.cache.holds(hot):
            return
        if due > self._deps.now_us():
            self.set_timer(hot)
            return
        task = asyncio.create_task(self._look(hot))
        self._rings.add(task)
        task.add_done_callback(self._rings.discard)

    async def _look(self, hot: HotTable) -> None:
        try:
            await self.expire(hot)
        except RefusedError as error:
            # The durable timer comes back to it.
            self._deps.metrics.timers["failed"].inc()
            self._deps.log.warning("timer_failed", table_id=hot.table_id, reason=error.reason.value)

    async def on_due(self, due: Due) -> Verdict:
        """A durable timer fired: look at its table, and say what it waits for now.

        Raises:
            Unavailable: the log cannot be read or written now; the timer must fire again.
        """
        try:
            hot = await self._tables.cache.open(due.table_id)
            await self._tables.cache.refresh(hot)
            await self.expire(hot)
        except RefusedError as error:
            if error.reason is Reason.UNKNOWN_TABLE:
                # Armed for a commit that never came.
                return Done()
            self._deps.metrics.timers["failed"].inc()
            retry_s = 1.0 if error.retry_after_s is None else error.retry_after_s
            raise Unavailable(Why.NO_ANSWER, error.reason.value, retry_after_s=retry_s) from None
        waits_for = due_us(hot.state)
        if waits_for is None:
            return Done()
        if due.version != hot.state.version:
            self._deps.metrics.timers["stale"].inc()
        return Rearm(hot.state.version, waits_for)

    async def expire(self, hot: HotTable) -> None:
        """Do what is due at a table, if anything is: play for a seat, give its time back, deal, or close.

        Raises:
            RefusedError: the log cannot be read or written now.
        """
        async with hot.lock:
            if hot.unsure:
                await self._tables.cache.refresh(hot)
            for _ in range(ATTEMPTS):
                now_us = self._deps.now_us()
                due = due_us(hot.state)
                if due is None or now_us < due:
                    return
                late = is_players_wait(hot.state) and self._is_late(due, now_us)
                composed = self._tables.compose(hot, GiveTime() if late else Expire())
                if isinstance(composed, Refusal):
                    return
                if await self._tables.record(hot, composed):
                    self._deps.metrics.timers["late" if late else "expired"].inc()
                    if late:
                        self._deps.metrics.late_timers.inc()
                    return
        raise RefusedError(Reason.BUSY)

    def _is_late(self, due: int, now_us: int) -> bool:
        starting = now_us - self._started_us < STARTING_US and due < self._started_us
        return starting or now_us - due > LATE_US
