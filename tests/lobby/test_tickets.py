"""MatchService on a store in memory: tickets begin and end together with their players' places and rooms."""

import asyncio
import math
import random
import uuid

import pytest
from support.match_world import PRESET, MatchHouse, Unsteady
from support.room_world import player

from services.game.ids import is_id
from services.lobby.tickets import KEPT_S
from services.pb.event.v1.event_pb2 import DIFFICULTY_EASY, DIFFICULTY_NORMAL, RuleOption
from services.pb.lobby.v1 import match_service_pb2 as pb
from services.pb.lobby.v1 import room_service_pb2
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_OPEN, ROOM_STATE_SEARCHING, RoomPlan
from services.pb.lobby.v1.stored_pb2 import PlaceRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError


@pytest.fixture
async def house():
    house = MatchHouse()
    await house.players(*range(10))
    await house.players(90, operator="acme")
    yield house
    house.check()


@pytest.fixture
async def searcher(house):
    return await house.searcher()


async def refused(reason, awaitable):
    with pytest.raises(RefusedError) as caught:
        await awaitable
    assert caught.value.reason is reason, caught.value.detail
    return caught.value.detail


# --------------------------------------------------------------------------------------------- one player


async def test_a_ticket_says_what_it_waits_for(house, searcher):
    house.ratings.rated[player(1)] = 1620.0
    ticket = await searcher.create(1, stake=5, bots_after_s=20, bots=DIFFICULTY_EASY)
    assert is_id("tkt", ticket.ticket_id)
    assert list(ticket.player_ids) == [player(1)]
    assert (ticket.preset, ticket.stake, ticket.rating) == (PRESET, 5, 1620.0)
    assert (ticket.bots_after_s, ticket.bots) == (20, DIFFICULTY_EASY)
    assert (ticket.created_at_ms, ticket.window, ticket.waiting) == (house.clock.ms(), 50.0, 1)
    assert await searcher.replica.place(1) == PlaceRecord(ticket_id=ticket.ticket_id)
    assert house.funds.checked == [([player(1)], 5)]


async def test_its_window_widens_and_it_is_told_how_many_wait(house, searcher):
    ticket = await searcher.create(1)
    await searcher.create(2)
    await searcher.create(3, stake=5)
    await searcher.create(90, operator="acme")
    house.clock.now += 20
    seen = await searcher.get(1, ticket.ticket_id)
    assert (seen.window, seen.waiting, seen.bots) == (225.0, 2, DIFFICULTY_NORMAL)
    house.clock.now += 100
    assert (await searcher.get(1, ticket.ticket_id)).window == math.inf
    other = await house.searcher(2)
    assert other.tickets.shown(house.tickets()[ticket.ticket_id]).waiting == 2


async def test_the_same_request_makes_one_ticket(house, searcher):
    request = uuid.uuid4()
    first = await searcher.create(1, request=request)
    other = await house.searcher(2)
    assert (await other.create(1, request=request)).ticket_id == first.ticket_id
    assert len(house.tickets()) == 1
    assert (await searcher.create(2, request=request)).ticket_id != first.ticket_id


async def test_many_same_requests_at_once_make_one_ticket(house):
    chance = random.Random(3)
    request = uuid.uuid4()
    searchers = [await house.searcher(n, Unsteady(house.store, chance)) for n in range(4)]
    tickets = await asyncio.gather(*(one.create(1, request=request) for one in searchers))
    assert len({ticket.ticket_id for ticket in tickets}) == len(house.tickets()) == 1


async def test_who_is_elsewhere_cannot_search(house, searcher):
    await searcher.create(1)
    assert await refused(Reason.ELSEWHERE, searcher.create(1)) == {"place": "search"}
    room = await searcher.replica.create(2)
    assert await refused(Reason.ELSEWHERE, searcher.create(2)) == {"place": "room"}
    await searcher.replica.begin(2, room)
    assert await refused(Reason.ELSEWHERE, searcher.create(2)) == {"place": "table"}
    await refused(Reason.ELSEWHERE, searcher.replica.create(1))
    await refused(Reason.UNKNOWN_PLAYER, searcher.create(77))
    await refused(Reason.UNKNOWN_PLAYER, searcher.create(90))


async def test_who_cannot_pay_cannot_search(house, searcher):
    house.funds.chips[player(1)] = 79
    await refused(Reason.INSUFFICIENT_FUNDS, searcher.create(1, stake=10))
    assert house.tickets() == {}
    assert await searcher.replica.place(1) is None


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("request_id", "", Reason.BAD_ID),
        ("request_id", "tkt_1", Reason.BAD_ID),
        ("preset", "", Reason.UNKNOWN_PRESET),
        ("preset", "poker", Reason.UNKNOWN_PRESET),
        ("stake", 1_000_000_001, Reason.BAD_INPUT),
        ("bots_after_s", 601, Reason.BAD_INPUT),
        ("bots", 9, Reason.BAD_INPUT),
        ("room_id", "rom_1", Reason.BAD_ID),
        ("room_id", "rom.>", Reason.BAD_ID),
    ],
)
async def test_bad_requests_change_nothing(house, searcher, field, value, reason):
    request = pb.CreateTicketRequest(request_id=str(uuid.uuid4()), preset=PRESET)
    setattr(request, field, value)
    await refused(reason, searcher.servicer.create_ticket(request, searcher.replica.call(1)))
    assert house.tickets() == {}


