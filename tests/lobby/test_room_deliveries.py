"""Commits over a real nats-server to rooms, as two replicas share them with the rights of the lobby."""

import asyncio

import pytest
from nats.js.errors import NotFoundError
from support.broker import PATIENCE_S, new_table, until
from support.room_world import House, player

from services.game.ids import STREAMS
from services.lobby.aftermath import DURABLE, Aftermath
from services.lobby.room_tables import founded
from services.pb.event.v1 import event_pb2 as events
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_AFTER
from services.pb.lobby.v1.stored_pb2 import RoomRecord
from services.pb.log.v1.log_pb2 import Commit
from services.shell.broker import Broker, ensure_streams
from services.shell.log_jetstream import JetStreamLog
from services.shell.nats_server import NatsServer
from services.shell.nats_users import passwords, url_as

ENDED = events.Event(match_ended=events.MatchEnded())


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    known = passwords(folder)
    server = NatsServer(folder / "nats", passwords=known)

    async def start():
        await server.start(within_s=PATIENCE_S)
        broker = await Broker.connect(url_as(server.url, "table", known), "table")
        await ensure_streams(broker)
        await broker.close()

    try:
        asyncio.run(start())
        yield lambda name: Broker.connect(url_as(server.url, name, known), name, within_s=PATIENCE_S)
    finally:
        server.kill()


async def consumers_are_there(broker):
    """A consumer begins with the newest commit of each table, so make none before."""
    async with asyncio.timeout(PATIENCE_S):
        for number in range(STREAMS):
            while True:
                try:
                    await broker.js.consumer_info(f"SJ_TABLES_{number}", DURABLE.name)
                    break
                except (NotFoundError, TimeoutError):
                    await asyncio.sleep(0.02)


async def test_commits_of_kind_d_reach_rooms_through_either_replica(guarded):
    house = House()
    await house.players(*range(8))
    brokers = [await guarded("lobby") for _ in range(2)]
    writer = await guarded("table")
    replicas = [await house.replica(number) for number in range(2)]
    aftermaths = [
        Aftermath(replica.deps, replica.world.mirrors.rooms, broker)
        for replica, broker in zip(replicas, brokers, strict=True)
    ]
    log = JetStreamLog(writer)
    rooms = []
    for number in range(8):
        room = await replicas[0].begin(number, await replicas[0].create(number))
        await replicas[0].founding().step(room.room_id)
        rooms.append(room)
    for each in aftermaths:
        each.start()
    await consumers_are_there(writer)

    def commit(version, *said):
        told = Commit(version=version, recorded_at_us=round(house.clock.now * 1e6), events=said)
        return told.SerializeToString()

    for room in rooms:
        first = await log.append(room.table_id, 0, commit(1, events.Event(seat_ready={})), "m")
        left = events.Event(seat_left=events.SeatLeft(player_id=player(99), escaped=True))
        second = await log.append(room.table_id, first.sequence, commit(2, left), "d")
        await log.append(room.table_id, second.sequence, commit(3, ENDED), "d")
    await log.append(new_table(), 0, commit(1, ENDED), "d")

    def all_over():
        return all(
            record.room.state == ROOM_STATE_AFTER and list(record.left) == [player(99)]
            for record in house.records("room", RoomRecord).values()
        )

    await until(all_over)
    newest = await JetStreamLog(brokers[0]).last([room.table_id for room in rooms])
    assert len(newest) == len(rooms), "the sweeper may look tables up"
    await asyncio.gather(*(each.stop() for each in aftermaths))
    for broker in (*brokers, writer):
        await broker.close()
    house.check()
    record = next(iter(house.records("room", RoomRecord).values()))
    assert founded(record, record.room.table_id, "late", "", 1) is record
