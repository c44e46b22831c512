"""SIGTERM at a lobby: say NOT_SERVING, finish what is under way, end; the other replica takes over."""

import asyncio
import signal
import time
import uuid

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckResponse
from support.calls import Refused
from support.house import COMES_S, UNLIMITED, patience, running_house
from support.lobby_people import Person, plan

from services.pb.lobby.v1 import match_service_pb2 as match_pb
from services.pb.lobby.v1 import presence_service_pb2 as presence_pb
from services.pb.lobby.v1 import room_service_pb2 as room_pb
from services.shell.server import NOT_SERVING_S

EXIT_S = 15


@pytest.fixture(scope="module")
def whole_house(tmp_path_factory):
    with running_house(
        tmp_path_factory.mktemp("lobby_shutdown"), replicas=1, lobbies=2, env=UNLIMITED
    ) as house:
        yield house


@pytest.fixture
async def house(whole_house):
    """The house with both lobbies running."""
    for lobby in whole_house.lobbies:
        if not lobby.running:
            lobby.start()
            await lobby.ready()
    return whole_house


async def test_sigterm_drains_and_the_other_takes_over(house, lobby):
    ann, bob, cid = [await Person(lobby, 0).sign_in() for _ in range(3)]
    for person in (ann, bob):
        person.come()
        await person.stay.until(lambda person=person: person.stay.whereabouts is not None)
    room = await ann.make_room(plan())
    ticket = match_pb.CreateTicketRequest(request_id=str(uuid.uuid4()), preset="classic-2d")
    ticket_id = (await cid.settle("CreateTicket", ticket)).ticket.ticket_id
    watch = lobby.stream("WatchRooms", room_pb.WatchRoomsRequest(), cid.token, 0)
    assert room_pb.WatchRoomsResponse.FromString(await watch.read()).HasField("listed")
    stopping = house.lobbies[0]
    async with stopping.healths() as healths:
        assert (await healths.read()).status == HealthCheckResponse.SERVING
        told = time.monotonic()
        stopping.signal(signal.SIGTERM)
        assert (await healths.read()).status == HealthCheckResponse.NOT_SERVING
    join = room_pb.JoinRoomRequest(code=room.code)
    try:
        joined = await bob.call("JoinRoom", join, 0)
    except Refused:
        assert time.monotonic() - told > NOT_SERVING_S, "calls are served until then"
        joined = await bob.settle("JoinRoom", join)
    assert len(joined.room.members) == 2
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await watch.read()
    ends = [lobby.refusal("", "WatchRooms", caught.value)]
    for person in (ann, bob):
        await person.stay.until(lambda person=person: person.stay.breaks)
        ends.append(person.stay.refusals[0])
        waited = person.stay.broke_at[0] - told
        assert waited >= NOT_SERVING_S, "load balancers are given time to look elsewhere"
    for end in ends:
        assert (end.code, end.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
        assert end.retry_s is not None
    # Both are at the other replica now, and go on there.
    for person in (ann, bob):
        await person.stay.until(lambda person=person: len(person.stay.room.members) == 2)
        person.replica = 1
    seated = await bob.take_seat(room.room_id, 2)
    await ann.stay.until(lambda: ann.stay.room.version == seated.version)
    started = await ann.start(room.room_id)
    for person in (ann, bob):
        assert (await person.told_of_table()).table_id == started.table_id
    where = (await cid.call("GetWhereabouts", presence_pb.GetWhereaboutsRequest(), 1)).whereabouts
    assert where.ticket_id == ticket_id
    assert await stopping.wait(patience(EXIT_S)) == 0
    for person in (ann, bob):
        await person.go()


async def test_a_second_signal_ends_it_at_once(house, lobby):
    ann = await Person(lobby, 0).sign_in()
    ann.come()
    await ann.stay.until(lambda: ann.stay.whereabouts is not None)
    assert await house.lobbies[0].end_at_once() == 1
    await ann.go()


async def test_nothing_is_lost_when_one_is_stopped_under_load(house, lobby):
    """Rooms are made, joined and started all along while a replica is stopped."""
    stop, tables, made = asyncio.Event(), [], asyncio.Condition()

    async def meet(number):
        while not stop.is_set():
            host, guest = [await Person(lobby, (number + at) % 2).sign_in() for at in (0, 1)]
            for person in (host, guest):
                person.come()
            room = await host.make_room(plan())
            await guest.join(room.code)
            await guest.take_seat(room.room_id, 2)
            started = await host.start(room.room_id)
            for person in (host, guest):
                assert (await person.told_of_table()).table_id == started.table_id
                await person.go()
            tables.append(started.table_id)
            async with made:
                made.notify_all()
            await asyncio.sleep(0.05)

    async def more(number):
        """Wait for so many more tables."""
        enough = len(tables) + number
        async with made:
            await made.wait_for(lambda: len(tables) >= enough)

    async with asyncio.timeout(4 * COMES_S), asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(meet(number))
        await more(4)
        assert await house.lobbies[1].stop() == 0
        await more(4)
        stop.set()
    assert len(set(tables)) == len(tables)
    stored = await house.stored(tables)
    assert all(stored[table_id] for table_id in tables)
