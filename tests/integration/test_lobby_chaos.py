"""Dozens of people make rooms, come in, start, wait for matches and leave, while processes are killed.

Two lobby replicas, one table service, nats-server: each is killed by SIGKILL and started again, on a schedule
that a seed fixes as far as a machine's timing lets it. Each person knows what was acknowledged to them and
looks at once whether it holds. In the end the records and the log are looked at.

Minutes of the same, with more people:

    pytest -n 0 -m slow -s tests/integration/test_lobby_chaos.py

``SHENGJI_CHAOS_SEED`` chooses another schedule, ``SHENGJI_CHAOS_S`` another length in seconds.
"""

import asyncio
import os
import random
import time
import uuid
from collections import Counter

import pytest
from support.calls import Calls, Refused
from support.house import UNLIMITED, opened_house, patience
from support.lobby_people import LobbyCalls, Person, plan
from support.lobby_records import (
    check_agree,
    check_one_table_at_a_time,
    founded_tables,
    settled_records,
    sittings,
)

from services.lobby.tickets import ticket_id_of
from services.pb.lobby.v1 import match_service_pb2 as match_pb
from services.pb.lobby.v1 import room_service_pb2 as room_pb
from services.pb.lobby.v1.room_pb2 import (
    ROOM_STATE_AFTER,
    ROOM_STATE_OPEN,
    ROOM_STATE_PLAYING,
    ROOM_STATE_SEARCHING,
    RoomPlan,
)
from services.pb.lobby.v1.stored_pb2 import TICKET_END_CANCELLED, TICKET_END_MATCHED
from services.pb.table.v1 import table_service_pb2 as pb

SEED = int(os.environ.get("SHENGJI_CHAOS_SEED", "2026"))
PEOPLE = 32
SECONDS = 16.0
BURST = 30
"""Rooms that start, and tables that end, at one moment."""
SLOW_PEOPLE = 60
SLOW_SECONDS = float(os.environ.get("SHENGJI_CHAOS_S", "180"))
HEALED_S = 30.0
"""In this time what a kill interrupted goes on: a delivery that died with its replica comes after 10 s."""
DOWN_S = (0.0, 0.8)
QUIET_S = (0.5, 2.0)


def expected(refused, *reasons):
    """Raise a refusal unless it is for one of some reasons."""
    if refused.reason not in reasons:
        raise refused


class TimeIsUp(Exception):
    """Everybody stays where they are."""


class Crowd:
    """All people, and the codes of rooms that they tell each other.

    Attributes:
        done: what happened how often.
        changes: changes of rooms that were acknowledged: the newest version of each.
    """

    def __init__(self, tables, seconds):
        self.tables = tables
        self.until = time.monotonic() + seconds
        self.codes = {}
        self.done = Counter()
        self.changes = {}

    def saw(self, room):
        self.changes[room.room_id] = max(room.version, self.changes.get(room.room_id, 0))