# ----------------------------------------------------------------------------------------------- ending it


async def test_cancelling_frees_the_player(house, searcher):
    request = uuid.uuid4()
    ticket = await searcher.create(1, request=request)
    await searcher.cancel(1, ticket.ticket_id)
    await searcher.cancel(1, ticket.ticket_id)
    assert await searcher.replica.place(1) is None
    assert searcher.deps.metrics.dropped_tickets["cancelled"]._value.get() == 1
    await refused(Reason.UNKNOWN_TICKET, searcher.get(1, ticket.ticket_id))
    await searcher.passes.look()
    await searcher.create(1)


async def test_a_late_repetition_does_not_revive_a_cancelled_ticket(house, searcher):
    request = uuid.uuid4()
    ticket = await searcher.create(1, request=request)
    await searcher.cancel(1, ticket.ticket_id)
    await refused(Reason.UNKNOWN_TICKET, searcher.create(1, request=request))
    assert await searcher.replica.place(1) is None
    house.clock.now += KEPT_S + 1
    house.store.expire()
    assert house.tickets() == {}
    assert len(searcher.replica.world.mirrors.tickets) == 0


async def test_only_its_own_players_see_a_ticket(house, searcher):
    ticket = await searcher.create(1)
    for ticket_id in (ticket.ticket_id, "tkt_0", "", "*", ticket.ticket_id.upper()):
        await refused(Reason.UNKNOWN_TICKET, searcher.get(2, ticket_id))
        await refused(Reason.UNKNOWN_TICKET, searcher.cancel(2, ticket_id))
    assert (await searcher.get(1, ticket.ticket_id)).ticket_id == ticket.ticket_id


async def test_a_matched_ticket_is_not_cancelled(house, searcher):
    request = uuid.uuid4()
    ticket = await searcher.create(0, request=request)
    for number in (1, 2, 3):
        await searcher.create(number)
    await searcher.passes.look()
    await refused(Reason.ALREADY_MATCHED, searcher.cancel(0, ticket.ticket_id))
    await refused(Reason.ALREADY_MATCHED, searcher.get(0, ticket.ticket_id))
    await refused(Reason.ALREADY_MATCHED, searcher.create(0, request=request))
    await refused(Reason.UNKNOWN_TICKET, searcher.cancel(9, ticket.ticket_id))


# -------------------------------------------------------------------------------------------- two partners


async def test_partners_search_from_their_room(house, searcher):
    house.ratings.rated[player(1)] = 1700.0
    room = await searcher.partners(1, 2, stake=3)
    ticket = await searcher.create(1, room=room, stake=3)
    assert list(ticket.player_ids) == [player(1), player(2)]
    assert ticket.rating == 1600.0
    assert house.funds.checked[-1] == ([player(1), player(2)], 3)
    record = await searcher.replica.record(room.room_id)
    assert (record.room.state, record.room.ticket_id) == (ROOM_STATE_SEARCHING, ticket.ticket_id)
    for number in (1, 2):
        assert await searcher.replica.place(number) == PlaceRecord(
            room_id=room.room_id, ticket_id=ticket.ticket_id
        )
    await searcher.get(2, ticket.ticket_id)


async def test_either_partner_ends_the_search_and_the_room_is_open_again(house, searcher):
    room = await searcher.partners(1, 2)
    ticket = await searcher.create(1, room=room)
    leave = room_service_pb2.LeaveRoomRequest(room_id=room.room_id)
    await refused(Reason.WRONG_PHASE, searcher.replica.rooms.leave_room(leave, searcher.replica.call(2)))
    await searcher.cancel(2, ticket.ticket_id)
    record = await searcher.replica.record(room.room_id)
    assert (record.room.state, record.room.ticket_id) == (ROOM_STATE_OPEN, "")
    assert await searcher.replica.place(1) == PlaceRecord(room_id=room.room_id)
    again = await searcher.create(1, room=room)
    assert again.ticket_id != ticket.ticket_id


async def test_a_room_must_be_two_partners_and_a_preset(house, searcher):
    replica = searcher.replica
    room = await replica.create(1, RoomPlan(preset=PRESET))
    await refused(Reason.BAD_INPUT, searcher.create(1, room=room))
    await replica.join(2, room)
    await replica.sit(2, room, 1)
    await refused(Reason.BAD_INPUT, searcher.create(1, room=room))
    await replica.sit(2, room, 2)
    await refused(Reason.NOT_HOST, searcher.create(2, room=room))
    await refused(Reason.NOT_IN_ROOM, searcher.create(3, room=room))
    await refused(Reason.UNKNOWN_ROOM, searcher.create(90, room=room, operator="acme"))
    assert (await refused(Reason.BAD_INPUT, searcher.create(1, room=room, stake=1)))["field"] == "stake"
    detail = await refused(Reason.BAD_INPUT, searcher.create(1, room=room, preset="classic-4d"))
    assert detail["field"] == "preset"
    await replica.join(3, room)
    await refused(Reason.BAD_INPUT, searcher.create(1, room=room))


async def test_overrides_are_not_matched(house, searcher):
    options = [RuleOption(name="kitty", value="8")]
    room = await searcher.replica.create(1, RoomPlan(preset=PRESET, overrides=options))
    await searcher.replica.join(2, room)
    await searcher.replica.sit(2, room, 2)
    await refused(Reason.BAD_INPUT, searcher.create(1, room=room))
