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
from collections import Counter

import pytest
from support.calls import Calls
from support.house import READY_S, UNLIMITED, opened_house, patience
from support.lobby_crowd import HEALED_S, Crowd, Somebody
from support.lobby_people import LobbyCalls, Person, plan
from support.lobby_records import (
    check_agree,
    check_one_table_at_a_time,
    founded_tables,
    read_records,
    settled_records,
    sittings,
)

from services.pb.lobby.v1.room_pb2 import (
    ROOM_STATE_AFTER,
    ROOM_STATE_OPEN,
    ROOM_STATE_PLAYING,
    ROOM_STATE_SEARCHING,
)
from services.pb.lobby.v1.stored_pb2 import TICKET_END_CANCELLED, TICKET_END_MATCHED
from services.pb.table.v1 import table_service_pb2 as pb

SEED = int(os.environ.get("SHENGJI_CHAOS_SEED", "2026"))
PEOPLE = 32
SECONDS = 6.0
"""At least; until everything was killed and everything was done."""
BURST = 30
"""Rooms that start, and tables that end, at one moment."""
SLOW_PEOPLE = 60
SLOW_SECONDS = float(os.environ.get("SHENGJI_CHAOS_S", "180"))
KILLED = ("lobby 0", "lobby 1", "nats", "table")
DONE = ("rooms", "starts", "visits", "seats", "tickets", "cancelled", "tables", "left")
"""What must have happened."""
DOWN_S = (0.0, 0.8)
QUIET_S = (0.5, 2.0)


@pytest.fixture
async def house(tmp_path):
    async with opened_house(tmp_path, replicas=1, lobbies=2, env=UNLIMITED) as house:
        yield house


async def faults(house, rng, crowd, killed, seconds):
    """Kill and start again one thing after another until it is enough; then time is up soon."""
    kinds, until = [], time.monotonic() + seconds
    while time.monotonic() < until or not all(killed[what] for what in KILLED) or not crowd.did(DONE):
        await asyncio.sleep(rng.uniform(*QUIET_S))
        if not kinds:
            kinds = ["lobby 0", "nats", "lobby 1", "table", "lobby 0"]
        what = kinds.pop(0)
        if what == "nats":
            house.nats.kill()
            await asyncio.sleep(rng.uniform(*DOWN_S))
            await house.nats.start(READY_S)
        else:
            service = house.replicas[0] if what == "table" else house.lobbies[int(what[-1])]
            service.kill()
            await asyncio.sleep(rng.uniform(*DOWN_S))
            service.start()
            await service.ready()
        killed[what] += 1
    crowd.until = time.monotonic() + 1


async def run_crowd(house, people, seconds):
    """The whole run, and what is to hold after it."""
    rng = random.Random(SEED)
    calls = LobbyCalls([replica.address for replica in house.lobbies])
    tables = Calls([replica.address for replica in house.replicas], calls.token)
    crowd, killed = Crowd(tables), Counter()
    everybody = [Somebody(crowd, calls, random.Random(rng.random())) for _ in range(people)]
    try:
        for person in everybody:
            await person.sign_in()
            person.come()
            await person.stay.until(lambda person=person: person.stay.whereabouts is not None)
        async with asyncio.timeout(seconds + 2 * patience(HEALED_S)), asyncio.TaskGroup() as group:
            group.create_task(faults(house, rng, crowd, killed, seconds))
            for person in everybody:
                group.create_task(person.live())
        records = await agreed_records(house, everybody)
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
    return killed


async def agreed_records(house, everybody):
    """The records once they agree with each other and with what all are told, as they must in the end."""
    give_up = time.monotonic() + patience(HEALED_S)
    while True:
        records = await settled_records(house, still_s=1.0, within_s=patience(HEALED_S))
        try:
            check_agree(records)
            await check_places(everybody, records)
        except (AssertionError, KeyError):
            if time.monotonic() > give_up:
                raise
        else:
            return records


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
    await run_crowd(house, PEOPLE, SECONDS)


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
        give_up = time.monotonic() + patience(HEALED_S)
        while (records := await read_records(house)).rooms or records.places or records.codes:
            assert time.monotonic() < give_up, records
            await asyncio.sleep(0.2)
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
    killed = await run_crowd(house, SLOW_PEOPLE, SLOW_SECONDS)
    assert min(killed[what] for what in KILLED) > 3, killed
