"""What the lobby of a running house has recorded, read behind its back; and what records must agree on."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from google.protobuf.message import Message

from services.game.ids import STREAMS, parse_subject
from services.lobby.store import Entry
from services.lobby.store_jetstream import JetStreamStore
from services.pb.lobby.v1.room_pb2 import (
    ROOM_STATE_PLAYING,
    ROOM_STATE_SEARCHING,
    ROOM_STATE_STARTING,
)
from services.pb.lobby.v1.stored_pb2 import CodeRecord, PlaceRecord, RoomRecord, TicketRecord
from services.pb.log.v1.log_pb2 import Commit
from services.shell.broker import Broker
from support.house import House

KINDS: Mapping[str, type[Message]] = {
    "room": RoomRecord,
    "place": PlaceRecord,
    "ticket": TicketRecord,
    "code": CodeRecord,
}


@dataclass
class Records:
    """All records of where people are, by their keys without the prefix."""

    rooms: dict[str, RoomRecord] = field(default_factory=dict)
    places: dict[str, PlaceRecord] = field(default_factory=dict)
    tickets: dict[str, TicketRecord] = field(default_factory=dict)
    codes: dict[str, CodeRecord] = field(default_factory=dict)

    def waiting(self) -> dict[str, TicketRecord]:
        """The tickets that have not ended."""
        return {ticket_id: record for ticket_id, record in self.tickets.items() if not record.end}

    def place(self, player_id: str) -> PlaceRecord:
        """Where a player is; an empty one for nowhere."""
        return self.places.get(player_id, PlaceRecord())


async def read_records(house: House) -> Records:
    """Everything in the store, read as the lobby reads it."""
    broker = await Broker.connect(house.nats_url("lobby"), "lobby")
    try:
        store, records = JetStreamStore(broker), Records()
        for prefix, kind in KINDS.items():
            into = getattr(records, f"{prefix}s")
            following = await store.follow(prefix, _taking(into, prefix, kind))
            await following.stop()
        return records
    finally:
        await broker.close()


def _taking(into: dict[str, Message], prefix: str, kind: type[Message]) -> Callable[[str, Entry], None]:
    def take(key: str, entry: Entry) -> None:
        name = key.removeprefix(f"{prefix}.")
        if entry.value:
            into[name] = kind.FromString(entry.value)
        else:
            into.pop(name, None)

    return take


async def settled_records(house: House, *, still_s: float, within_s: float) -> Records:
    """The records once no room is starting and nothing has changed for a while.

    Raises:
        TimeoutError: they do not come to rest.
    """
    async with asyncio.timeout(within_s):
        before = await read_records(house)
        while True:
            await asyncio.sleep(still_s)
            records = await read_records(house)
            starting = any(record.room.state == ROOM_STATE_STARTING for record in records.rooms.values())
            if records == before and not starting:
                return records
            before = records


def check_agree(records: Records) -> None:
    """Rooms, places, tickets and codes say the same of everybody."""
    for room_id, record in records.rooms.items():
        room = record.room
        assert room.room_id == room_id
        assert room.members, "a room in which nobody is"
        assert room.host_id in [member.player_id for member in room.members]
        assert bool(room.ticket_id) == (room.state == ROOM_STATE_SEARCHING), room
        seats = {held.player_id: seat for seat, held in enumerate(room.seats) if held.player_id}
        assert seats.keys() <= {member.player_id for member in room.members}
        for member in room.members:
            expected = PlaceRecord(room_id=room_id, ticket_id=room.ticket_id)
            if room.state in (ROOM_STATE_STARTING, ROOM_STATE_PLAYING) and member.player_id in seats:
                expected.table_id, expected.seat = room.table_id, seats[member.player_id]
            assert records.place(member.player_id) == expected, (member.player_id, room)
        assert records.codes[room.code.lower()].room_id == room_id
    assert len(records.codes) == len(records.rooms)
    for ticket_id, ticket in records.waiting().items():
        for player_id in ticket.ticket.player_ids:
            expected = PlaceRecord(room_id=ticket.room_id, ticket_id=ticket_id)
            assert records.place(player_id) == expected, (player_id, ticket)
    for player_id, place in records.places.items():
        if place.room_id:
            members = records.rooms[place.room_id].room.members
            assert player_id in [member.player_id for member in members], (player_id, place)
        else:
            assert player_id in records.waiting()[place.ticket_id].ticket.player_ids, (player_id, place)


class Sitting(NamedTuple):
    """One player at one table."""

    table_id: str
    since: int
    """When the table was founded: microseconds of Unix time."""
    until: int | None
    """When the player left, or the table was over; None: they sit there still."""


async def founded_tables(house: House) -> dict[str, list[Commit]]:
    """All tables of the house's log, whoever knows of them, with their commits."""
    broker = await Broker.connect(house.nats_url("table"), "table")
    found: set[str] = set()
    try:
        for number in range(STREAMS):
            info = await broker.js.stream_info(f"SJ_TABLES_{number}", subjects_filter=">")
            found |= {parse_subject(subject).table_id for subject in info.state.subjects or {}}
    finally:
        await broker.close()
    stored = await house.stored(sorted(found))
    return {table_id: [Commit.FromString(raw) for raw in commits] for table_id, commits in stored.items()}


def sittings(tables: Mapping[str, list[Commit]]) -> dict[str, list[Sitting]]:
    """At which tables each player sat and when, in the order of their founding, by the log alone."""
    found: dict[str, list[Sitting]] = {}
    for table_id, commits in tables.items():
        sits: dict[str, int | None] = {}
        for commit in commits:
            for event in commit.events:
                match event.WhichOneof("kind"):
                    case "table_opened":
                        sits.update(dict.fromkeys(held.player_id for held in event.table_opened.seats))
                    case "seat_left":
                        sits[event.seat_left.player_id] = commit.recorded_at_us
                    case "match_ended" | "table_closed":
                        sits = {who: left or commit.recorded_at_us for who, left in sits.items()}
        for player_id, left in sits.items():
            if player_id.startswith("ply_"):
                sitting = Sitting(table_id, commits[0].recorded_at_us, left)
                found.setdefault(player_id, []).append(sitting)
    for of_player in found.values():
        of_player.sort(key=lambda sitting: sitting.since)
    return found


def check_one_table_at_a_time(found: Mapping[str, list[Sitting]], records: Records) -> None:
    """Nobody ever sat at two open tables, and who sits at one is said to be there."""
    for player_id, of_player in found.items():
        for before, after in pairwise(of_player):
            assert before.until is not None, f"{player_id} sits at {before.table_id} and {after.table_id}"
            assert before.until <= after.since, f"{player_id} came to {after.table_id} too early"
        last = of_player[-1]
        there = last.table_id if last.until is None else ""
        assert records.place(player_id).table_id == there, player_id
