"""Who is there, over two replicas of the lobby: clients that die, tickets that wait, tokens that are renewed.

What takes more than a minute, since a stream outlives its token by so long:

    pytest -n 0 -m slow tests/integration/test_lobby_presence.py
"""

import asyncio
import random
import sys
import time
import uuid

import grpc
import pytest
from support.calls import Refused
from support.house import COMES_S, UNLIMITED, patience, running_house
from support.lobby_people import Person, plan
from support.lobby_records import read_records

from services.lobby.passes import ABSENT_S
from services.lobby.stays import EXPIRY_GRACE_S, IDLE_S
from services.lobby.talk import SAY_BURST, SAY_EVERY_S
from services.pb.lobby.v1 import match_service_pb2 as match_pb
from services.pb.lobby.v1 import presence_service_pb2 as presence_pb
from services.pb.lobby.v1 import room_service_pb2 as room_pb
from services.pb.lobby.v1.presence_service_pb2 import DOING_IN_ROOM, DOING_ONLINE, DOING_UNSPECIFIED
from services.pb.lobby.v1.stored_pb2 import TICKET_END_OFFLINE
from services.pb.table.v1 import table_service_pb2 as pb

LIFETIME_S = 10
"""Of a token that is to expire while a test looks on."""
KNOWN_S = 3.0
"""Replicas tell each other who came and went once a second."""
CLIENT = """
import sys

import grpc

from services.pb.lobby.v1 import presence_service_pb2 as pb
from services.pb.lobby.v1.presence_service_pb2_grpc import PresenceServiceStub

address, token = sys.argv[1:]
stream = PresenceServiceStub(grpc.insecure_channel(address)).Stay(
    pb.StayRequest(), metadata=(("authorization", f"Bearer {token}"),)
)
for message in stream:
    print(message.WhichOneof("content"), flush=True)
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with running_house(
        tmp_path_factory.mktemp("presence"), replicas=1, lobbies=2, bots=True, env=UNLIMITED
    ) as house:
        yield house


@pytest.fixture
async def two(lobby):
    """Ann asks one replica, Bob the other; nobody stays yet."""
    people = [await Person(lobby, replica).sign_in() for replica in (0, 1)]
    yield people
    for person in people:
        await person.go()


async def doing(asker, player_id, replica):
    request = presence_pb.GetPresenceRequest(player_ids=[player_id])
    (found,) = (await asker.call("GetPresence", request, replica)).players
    return found.doing


async def becomes(asker, player_id, expected, within_s=KNOWN_S):
    """Wait until both replicas say what somebody does."""
    began = time.monotonic()
    for replica in (0, 1):
        while await doing(asker, player_id, replica) != expected:
            assert time.monotonic() - began < patience(within_s), f"replica {replica} does not know"
            await asyncio.sleep(0.1)


async def test_a_killed_client_is_offline_within_seconds(house, two):
    ann, bob = two
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        CLIENT,
        house.lobbies[0].address,
        ann.token,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert await asyncio.wait_for(process.stdout.readline(), 2 * COMES_S) == b"whereabouts\n"
        await becomes(bob, ann.player_id, DOING_ONLINE)
        room = await ann.make_room(plan())
        await becomes(bob, ann.player_id, DOING_IN_ROOM)
        await bob.join(room.code)
        bob.come()
        await bob.stay.until(lambda: [member.online for member in bob.stay.room.members] == [True, True])
    finally:
        process.kill()
        await process.wait()
    await becomes(bob, ann.player_id, DOING_UNSPECIFIED)
    await bob.stay.until(lambda: [member.online for member in bob.stay.room.members] == [False, True])
    assert bob.stay.room.host_id == ann.player_id, "gone from sight, not from the room"
    assert (await ann.whereabouts()).room_id == room.room_id


async def test_a_killed_replica_takes_nobody_along(house, two):
    """Its people stay at the other one at once, and nobody sees them gone for longer than that takes."""
    ann, bob = two
    room = await ann.make_room(plan())
    await bob.join(room.code)
    for person in two:
        person.come()
        await person.stay.until(lambda person=person: person.stay.whereabouts is not None)
    await becomes(bob, ann.player_id, DOING_IN_ROOM)
    house.lobbies[0].kill()
    try:
        await ann.stay.until(lambda: ann.stay.breaks and ann.stay.whereabouts.room.version >= room.version)
        await ann.stay.until(
            lambda: all(member.online for member in ann.stay.room.members), patience(KNOWN_S)
        )
        assert await doing(bob, ann.player_id, 1) == DOING_IN_ROOM
        ann.replica = 1
        seated = await ann.take_seat(room.room_id, 3)
        await bob.stay.until(lambda: bob.stay.room.version == seated.version)
    finally:
        house.lobbies[0].start()
        await house.lobbies[0].ready()
    await becomes(bob, ann.player_id, DOING_IN_ROOM, 10)
    assert (await ann.whereabouts()).room.seats[3].player_id == ann.player_id


async def say_until_refused(person, heard_by):
    """Talk at both replicas in turn, each time once the last has been heard, until it is too much."""
    heard, began, refused = heard_by.stay.said, time.monotonic(), None
    while refused is None:
        said = len(heard)
        try:
            await person.call("Say", presence_pb.SayRequest(phrase_id="nice"), replica=(said + 1) % 2)
        except Refused as error:
            refused = error
        else:
            await heard_by.stay.until(lambda said=said: len(heard) > said)
    assert refused.reason == "RATE_LIMITED"
    assert 0 < refused.retry_s <= SAY_EVERY_S
    assert SAY_BURST <= len(heard) <= SAY_BURST + (time.monotonic() - began) / SAY_EVERY_S + 1


async def test_who_is_muted_is_not_heard_and_nobody_hears_alone(two, lobby):
    """Said at one replica and heard at the other, by all in the room."""
    ann, bob = two
    cid = await Person(lobby, 1).sign_in()
    room = await ann.make_room(plan())
    for person in (bob, cid):
        await person.join(room.code)
    for person in (ann, bob, cid):
        person.come()
        await person.stay.until(lambda person=person: len(person.stay.room.members) == 3)
    await cid.settle("Mute", presence_pb.MuteRequest(player_id=ann.player_id, muted=True))
    await ann.call("Say", presence_pb.SayRequest(phrase_id="nice"))
    for person in (ann, bob):
        await person.stay.until(lambda person=person: person.stay.said)
        (said,) = person.stay.said
        assert (said.player_id, said.phrase_id) == (ann.player_id, "nice")
    await say_until_refused(ann, bob)
    await bob.call("Say", presence_pb.SayRequest(phrase_id="emote_laugh"))
    await cid.stay.until(lambda: cid.stay.said)
    assert [said.player_id for said in cid.stay.said] == [bob.player_id], "Ann is muted"
    await cid.go()


def idle_of(stay):
    return stay.idles[-1].token_expires_at_ms if stay.idles else 0


@pytest.mark.slow
async def test_streams_are_renewed_through_the_other_replica(house, two, tables):
    """A Stay and a Watch under tokens of seconds live on under the one that is shown elsewhere."""
    ann, _ = two
    room = await ann.make_room(plan())
    ann.come()
    await ann.stay.until(lambda: ann.stay.whereabouts is not None)
    await ann.start(room.room_id)
    room = await ann.told_of_table()
    await ann.go()
    ann.hold_access(house.lobby_token(ann.player_id, LIFETIME_S))
    stay = ann.come(stay=True)
    await stay.until(lambda: stay.whereabouts is not None)
    ann_plays = ann.player_at(tables, room, random.Random(1))
    ann_plays.watch.start()
    await ann_plays.watch.until(lambda: ann_plays.watch.version)
    began = time.monotonic()
    await asyncio.sleep(LIFETIME_S + 1)
    with pytest.raises(Refused) as caught:
        await ann.call("Renew", presence_pb.RenewRequest(), replica=1)
    assert caught.value.reason == "UNAUTHENTICATED", "the token has expired by now"
    await ann.refresh()
    renewed = await ann.call("Renew", presence_pb.RenewRequest(), replica=1)
    assert renewed.expires_at_ms == ann.tokens.access_expires_at_ms
    watched = await tables.call("RenewWatch", pb.RenewWatchRequest(), ann.player_id)
    assert watched.expires_at_ms == ann.tokens.access_expires_at_ms
    await stay.until(lambda: idle_of(stay) == renewed.expires_at_ms, IDLE_S + COMES_S)
    assert time.monotonic() - began > LIFETIME_S
    assert not stay.breaks
    assert not ann_plays.watch.breaks
    await ann_plays.watch.stop()


# ------------------------------------------------------------------------------------------------------ slow


async def ticket_of(person, **more):
    request = match_pb.CreateTicketRequest(request_id=str(uuid.uuid4()), preset="classic-2d", **more)
    return (await person.settle("CreateTicket", request)).ticket


async def outlives(house, lobby):
    """A ticket of somebody who comes back in time waits on; of one who does not, it is gone after 30 s."""
    back, gone = [await Person(lobby, replica).sign_in() for replica in (0, 1)]
    for person in (back, gone):
        person.come()
        await person.stay.until(lambda person=person: person.stay.whereabouts is not None)
    kept, lost = [await ticket_of(person) for person in (back, gone)]
    await asyncio.sleep(2)
    for person in (back, gone):
        await person.go()
    left = time.monotonic()
    await asyncio.sleep(ABSENT_S - 8)
    assert (await gone.whereabouts()).ticket_id == lost.ticket_id, "it outlives the connection"
    back.replica = 1
    back.come()
    await back.stay.until(lambda: back.stay.whereabouts is not None)
    assert back.stay.whereabouts.ticket_id == kept.ticket_id
    while (await gone.whereabouts()).ticket_id:
        assert time.monotonic() - left < ABSENT_S + patience(6)
        await asyncio.sleep(0.5)
    assert time.monotonic() - left > ABSENT_S - 1
    await asyncio.sleep(5)
    assert (await back.whereabouts()).ticket_id == kept.ticket_id
    assert (await read_records(house)).tickets[lost.ticket_id].end == TICKET_END_OFFLINE
    await back.settle("CancelTicket", match_pb.CancelTicketRequest(ticket_id=kept.ticket_id))
    await back.go()


async def expires(house, lobby):
    """A Stay ends a minute after its token, and not when another was shown."""
    renewed, unrenewed = [await Person(lobby, replica).sign_in() for replica in (0, 1)]
    for person in (renewed, unrenewed):
        person.hold_access(house.lobby_token(person.player_id, LIFETIME_S))
        person.come(stay=True)
        await person.stay.until(lambda person=person: person.stay.whereabouts is not None)
    began = time.monotonic()
    await renewed.refresh()
    await renewed.call("Renew", presence_pb.RenewRequest(), replica=1)
    with pytest.raises(Refused) as caught:
        await unrenewed.stay.until(lambda: False, EXPIRY_GRACE_S + LIFETIME_S + patience(10))
    assert (caught.value.code, caught.value.reason) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
    assert EXPIRY_GRACE_S <= time.monotonic() - began < EXPIRY_GRACE_S + LIFETIME_S + patience(10)
    unrenewed.stay = None
    await asyncio.sleep(5)
    assert not renewed.stay.breaks
    room = await renewed.make_room(plan())
    await renewed.stay.until(lambda: renewed.stay.room.room_id == room.room_id)
    await renewed.settle("LeaveRoom", room_pb.LeaveRoomRequest(room_id=room.room_id))
    await renewed.go()


@pytest.mark.slow
async def test_what_outlives_what(house, lobby):
    await asyncio.gather(outlives(house, lobby), expires(house, lobby))
