"""Watching: a snapshot or a resume token first, then every step of a table as its receiver may know it.

All watchers of a table in this process share one timeline; each is a place in it. A watcher that does not
read is cut off when it is ``LAG`` steps behind, so memory is bounded by the timelines.
"""

import asyncio
import time
from typing import Final

from services.game import views
from services.game.state import Table
from services.pb.table.v1.table_service_pb2 import Heartbeat, WatchRequest, WatchResponse
from services.pb.table.v1.view_pb2 import TableView
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.renewals import Renewals
from services.shell.rpc import Call, Write
from services.table.audience import audience_of, delay_us_of, view_as_told
from services.table.cache import TableCache
from services.table.hot import HotTable
from services.table.secrets import Place
from services.table.timeline import Step, Timeline
from services.table.timelines import Timelines

LAG: Final = 128
"""Steps that a watcher may be behind."""
HEARTBEAT_S: Final = 20.0
EXPIRY_GRACE_S: Final = 60.0
"""A watch outlives its token by so long; then the client comes again with a new one."""
ANNOUNCED_S: Final = 60.0
"""How long before the token ends the client is told so, once, however much else it is told."""
STUCK_S: Final = 10.0
"""How long one message may wait for a client that does not read"""
SLOW_S: Final = 1.0
"""and how long when the watcher is ``LAG`` behind: a burst alone makes nobody a slow reader."""


class Watches:
    """All watches of a process, at most ``limit``."""

    def __init__(self, cache: TableCache, limit: int, renewals: Renewals) -> None:
        self.deps = cache.deps
        self.renewals = renewals
        self.timelines = Timelines(cache)
        self.draining = False
        self._cache = cache
        self._limit = limit
        self._watchers: set[Watcher] = set()

    def __len__(self) -> int:
        return len(self._watchers)

    async def view(self, hot: HotTable, player_id: str, code: str) -> TableView:
        """The table as a player may know it now; a spectator who is told later sees it as it was.

        Raises:
            RefusedError: NOT_YOURS, or there was nothing to see yet.
        """
        audience = audience_of(hot.state, player_id, code, self.deps.keyring)
        delay_us = delay_us_of(hot.state, audience)
        now_us = self.deps.now_us()
        if not delay_us:
            return views.view(hot.state, audience, now_us)
        timeline = await self.timelines.follow(hot)
        await self.timelines.reach_back(hot, timeline, delay_us)
        base = timeline.before(timeline.number_after(now_us - delay_us))
        if base is None:
            raise RefusedError(Reason.UNAVAILABLE, retry_after_s=delay_us / 1e6)
        return view_as_told(base.state, base.drawn, audience, now_us - delay_us, now_us)

    async def watch(self, request: WatchRequest, call: Call, write: Write) -> None:
        """Serve one watch until its client leaves or it must end.

        Raises:
            RefusedError: it cannot begin, or why it ended.
        """
        hot = await self._cache.open(request.table_id)
        if hot.timeline is None:
            await self._cache.refresh(hot)
        audience_of(hot.state, call.player_id, request.spectator_code, self.deps.keyring)
        if len(self._watchers) >= self._limit:
            raise RefusedError(Reason.BUSY)
        timeline = await self.timelines.follow(hot)
        place = timeline.secrets.place_of(request.after) if request.after else None
        watcher = Watcher(self, hot, timeline, request, call, write)
        self._watchers.add(watcher)
        timeline.watchers.add(watcher)
        self.deps.metrics.watchers.set(len(self._watchers))
        try:
            await watcher.run(place)
        except asyncio.CancelledError:
            if not watcher.cut:
                raise
            watcher.task.uncancel()
            self.deps.metrics.slow_readers.inc()
            raise RefusedError(Reason.SLOW_READER) from None
        finally:
            self._watchers.discard(watcher)
            self.renewals.leave(watcher.lease)
            timeline.leave(watcher)
            self.deps.metrics.watchers.set(len(self._watchers))

    async def sweep(self) -> None:
        """Once a second: cut off who does not read, and wake who is due a heartbeat or an end."""
        now = time.monotonic()
        for watcher in list(self._watchers):
            watcher.look(now)
        await self.timelines.end_unwatched()

    def drain(self) -> None:
        """End all watches: another replica serves them."""
        self.draining = True
        for watcher in list(self._watchers):
            watcher.wake()


