"""Matchmaking passes on a real server that is killed in the middle: nobody is lost or doubled."""

import asyncio
import os
import uuid
from contextlib import suppress

from support.broker import PATIENCE_S
from support.match_world import MatchHouse, Searcher
from support.room_world import player

from services.lobby.mirror import Mirror
from services.lobby.passes import Passes
from services.lobby.store import Write
from services.lobby.store_jetstream import JetStreamStore
from services.lobby.tickets import Tickets
from services.pb.lobby.v1.match_service_pb2 import Ticket
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_STARTING
from services.pb.lobby.v1.stored_pb2 import TICKET_END_CANCELLED, TICKET_END_MATCHED, RoomRecord, TicketRecord
from services.rules.reasons import Reason
from services.shell.broker import Broker
from services.shell.errors import RefusedError
from services.shell.log_store import Unavailable
from services.shell.nats_server import NatsServer

PLAYERS = 62


async def searcher_on(house: MatchHouse, broker: Broker, seed: int) -> tuple[Searcher, Mirror[TicketRecord]]:
    """A replica whose matchmaking is on a real server."""
    searcher = await house.searcher(seed)
    store = JetStreamStore(broker)
    deps = searcher.deps._replace(store=store, random=os.urandom)
    mirror = Mirror(store, "ticket", TicketRecord)
    await mirror.start()
    searcher.deps, searcher.tickets = deps, Tickets(deps, mirror)
    searcher.servicer._tickets = searcher.tickets
    searcher.passes = Passes(deps, mirror, searcher.tickets, house.presence)
    return searcher, mirror


async def copied(house: MatchHouse, store: JetStreamStore) -> None:
    """What the server keeps, into the house's own store, whose check looks there."""
    for prefix in ("room", "place", "ticket", "code"):
        following = await store.follow(prefix, house.store._entries.__setitem__)
        await following.stop()


async def cancelled_or_not(searcher: Searcher, number: int, ticket_id: str) -> str:
    """Cancel a ticket however often it takes."""
    while True:
        try:
            await searcher.cancel(number, ticket_id)
        except Unavailable:
            await asyncio.sleep(0.05)
        except RefusedError as error:
            if error.reason is Reason.ALREADY_MATCHED:
                return ""
            if error.reason is not Reason.BUSY:
                raise
        else:
            return ticket_id


async def begun(searcher: Searcher, number: int) -> Ticket:
    """Begin a search however often it takes."""
    request = uuid.uuid4()
    while True:
        try:
            return await searcher.create(number, request=request)
        except Unavailable:
            await asyncio.sleep(0.05)


async def test_a_server_killed_during_passes_leaves_nobody_lost_or_doubled(nats_server: NatsServer):
    house = MatchHouse()
    brokers = [await Broker.connect(nats_server.url, f"replica {n}") for n in range(3)]
    replicas = [await searcher_on(house, broker, n) for n, broker in enumerate(brokers)]
    searchers = [searcher for searcher, _ in replicas]
    store = JetStreamStore(brokers[0])
    people = MatchHouse()
    await people.players(*range(PLAYERS))
    for key, entry in people.store._entries.items():
        await store.commit([Write(key, entry.value, 0)])
    tickets = await asyncio.gather(*(begun(searchers[n % 3], n) for n in range(PLAYERS)))

    looking = [asyncio.create_task(one.passes.look()) for one in searchers]
    cancelling = [
        asyncio.create_task(cancelled_or_not(searchers[n % 3], n, tickets[n].ticket_id))
        for n in range(0, 20, 2)
    ]
    await asyncio.sleep(0.05)
    looking[2].cancel()
    nats_server.kill()
    await nats_server.start(within_s=PATIENCE_S)
    await asyncio.gather(*looking, return_exceptions=True)
    cancelled = set(await asyncio.gather(*cancelling)) - {""}

    async with asyncio.timeout(4 * PATIENCE_S):
        while sum(not record.end for _, record in replicas[0][1].items()) >= 4:
            await asyncio.sleep(0.1)
            with suppress(Unavailable):
                await searchers[0].passes.look()
    await copied(house, store)
    house.check()
    ends = {ticket_id: record.end for ticket_id, record in house.tickets().items()}
    assert sorted(ends) == sorted(ticket.ticket_id for ticket in tickets)
    assert {ticket_id for ticket_id, end in ends.items() if end == TICKET_END_CANCELLED} == cancelled
    playing = [
        member.player_id
        for record in house.records("room", RoomRecord).values()
        for member in record.room.members
        if record.room.state == ROOM_STATE_STARTING
    ]
    matched = [
        player(number)
        for number, ticket in enumerate(tickets)
        if ends[ticket.ticket_id] == TICKET_END_MATCHED
    ]
    assert sorted(playing) == sorted(matched)
    assert len(matched) == (PLAYERS - len(cancelled)) // 4 * 4
    for broker in brokers:
        await broker.close()