class Somebody(Person):
    """One of the crowd: does this and that, and checks at once what was acknowledged.

    Attributes:
        tickets: their tickets and what became of each, as far as they know.
        matched: the tables that matches have brought them to.
    """

    def __init__(self, crowd, calls, rng):
        super().__init__(calls, rng.randrange(2))
        self.crowd, self.rng = crowd, rng
        self.tickets = {}
        self.matched = []
        self.doing = ""

    async def live(self):
        """Until time is up."""
        try:
            while True:
                self.replica = self.rng.randrange(2)
                await self.pause(0.3)
                await self.rng.choice([self.host, self.host, self.visit, self.visit, self.visit, self.look])()
        except TimeIsUp:
            return
        except Exception as error:
            error.add_note(f"{self.player_id} was at: {self.doing}; whereabouts {self.stay.whereabouts}")
            raise

    async def pause(self, most_s):
        """Wait a moment; raises TimeIsUp."""
        await asyncio.sleep(self.rng.random() * most_s)
        if time.monotonic() > self.crowd.until:
            raise TimeIsUp

    async def holds(self, room, seat=None):
        """What was acknowledged is so at any replica."""
        self.crowd.saw(room)
        self.replica = self.rng.randrange(2)
        where = await self.whereabouts()
        if where.room_id != room.room_id:
            # Only a match takes the people of a room to another one.
            assert where.table_id, f"{self.player_id} came into {room.room_id} and is at {where}"
            return
        assert where.room.version >= room.version, "an older room than acknowledged"
        if seat is not None:
            assert where.room.seats[seat].player_id == self.player_id, where

    # ------------------------------------------------------------------------------------------------ rooms

    async def host(self):
        """Make a room and wait for others; leave it, start it, or look for opponents as two partners."""
        self.doing = "hosting"
        partners = self.rng.random() < 0.3
        room = await self.make_room(RoomPlan(preset="classic-1d") if partners else plan())
        self.crowd.done["rooms"] += 1
        await self.holds(room, 0)
        self.crowd.codes[room.room_id] = room.code
        await self.pause(1.5)
        self.crowd.codes.pop(room.room_id)
        choice = self.rng.random()
        if partners and await self.search(room.room_id):
            return
        if choice < 0.15:
            await self.leave_room(room.room_id)
            return
        started = await self.start(room.room_id)
        self.crowd.saw(started)
        self.crowd.done["starts"] += 1
        await self.play(started.table_id)

    async def visit(self):
        """Come into somebody's room, sit down, and go where it goes."""
        self.doing = "visiting"
        if not self.crowd.codes:
            return
        code = self.rng.choice(list(self.crowd.codes.values()))
        try:
            room = await self.join(code)
        except Refused as refused:
            expected(refused, "UNKNOWN_CODE", "WRONG_PHASE", "ROOM_FULL")  # it has ended, or begun
            return
        self.crowd.done["visits"] += 1
        await self.holds(room)
        seat = self.rng.randrange(1, 4)
        try:
            taken = await self.take_seat(room.room_id, seat)
        except Refused as refused:
            expected(refused, "SEAT_TAKEN", "WRONG_PHASE", "UNKNOWN_ROOM")
        else:
            self.crowd.done["seats"] += 1
            await self.holds(taken, seat)
        await self.stay_in(room.room_id)

    async def stay_in(self, room_id):
        """Wait for the table, or go when it is enough."""
        for _ in range(4):
            await self.pause(1)
            where = await self.whereabouts()
            if where.table_id:
                if where.room_id != room_id:
                    self.matched.append(where.table_id)
                await self.play(where.table_id)
                return
        try:
            await self.leave_room(room_id)
        except Refused as refused:
            expected(refused, "WRONG_PHASE")
            self.doing = "waiting for the end of a search, or for a table"
            await self.stay_in(room_id)

    async def leave_room(self, room_id):
        await self.settle("LeaveRoom", room_pb.LeaveRoomRequest(room_id=room_id))
        self.crowd.done["left"] += 1
        where = await self.whereabouts()
        assert where.room_id != room_id, "left and still there"
        if where.table_id:  # the room of two partners had become a match's by then
            self.matched.append(where.table_id)
            await self.play(where.table_id)

    async def play(self, table_id):
        """Go to a table when it plays, and leave it."""
        self.doing = f"waiting for {table_id}"

        def plays():
            where = self.stay.whereabouts
            return where.table_id == table_id and self.stay.room.state == ROOM_STATE_PLAYING

        await self.stay.until(plays, patience(HEALED_S))
        self.crowd.done["tables"] += 1
        await self.pause(0.6)
        self.doing = f"leaving {table_id}"
        leave = pb.LeaveRequest(context=pb.CommandContext(table_id=table_id))
        await self.crowd.tables.settle("Leave", leave, self.player_id)
        await self.stay.until(lambda: not self.stay.whereabouts.room_id, patience(HEALED_S))

    # ---------------------------------------------------------------------------------------------- tickets

    async def look(self):
        """Look for a match alone."""
        await self.search("")

    async def search(self, room_id):
        """Look for a match, perhaps cancel; False: these are no two partners."""
        self.doing = "searching"
        request = match_pb.CreateTicketRequest(
            request_id=str(uuid.UUID(int=self.rng.getrandbits(128))),
            preset="classic-1d",
            bots_after_s=self.rng.choice([0, 1, 2]),
            room_id=room_id,
        )
        ticket_id = ticket_id_of(self.player_id, uuid.UUID(request.request_id).bytes)
        try:
            ticket = (await self.settle("CreateTicket", request)).ticket
            assert ticket.ticket_id == ticket_id
            assert (len(ticket.player_ids) == 2) == bool(room_id)
        except Refused as refused:
            if room_id and refused.reason == "BAD_INPUT":
                return False
            expected(refused, "ALREADY_MATCHED")
        self.crowd.done["tickets"] += 1
        self.tickets[ticket_id] = "made"
        await self.pause(2)
        if self.rng.random() < 0.5 and await self.cancel(ticket_id):
            if room_id:
                await self.leave_room(room_id)
            return True
        self.doing = f"waiting for the match of {ticket_id}"
        give_up = time.monotonic() + patience(HEALED_S)
        while not (where := await self.whereabouts()).table_id:
            assert where.ticket_id == ticket_id, f"a ticket was lost: {where}"
            assert time.monotonic() < give_up or not request.bots_after_s, "bots never came"
            await self.pause(0.5)
        self.tickets[ticket_id] = "matched"
        self.matched.append(where.table_id)
        await self.play(where.table_id)
        return True

    async def cancel(self, ticket_id):
        """Stop looking; False: it is matched."""
        try:
            await self.settle("CancelTicket", match_pb.CancelTicketRequest(ticket_id=ticket_id))
        except Refused as refused:
            expected(refused, "ALREADY_MATCHED")
            return False
        self.tickets[ticket_id] = "cancelled"
        self.crowd.done["cancelled"] += 1
        where = await self.whereabouts()
        assert not where.ticket_id, "cancelled and still waiting"
        assert not where.table_id, "cancelled and matched"
        return True


