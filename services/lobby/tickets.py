"""Tickets: how they begin, end and are shown. A ticket, its players' places and its room change together."""

import hashlib
import math
from collections import Counter
from typing import Final, NamedTuple

from services.game.framing import frame
from services.game.ids import is_id, new_id
from services.lobby import matching, rooms
from services.lobby.deps import Deps
from services.lobby.mirror import Mirror
from services.lobby.records import Change, atomically, place_key, player_key, room_key, ticket_key
from services.lobby.room_checks import Person
from services.lobby.room_saving import read_place, save_room
from services.pb.event.v1.event_pb2 import Difficulty
from services.pb.lobby.v1.match_service_pb2 import Ticket
from services.pb.lobby.v1.stored_pb2 import (
    TICKET_END_CANCELLED,
    TICKET_END_MATCHED,
    TICKET_END_OFFLINE,
    PlaceRecord,
    PlayerRecord,
    RoomRecord,
    TicketEnd,
    TicketRecord,
)
from services.rules.reasons import Reason
from services.shell.errors import RefusedError

KEPT_S: Final = 600.0
"""How long a ticket that has ended is still known."""
_TICKET_LABEL: Final = b"shengji ticket id v1"


class Asked(NamedTuple):
    """What somebody looks for, checked."""

    request_id: bytes
    preset: str
    stake: int
    bots_after_s: int
    bots: Difficulty.ValueType
    room_id: str
    """Of two partners; empty for the caller alone."""


def ticket_id_of(player_id: str, request_id: bytes) -> str:
    """The id of the ticket that a caller makes by a request: the same for the same request."""
    digest = hashlib.sha256(frame(_TICKET_LABEL, player_id.encode(), request_id)).digest()
    return new_id("tkt", int.from_bytes(digest[10:16], "big"), digest[:10])


def window_of(ticket: Ticket, now_ms: int) -> float:
    """How far another's rating may be now."""
    return matching.window((now_ms - ticket.created_at_ms) / 1000)


async def end_ticket(change: Change, record: TicketRecord, why: TicketEnd.ValueType, now_ms: int) -> None:
    """End a ticket that waits: its players are free, or in their room as before; matched, they are nowhere.

    Raises:
        Unavailable: the store cannot be read.
    """
    ticket_id = record.ticket.ticket_id
    ended = TicketRecord()
    ended.CopyFrom(record)
    ended.end = why
    await change.put(ticket_key(ticket_id), ended, KEPT_S)
    room = await change.get(room_key(record.room_id), RoomRecord) if record.room_id else None
    if room is not None and room.room.ticket_id == ticket_id:
        over = why == TICKET_END_MATCHED
        after = rooms.end(room, now_ms) if over else rooms.end_search(room, ticket_id, now_ms)
        await save_room(change, room, after)
        return
    for player_id in record.ticket.player_ids:
        place = await change.get(place_key(player_id), PlaceRecord)
        if place is not None and place.ticket_id == ticket_id:
            await change.drop(place_key(player_id))


