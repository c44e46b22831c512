"""The timelines of watched tables: begun by the first watcher, fed by live commits, ended after the last."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

from services.game.errors import CorruptLog
from services.rules.reasons import Reason
from services.shell.errors import RefusedError, unavailable
from services.shell.log_store import Stored, Unavailable
from services.table.cache import TableCache
from services.table.hot import HotTable, fold
from services.table.secrets import Place, TableSecrets
from services.table.timeline import MARGIN_US, Base, Sequencer, Step, Timeline

LINGER_S: Final = 30.0
"""A timeline outlives its last watcher by so long, so that who comes back finds it."""
REPLAYS: Final = 8
"""Logs read for the sake of watchers at once."""


class Timelines:
    """Timelines of the tables in a cache."""

    def __init__(self, cache: TableCache) -> None:
        self._cache = cache
        self._deps = cache.deps
        self._replays = asyncio.Semaphore(REPLAYS)

    async def follow(self, hot: HotTable) -> Timeline:
        """The table's timeline; the first who asks has its live commits heard.

        Raises:
            RefusedError: they cannot be heard now.
        """
        timeline = hot.timeline
        if timeline is None:
            secrets = TableSecrets(self._deps.keyring, hot.table_id)
            timeline = hot.timeline = Timeline(
                hot.state, hot.sequence, secrets, self._deps.now_us, lambda: hot.appending
            )
            try:
                # A table that was frozen and taken out of memory may still be heard of.
                await self._deps.feed.unwatch(hot.table_id)
                await self._deps.feed.watch(
                    hot.table_id, hot.sequence, lambda stored: self._cache.hear(hot, stored)
                )
            except BaseException as error:
                hot.timeline = None
                timeline.end_for(Reason.UNAVAILABLE)
                if not isinstance(error, Unavailable):
                    raise
            finally:
                timeline.ready.set()
        await timeline.ready.wait()
        if timeline.ended is not None:
            raise RefusedError(timeline.ended)
        return timeline

    async def end_unwatched(self) -> None:
        """End the timelines that nobody watches any more."""
        since = time.monotonic() - LINGER_S
        for hot in self._cache.all():
            timeline = hot.timeline
            if timeline is not None and not timeline.watchers and timeline.used_at < since:
                hot.timeline = None
                timeline.stop()
                await self._deps.feed.unwatch(hot.table_id)

    async def replay(self, hot: HotTable, place: Place) -> AsyncIterator[Step]:
        """The steps after a place, read from the log, up to now.

        Raises:
            RefusedError: the log cannot be read now, or does not reach that place.
        """
        state, head = None, b""
        # Who has been told nothing at all, as a spectator of a young table, begins before the founding.
        sequencer = None if place.version else Sequencer(None)
        for stored in await self._read(hot, place.sequence):
            folded = fold(state, head, stored, self._deps.keyring)
            state, head = folded.after, folded.head
            if sequencer is not None:
                for step in sequencer.commit(folded.commit, state, folded.sequence):
                    yield step
            elif state.version == place.version:
                sequencer = Sequencer(Base(state, folded.sequence, place.drawn))
        if sequencer is None:
            raise RefusedError(Reason.UNAVAILABLE)
        for step in sequencer.rounds(self._deps.now_us() - MARGIN_US):
            yield step

    async def reach_back(self, hot: HotTable, timeline: Timeline, delay_us: int) -> None:
        """Have a timeline hold what spectators who are told so much later have not been told yet.

        Raises:
            RefusedError: the log cannot be read now.
        """
        async with timeline.reaching:
            if timeline.keeps_us >= delay_us:
                return
            since = self._deps.now_us() - delay_us - 2 * MARGIN_US
            timeline.keeps_us, kept_us = delay_us, timeline.keeps_us
            try:
                commits = await self._read(hot, 0)
            except RefusedError:
                timeline.keeps_us = kept_us
                raise
            base: Base | None = None
            steps: list[Step] = []
            for step in self._all_steps(commits):
                if not timeline.lacks(step):
                    break
                if step.at_us > since:
                    steps.append(step)
                else:
                    base = step.base
            if base is not None or steps:
                timeline.prepend(base, steps)

    def _all_steps(self, commits: list[Stored]) -> list[Step]:
        state, head = None, b""
        sequencer = Sequencer(None)
        steps: list[Step] = []
        for stored in commits:
            folded = fold(state, head, stored, self._deps.keyring)
            state, head = folded.after, folded.head
            steps.extend(sequencer.commit(folded.commit, state, folded.sequence))
        steps.extend(sequencer.rounds(self._deps.now_us() - MARGIN_US))
        return steps

    async def _read(self, hot: HotTable, least: int) -> list[Stored]:
        try:
            async with self._replays:
                return await self._deps.log_store.read(hot.table_id, min_sequence=least)
        except Unavailable as error:
            raise unavailable(error) from None
        except CorruptLog as error:
            raise self._cache.freeze(hot.table_id, error) from None
