"""Invite codes that are tried: how many wrong ones, by whom, one by one or at once."""

import asyncio
import random

import pytest
from support.room_world import House, Jittery

from services.lobby.room_codes import PLAYER_TRIES, make_code
from services.pb.lobby.v1 import room_service_pb2 as pb
from services.rules.reasons import Reason
from services.shell.errors import RefusedError


@pytest.fixture
async def house():
    house = House()
    await house.players(*range(20))
    yield house
    house.check()


@pytest.fixture
async def replica(house):
    return await house.replica()


async def refused(reason, awaitable):
    with pytest.raises(RefusedError) as caught:
        await awaitable
    assert caught.value.reason is reason
    return caught.value


async def test_wrong_codes_are_limited_by_player(replica, house):
    room = await replica.create(1)
    wrong = pb.JoinRoomRequest(code="AAAAAA" if room.code != "AAAAAA" else "CCCCCC")
    for _ in range(PLAYER_TRIES):
        await refused(Reason.UNKNOWN_CODE, replica.rooms.join_room(wrong, replica.call(2)))
    error = await refused(Reason.RATE_LIMITED, replica.rooms.join_room(wrong, replica.call(2)))
    assert error.retry_after_s
    await refused(Reason.RATE_LIMITED, replica.join(2, room))
    await replica.join(3, room)
    house.clock.now += error.retry_after_s
    await replica.join(2, room)


async def test_wrong_codes_tried_at_once_are_no_more_than_one_by_one(house):
    replica = await house.replica(store=Jittery(house.store, random.Random(1)))

    async def tried(code):
        try:
            await replica.rooms.join_room(pb.JoinRoomRequest(code=code), replica.call(1))
        except RefusedError as refused:
            return refused.reason
        return None

    codes = [make_code(random.Random(number).randbytes) for number in range(50)]
    reasons = await asyncio.gather(*map(tried, codes))
    assert reasons.count(Reason.UNKNOWN_CODE) == PLAYER_TRIES
    assert reasons.count(Reason.RATE_LIMITED) == len(codes) - PLAYER_TRIES


async def test_right_codes_cost_no_tries(replica):
    room = await replica.create(1)
    for _ in range(3 * PLAYER_TRIES):
        await replica.join(2, room)
        await replica.rooms.leave_room(pb.LeaveRoomRequest(room_id=room.room_id), replica.call(2))


async def test_wrong_codes_are_limited_by_address(replica, house):
    await house.players(*range(100, 110))
    wrong = pb.JoinRoomRequest(code="0OIL")
    for number in range(100, 106):
        for _ in range(10):
            call = replica.call(number, address="10.0.0.1")
            await refused(Reason.UNKNOWN_CODE, replica.rooms.join_room(wrong, call))
    fresh = replica.call(109, address="10.0.0.1")
    await refused(Reason.RATE_LIMITED, replica.rooms.join_room(wrong, fresh))
    elsewhere = replica.call(109, address="10.0.0.2")
    await refused(Reason.UNKNOWN_CODE, replica.rooms.join_room(wrong, elsewhere))
