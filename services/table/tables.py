"""Commands: decided, recorded, then told. README.md in this folder shows the flow on one screen."""

import asyncio
import time
from typing import Final, NamedTuple

from services.game import chain
from services.game.commands import Command, OpenTable, PlayerCommand, Refusal, VoidDeal
from services.game.decide import SecretsUnknown
from services.game.errors import CorruptLog, MasterKeyLost
from services.game.keys import command_check, is_same_command
from services.game.recent import Reused, repeat_of
from services.game.state import Table
from services.game.waits import COMMIT_CAP, due_us
from services.rules.reasons import Reason
from services.shell.errors import RefusedError, unavailable
from services.shell.log_store import Appended, Frozen, Lost, Stored, Unavailable
from services.shell.logs import fault_of
from services.table.cache import TableCache
from services.table.compose import Composed, Identified, compose, refused
from services.table.hot import Folded, HotTable

ATTEMPTS: Final = 8
"""How often a command is decided anew because another one came first."""
QUEUE: Final = 64
"""Commands that may wait for one table."""
CATCH_UP_S: Final = (0.0, 0.02, 0.08)
"""Pauses before reads of a log that must hold a version that the client has seen."""


class Receipt(NamedTuple):
    """Where a command was recorded."""

    version: int
    repeated: bool
    """It was recorded earlier; this is the answer to a repetition."""


class Founded(NamedTuple):
    """Where a founding was recorded."""

    receipt: Receipt
    sequence: int
    """The log's sequence of the first commit."""