class Watcher:
    """One watch: a place in its table's timeline."""

    def __init__(
        self,
        watches: Watches,
        hot: HotTable,
        timeline: Timeline,
        request: WatchRequest,
        call: Call,
        write: Write,
    ) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a watch runs in a task")
        self.task = task
        self.cut = False
        self._watches = watches
        self._hot = hot
        self._timeline = timeline
        self._player_id = call.player_id
        self._code = request.spectator_code
        self.lease = watches.renewals.enter(call.player_id, call.expires_at, self._renewed)
        self._announced = 0
        self._beat_due = False
        self._write = write
        self._told = Place(0, 0, 0)
        self._number: int | None = None
        self._wakes: asyncio.Future[None] | None = None
        self._heartbeat_at = time.monotonic() + HEARTBEAT_S
        self._writing_since = 0.0
        self._seats: object = None
        self._audience = 0
        self._delay_us = 0

    # ------------------------------------------------------------------------------------- told by others

    def wake(self) -> None:
        """There is something new: go on if waiting; be cut off if far behind."""
        if self._wakes is not None:
            if not self._wakes.done():
                self._wakes.set_result(None)
        elif self._is_slow():
            self._cut_off()

    def _is_slow(self) -> bool:
        if self._number is None or not self._writing_since or self._delay_us:
            return False
        behind = self._timeline.end - self._number
        return behind > LAG and time.monotonic() - self._writing_since > SLOW_S

    def look(self, now: float) -> None:
        """Time has passed."""
        if self._writing_since and now - self._writing_since > STUCK_S:
            self._cut_off()
            return
        left_s = self.lease.expires_at - time.time()
        if left_s <= ANNOUNCED_S and self._announced != self.lease.expires_at:
            self._beat_due = True
        due = self._beat_due or now >= self._heartbeat_at or left_s <= -EXPIRY_GRACE_S
        if due and self._wakes is not None:
            self.wake()

    def _renewed(self) -> None:
        """The player has shown a fresh token; the client is told until when it holds."""
        self._beat_due = True
        self.wake()

    def _cut_off(self) -> None:
        if not self.cut:
            self.cut = True
            self.task.cancel()

    # --------------------------------------------------------------------------------------------- its life

    async def run(self, place: Place | None) -> None:
        """Tell everything after a place, or a snapshot and everything after it."""
        self._see_as(self._hot.state)
        if self._delay_us:
            await self._watches.timelines.reach_back(self._hot, self._timeline, self._delay_us)
        if place is None:
            number = await self._snapshot()
        else:
            self._told = place
            while not self._timeline.covers(self._told):
                async for step in self._watches.timelines.replay(self._hot, self._told):
                    await self._tell(step, live=False)
            number = self._timeline.first
        self._number = number
        while True:
            while self._number < self._timeline.end:
                if self._number < self._timeline.first:
                    self._watches.deps.metrics.slow_readers.inc()
                    raise RefusedError(Reason.SLOW_READER)
                step = self._timeline[self._number]
                await self._tell(step, live=True)
                self._number += 1
            await self._wait(None)

    def _see_as(self, state: Table) -> None:
        """Seats may have changed: as whom the player sees the table from now on."""
        if state.seats is not self._seats:
            self._audience = audience_of(state, self._player_id, self._code, self._watches.deps.keyring)
            self._delay_us = delay_us_of(state, self._audience)
            self._seats = state.seats

    async def _snapshot(self) -> int:
        """Send the table as it is, or was when spectators are told later; the number of the step after it."""
        timeline, deps = self._timeline, self._watches.deps
        while True:
            now_us = deps.now_us()
            number = timeline.number_after(now_us - self._delay_us) if self._delay_us else timeline.end
            base = timeline.before(number)
            if base is not None:
                break
            await self._wait(timeline[number].at_us + self._delay_us)
        shown = view_as_told(base.state, base.drawn, self._audience, now_us - self._delay_us, now_us)
        resume = timeline.secrets.resume_token(base.place)
        self._told = base.place
        await self._send(WatchResponse(snapshot=shown, resume=resume).SerializeToString())
        return number

    async def _tell(self, step: Step, *, live: bool) -> None:
        """Tell one step, unless it was told before."""
        if not step.is_after(self._told):
            return
        self._see_as(step.state)
        if self._delay_us:
            await self._wait(step.at_us + self._delay_us)
        await self._send(step.message(self._audience, self._timeline.secrets))
        self._told = step.told_after(self._told)
        if live and not self._delay_us:
            self._watches.deps.metrics.watch_lag.observe(time.perf_counter() - step.made)

    async def _send(self, message: bytes) -> None:
        now = self._writing_since = time.monotonic()
        self._heartbeat_at = now + HEARTBEAT_S
        await self._write(message)
        self._writing_since = 0.0

    async def _wait(self, until_us: int | None) -> None:
        """Wait for the next step, or for a time; send heartbeats meanwhile.

        Raises:
            RefusedError: the watch must end.
        """
        loop = asyncio.get_running_loop()
        while True:
            self._check_end()
            left_us = 0 if until_us is None else until_us - self._watches.deps.now_us()
            if until_us is not None and left_us <= 0:
                return
            wakes = self._wakes = loop.create_future()
            timer = None if until_us is None else loop.call_later(left_us / 1e6 + 0.001, self.wake)
            try:
                await wakes
            finally:
                self._wakes = None
                if timer is not None:
                    timer.cancel()
            if self._beat_due or time.monotonic() >= self._heartbeat_at:
                await self._heartbeat()
            if until_us is None:
                self._check_end()
                return

    async def _heartbeat(self) -> None:
        expires_at, self._beat_due = self.lease.expires_at, False
        if expires_at - time.time() <= ANNOUNCED_S:
            self._announced = expires_at
        now_us = self._watches.deps.now_us()
        beat = Heartbeat(server_now_ms=now_us // 1000, token_expires_at_ms=expires_at * 1000)
        resume = self._timeline.secrets.resume_token(self._told)
        await self._send(WatchResponse(heartbeat=beat, resume=resume).SerializeToString())

    def _check_end(self) -> None:
        if self._watches.draining:
            raise RefusedError(Reason.DRAINING)
        if self._timeline.ended is not None:
            raise RefusedError(self._timeline.ended)
        if time.time() >= self.lease.expires_at + EXPIRY_GRACE_S:
            raise RefusedError(Reason.UNAUTHENTICATED, {"detail": "the token has expired"})
