"""Matchmaking passes: once a second somebody looks at all who wait and makes the matches there are.

Every replica would do it, and they take turns by the record ``pass.turn``, only to save work: each match is
one atomic change of its tickets, its players' places and its room, so whatever others do meanwhile, a ticket
is in one match at most, and a replica that is gone in the middle leaves matches that were made, and tickets.
"""

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from services.game.framing import frame
from services.game.ids import new_id
from services.lobby import matching
from services.lobby.deps import Deps
from services.lobby.matching import Group, Waiting
from services.lobby.mirror import Mirror
from services.lobby.records import Change, atomically, place_key, ticket_key
from services.lobby.room_checks import Person
from services.lobby.room_codes import free_code
from services.lobby.room_saving import save_room
from services.lobby.room_tables import matched
from services.lobby.room_views import Online
from services.lobby.store import Conflict
from services.lobby.tickets import Tickets, end_ticket
from services.pb.event.v1.event_pb2 import Difficulty
from services.pb.lobby.v1.room_pb2 import RoomPlan
from services.pb.lobby.v1.stored_pb2 import TICKET_END_MATCHED, PassRecord, PlaceRecord, TicketRecord
from services.shell.errors import RefusedError
from services.shell.log_store import Unavailable
from services.shell.logs import fault_of

PASS_KEY: Final = "pass.turn"
EVERY_S: Final = 1.0
TURN_S: Final = 0.9
"""After so long without a word of whoever has the turn, anybody may take it."""
KEEP_S: Final = 0.3
"""How often a turn is kept while a pass lasts."""
ABSENT_S: Final = 30.0
"""Tickets outlive their players' connections by so long."""
AT_ONCE: Final = 8
"""Matches made at once, so that what else this replica changes meanwhile finds room in the store."""
_SLICE: Final = 500
"""Tickets looked at before others get their turn on the event loop."""
_ROOM_LABEL: Final = b"shengji room of a match v1"
T = TypeVar("T")


class _Stray(NamedTuple):
    """A ticket whose players' places do not name it; nothing of ours makes one."""

    ticket_id: str


