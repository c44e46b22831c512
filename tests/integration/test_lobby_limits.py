"""Limits of the lobby under their defaults: who floods is told to wait, and nobody else waits for them."""

import asyncio
import random
import time
import uuid
from collections import Counter

import grpc
import pytest
from support.calls import Refused
from support.house import COMES_S, patience, running_house
from support.lobby_people import LobbyCalls, Person, plan

from services.lobby.config import BURST_S
from services.lobby.room_codes import ADDRESS_TRIES, ALPHABET, LENGTH, PLAYER_RATE, PLAYER_TRIES
from services.pb.lobby.v1 import player_service_pb2 as player_pb
from services.pb.lobby.v1 import presence_service_pb2 as presence_pb
from services.pb.lobby.v1 import room_service_pb2 as room_pb

QUICK_S = 0.25
"""What a bystander's call may take in the median, on a machine with nothing else to do."""
CREATE_RATE, CALL_RATE = 2.0, 20.0
"""The defaults."""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with running_house(tmp_path_factory.mktemp("limits"), replicas=1, lobbies=2) as house:
        yield house


async def all_at_once(calls):
    """What became of calls made at once, in the order of the answers: (outcomes, waits; 0 for none)."""
    told, waits = Counter(), []

    async def one(call):
        try:
            await call
        except Refused as refused:
            told[refused.reason] += 1
            waits.append(wait_of(refused) if refused.reason == "RATE_LIMITED" else 0)
        else:
            told["OK"] += 1
            waits.append(0)

    await asyncio.gather(*(one(call) for call in calls))
    return told, waits


async def outcomes(person, name, requests, replica=0):
    """What became of calls: OK, or the reason; and the waits that were asked for."""
    told, waits = Counter(), []
    for request in requests:
        try:
            await person.call(name, request, replica)
            told["OK"] += 1
        except Refused as refused:
            told[refused.reason] += 1
            if refused.reason == "RATE_LIMITED":
                waits.append(wait_of(refused))
    return told, waits


def wait_of(refused):
    """How long a refusal asks to wait, which it must."""
    assert refused.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert refused.retry_s is not None
    assert 0 < refused.retry_s < 60
    return refused.retry_s


def wrong_code():
    return room_pb.JoinRoomRequest(code="".join(random.choices(ALPHABET, k=LENGTH)))


def room_request():
    return room_pb.CreateRoomRequest(request_id=str(uuid.uuid4()), plan=plan())


async def test_a_flood_is_refused_and_slows_nobody_else(house, lobby):
    """One player floods both replicas with rooms and wrong codes as fast as they answer."""
    flooder = await Person(lobby, 0).sign_in()
    # A channel of their own, as everybody has: the bystander's calls do not queue up behind the flood's.
    other = LobbyCalls([replica.address for replica in house.lobbies])
    bystander = await Person(other, 1).sign_in()
    room = await bystander.make_room(plan())
    stop, told, waits = asyncio.Event(), Counter(), []

    async def flood(number):
        while not stop.is_set():
            name, request = ("CreateRoom", room_request()) if number % 2 else ("JoinRoom", wrong_code())
            found, asked = await outcomes(flooder, name, [request], number % 4 // 2)
            told.update({f"{name} {reason}": count for reason, count in found.items()})
            waits.extend(asked)

    flooded_at = time.monotonic()
    flooding = [asyncio.create_task(flood(number)) for number in range(8)]
    took = []
    try:
        while len(took) < 24 or min(told["CreateRoom RATE_LIMITED"], told["JoinRoom RATE_LIMITED"]) <= 50:
            number, began = len(took), time.monotonic()
            if number % 3:
                where = presence_pb.GetWhereaboutsRequest()
                await bystander.call("GetWhereabouts", where, number % 2)
            else:
                seat = room_pb.TakeSeatRequest(room_id=room.room_id, seat=number // 3 % 4)
                await bystander.call("TakeSeat", seat, number % 2)
            took.append(time.monotonic() - began)
            await asyncio.sleep(0.06)
    finally:
        stop.set()
        await asyncio.gather(*flooding)
        await other.close()
    seconds = time.monotonic() - flooded_at
    assert sorted(took)[len(took) // 2] < patience(QUICK_S), took
    assert told["CreateRoom OK"] == 1, "one place at a time"
    made = told["CreateRoom OK"] + told["CreateRoom ELSEWHERE"]
    assert made <= 2 * (CREATE_RATE * BURST_S + CREATE_RATE * seconds + 1), told
    assert 2 <= told["JoinRoom UNKNOWN_CODE"] <= 2 * (PLAYER_TRIES + PLAYER_RATE * seconds + 1), told
    assert set(told) <= {
        "CreateRoom OK",
        "CreateRoom ELSEWHERE",
        "CreateRoom RATE_LIMITED",
        "JoinRoom UNKNOWN_CODE",
        "JoinRoom RATE_LIMITED",
    }
    assert waits


async def test_the_hint_is_the_truth(lobby):
    """After the time that RetryInfo names the call is looked at again."""
    person = await Person(lobby, 1).sign_in()
    room = await person.make_room(plan())
    request = room_pb.GetRoomRequest(room_id=room.room_id)
    served, waits = 0, [0]
    async with asyncio.timeout(COMES_S):
        while not waits[-1]:
            told, waits = await all_at_once(person.call("GetRoom", request, 1) for _ in range(60))
            served += told["OK"]
    assert served >= CALL_RATE * BURST_S - 2, "what was called before counts too"
    await asyncio.sleep(waits[-1])
    assert (await outcomes(person, "GetRoom", [request], 1))[0] == {"OK": 1}


async def test_wrong_codes_are_limited_by_player_before_right_ones(lobby):
    """Who has tried too many is not let in by a right one either, until the hint has passed."""
    host = await Person(lobby, 0).sign_in()
    room = await host.make_room(plan())
    guesser, guest = [await Person(lobby, 0).sign_in() for _ in range(2)]
    tries = range(PLAYER_TRIES + 5)
    told, _ = await all_at_once(guesser.call("JoinRoom", wrong_code(), 0) for _ in tries)
    assert told["RATE_LIMITED"] >= 2
    assert told["UNKNOWN_CODE"] >= PLAYER_TRIES
    with pytest.raises(Refused) as caught:
        await guesser.call("JoinRoom", room_pb.JoinRoomRequest(code=room.code), 0)
    assert caught.value.reason == "RATE_LIMITED"
    assert ADDRESS_TRIES > 4 * PLAYER_TRIES, "others behind the same address may still err"
    joined = await guest.call("JoinRoom", room_pb.JoinRoomRequest(code=room.code), 0)
    assert joined.room.room_id == room.room_id


async def test_sign_ins_are_limited_by_address(house):
    """By replica; nobody needs a token for them, so the address is all there is."""
    lobby = LobbyCalls([house.lobbies[0].address])
    told, waits = Counter(), []
    await asyncio.sleep(1)
    request = player_pb.SignInRequest(guest=player_pb.Guest())
    try:
        async with asyncio.timeout(COMES_S):
            while not (waits and waits[-1]):
                found, waits = await all_at_once(lobby.call("SignIn", request) for _ in range(40))
                told += found
        assert told.keys() == {"OK", "RATE_LIMITED"}
        await asyncio.sleep(waits[-1] + 0.05)
        assert (await Person(lobby).sign_in()).player_id
    finally:
        await lobby.close()
