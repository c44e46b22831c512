"""Founding the tables of rooms that are STARTING.

Every replica does it for every such room it sees, until it is done: chips are held, the table is founded, the
room plays. Each step can be made any number of times by anybody, so a replica that dies between two of them
leaves nothing for anyone to clean up: the others, or the next one to start, go on.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from services.lobby import room_tables
from services.lobby.deps import Deps
from services.lobby.mirror import Mirror
from services.lobby.records import Change, atomically, room_key
from services.lobby.room_checks import seated
from services.lobby.room_plans import table_request
from services.lobby.room_saving import save_room
from services.lobby.table_client import TableRefusal, TableUnreachable
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_STARTING
from services.pb.lobby.v1.stored_pb2 import RoomRecord
from services.pb.table.v1.table_service_pb2 import CreateTableRequest, CreateTableResponse
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.log_store import Unavailable
from services.shell.logs import fault_of

PARALLEL: Final = 16
"""Rooms that a replica founds tables for at once."""
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 2.0
LOOK_S: Final = 1.0
"""How often all rooms are looked at, whatever was heard of them."""
SETTLING_MS: Final = 10_000
"""For so long a player's chips may be held by the match before, whose end is being settled. It counts from
the first such answer: whatever kept the ledger from answering may have kept it from settling, too."""
RELEASE_TRIES: Final = 5
PASSING_REASONS: Final = (
    Reason.UNAVAILABLE,
    Reason.BUSY,
    Reason.RATE_LIMITED,
    Reason.CANNOT_RECORD,
    Reason.DRAINING,
    Reason.INTERNAL,
    Reason.UNAUTHENTICATED,
)
"""Refusals that say nothing about the players."""


class Founder(Protocol):
    """Who founds tables; ``table_client.TableClient`` does."""

    async def create_table(self, request: CreateTableRequest) -> CreateTableResponse:
        """See ``TableClient.create_table``."""


class Founding:
    """Founds tables in the background."""

    def __init__(
        self, deps: Deps, rooms: Mirror[RoomRecord], tables: Founder, *, parallel: int = PARALLEL
    ) -> None:
        self._deps = deps
        self._rooms = rooms
        self._tables = tables
        self._turns = asyncio.Semaphore(parallel)
        self._at_work: dict[str, asyncio.Task[None]] = {}
        self._elsewhere_since: dict[str, int] = {}
        self._life: asyncio.Task[None] | None = None
        self._unhear: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Found what waits, and whatever comes; the mirror is started by somebody else."""
        self._unhear = self._rooms.on_change(self._heard)
        self._life = asyncio.create_task(self._live(), name="founding")

    async def stop(self) -> None:
        """Found no more; what is under way is taken up by others."""
        self._unhear()
        tasks = [*self._at_work.values(), *([self._life] if self._life is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _heard(self, room_id: str, _: RoomRecord | None, record: RoomRecord | None) -> None:
        if record is not None and record.room.state == ROOM_STATE_STARTING and room_id not in self._at_work:
            self._at_work[room_id] = asyncio.create_task(self._found(room_id), name="founding a table")

    async def _live(self) -> None:
        while True:
            for room_id, record in self._rooms.items():
                self._heard(room_id, None, record)
            await asyncio.sleep(LOOK_S)

    async def _found(self, room_id: str) -> None:
        """Step after step until there is nothing left to do for a room."""
        pause = FIRST_PAUSE_S
        try:
            while not await self._tried(room_id):
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
        finally:
            del self._at_work[room_id]
            self._elsewhere_since.pop(room_id, None)

    async def _tried(self, room_id: str) -> bool:
        try:
            async with self._turns:
                return await self.step(room_id)
        except (Unavailable, TableUnreachable) as error:
            self._deps.log.warning("founding_waits", fault=fault_of(error))
        except RefusedError as refused:
            self._deps.log.warning("founding_waits", reason=refused.reason.value)
        except Exception as error:  # one room's trouble stops no other, and may pass
            self._deps.log.error("fault", rpc="founding", fault=fault_of(error))
        self._elsewhere_since.pop(room_id, None)
        return False

    async def step(self, room_id: str) -> bool:
        """Bring a room as far as it goes now; False: it is to be tried again.

        Raises:
            Unavailable: the store cannot be used.
            TableUnreachable: the table service cannot serve, or nobody knows whether it did.
            RefusedError: nobody can say now whether chips can be held.
        """
        record = await Change(self._deps.store).get(room_key(room_id), RoomRecord)
        if record is None or record.room.state != ROOM_STATE_STARTING:
            return True
        if _stakes(record) and not record.held:
            funded = await self._hold(record)
            if funded is not None:
                return funded
        try:
            created = await self._tables.create_table(table_request(record))
        except TableRefusal as refusal:
            await self._fail(record, refusal.reason)
            return True
        table_id = record.room.table_id
        _, changed = await self._change(
            room_id,
            lambda now: room_tables.founded(
                now, table_id, created.spectator_code, created.resume, self._deps.now_ms()
            ),
        )
        if changed:
            self._deps.metrics.founded_tables.inc()
        return True

    async def _hold(self, record: RoomRecord) -> bool | None:
        """Have the chips held; None: they are, else what ``step`` returns."""
        room = record.room
        try:
            await self._deps.funds.hold(room.table_id, sorted(seated(room)), room.plan.stake)
        except RefusedError as refused:
            if refused.reason in PASSING_REASONS:
                raise
            now_ms = self._deps.now_ms()
            since_ms = self._elsewhere_since.setdefault(room.room_id, now_ms)
            if refused.reason is Reason.ELSEWHERE and now_ms - since_ms < SETTLING_MS:
                return False
            self._elsewhere_since.pop(room.room_id)
            await self._fail(record, refused.reason.name, for_funds=True)
            return True
        after, _ = await self._change(
            room.room_id, lambda now: room_tables.funds_held(now, room.table_id, self._deps.now_ms())
        )
        if after is not None and room_tables.is_starting(after, room.table_id):
            return None
        if after is not None and after.room.table_id != room.table_id:
            await self._release(room.table_id)  # meanwhile another replica saw that they could not be held
        return True

    async def _fail(self, record: RoomRecord, failed: str, *, for_funds: bool = False) -> None:
        """There will be no table: the room goes on without one, and the chips are free again."""
        table_id = record.room.table_id

        def reopened(now: RoomRecord) -> RoomRecord:
            return room_tables.start_failed(now, table_id, failed, self._deps.now_ms(), for_funds=for_funds)

        _, changed = await self._change(record.room.room_id, reopened)
        if changed:
            self._deps.metrics.failed_starts.inc()
            self._deps.log.info("start_failed", table_id=table_id, code=failed)
            if _stakes(record):
                await self._release(table_id)

    async def _release(self, table_id: str) -> None:
        """Let chips go that were held for nothing; the ledger does it later by itself if this fails."""
        for _ in range(RELEASE_TRIES):
            try:
                await self._deps.funds.release(table_id)
            except RefusedError:
                await asyncio.sleep(FIRST_PAUSE_S)
            else:
                return
        self._deps.log.warning("not_released", table_id=table_id)

    async def _change(
        self, room_id: str, decide: Callable[[RoomRecord], RoomRecord]
    ) -> tuple[RoomRecord | None, bool]:
        """Change a room; what it is then (None: it has ended), and whether anything changed."""

        async def work(change: Change) -> tuple[RoomRecord | None, bool]:
            before = await change.get(room_key(room_id), RoomRecord)
            if before is None:
                return None, False
            after = decide(before)
            await save_room(change, before, after)
            return after, after is not before

        return await atomically(self._deps.store, work)


def _stakes(record: RoomRecord) -> bool:
    """Whether somebody's chips are at stake."""
    return record.room.plan.stake > 0 and bool(seated(record.room))