class Tickets:
    """What players do with tickets."""

    def __init__(self, deps: Deps, mirror: Mirror[TicketRecord]) -> None:
        """Begin.

        Args:
            deps: the store, the clock, ratings and funds.
            mirror: of all tickets; only how many wait is read from it.
        """
        self._deps = deps
        self._waiting: Counter[tuple[str, str, int]] = Counter()
        for ticket_id, record in mirror.items():
            self._count(ticket_id, None, record)
        mirror.on_change(self._count)

    @property
    def waiting(self) -> int:
        """How many tickets wait."""
        return self._waiting.total()

    async def create(self, asked: Asked, player_id: str, operator: str) -> TicketRecord:
        """Begin a search, or find the one that the same request began.

        Raises:
            RefusedError: ELSEWHERE, UNKNOWN_PLAYER, INSUFFICIENT_FUNDS; of a room UNKNOWN_ROOM, NOT_IN_ROOM,
                NOT_HOST, WRONG_PHASE, BAD_INPUT; ALREADY_MATCHED or UNKNOWN_TICKET when it has ended.
            Unavailable: the store cannot be used.
        """
        if not is_id("ply", player_id):
            raise RefusedError(Reason.UNKNOWN_PLAYER)
        ticket_id = ticket_id_of(player_id, asked.request_id)

        async def work(change: Change) -> TicketRecord:
            # First the place, then the ticket: the same request made meanwhile is not taken for another one.
            await read_place(change, player_id)
            there = await change.get(ticket_key(ticket_id), TicketRecord)
            if there is not None:
                return _still_waiting(there)
            now_ms = self._deps.now_ms()
            if asked.room_id:
                people = await self._search(change, asked, player_id, operator, ticket_id)
            else:
                people = [await self._alone(change, player_id, operator, ticket_id)]
            player_ids = [person.player_id for person in people]
            if asked.stake:
                await self._deps.funds.check(player_ids, asked.stake)
            ticket = Ticket(
                ticket_id=ticket_id,
                player_ids=player_ids,
                preset=asked.preset,
                stake=asked.stake,
                rating=await self._rating(player_ids),
                created_at_ms=now_ms,
                bots_after_s=asked.bots_after_s,
                bots=asked.bots,
            )
            made = TicketRecord(
                ticket=ticket,
                operator=operator,
                room_id=asked.room_id,
                request_id=asked.request_id,
                names=[person.name for person in people],
            )
            await change.put(ticket_key(ticket_id), made)
            return made

        return await atomically(self._deps.store, work)

    async def _alone(self, change: Change, player_id: str, operator: str, ticket_id: str) -> Person:
        player = await change.get(player_key(player_id), PlayerRecord)
        if player is None or player.operator != operator:  # linked to an operator's account since the token
            raise RefusedError(Reason.UNKNOWN_PLAYER)
        place = await change.get(place_key(player_id), PlaceRecord)
        if place is not None:
            kind = "table" if place.table_id else "search" if place.ticket_id else "room"
            raise RefusedError(Reason.ELSEWHERE, {"place": kind})
        await change.put(place_key(player_id), PlaceRecord(ticket_id=ticket_id))
        return Person(player_id, player.name)

    async def _search(
        self, change: Change, asked: Asked, host_id: str, operator: str, ticket_id: str
    ) -> list[Person]:
        """The partners of a room that begins to look for opponents, the host first."""
        before = await change.get(room_key(asked.room_id), RoomRecord)
        if before is None or before.operator != operator:
            raise RefusedError(Reason.UNKNOWN_ROOM)
        after = rooms.begin_search(before, host_id, ticket_id, self._deps.now_ms())
        plan = before.room.plan
        if (plan.preset, plan.stake) != (asked.preset, asked.stake):
            field = "preset" if plan.preset != asked.preset else "stake"
            raise RefusedError(Reason.BAD_INPUT, {"field": field, "detail": "is not what the room plans"})
        await save_room(change, before, after)
        people = [Person(member.player_id, member.name) for member in before.room.members]
        return sorted(people, key=lambda person: person.player_id != host_id)

    async def _rating(self, player_ids: list[str]) -> float:
        ratings = await self._deps.ratings.of(player_ids)
        rating = sum(ratings) / len(player_ids)
        if not math.isfinite(rating):
            raise ValueError("a rating is no number")
        return rating

    async def cancel(self, ticket_id: str, player_id: str) -> None:
        """End a search. One that has ended without a match is cancelled already.

        Raises:
            RefusedError: ALREADY_MATCHED or UNKNOWN_TICKET.
            Unavailable: the store cannot be used.
        """

        async def work(change: Change) -> bool:
            record = await _own(change, ticket_id, player_id)
            if record.end == TICKET_END_MATCHED:
                raise RefusedError(Reason.ALREADY_MATCHED)
            if record.end:
                return False
            await end_ticket(change, record, TICKET_END_CANCELLED, self._deps.now_ms())
            return True

        if await atomically(self._deps.store, work):
            self._deps.metrics.dropped_tickets["cancelled"].inc()

    async def get(self, ticket_id: str, player_id: str) -> TicketRecord:
        """A ticket of the player's that waits.

        Raises:
            RefusedError: ALREADY_MATCHED or UNKNOWN_TICKET.
            Unavailable: the store cannot be read.
        """
        return _still_waiting(await _own(Change(self._deps.store), ticket_id, player_id))

    async def drop_offline(self, ticket_id: str) -> bool:
        """End a search whose players are not there any more; False when it has ended before.

        Raises:
            RefusedError: BUSY.
            Unavailable: the store cannot be used.
        """

        async def work(change: Change) -> bool:
            record = await change.get(ticket_key(ticket_id), TicketRecord)
            if record is None or record.end:
                return False
            await end_ticket(change, record, TICKET_END_OFFLINE, self._deps.now_ms())
            return True

        dropped = await atomically(self._deps.store, work)
        if dropped:
            self._deps.metrics.dropped_tickets["offline"].inc()
        return dropped

    def shown(self, record: TicketRecord) -> Ticket:
        """A ticket as its players see it now."""
        shown = Ticket()
        shown.CopyFrom(record.ticket)
        shown.window = window_of(shown, self._deps.now_ms())
        # The mirror may not have heard of this very ticket yet.
        shown.waiting = max(1, self._waiting[_pool(record)])
        return shown

    def _count(self, _: str, before: TicketRecord | None, after: TicketRecord | None) -> None:
        for record, step in ((before, -1), (after, 1)):
            if record is not None and not record.end:
                pool = _pool(record)
                self._waiting[pool] += step
                if not self._waiting[pool]:
                    del self._waiting[pool]


def _pool(record: TicketRecord) -> tuple[str, str, int]:
    return record.operator, record.ticket.preset, record.ticket.stake


async def _own(change: Change, ticket_id: str, player_id: str) -> TicketRecord:
    record = await change.get(ticket_key(ticket_id), TicketRecord) if is_id("tkt", ticket_id) else None
    if record is None or player_id not in record.ticket.player_ids:
        raise RefusedError(Reason.UNKNOWN_TICKET)
    return record


def _still_waiting(record: TicketRecord) -> TicketRecord:
    if record.end:
        matched = record.end == TICKET_END_MATCHED
        raise RefusedError(Reason.ALREADY_MATCHED if matched else Reason.UNKNOWN_TICKET)
    return record
