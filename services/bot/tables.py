"""The tables that this process plays at: one task a table, woken by doorbells, never two for one table."""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, Protocol

from services.bot.client import Unreachable
from services.bot.history import History
from services.bot.metrics import BotMetrics
from services.bot.player import Player
from services.bot.rounds import Rounds
from services.pb.log.v1.log_pb2 import Commit
from services.shell.log_store import LogStore, Unavailable
from services.shell.logs import Log, fault_of

FIRST_RETRY_S: Final = 0.05
LONGEST_RETRY_S: Final = 0.5
DRAIN_S: Final = 8.0
"""How long looks that are under way may take at the end."""


class Bell(Protocol):
    """One delivery of a commit by a consumer that will deliver it again until it is acknowledged."""

    @property
    def sequence(self) -> int:
        """The commit's place in its stream."""

    @property
    def commit(self) -> Commit:
        """The commit; its sealed parts stay sealed."""

    async def done(self) -> None:
        """Never deliver it again."""

    async def again(self) -> None:
        """Deliver it again at once, here or elsewhere."""

    async def busy(self) -> None:
        """It is being worked on: do not deliver it again yet."""


@dataclass(slots=True)
class _Watched:
    history: History = field(default_factory=History)
    rounds: Rounds = field(default_factory=Rounds)
    new: list[Bell] = field(default_factory=list)
    """Not looked at yet."""
    held: list[Bell] = field(default_factory=list)
    """Looked at, but not acknowledged: the look is to be repeated."""
    rung: asyncio.Event = field(default_factory=asyncio.Event)
    settled: int = 0
    """The version at which there was nothing left to do."""
    task: asyncio.Task[None] | None = None


class Tables:
    """Serves the tables whose doorbells ring."""

    def __init__(
        self,
        player: Player,
        log_store: LogStore,
        metrics: BotMetrics,
        log: Log,
        *,
        kept: int,
        parallel: int,
        think_s: float = 0.0,
    ) -> None:
        """Make it; nothing runs until a doorbell rings.

        Args:
            player: plays a table's bots.
            log_store: fills the gaps of what doorbells bring; read only.
            metrics: counts.
            log: says what went wrong.
            kept: how many tables to remember.
            parallel: how many to look at at once.
            think_s: least time from a table's change to a bot's answer, except while cards are drawn.
        """
        self._player = player
        self._log_store = log_store
        self._metrics = metrics
        self._log = log
        self._kept = kept
        self._turns = asyncio.Semaphore(parallel)
        self._think_s = think_s
        self._tables: OrderedDict[str, _Watched] = OrderedDict()
        self._stopping = False
        self._busy = 0
        """Tables being served."""
        self._free = asyncio.Event()

    def ring(self, table_id: str, bell: Bell) -> None:
        """A commit of a table was delivered."""
        watched = self._tables.get(table_id)
        if watched is None:
            watched = self._tables[table_id] = _Watched()
            self._forget_oldest()
        self._tables.move_to_end(table_id)
        watched.new.append(bell)
        watched.rung.set()
        if watched.task is None:
            self._busy += 1
            watched.task = asyncio.create_task(self._serve(table_id, watched))

    async def room(self, crowd: int) -> None:
        """Wait until fewer tables than this are being served."""
        while self._busy >= crowd:
            self._free.clear()
            await self._free.wait()

    def _forget_oldest(self) -> None:
        self._metrics.tables.set(len(self._tables))
        if len(self._tables) <= self._kept:
            return
        for table_id, watched in self._tables.items():
            if watched.task is None and not watched.new:
                del self._tables[table_id]
                return

    async def _serve(self, table_id: str, watched: _Watched) -> None:
        """Look at a table until there is nothing left to do at its newest known commit."""
        retries = 0
        try:
            while watched.rung.is_set() and not self._stopping:
                watched.rung.clear()
                watched.held += watched.new
                watched.new = []
                try:
                    async with self._turns:
                        wait = await self._look(table_id, watched)
                    retries = 0
                except (Unreachable, Unavailable):
                    wait = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2**retries)
                    retries += 1
                    self._metrics.retries.inc()
                await self._answer(watched, keep=wait is not None)
                if wait is not None:
                    await self._sleep(watched, wait)
        except Exception as error:  # one table's trouble stops that table here, loudly, and no other
            self._log.error("table_given_up", table_id=table_id, fault=fault_of(error))
            self._metrics.fallbacks["server"].inc()
            await self._answer(watched, keep=False)
            self._tables.pop(table_id, None)
        finally:
            watched.task = None
            self._busy -= 1
            self._free.set()
            if watched.history.over and not watched.new:
                self._tables.pop(table_id, None)

    async def _look(self, table_id: str, watched: _Watched) -> float | None:
        history = watched.history
        await self._learn(table_id, watched)
        if history.version == watched.settled or not history.actors():
            watched.settled = history.version
            return None
        thinking = self._thinking(history)
        if thinking > 0:
            return thinking
        version = history.version
        wait = await self._player.step(table_id, history, watched.rounds)
        if wait is None:
            watched.settled = version
        return wait

    def _thinking(self, history: History) -> float:
        """Seconds that the bots of a table still take to think."""
        if history.declaring or not self._think_s:
            return 0.0
        passed = time.time() - history.recorded_at_us / 1e6
        return min(self._think_s, self._think_s - passed)

    async def _learn(self, table_id: str, watched: _Watched) -> None:
        """Take in what the doorbells bring, and from the log what is missing between."""
        history = watched.history
        for bell in sorted(watched.held, key=lambda bell: bell.commit.version):
            if bell.commit.version <= history.version:
                continue
            if history.next_is(bell.commit):
                history.take(bell.sequence, bell.commit)
                continue
            missing = await self._log_store.read(table_id, history.sequence, min_sequence=bell.sequence)
            history.catch_up(missing)

    async def _answer(self, watched: _Watched, *, keep: bool) -> None:
        """Acknowledge what was looked at; to repeat a look, keep its newest doorbell from coming again."""
        held, watched.held = watched.held, []
        if keep and held:
            watched.held = [held.pop()]
            await watched.held[0].busy()
        for bell in held:
            await bell.done()

    async def _sleep(self, watched: _Watched, seconds: float) -> None:
        """Wait for the time or the next doorbell, then look again."""
        try:
            async with asyncio.timeout(seconds):
                await watched.rung.wait()
        except TimeoutError:
            watched.rung.set()

    async def stop(self) -> None:
        """Let looks under way finish, give back what is not done, and serve no more."""
        self._stopping = True
        for watched in self._tables.values():
            watched.rung.set()
        tasks = [watched.task for watched in self._tables.values() if watched.task is not None]
        _, late = await asyncio.wait(tasks, timeout=DRAIN_S) if tasks else ((), ())
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        for watched in self._tables.values():
            for bell in (*watched.held, *watched.new):
                await bell.again()