@pytest.fixture
async def house(tmp_path):
    async with opened_house(tmp_path, replicas=1, lobbies=2, env=UNLIMITED) as house:
        yield house


async def faults(house, rng, until, killed):
    """Kill and start again one thing after another while there is time."""
    kinds = []
    while time.monotonic() < until:
        await asyncio.sleep(rng.uniform(*QUIET_S))
        if not kinds:
            kinds = ["lobby 0", "nats", "lobby 1", "table", "lobby 0"]
        what = kinds.pop(0)
        if what == "nats":
            house.nats.kill()
            await asyncio.sleep(rng.uniform(*DOWN_S))
            await house.nats.start()
        else:
            service = house.replicas[0] if what == "table" else house.lobbies[int(what[-1])]
            service.kill()
            await asyncio.sleep(rng.uniform(*DOWN_S))
            service.start()
            await service.ready()
        killed[what] += 1


async def run_crowd(house, people, seconds):
    """The whole run, and what is to hold after it."""
    rng = random.Random(SEED)
    calls = LobbyCalls([replica.address for replica in house.lobbies])
    tables = Calls([replica.address for replica in house.replicas], calls.token)
    crowd, killed = Crowd(tables, seconds), Counter()
    everybody = [Somebody(crowd, calls, random.Random(rng.random())) for _ in range(people)]
    try:
        for person in everybody:
            await person.sign_in()
            person.come()
            await person.stay.until(lambda person=person: person.stay.whereabouts is not None)
        crowd.until = time.monotonic() + seconds
        async with asyncio.timeout(seconds + 2 * patience(HEALED_S)), asyncio.TaskGroup() as group:
            group.create_task(faults(house, rng, crowd.until - 3, killed))
            for person in everybody:
                group.create_task(person.live())
        records = await settled_records(house, still_s=2.0, within_s=patience(HEALED_S))
        check_agree(records)
        await check_places(everybody, records)
        check_rooms(crowd, records)
        logs = await founded_tables(house)
        found = sittings(logs)
        check_one_table_at_a_time(found, records)
        await check_tables(everybody, found, logs)
        check_tickets(everybody, records)
        check_printed(house)
    finally:
        await asyncio.gather(*(person.go() for person in everybody), return_exceptions=True)
        await tables.close()
        await calls.close()
    print(f"{dict(crowd.done)}, {calls.retries} calls made again, {dict(killed)} killed, {len(logs)} tables")
    return crowd, killed


async def check_places(everybody, records):
    """Both replicas tell everybody what the records say, and so does the Stay."""
    for person in everybody:
        place = records.place(person.player_id)
        for person.replica in (0, 1):
            where = await person.whereabouts()
            assert (where.room_id, where.ticket_id) == (place.room_id, place.ticket_id)
            assert (where.table_id, where.seat) == (place.table_id, place.seat)
            assert where.HasField("seat") == place.HasField("seat")
        told = person.stay.whereabouts
        assert (told.room_id, told.ticket_id, told.table_id) == (
            place.room_id,
            place.ticket_id,
            place.table_id,
        )


def check_rooms(crowd, records):
    """No room is between two states, and none is older than what was acknowledged of it."""
    settled = {ROOM_STATE_OPEN, ROOM_STATE_SEARCHING, ROOM_STATE_PLAYING, ROOM_STATE_AFTER}
    for record in records.rooms.values():
        assert record.room.state in settled
        assert not record.room.failed, record.room.failed
        assert record.room.version >= crowd.changes.get(record.room.room_id, 0)


