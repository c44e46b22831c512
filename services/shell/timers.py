"""Durable turn timers: at most one a table, armed before the commit that needs it, firing after the deadline.

A service keeps its own exact timer for each table that it serves; this is the back-up that outlives it. It
fires ``BACKUP_S`` after the deadline, to whichever replica asks first, and that replica looks at the table:
the deadline may have moved on meanwhile, then the timer is armed anew *before* the fired one is acknowledged,
so that at no moment a table that waits is without a timer.

The outstanding timer is replaced only by an earlier one. A later deadline leaves it: it will fire early, be
looked at, and be armed anew, which costs one write a wait instead of one a move. ``TimerBase`` holds these
rules; the adapters only schedule and hand over.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

from services.game.ids import TableId
from services.shell.log_store import Unavailable, Why
from services.shell.logs import fault_of

BACKUP_S: Final = 1.0
"""How long after the deadline the durable timer fires: a living service has acted by then."""
HANDLER_S: Final = 4.0
"""How long a handler may take; the fired timer is given to somebody after 5 s without an acknowledgement."""
CONCURRENT: Final = 16
"""Fired timers handled at once: each may need a cold load."""
RETRY_S: Final = 5.0
"""When a timer whose handler failed is handed over again."""
ARM_TIMEOUT_S: Final = 3.0
SWEEP_LEAST: Final = 4096
"""Timers that one process remembers before it forgets those that have fired elsewhere."""
_FIRING_US: Final = 500_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Due:
    """A timer: the table's deadline, and the version of the commit that began the wait."""

    table_id: str
    version: int
    deadline_us: int
    """Microseconds of Unix time."""


@dataclass(frozen=True, slots=True)
class Done:
    """The handler did what was due, or nothing was: the timer is over."""


@dataclass(frozen=True, slots=True)
class Rearm:
    """The table's deadline is another by now."""

    version: int
    deadline_us: int


Verdict = Done | Rearm
Handler = Callable[[Due], Awaitable[Verdict]]
"""Looks at the table of a fired timer and says ``Rearm`` if the table waits for something, ``Done`` only if
it acted (its commit armed the next timer) or the table is closed. Whatever it raises has the timer handed
over again later."""


class Timers(Protocol):
    """Durable timers. ``stale`` counts those that were dropped unread, for metrics."""

    stale: int

    def serves(self, table_id: str, deadline_us: int) -> bool:
        """Whether ``arm`` would find that a timer is outstanding which fires early enough."""

    async def arm(self, table_id: str, version: int, deadline_us: int) -> None:
        """See that a timer fires at this deadline or earlier; call it before the commit that needs it.

        Raises:
            BadId: no table id.
            Unavailable: it may not be armed, so the commit must not be written.
        """

    async def start(self, handler: Handler) -> None:
        """Begin to take fired timers, shared with all other replicas.

        Raises:
            Unavailable: no connection.
        """

    async def stop(self) -> None:
        """Take no more; what was taken and is not done goes to another replica."""


@dataclass(frozen=True, slots=True)
class Armed:
    """An outstanding timer and its place in the store."""

    due: Due
    sequence: int


