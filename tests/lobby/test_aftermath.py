"""What tables say and what rooms make of it, in every order and as often as it comes."""

import itertools

import pytest
from support.room_world import House, player

from services.lobby.aftermath import UNKNOWN_S, Aftermath, what_happened
from services.lobby.room_sweeper import AFTER_S, HEAL_AGE_S, OFFLINE_S, RoomSweeper
from services.lobby.room_tables import Happened
from services.pb.event.v1 import event_pb2 as events
from services.pb.lobby.v1 import room_service_pb2 as pb
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_AFTER, ROOM_STATE_PLAYING, ROOM_STATE_STARTING
from services.pb.lobby.v1.stored_pb2 import PlaceRecord
from services.pb.log.v1.log_pb2 import Commit
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.log_memory import MemoryLog

ENDED = events.Event(match_ended=events.MatchEnded())
CLOSED = events.Event(table_closed=events.TableClosed())
OPENED = events.Event(table_opened=events.TableOpened())


def left(number, escaped=True):
    return events.Event(seat_left=events.SeatLeft(player_id=player(number), escaped=escaped))


@pytest.fixture
async def house():
    house = House()
    await house.players(*range(20))
    yield house
    house.check()


@pytest.fixture
async def replica(house):
    return await house.replica()


async def playing(replica, founded=True):
    room = await replica.create(1)
    for number in (2, 3):
        await replica.join(number, room)
    await replica.sit(2, room, 2)
    await replica.join(4, room)
    await replica.sit(4, room, 1)
    room = await replica.begin(1, room)
    if founded:
        await replica.founding().step(room.room_id)
    return room


def commit(replica, *said):
    return Commit(recorded_at_us=round(replica.house.clock.now * 1e6), events=said)


async def take(replica, room, *said):
    after = Aftermath(replica.deps, replica.world.mirrors.rooms)
    return await after.take(room.table_id, commit(replica, *said))


async def test_the_match_over_everybody_is_back_in_the_room(replica):
    room = await playing(replica)
    assert (await replica.place(2)).table_id == room.table_id
    assert await take(replica, room, ENDED)
    record = await replica.record(room.room_id)
    assert record.room.state == ROOM_STATE_AFTER
    assert record.room.table_id == room.table_id
    for number in (1, 2, 3, 4):
        assert (await replica.place(number)) == PlaceRecord(room_id=room.room_id)
    before = await replica.record(room.room_id)
    assert await take(replica, room, CLOSED)
    assert (await replica.record(room.room_id)) == before, "told twice"


async def test_who_escapes_is_out_of_the_room_and_free(replica):
    room = await playing(replica)
    assert await take(replica, room, left(1))
    record = await replica.record(room.room_id)
    assert record.room.state == ROOM_STATE_PLAYING
    assert record.room.host_id == player(2)
    assert not record.room.seats[0].player_id
    assert await replica.place(1) is None
    await replica.create(1)


async def test_every_order_and_any_repetition_come_to_the_same():
    said = [(OPENED,), (left(1),), (left(4, escaped=False),), (ENDED,), (CLOSED,)]
    ends = set()
    for order in itertools.permutations(said):
        house = House()
        await house.players(*range(5))
        replica = await house.replica()
        room = await playing(replica, founded=order[0] != (ENDED,))
        for told in (*order, *order[:3]):
            assert await take(replica, room, *told)
            house.check()
        await replica.founding().step(room.room_id)
        record = await replica.record(room.room_id)
        ends.add((record.room.state, tuple(member.player_id for member in record.room.members)))
    assert ends == {(ROOM_STATE_AFTER, (player(2), player(3)))}


async def test_who_comes_back_is_not_sent_away_by_an_old_commit(replica):
    room = await playing(replica)
    await take(replica, room, left(1))
    await take(replica, room, ENDED)
    await replica.join(1, room)
    await take(replica, room, left(1))
    assert (await replica.place(1)) == PlaceRecord(room_id=room.room_id)


async def test_when_all_people_have_gone_the_room_is_gone(replica):
    room = await playing(replica)
    leave = pb.LeaveRoomRequest(room_id=room.room_id)
    await replica.rooms.leave_room(leave, replica.call(3))
    await take(replica, room, left(1), left(2), left(4))
    assert await replica.record(room.room_id) is None
    assert not await replica.has_code(room.code)


async def test_tables_of_nobody_are_ignored_after_a_while(replica):
    room = await playing(replica)
    room.table_id = "tbl_" + "0" * 26
    assert not await take(replica, room, ENDED), "its room may be on its way to this replica"
    late = Aftermath(replica.deps, replica.world.mirrors.rooms)
    said = commit(replica, ENDED)
    replica.house.clock.now += UNKNOWN_S + 1
    assert await late.take(room.table_id, said)
    assert await take(replica, room, OPENED), "what concerns no room is done with at once"