async def check_tables(everybody, found, logs):
    """Every table of the log was told to all its people, each once: none was founded twice or for nobody."""
    for person in everybody:
        sat = [sitting.table_id for sitting in found.get(person.player_id, ())]
        assert sorted(person.stay.tables) == sorted(sat), person.player_id
    assert {sitting.table_id for of_player in found.values() for sitting in of_player} == logs.keys()
    for commits in logs.values():
        opened = [event for commit in commits for event in commit.events if event.HasField("table_opened")]
        assert len(opened) == 1
        assert opened[0].table_opened.creator_id == "svc:lobby"


def check_tickets(everybody, records):
    """Every ticket has one end, the one that its player was told; every matched one led to one table."""
    ends = {"cancelled": TICKET_END_CANCELLED, "matched": TICKET_END_MATCHED}
    for person in everybody:
        for ticket_id, end in person.tickets.items():
            stored = records.tickets[ticket_id].end
            assert stored == ends.get(end, stored), (end, records.tickets[ticket_id])
            assert stored in (0, TICKET_END_CANCELLED, TICKET_END_MATCHED), "nobody was offline"
        mine = [record for record in records.tickets.values() if person.player_id in record.ticket.player_ids]
        matches = sum(record.end == TICKET_END_MATCHED for record in mine)
        assert len(set(person.matched)) <= matches <= len(person.stay.tables)
        assert sum(not record.end for record in mine) <= 1
    known = {ticket_id for person in everybody for ticket_id in person.tickets}
    assert records.tickets.keys() <= known | {
        ticket_id for ticket_id, record in records.tickets.items() if not record.end or record.room_id
    }, "a ticket that nobody made"


def check_printed(house):
    """What the services met were faults that heal by themselves."""
    for line in house.printed().splitlines():
        assert '"level": "error"' not in line, line
        assert not line.startswith("Traceback"), house.printed()[-4000:]


async def test_everybody_is_where_the_records_say_whatever_was_killed(house):
    crowd, killed = await run_crowd(house, PEOPLE, SECONDS)
    assert min(killed[what] for what in ("lobby 0", "lobby 1", "nats", "table")) > 0, killed
    for what in ("rooms", "starts", "visits", "seats", "tickets", "cancelled", "tables", "left"):
        assert crowd.done[what], what


async def test_what_was_under_way_when_all_lobbies_died_is_done(house):
    """Rooms in the middle of starting, then tables in the middle of ending: no replica lives to go on."""
    calls = LobbyCalls([replica.address for replica in house.lobbies])
    tables = Calls([replica.address for replica in house.replicas], calls.token)
    people = [await Person(calls, at % 2).sign_in() for at in range(BURST)]
    try:
        rooms = await asyncio.gather(*(person.make_room(plan()) for person in people))
        starting = [
            asyncio.create_task(person.start(room.room_id))
            for person, room in zip(people, rooms, strict=True)
        ]
        await asyncio.wait(starting, return_when=asyncio.FIRST_COMPLETED)
        await restart_all(house)
        started = await asyncio.gather(*starting)
        for person in people:
            person.come()
        told = await asyncio.gather(*(person.told_of_table(patience(HEALED_S)) for person in people))
        assert [room.table_id for room in told] == [room.table_id for room in started]
        assert (await founded_tables(house)).keys() == {room.table_id for room in told}
        leaving = [
            asyncio.create_task(leave(tables, person, room))
            for person, room in zip(people, told, strict=True)
        ]
        await asyncio.wait(leaving, return_when=asyncio.FIRST_COMPLETED)
        await restart_all(house)
        await asyncio.gather(*leaving)
        await asyncio.gather(*(is_nowhere(person) for person in people))
        records = await settled_records(house, still_s=0.5, within_s=patience(HEALED_S))
        assert not records.rooms
        assert not records.places
        assert not records.codes
    finally:
        await asyncio.gather(*(person.go() for person in people), return_exceptions=True)
        await tables.close()
        await calls.close()


async def leave(tables, person, room):
    request = pb.LeaveRequest(context=pb.CommandContext(table_id=room.table_id))
    await tables.settle("Leave", request, person.player_id)


async def is_nowhere(person):
    await person.stay.until(lambda: not person.stay.whereabouts.room_id, patience(HEALED_S))


async def restart_all(house):
    """Kill all lobbies at once, and start them again."""
    for lobby in house.lobbies:
        lobby.kill()
    for lobby in house.lobbies:
        lobby.start()
    await asyncio.gather(*(lobby.ready() for lobby in house.lobbies))


@pytest.mark.slow
async def test_the_same_for_minutes(house):
    _, killed = await run_crowd(house, SLOW_PEOPLE, SLOW_SECONDS)
    assert min(killed[what] for what in ("lobby 0", "lobby 1", "nats", "table")) > 3, killed
