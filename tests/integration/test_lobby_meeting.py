"""Two strangers meet by invite code at one table, through two replicas of the lobby, and play a match out."""

import asyncio
import random

import pytest
from support.calls import Refused
from support.house import UNLIMITED, patience, running_house
from support.lobby_people import Person, plan

from services.pb.event.v1.event_pb2 import DIFFICULTY_NORMAL
from services.pb.lobby.v1 import presence_service_pb2 as presence_pb
from services.pb.lobby.v1 import room_service_pb2 as room_pb
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_AFTER, ROOM_STATE_PLAYING, ROOM_STATE_STARTING
from services.pb.log.v1.log_pb2 import Commit
from services.pb.table.v1 import table_service_pb2 as pb

PLAYED_S = 40
HAND = 12
"""Cards of a hand of `classic-1d`."""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with running_house(
        tmp_path_factory.mktemp("meeting"), replicas=2, lobbies=2, bots=True, env=UNLIMITED
    ) as house:
        yield house


@pytest.fixture
async def two(lobby):
    """Ann at one replica and Bob at the other, both staying."""
    people = [await Person(lobby, replica).sign_in() for replica in (0, 1)]
    for person in people:
        person.come()
        await person.stay.until(lambda person=person: person.stay.whereabouts is not None)
    yield people
    for person in people:
        await person.go()


async def meet(ann, bob, seat, **options):
    """Ann's room of one deal, Bob in it on a seat; the room."""
    made = await ann.make_room(plan(deals="1", **options))
    assert made.host_id == ann.player_id
    joined = await bob.join(made.code.lower())
    assert joined.room_id == made.room_id
    return await bob.take_seat(made.room_id, seat)


async def opened(house, table_id):
    """What a table was founded with."""
    stored = (await house.stored([table_id]))[table_id]
    (event,) = [e.table_opened for e in Commit.FromString(stored[0]).events if e.HasField("table_opened")]
    return event


def held_by(founded):
    """Who holds each seat of a table: a player, or a bot of a difficulty."""
    return [held.difficulty or held.player_id for held in founded.seats]


async def play_out(people, tables, room, rng):
    """All people of a room play its match to the end."""
    players = [person.player_at(tables, room, random.Random(rng.random())) for person in people]
    async with asyncio.timeout(patience(PLAYED_S)):
        await asyncio.gather(*(player.play() for player in players))


async def laid_by(house, table_id, player_id):
    """How many cards a player's own commands laid."""
    commits = [Commit.FromString(raw) for raw in (await house.stored([table_id]))[table_id]]
    own = [event for commit in commits if commit.actor.player_id == player_id for event in commit.events]
    return sum(len(event.cards_played.cards) for event in own)


@pytest.mark.parametrize(("seat", "partners"), [(2, True), (1, False)])
async def test_two_strangers_meet_and_play_a_match(house, two, tables, seat, partners):
    ann, bob = two
    rng = random.Random(seat)
    met = await meet(ann, bob, seat)
    # Bob has just sat down at another replica; Ann's Stay tells her.
    await ann.stay.until(lambda: len(ann.stay.room.members) == 2 and ann.stay.room.version == met.version)
    assert [held.player_id for held in ann.stay.room.seats].index(bob.player_id) == seat
    with pytest.raises(Refused) as caught:
        await bob.start(met.room_id)
    assert caught.value.reason == "NOT_HOST"
    with pytest.raises(Refused) as caught:
        await ann.start(met.room_id, fill=False)
    assert caught.value.reason == "SEATS_NOT_FILLED"
    started = await ann.start(met.room_id)
    assert started.state in (ROOM_STATE_STARTING, ROOM_STATE_PLAYING)
    told = [await person.told_of_table() for person in two]
    assert [room.table_id for room in told] == [started.table_id] * 2
    founded = await opened(house, started.table_id)
    seats = held_by(founded)
    assert seats[0] == ann.player_id
    assert seats[seat] == bob.player_id
    assert seats.count(DIFFICULTY_NORMAL) == 2
    assert founded.creator_id == "svc:lobby"
    for person, at in zip(two, (0, seat), strict=True):
        where = person.stay.whereabouts
        assert (where.room_id, where.table_id, where.seat) == (met.room_id, started.table_id, at)
    assert (seat % 2 == 0) == partners
    await play_out(two, tables, told[0], rng)
    for person in two:
        assert await laid_by(house, started.table_id, person.player_id) == HAND
    report = await house.sound(started.table_id)
    assert report.finished
    assert len(report.deals) == 1
    for person in two:
        await person.stay.until(lambda person=person: person.stay.room.state == ROOM_STATE_AFTER)
        where = await person.whereabouts()
        assert (where.room_id, where.table_id, where.HasField("seat")) == (met.room_id, "", False)
    # The same four again: only when both have said so.
    said = (await ann.settle("PlayAgain", room_pb.PlayAgainRequest(room_id=met.room_id, again=True))).room
    assert said.state == ROOM_STATE_AFTER
    await bob.stay.until(lambda: any(member.again for member in bob.stay.room.members))
    again = (await bob.settle("PlayAgain", room_pb.PlayAgainRequest(room_id=met.room_id, again=True))).room
    assert again.table_id != started.table_id
    for person in two:
        await person.stay.until(lambda person=person: again.table_id in person.stay.tables)
        assert (await person.told_of_table()).table_id == again.table_id
    second = await opened(house, again.table_id)
    assert second.previous_table_id == started.table_id
    assert held_by(second) == seats
    await leave_table(two, tables, again.table_id)