def test_what_commits_say():
    said = Commit(events=[OPENED, left(1), CLOSED])
    assert what_happened(said) == Happened((player(1),), over=True)
    assert what_happened(Commit(events=[OPENED])) == Happened()


# ---------------------------------------------------------------------------------------- playing again


async def again(replica, number, room, wants=True):
    request = pb.PlayAgainRequest(room_id=room.room_id, again=wants)
    return (await replica.rooms.play_again(request, replica.call(number))).room


async def test_when_all_want_to_the_same_play_again(replica, house):
    room = await playing(replica)
    await take(replica, room, ENDED)
    said = await again(replica, 1, room)
    assert [member.again for member in said.members] == [True, False, False, False]
    await again(replica, 1, room, wants=False)
    await again(replica, 2, room)
    await again(replica, 4, room)
    with pytest.raises(RefusedError) as caught:
        await again(replica, 3, room)
    assert caught.value.reason is Reason.NOT_SEATED
    begun = await again(replica, 1, room)
    assert begun.state == ROOM_STATE_STARTING
    assert begun.table_id != room.table_id
    assert not any(member.again for member in begun.members)
    assert await again(replica, 1, room) == begun
    await take(replica, room, ENDED, left(2))
    assert (await replica.record(room.room_id)).room.state == ROOM_STATE_STARTING, "that was the old table"
    await replica.founding().step(room.room_id)
    assert house.tables.founded[begun.table_id].previous_table_id == room.table_id


async def test_a_free_seat_is_filled_before_it_goes_on(replica):
    room = await playing(replica)
    await take(replica, room, left(4), ENDED)
    await again(replica, 1, room)
    assert (await again(replica, 2, room)).state == ROOM_STATE_AFTER
    await replica.sit(3, room, 1)
    assert (await again(replica, 3, room)).state == ROOM_STATE_STARTING


# ------------------------------------------------------------------------------------------- the sweeper


def sweeper(replica, log=None):
    return RoomSweeper(replica.deps, replica.world.mirrors.rooms, replica.house.presence, log or MemoryLog())


async def test_a_room_whose_members_are_all_away_ends(replica, house):
    room = await replica.create(1)
    await replica.join(2, room)
    house.clock.now += OFFLINE_S
    house.presence.away = {player(1): OFFLINE_S}
    await sweeper(replica).sweep()
    assert await replica.record(room.room_id)
    house.presence.away[player(2)] = OFFLINE_S - 1
    await sweeper(replica).sweep()
    assert await replica.record(room.room_id)
    house.presence.away[player(2)] = OFFLINE_S
    await sweeper(replica).sweep()
    assert await replica.record(room.room_id) is None
    assert await replica.place(1) is None
    assert not await replica.has_code(room.code)


async def test_a_room_that_has_just_changed_stays(replica, house):
    room = await replica.create(1)
    house.presence.away[player(1)] = 10_000
    house.clock.now += OFFLINE_S - 1
    await sweeper(replica).sweep()
    assert await replica.record(room.room_id)


async def test_nobody_goes_on_after_the_match(replica, house):
    room = await playing(replica)
    house.presence.away = {player(number): 10_000 for number in range(5)}
    house.clock.now += 10_000
    await sweeper(replica).sweep()
    assert (await replica.record(room.room_id)).room.state == ROOM_STATE_PLAYING
    house.presence.away = {}
    await take(replica, room, ENDED)
    house.clock.now += AFTER_S - 1
    await sweeper(replica).sweep()
    assert (await replica.record(room.room_id)).room.state == ROOM_STATE_AFTER
    house.clock.now += 1
    await sweeper(replica).sweep()
    assert await replica.record(room.room_id) is None


async def test_a_room_that_changed_meanwhile_is_not_ended(replica, house):
    room = await replica.create(1)
    stale = (await replica.record(room.room_id)).room.version
    await replica.join(2, room)
    assert not await sweeper(replica)._end(room.room_id, stale)
    assert await replica.record(room.room_id)


async def test_a_room_stuck_at_a_closed_table_heals(replica, house):
    room = await playing(replica)
    log = MemoryLog()
    first = await log.append(room.table_id, 0, commit(replica, OPENED).SerializeToString(), "d")
    healing = sweeper(replica, log)
    house.clock.now += HEAL_AGE_S
    await healing.heal()
    assert (await replica.record(room.room_id)).room.state == ROOM_STATE_PLAYING
    await log.append(room.table_id, first.sequence, commit(replica, CLOSED).SerializeToString(), "d")
    await healing.heal()
    assert (await replica.record(room.room_id)).room.state == ROOM_STATE_AFTER