class Passes:
    """Makes matches in the background."""

    def __init__(self, deps: Deps, mirror: Mirror[TicketRecord], tickets: Tickets, presence: Online) -> None:
        """Begin.

        Args:
            deps: the store, the clock, metrics.
            mirror: of all tickets; started by somebody else.
            tickets: ends those of players who are gone.
            presence: who is there.
        """
        self._deps = deps
        self._mirror = mirror
        self._tickets = tickets
        self._presence = presence
        self._life: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look once a second from now on."""
        self._life = asyncio.create_task(self._live(), name="passes")

    async def stop(self) -> None:
        """Look no more."""
        if self._life is not None:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)

    async def _live(self) -> None:
        while True:
            self._deps.metrics.tickets.set(self._tickets.waiting)
            try:
                if await self._take_turn():
                    await self.look()
            except Unavailable as error:
                self._deps.log.warning("pass_waits", reason=error.why.value)
            except Exception as error:  # one bad pass must not be the last
                self._deps.log.error("fault", detail="passes", fault=fault_of(error))
            await asyncio.sleep(EVERY_S)

    async def _take_turn(self, *, mine: bool = False) -> bool:
        """Whether this replica is to look now; ``mine``: it is looking, and goes on."""
        change, now_ms = Change(self._deps.store), self._deps.now_ms()
        turn = await change.get(PASS_KEY, PassRecord)
        if turn is not None and 0 <= now_ms - turn.at_ms < TURN_S * 1000 and not mine:
            return False
        await change.put(PASS_KEY, PassRecord(at_ms=now_ms))
        try:
            await change.commit()
        except Conflict:
            return False
        return True

    async def _keep_turn(self) -> None:
        while True:
            await asyncio.sleep(KEEP_S)
            try:
                await self._take_turn(mine=True)
            except Unavailable:
                continue  # whoever makes matches is told the same

    # ------------------------------------------------------------------------------------------- one pass

    async def look(self) -> None:
        """One pass: end the tickets of who is gone, and make the matches there are among the others."""
        keeping = asyncio.create_task(self._keep_turn())
        try:
            waiting = await self._waiting()
            await self._work(self._drop, [ticket.ticket_id for ticket in waiting if not ticket.present])
            started = time.perf_counter()
            # In a thread of its own: it takes a tenth of a second when ten thousand wait.
            groups = await asyncio.to_thread(matching.match, waiting, self._deps.now_ms())
            self._deps.metrics.pass_seconds.observe(time.perf_counter() - started)
            await self._work(self._make, groups)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def _waiting(self) -> list[Waiting]:
        waiting: list[Waiting] = []
        for number, (_, record) in enumerate(self._mirror.items()):
            if number % _SLICE == 0:
                await asyncio.sleep(0)
            if not record.end:
                waiting.append(self._as_waiting(record))
        return waiting

    def _as_waiting(self, record: TicketRecord) -> Waiting:
        ticket = record.ticket
        # Who has just come may not be heard of here yet, or stay only now.
        age_s = (self._deps.now_ms() - ticket.created_at_ms) / 1000
        return Waiting(
            ticket_id=ticket.ticket_id,
            size=len(ticket.player_ids),
            operator=record.operator,
            preset=ticket.preset,
            stake=ticket.stake,
            rating=ticket.rating,
            created_at_ms=ticket.created_at_ms,
            bots_after_s=ticket.bots_after_s,
            bots=ticket.bots,
            present=all(
                min(age_s, self._presence.absent_s(player_id)) < ABSENT_S for player_id in ticket.player_ids
            ),
        )

    async def _work(self, do: Callable[[T], Awaitable[None]], things: Sequence[T]) -> None:
        """Do something to each, some at once; a failure stops no other, but a store out of reach all."""
        left = deque(things)

        async def worker() -> None:
            while left:
                thing = left.popleft()
                try:
                    await do(thing)
                except Unavailable as error:
                    self._deps.log.warning("pass_waits", reason=error.why.value, count=len(left))
                    left.clear()
                except RefusedError as refused:
                    self._deps.log.warning("pass_waits", reason=refused.reason.value)
                except Exception as error:
                    self._deps.log.error("fault", detail="passes", fault=fault_of(error))
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as workers:
            for _ in range(min(AT_ONCE, len(left))):
                workers.create_task(worker())

    async def _drop(self, ticket_id: str) -> None:
        await self._tickets.drop_offline(ticket_id)

    # ----------------------------------------------------------------------------------------- one match

    async def _make(self, group: Group) -> None:
        """Make a match, unless one of its tickets has ended meanwhile."""

        async def work(change: Change) -> list[TicketRecord] | _Stray | None:
            records: list[TicketRecord] = []
            for ticket_id in group.ticket_ids:
                record = await change.get(ticket_key(ticket_id), TicketRecord)
                if record is None or record.end:
                    return None
                if not await _names_it(change, record):
                    return _Stray(ticket_id)
                records.append(record)
            await self._seat(change, group, records)
            return records

        made = await atomically(self._deps.store, work)
        if isinstance(made, _Stray):
            if await self._tickets.drop_offline(made.ticket_id):
                self._deps.log.error("fault", detail="a ticket that no place named")
        elif made is not None:
            self._count(group, made)

    async def _seat(self, change: Change, group: Group, records: list[TicketRecord]) -> None:
        now_ms = self._deps.now_ms()
        for record in records:
            await end_ticket(change, record, TICKET_END_MATCHED, now_ms)
        by_id = {record.ticket.ticket_id: record for record in records}
        seats: list[Person | Difficulty.ValueType] = []
        for sitter in group.seats:
            if sitter is None:
                seats.append(Difficulty.ValueType(group.bots))
            else:
                record = by_id[sitter.ticket_id]
                seats.append(Person(record.ticket.player_ids[sitter.number], record.names[sitter.number]))
        oldest = records[0]
        room = matched(
            room_id_of(records),
            seats,
            RoomPlan(preset=oldest.ticket.preset, stake=oldest.ticket.stake),
            await free_code(change, self._deps.random),
            operator=oldest.operator,
            now_ms=now_ms,
        )
        await save_room(change, None, room)

    def _count(self, group: Group, records: list[TicketRecord]) -> None:
        metrics, now_ms = self._deps.metrics, self._deps.now_ms()
        metrics.matches["bots" if None in group.seats else "people"].inc()
        for record in records:
            metrics.ticket_wait.observe(max(0, now_ms - record.ticket.created_at_ms) / 1000)


async def _names_it(change: Change, record: TicketRecord) -> bool:
    """Whether all players of a ticket are where the ticket says."""
    here = PlaceRecord(room_id=record.room_id, ticket_id=record.ticket.ticket_id)
    for player_id in record.ticket.player_ids:
        if await change.get(place_key(player_id), PlaceRecord) != here:
            return False
    return True


def room_id_of(records: Sequence[TicketRecord]) -> str:
    """The id of the room of a match: the same for the same tickets, whoever makes it."""
    parts = [f"{record.ticket.ticket_id}/{record.ticket.created_at_ms}".encode() for record in records]
    digest = hashlib.sha256(frame(_ROOM_LABEL, *parts)).digest()
    return new_id("rom", int.from_bytes(digest[10:16], "big"), digest[:10])