class TimerBase(ABC):
    """The rules of arming and firing, common to all adapters."""

    def __init__(self, now_us: Callable[[], int], backup_s: float = BACKUP_S) -> None:
        """Make the timers of one process.

        Args:
            now_us: the clock, microseconds of Unix time.
            backup_s: seconds from a deadline to the firing.
        """
        self._now_us = now_us
        self._backup_us = round(backup_s * 1e6)
        self._known: dict[str, Armed] = {}
        self._sweep_at = SWEEP_LEAST
        self.stale = 0

    @abstractmethod
    async def _find(self, table_id: str) -> Armed | None:
        """The table's outstanding timer as the store has it.

        Raises:
            Unavailable: no answer.
        """

    @abstractmethod
    async def _schedule(self, due: Due, at_us: int, replaces: int) -> int | None:
        """Schedule a timer in place of the one at sequence ``replaces``, 0 for none.

        Returns:
            Its sequence, or None when another one is outstanding.

        Raises:
            Unavailable: no answer; it may have been scheduled.
        """

    def serves(self, table_id: str, deadline_us: int) -> bool:
        """See ``Timers.serves``."""
        known = self._trusted(table_id)
        return known is not None and known.due.deadline_us <= deadline_us

    async def arm(self, table_id: str, version: int, deadline_us: int) -> None:
        """See ``Timers.arm``."""
        due = Due(TableId(table_id), version, deadline_us)
        if not self.serves(due.table_id, deadline_us):
            await self._arm(due, deadline_us + self._backup_us)

    async def _arm(self, due: Due, at_us: int) -> None:
        try:
            async with asyncio.timeout(ARM_TIMEOUT_S):
                await self._schedule_unless_served(due, at_us)
        except TimeoutError:
            raise Unavailable(Why.NO_ANSWER, f"the timer of {due.table_id} is not armed") from None
        if len(self._known) > self._sweep_at:
            self._known = {key: armed for key, armed in self._known.items() if self._trusted(key)}
            self._sweep_at = max(SWEEP_LEAST, 2 * len(self._known))

    async def _schedule_unless_served(self, due: Due, at_us: int) -> None:
        known = self._trusted(due.table_id)
        while True:
            if known is None:
                known = await self._find(due.table_id)
            if known is not None and known.due.deadline_us <= due.deadline_us:
                self._known[due.table_id] = known
                return
            try:
                sequence = await self._schedule(due, at_us, known.sequence if known is not None else 0)
            except Unavailable as error:
                if error.why is not Why.NO_ANSWER:
                    raise
                # It may be scheduled; if so it is found, and serves.
                await asyncio.sleep(0.05)
                sequence = None
            if sequence is not None:
                self._known[due.table_id] = Armed(due, sequence)
                return
            # It has fired, or another replica armed one.
            known = None

    def _trusted(self, table_id: str) -> Armed | None:
        """The timer that this process knows to be outstanding; near its firing that is no longer known."""
        armed = self._known.get(table_id)
        if armed is None or armed.due.deadline_us + self._backup_us - _FIRING_US < self._now_us():
            return None
        return armed

    async def _fired(self, due: Due, handler: Handler) -> float | None:
        """A timer fired: have it handled.

        Returns:
            None when it is over and may be acknowledged, else the seconds after which to hand it over again.
        """
        known = self._trusted(due.table_id)
        if known is not None and known.due.version > due.version:
            self.stale += 1
            return None
        self._known.pop(due.table_id, None)
        try:
            early_us = due.deadline_us - self._now_us()
            if early_us > 0:
                # The store's clock is ahead of ours by as much as it fired too early.
                ahead_us = early_us + self._backup_us
                await self._arm(due, due.deadline_us + self._backup_us + ahead_us)
                return None
            verdict = await asyncio.wait_for(handler(due), HANDLER_S)
            if isinstance(verdict, Rearm):
                await self.arm(due.table_id, verdict.version, verdict.deadline_us)
        except Unavailable as error:
            return error.retry_after_s
        except Exception as error:  # whatever a handler raises must not stop all timers
            _log.error("timer_failed", extra={"table_id": due.table_id, "fault": fault_of(error)})
            return RETRY_S
        return None


class MemoryTimerStore:
    """The timers of all replicas, as the server keeps them; ``now_us`` is the server's clock."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self.armed: dict[str, Armed] = {}
        self.fired: asyncio.Queue[Due] = asyncio.Queue()
        self.schedules = 0
        """How many timers were ever scheduled."""

    def schedule(self, due: Due, at_us: int, replaces: int) -> int | None:
        """Take a timer in place of another; None when another one than that is outstanding."""
        outstanding = self.armed.get(due.table_id)
        if (outstanding.sequence if outstanding is not None else 0) != replaces:
            return None
        self.schedules += 1
        armed = self.armed[due.table_id] = Armed(due, self.schedules)
        delay_s = max(0, at_us - self._now_us()) / 1e6
        asyncio.get_running_loop().call_later(delay_s, self._fire, armed)
        return armed.sequence

    def _fire(self, armed: Armed) -> None:
        if self.armed.get(armed.due.table_id) is armed:
            del self.armed[armed.due.table_id]
            self.fired.put_nowait(armed.due)


class MemoryTimers(TimerBase):
    """``Timers`` in memory; several on one ``MemoryTimerStore`` are several replicas."""

    def __init__(
        self, now_us: Callable[[], int], backup_s: float = BACKUP_S, store: MemoryTimerStore | None = None
    ) -> None:
        super().__init__(now_us, backup_s)
        self.store = store if store is not None else MemoryTimerStore(now_us)
        self._worker: asyncio.Task[None] | None = None

    async def _find(self, table_id: str) -> Armed | None:
        return self.store.armed.get(table_id)

    async def _schedule(self, due: Due, at_us: int, replaces: int) -> int | None:
        return self.store.schedule(due, at_us, replaces)

    async def start(self, handler: Handler) -> None:
        """See ``Timers.start``."""
        self._worker = asyncio.create_task(self._work(handler))

    async def _work(self, handler: Handler) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = await self.store.fired.get()
            try:
                again_s = await self._fired(due, handler)
            except asyncio.CancelledError:
                self.store.fired.put_nowait(due)
                raise
            if again_s is not None:
                loop.call_later(again_s, self.store.fired.put_nowait, due)

    async def stop(self) -> None:
        """See ``Timers.stop``."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None