class Tables:
    """Executes commands on the tables of a cache."""

    def __init__(self, cache: TableCache) -> None:
        self.cache = cache
        self._deps = cache.deps
        self._founding: dict[str, asyncio.Lock] = {}
        self._voiding: set[asyncio.Task[None]] = set()

    async def execute(
        self, table_id: str, command: PlayerCommand, command_id: bytes, body: bytes, seen: int, started: float
    ) -> Receipt:
        """Do what a player asks, once, however often it is asked.

        Args:
            table_id: the table.
            command: the command.
            command_id: the client's id of it, 16 bytes.
            body: the command's canonical bytes.
            seen: a version that the client has seen; it is decided on that one or a later one.
            started: when the call began, ``time.perf_counter()``.

        Raises:
            RefusedError: it was not done; or, with UNAVAILABLE, nobody knows until it is repeated.
        """
        hot = await self.cache.open(table_id)
        if hot.waiting >= QUEUE:
            raise RefusedError(Reason.BUSY)
        keyring = self._deps.keyring
        identified = Identified(
            command, command_id, command_check(keyring, keyring.current, hot.table_id, body)
        )
        hot.waiting += 1
        try:
            if seen > hot.state.version:
                await self._catch_up(hot, seen)
            async with hot.lock:
                return await self._execute(hot, identified, body, started)
        finally:
            hot.waiting -= 1

    async def _catch_up(self, hot: HotTable, seen: int) -> None:
        """Read on until the version that a client has seen, if it can have seen it."""
        for pause in CATCH_UP_S if seen <= COMMIT_CAP else ():
            await asyncio.sleep(pause)
            await self.cache.refresh(hot)
            if seen <= hot.state.version:
                return

    async def _execute(self, hot: HotTable, identified: Identified, body: bytes, started: float) -> Receipt:
        if hot.unsure:
            await self.cache.refresh(hot)
        self._deps.metrics.stage["receive"].observe(time.perf_counter() - started)
        for _ in range(ATTEMPTS):
            repeated = self._repeat(hot.state, identified, body)
            if repeated is not None:
                return repeated
            composed = self.compose(hot, identified.command, identified)
            if isinstance(composed, Refusal):
                if hot.checked >= started:
                    self._deps.metrics.refusals[composed.reason.value].inc()
                    raise refused(composed)
                # Another replica may have served the table meanwhile: only the newest state refuses.
                await self.cache.refresh(hot)
            elif await self.record(hot, composed):
                return Receipt(composed.after.version, repeated=False)
        raise RefusedError(Reason.BUSY)

    def _repeat(self, state: Table, identified: Identified, body: bytes) -> Receipt | None:
        player_id = identified.command.player_id
        found = repeat_of(state, player_id, identified.command_id, identified.check)
        if found is None:
            return None
        if isinstance(found, Reused):
            raise RefusedError(Reason.COMMAND_ID_REUSED)
        self._deps.metrics.repeats.inc()
        return Receipt(found, repeated=True)

    def compose(
        self, hot: HotTable, command: Command, identified: Identified | None = None
    ) -> Composed | Refusal:
        """Decide a command on the table as it is; see ``compose.compose``.

        Raises:
            RefusedError: a key is lost; the deal is given up, then the table goes on.
        """
        started = time.perf_counter()
        try:
            composed = compose(
                hot.state, hot.head, command, self._deps.now_us(), self._deps.keyring, identified
            )
        except (SecretsUnknown, MasterKeyLost) as error:
            self._deps.log.error("secrets_lost", table_id=hot.table_id, fault=fault_of(error))
            if not isinstance(command, VoidDeal):
                task = asyncio.create_task(self._void(hot))
                self._voiding.add(task)
                task.add_done_callback(self._voiding.discard)
            raise RefusedError(Reason.UNAVAILABLE) from None
        self._deps.metrics.stage["decide"].observe(time.perf_counter() - started)
        return composed

    async def record(self, hot: HotTable, composed: Composed) -> bool:
        """Append a commit and fold it in; False when another one came first, which is folded in then.

        The caller holds the table's lock.

        Raises:
            RefusedError: the log cannot take it, or has not said whether it did.
        """
        started = time.perf_counter()
        expected = hot.sequence
        answer = await self._append(hot, expected, composed)
        appended = time.perf_counter()
        self._deps.metrics.stage["append"].observe(appended - started)
        if isinstance(answer, Lost):
            await self._lost(hot, answer)
            return False
        hot.checked = appended
        if hot.sequence < answer.sequence:
            head = chain.commit_hash(composed.payload)
            self.cache.advance(hot, Folded(composed.commit, composed.after, answer.sequence, head))
        if hot.timeline is not None:
            self._deps.feed.offer(hot.table_id, Stored(answer.sequence, composed.payload, expected))
        self._deps.metrics.stage["fan_out"].observe(time.perf_counter() - appended)
        return True

    async def _append(self, hot: HotTable, expected: int, composed: Composed) -> Appended | Lost:
        hot.appending = True
        try:
            # The timer first: no crash may leave a table that waits without one.
            due = due_us(composed.after)
            if due is not None and not self._deps.timers.serves(hot.table_id, due):
                await self._deps.timers.arm(hot.table_id, composed.after.version, due)
            # A call that is cancelled here leaves the table unsure: the commit may have been stored.
            hot.unsure = True
            answer = await self._deps.log_store.append(
                hot.table_id, expected, composed.payload, composed.kind
            )
            hot.unsure = False
        except Unavailable as error:
            hot.unsure = hot.unsure and error.outcome_unknown
            self._deps.metrics.conflicts["unavailable"].inc()
            raise unavailable(error) from None
        except Frozen as error:
            self._deps.metrics.conflicts["frozen"].inc()
            raise self.cache.freeze(hot.table_id, error) from None
        finally:
            hot.appending = False
            if hot.held:
                asyncio.get_running_loop().call_soon(self._hear_held, hot)
        return answer

    def _hear_held(self, hot: HotTable) -> None:
        """Hear what came while an append was under way, once its answer has been dealt with."""
        held, hot.held = hot.held, []
        for stored in held:
            self.cache.hear(hot, stored)

    async def _lost(self, hot: HotTable, lost: Lost) -> None:
        self._deps.metrics.conflicts["lost"].inc()
        try:
            self.cache.take(hot, lost.first)
        except CorruptLog as error:
            raise self.cache.freeze(hot.table_id, error) from None
        if hot.timeline is not None:
            self._deps.feed.offer(hot.table_id, lost.first)
        # The winner is rarely alone: a replica that was away is behind by all that it did not see.
        await self.cache.refresh(hot)

    async def found(self, command: OpenTable, command_id: bytes, body: bytes) -> Founded:
        """Found a table, once: the same caller and command id lead to the same table id.

        Raises:
            RefusedError: it was not done; or, with UNAVAILABLE, nobody knows until it is repeated.
        """
        table_id = command.table_id
        lock = self._founding.setdefault(table_id, asyncio.Lock())
        try:
            async with lock:
                return await self._found(command, command_id, body)
        except Unavailable as error:
            raise unavailable(error) from None
        except Frozen as error:
            raise self.cache.freeze(table_id, error) from None
        finally:
            if not lock.locked():
                self._founding.pop(table_id, None)

    async def _found(self, command: OpenTable, command_id: bytes, body: bytes) -> Founded:
        deps, table_id, started = self._deps, command.table_id, time.perf_counter()
        check = command_check(deps.keyring, deps.keyring.current, table_id, body)
        identified = Identified(command, command_id, check)
        composed = compose(None, b"", command, deps.now_us(), deps.keyring, identified)
        if isinstance(composed, Refusal):
            deps.metrics.refusals[composed.reason.value].inc()
            raise refused(composed)
        due = due_us(composed.after)
        if due is not None:
            await deps.timers.arm(table_id, 1, due)
        answer = await deps.log_store.append(table_id, 0, composed.payload, composed.kind)
        if isinstance(answer, Appended):
            head = chain.commit_hash(composed.payload)
            self.cache.admit(Folded(composed.commit, composed.after, answer.sequence, head), started)
            return Founded(Receipt(1, repeated=False), answer.sequence)
        first = chain.decode(answer.first.payload)
        if first.version != 1 or not is_same_command(deps.keyring, table_id, body, first.command_check):
            raise RefusedError(Reason.COMMAND_ID_REUSED)
        deps.metrics.repeats.inc()
        return Founded(Receipt(1, repeated=True), answer.first.sequence)

    async def _void(self, hot: HotTable) -> None:
        """Give up a deal whose secrets no key of ours opens, so that the table can go on."""
        try:
            async with hot.lock:
                await self.cache.refresh(hot)
                composed = self.compose(hot, VoidDeal())
                if not isinstance(composed, Refusal):
                    await self.record(hot, composed)
        except RefusedError as error:
            self._deps.log.error("deal_not_voided", table_id=hot.table_id, reason=error.reason.value)