async def leave_table(people, tables, table_id):
    """All leave a table in mid-match; both are nowhere after it."""
    for person in people:
        context = pb.CommandContext(table_id=table_id)
        await tables.settle("Leave", pb.LeaveRequest(context=context), person.player_id)
    for person in people:
        await person.stay.until(lambda person=person: not person.stay.whereabouts.room_id)


async def test_one_call_leads_back_from_any_loss(house, two, tables):
    """The Stay is gone, the token too: a new phone with the refresh token finds table and version."""
    ann, bob = two
    met = await meet(ann, bob, 2)
    await ann.start(met.room_id)
    room = await ann.told_of_table()
    await bob.told_of_table()
    playing = [person.player_at(tables, room, random.Random(5)) for person in two]
    for player in playing:
        player.watch.start()
        await player.watch.until(lambda player=player: player.watch.version >= 1)
    while not playing[0].moves:
        await playing[0].act()
        await asyncio.sleep(0.01)
    await ann.go()
    back = Person(ann.calls, replica=1)
    back.player, back.tokens = ann.player, ann.tokens
    back.tokens.access_token = ""
    await back.refresh()
    where = await back.whereabouts()
    assert (where.room_id, where.table_id, where.seat) == (met.room_id, room.table_id, 0)
    newest = len((await house.stored([room.table_id]))[room.table_id])
    assert 1 < where.table_version <= newest
    view = await tables.call(
        "GetView", pb.GetViewRequest(table_id=where.table_id, min_version=where.table_version), back.player_id
    )
    assert view.view.version >= where.table_version
    back.come()
    await back.stay.until(lambda: back.stay.whereabouts is not None)
    assert back.stay.whereabouts.table_id == room.table_id, "it is the first thing that Stay says"
    for player in playing:
        await player.watch.stop()
    await leave_table([back, bob], tables, room.table_id)
    await back.go()


async def test_a_closed_table_sets_its_room_free(two, tables):
    """Nobody plays on: when the last person has left, the room is over and its code is worth nothing."""
    ann, bob = two
    met = await meet(ann, bob, 1)
    await ann.start(met.room_id)
    for person in two:
        await person.told_of_table()
    code = ann.stay.room.code
    with pytest.raises(Refused) as caught:
        await bob.call("LeaveRoom", room_pb.LeaveRoomRequest(room_id=met.room_id))
    assert caught.value.reason == "WRONG_PHASE"
    with pytest.raises(Refused) as caught:
        await bob.call("CreateRoom", room_pb.CreateRoomRequest(request_id=met.room_id[4:], plan=plan()))
    assert caught.value.reason == "BAD_ID"
    with pytest.raises(Refused) as caught:
        await bob.make_room(plan())
    assert (caught.value.reason, caught.value.metadata["place"]) == ("ELSEWHERE", "table")
    await leave_table(two, tables, ann.stay.room.table_id)
    for person in two:
        assert met.room_id in person.stay.gone
        assert await person.whereabouts() == presence_pb.Whereabouts()
    with pytest.raises(Refused) as caught:
        await bob.join(code)
    assert caught.value.reason == "UNKNOWN_CODE"
    await bob.make_room(plan())
