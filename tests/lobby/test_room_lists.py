"""The public list: pages that stay put, and streams of changes."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from support.broker import until
from support.room_world import PLAN, House

from services.lobby import room_lists
from services.pb.lobby.v1 import room_service_pb2 as pb
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_OPEN, RoomPlan
from services.rules.reasons import Reason
from services.shell.errors import RefusedError


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(room_lists, "GATHER_S", 0.0)


@pytest.fixture
async def house():
    house = House()
    await house.players(*range(60))
    await house.players(90, operator="acme")
    return house


@pytest.fixture
async def replica(house):
    return await house.replica()


async def public(replica, *numbers, plan=PLAN):
    rooms = []
    for number in numbers:
        rooms.append(await replica.create(number, plan, public=True))
        replica.house.clock.now += 0.001 * (number % 3)
    return rooms


async def page(replica, token="", size=0, number=59, operator="", **wanted):
    request = pb.ListRoomsRequest(filter=pb.RoomFilter(**wanted), page_size=size, page_token=token)
    return await replica.rooms.list_rooms(request, replica.call(number, operator))


def ids(rooms):
    return [room.room_id for room in rooms]


# ---------------------------------------------------------------------------------------------- pages


async def test_public_open_rooms_are_listed_newest_first(replica):
    rooms = await public(replica, 1, 2, 3)
    await replica.create(4)
    await replica.create(90, public=True, operator="acme")
    await replica.begin(2, rooms[1])
    listed = (await page(replica)).rooms
    expected = sorted((rooms[0], rooms[2]), key=lambda room: (room.created_at_ms, room.room_id))
    assert ids(listed) == ids(reversed(expected))
    assert listed[0].host_name in {"P1", "P3"}
    assert (listed[0].free_seats, listed[0].people, listed[0].state) == (3, 1, ROOM_STATE_OPEN)
    assert len((await page(replica, number=90, operator="acme")).rooms) == 1


async def test_pages_neither_lose_nor_repeat_what_stays(replica):
    rooms = await public(replica, *range(30))
    seen, token = [], ""
    for turn in range(10):
        got = await page(replica, token, size=4)
        seen += ids(got.rooms)
        token = got.next_page_token
        if not token:
            break
        await public(replica, 40 + turn)
        leave = pb.LeaveRoomRequest(room_id=rooms[turn].room_id)
        await replica.rooms.leave_room(leave, replica.call(turn))
    gone = set(ids(rooms[:turn]))
    assert len(seen) == len(set(seen))
    assert set(ids(rooms)) - gone <= set(seen)
    assert not token


async def test_the_last_page_has_no_token(replica):
    await public(replica, 1, 2)
    assert not (await page(replica, size=2)).next_page_token
    assert (await page(replica, size=1)).next_page_token


async def test_a_page_looks_at_so_many_rooms_and_goes_on_in_the_next(replica, monkeypatch):
    monkeypatch.setattr(room_lists, "LOOKED_AT_MOST", 4)
    (wanted,) = await public(replica, 1, plan=RoomPlan(preset="basic-1d"))
    replica.house.clock.now += 1
    await public(replica, *range(2, 11))
    sizes, token, seen = [], "", []
    while not sizes or token:
        got = await page(replica, token, preset="basic-1d")
        sizes.append(len(got.rooms))
        seen += ids(got.rooms)
        token = got.next_page_token
    assert sizes == [0, 0, 1]
    assert seen == [wanted.room_id]


async def test_the_list_of_an_operator_without_rooms_is_empty(replica):
    got = await page(replica, number=90, operator="acme")
    assert not got.rooms
    assert not got.next_page_token


async def test_filters(replica):
    await public(replica, 1)
    await public(replica, 2, plan=RoomPlan(preset="basic-1d", stake=5))
    await public(replica, 3, plan=RoomPlan(preset="basic-1d", stake=9))

    async def found(**wanted):
        return {room.plan.stake for room in (await page(replica, **wanted)).rooms}

    assert await found(preset="basic-1d") == {5, 9}
    assert await found(stake_min=6) == {9}
    assert await found(stake_max=5) == {0, 5}
    assert await found(stake_min=5, stake_max=5) == {5}
    assert await found(free_only=True) == {0}
    assert await found(free_seats_min=3) == {0, 5, 9}
    assert await found(free_seats_min=4) == set()


async def test_tokens_are_of_their_filter_and_nothing_else(replica):
    await public(replica, 1, 2, 3)
    token = (await page(replica, size=1)).next_page_token
    assert (await page(replica, token, size=1)).rooms
    for wrong, wanted in (
        (token, {"preset": "classic-2d"}),
        (token[:-1], {}),
        (("A" if token[0] != "A" else "B") + token[1:], {}),
        ("garbage", {}),
        ("é", {}),
        ("=" * 9, {}),
        ("A" * 5000, {}),
    ):
        with pytest.raises(RefusedError) as caught:
            await page(replica, wrong, **wanted)
        assert caught.value.reason is Reason.BAD_INPUT
    with pytest.raises(RefusedError):
        await page(replica, token, number=90, operator="acme")
    with pytest.raises(RefusedError):
        await page(replica, size=101)
    with pytest.raises(RefusedError):
        await page(replica, free_seats_min=5)


# --------------------------------------------------------------------------------------------- streams


@asynccontextmanager
async def watching(replica, call=None, write=None, **wanted):
    """What a watch has been told so far, and its task."""
    told = []

    async def keep(message):
        told.append(pb.WatchRoomsResponse.FromString(message))

    request = pb.WatchRoomsRequest(filter=pb.RoomFilter(**wanted))
    serving = replica.rooms.watch_rooms(request, call or replica.call(59), write or keep)
    task = asyncio.create_task(serving)
    try:
        yield told, task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def known(told):
    """What a client knows that was told so much."""
    rooms = {}
    for one in told:
        if one.HasField("room"):
            rooms[one.room.room_id] = one.room
        elif one.gone:
            assert one.gone in rooms, "nothing goes that was not there"
            del rooms[one.gone]
    return rooms


async def test_a_watch_tells_what_is_there_and_what_changes(replica):
    first, second = await public(replica, 1, 2)
    async with watching(replica) as (told, _):
        await until(lambda: told and told[-1].HasField("listed"))
        assert known(told).keys() == {first.room_id, second.room_id}
        await public(replica, 3)
        await until(lambda: len(known(told)) == 3)
        await replica.join(4, first)
        await until(lambda: known(told)[first.room_id].people == 2)
        await replica.begin(2, second)
        await until(lambda: second.room_id not in known(told))
        await replica.create(5)
        await replica.create(90, public=True, operator="acme")
        await public(replica, 6)
        await until(lambda: len(known(told)) == 3)
    assert sum(one.HasField("listed") for one in told) == 1


async def test_a_room_leaves_a_filtered_watch_when_it_no_longer_matches(replica):
    (room,) = await public(replica, 1)
    await replica.join(2, room)
    async with watching(replica, free_seats_min=3) as (told, _):
        await until(lambda: len(known(told)) == 1)
        (other,) = await public(replica, 3)
        await until(lambda: len(known(told)) == 2)
        await replica.sit(2, room, 1)
        await until(lambda: room.room_id not in known(told))
        before = len(told)
        await replica.join(4, room)
        await replica.join(5, other)
        await until(lambda: known(told)[other.room_id].people == 2)
        assert len(told) == before + 1, "of what it does not know the client is told nothing"
        await replica.sit(2, room, None)
        await until(lambda: len(known(told)) == 2)


async def test_a_slow_reader_is_told_the_newest_alone(replica):
    (room,) = await public(replica, 1)
    told, gate = [], asyncio.Event()

    async def slow(message):
        told.append(pb.WatchRoomsResponse.FromString(message))
        if len(told) > 2:
            await gate.wait()

    async with watching(replica, write=slow):
        await until(lambda: len(told) == 2)
        await public(replica, 2)
        await until(lambda: len(told) == 3)
        for number in range(3, 9):
            await replica.join(number, room)
            leave = pb.LeaveRoomRequest(room_id=room.room_id)
            await replica.rooms.leave_room(leave, replica.call(number))
        await replica.join(9, room)
        gate.set()
        await until(lambda: known(told)[room.room_id].people == 2)
    assert len(told) == 4


async def test_who_does_not_read_is_cut_off(replica, monkeypatch):
    monkeypatch.setattr(room_lists, "STUCK_S", 0.02)
    await public(replica, 1)

    async def stuck(_):
        await asyncio.sleep(60)

    async with watching(replica, write=stuck) as (_, task):
        with pytest.raises(RefusedError) as caught:
            await task
    assert caught.value.reason is Reason.SLOW_READER


async def test_signs_of_life_and_the_end_of_a_token(replica, house, monkeypatch):
    monkeypatch.setattr(room_lists, "IDLE_S", 0.02)
    call = replica.call(59)
    async with watching(replica, call) as (told, task):
        await until(lambda: told[-1].HasField("idle") if told else False)
        assert told[-1].idle.token_expires_at_ms == call.expires_at * 1000
        assert told[-1].idle.server_now_ms == house.clock.ms()
        house.clock.now = call.expires_at + 59
        await asyncio.sleep(0.05)
        assert not task.done(), "a minute's grace"
        house.clock.now = call.expires_at + 61
        await house.renewals.renew("", call.expires_at + 10)
        await asyncio.sleep(0.05)
        assert not task.done(), "renewed in time"
        house.clock.now = call.expires_at + 71
        with pytest.raises(RefusedError) as caught:
            await task
    assert caught.value.reason is Reason.UNAUTHENTICATED


async def test_draining_ends_watches(replica):
    async with watching(replica) as (told, task):
        await until(lambda: bool(told))
        replica.rooms.drain()
        with pytest.raises(RefusedError) as caught:
            await task
    assert caught.value.reason is Reason.DRAINING


async def test_a_client_that_goes_leaves_nothing(replica):
    async with watching(replica) as (told, _):
        await until(lambda: bool(told))
        assert len(replica.lists._watches) == len(replica.house.renewals.leases) == 1
    assert not replica.lists._watches
    assert not replica.house.renewals.leases


async def test_a_player_s_watches_crowd_out_nobody_else(replica):
    async with AsyncExitStack() as stack:
        watches = [
            await stack.enter_async_context(watching(replica)) for _ in range(room_lists.PLAYER_WATCHES)
        ]
        other = await stack.enter_async_context(watching(replica, replica.call(58)))
        watches.append(await stack.enter_async_context(watching(replica)))
        with pytest.raises(RefusedError) as caught:
            await watches[0][1]
        assert caught.value.reason is Reason.RATE_LIMITED
        assert caught.value.retry_after_s == room_lists.GAVE_WAY_RETRY_S
        await asyncio.sleep(0.02)
        assert not any(task.done() for _, task in [*watches[1:], other])
        assert len(replica.lists._watches) == room_lists.PLAYER_WATCHES + 1
    assert not replica.lists._of_player
