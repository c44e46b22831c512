"""RoomService on a store in memory: every call, by whom, and what it leaves behind."""

import asyncio
import random
import uuid

import pytest
from support.room_world import DEAR, PLAN, House, Jittery, player

from services.lobby.room_codes import ALPHABET, make_code, read_code
from services.pb.event.v1.event_pb2 import DIFFICULTY_EASY, DIFFICULTY_NORMAL, Pace, RuleOption
from services.pb.lobby.v1 import room_service_pb2 as pb
from services.pb.lobby.v1.room_pb2 import (
    ROOM_STATE_OPEN,
    ROOM_STATE_STARTING,
    VISIBILITY_PUBLIC,
    RoomPlan,
)
from services.pb.lobby.v1.stored_pb2 import PlaceRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError


@pytest.fixture
async def house():
    house = House()
    await house.players(*range(20))
    await house.players(90, 91, operator="acme")
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


# ---------------------------------------------------------------------------------------------- creating


async def test_a_room_is_made_once_for_a_request(house, replica):
    request = uuid.uuid4()
    made = await replica.create(1, request=request)
    other = await house.replica(seed=2)
    again = await other.create(1, request=request)
    assert again == made
    assert made.state == ROOM_STATE_OPEN
    assert made.host_id == made.seats[0].player_id == player(1)
    assert made.members[0].name == "P1"
    assert made.members[0].online
    assert (await replica.place(1)) == PlaceRecord(room_id=made.room_id)
    assert len(made.code) == 6
    assert set(made.code) <= set(ALPHABET)


async def test_two_replicas_race_to_make_one_room(house):
    for seed in range(20):
        replicas = [
            await house.replica(n, Jittery(house.store, random.Random(seed * 10 + n))) for n in range(3)
        ]
        request = uuid.uuid4()
        made = await asyncio.gather(*(replica.create(1, request=request) for replica in replicas))
        assert made[0] == made[1] == made[2]
        house.check()
        await replicas[0].rooms.leave_room(pb.LeaveRoomRequest(room_id=made[0].room_id), replicas[0].call(1))


async def test_a_host_may_stand(replica):
    made = await replica.create(1, stand=True)
    assert not made.seats[0].player_id
    assert made.host_id == player(1)


async def test_a_player_is_in_one_place(replica, house):
    room = await replica.create(1)
    error = await refused(Reason.ELSEWHERE, replica.create(1))
    assert error.detail == {"place": "room"}
    other = await replica.create(2)
    await refused(Reason.ELSEWHERE, replica.join(1, other))
    await replica.begin(2, other)
    error = await refused(Reason.ELSEWHERE, replica.join(2, room))
    assert error.detail == {"place": "table"}


async def test_nobody_without_a_record_comes_in(replica):
    await refused(Reason.UNKNOWN_PLAYER, replica.create(77))


@pytest.mark.parametrize("subject", ["bot:normal", "svc:lobby", "a:b", "a..b", "alice"])
async def test_who_is_no_player_of_the_lobby_is_told_so(replica, subject):
    room = await replica.create(1, public=True)
    call = replica.call(2)._replace(player_id=subject)
    create = pb.CreateRoomRequest(request_id=str(uuid.uuid4()), plan=PLAN)
    await refused(Reason.UNKNOWN_PLAYER, replica.rooms.create_room(create, call))
    for join in (pb.JoinRoomRequest(code=room.code), pb.JoinRoomRequest(room_id=room.room_id)):
        await refused(Reason.UNKNOWN_PLAYER, replica.rooms.join_room(join, call))


async def test_a_token_from_before_a_player_went_to_an_operator_opens_no_room(replica, house):
    """Player 90 is acme's by now, and shows a token of the house that has not ended yet."""
    room = await replica.create(1, public=True)
    await refused(Reason.UNKNOWN_PLAYER, replica.create(90))
    await refused(Reason.UNKNOWN_PLAYER, replica.join(90, room))
    by_id = pb.JoinRoomRequest(room_id=room.room_id)
    await refused(Reason.UNKNOWN_PLAYER, replica.rooms.join_room(by_id, replica.call(90)))
    assert await replica.place(90) is None


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (RoomPlan(preset="none"), Reason.UNKNOWN_PRESET),
        (RoomPlan(preset="classic-2d", overrides=[RuleOption(name="x", value="1")]), Reason.UNKNOWN_OPTION),
        (
            RoomPlan(preset="classic-2d", overrides=[RuleOption(name="decks", value="[]")]),
            Reason.BAD_OPTION,
        ),
        (RoomPlan(preset="classic-2d", stake=1_000_000_001), Reason.BAD_INPUT),
        (RoomPlan(preset="classic-2d", spectator_delay_ms=600_001), Reason.BAD_INPUT),
        (RoomPlan(preset="classic-2d", spectators=9), Reason.BAD_INPUT),
        (RoomPlan(preset="classic-2d", pace=Pace(turn_ms=1)), Reason.BAD_INPUT),
        (RoomPlan(preset="x" * 5000), Reason.TOO_LARGE),
    ],
)
async def test_a_plan_that_no_table_could_play_is_refused(replica, plan, reason):
    await refused(reason, replica.create(1, plan))
    room = await replica.create(1)
    request = pb.SetPlanRequest(room_id=room.room_id, plan=plan)
    await refused(reason, replica.rooms.set_plan(request, replica.call(1)))


async def test_forms_of_ids_are_checked(replica):
    request = pb.CreateRoomRequest(request_id="no", plan=PLAN)
    await refused(Reason.BAD_ID, replica.rooms.create_room(request, replica.call(1)))
    for text in ("", "rom_", "room.x", "rom_" + "*" * 26):
        await refused(Reason.BAD_ID, replica.rooms.get_room(pb.GetRoomRequest(room_id=text), replica.call(1)))
        await refused(
            Reason.BAD_ID, replica.rooms.leave_room(pb.LeaveRoomRequest(room_id=text), replica.call(1))
        )


# ------------------------------------------------------------------------------------- coming and going


async def test_who_has_the_code_comes_in_either_case(replica):
    room = await replica.create(1)
    room.code = f" {room.code.lower()} "
    joined = await replica.join(2, room)
    assert [member.player_id for member in joined.members] == [player(1), player(2)]
    assert (await replica.join(2, room)) == joined, "joining twice is joining once"


async def test_private_rooms_are_found_by_code_alone(replica):
    room = await replica.create(1)
    by_id = pb.JoinRoomRequest(room_id=room.room_id)
    await refused(Reason.UNKNOWN_ROOM, replica.rooms.join_room(by_id, replica.call(2)))
    assert (await replica.rooms.join_room(by_id, replica.call(1))).room == room
    public = await replica.create(3, public=True)
    assert (
        await replica.rooms.join_room(pb.JoinRoomRequest(room_id=public.room_id), replica.call(2))
    ).room.members


async def test_operators_do_not_meet(replica):
    room = await replica.create(1, public=True)
    await refused(Reason.UNKNOWN_CODE, replica.join(90, room, "acme"))
    for call in (
        replica.rooms.join_room(pb.JoinRoomRequest(room_id=room.room_id), replica.call(90, "acme")),
        replica.rooms.get_room(pb.GetRoomRequest(room_id=room.room_id), replica.call(90, "acme")),
        replica.rooms.kick(pb.KickRequest(room_id=room.room_id), replica.call(90, "acme")),
    ):
        await refused(Reason.UNKNOWN_ROOM, call)
    theirs = await replica.create(90, operator="acme")
    await replica.join(91, theirs, "acme")


async def test_a_room_takes_twelve(replica):
    room = await replica.create(0)
    for number in range(1, 12):
        await replica.join(number, room)
    await refused(Reason.ROOM_FULL, replica.join(12, room))


async def test_twelve_at_most_however_many_race(house):
    replicas = [await house.replica(n, Jittery(house.store, random.Random(n))) for n in range(2)]
    room = await replicas[0].create(0)
    for number in range(1, 9):
        await replicas[0].join(number, room)
    done = await asyncio.gather(
        *(replicas[number % 2].join(number, room) for number in range(9, 16)), return_exceptions=True
    )
    reasons = {error.reason for error in done if isinstance(error, RefusedError)}
    assert reasons <= {Reason.ROOM_FULL, Reason.BUSY}
    assert len((await replicas[0].record(room.room_id)).room.members) <= 12


async def test_the_host_s_place_passes_to_who_came_next_and_the_last_ends_the_room(replica, house):
    room = await replica.create(1)
    await replica.join(2, room)
    await replica.join(3, room)
    leave = pb.LeaveRoomRequest(room_id=room.room_id)
    await replica.rooms.leave_room(leave, replica.call(1))
    record = await replica.record(room.room_id)
    assert record.room.host_id == player(2)
    assert not record.room.seats[0].player_id
    assert await replica.place(1) is None
    await replica.rooms.leave_room(leave, replica.call(1))
    await replica.rooms.leave_room(leave, replica.call(2))
    await replica.rooms.leave_room(leave, replica.call(3))
    assert await replica.record(room.room_id) is None
    assert not await replica.has_code(room.code)
    await replica.rooms.leave_room(leave, replica.call(3))
    assert not house.records("place", PlaceRecord)


async def test_who_was_kicked_cannot_come_back(replica):
    room = await replica.create(1)
    await replica.join(2, room)
    kick = pb.KickRequest(room_id=room.room_id, player_id=player(2))
    await refused(Reason.NOT_HOST, replica.rooms.kick(kick, replica.call(2)))
    first = await replica.rooms.kick(kick, replica.call(1))
    assert (await replica.rooms.kick(kick, replica.call(1))) == first
    assert await replica.place(2) is None
    await refused(Reason.KICKED, replica.join(2, room))


async def test_codes_are_shown_to_members_and_renewed_by_the_host(replica):
    room = await replica.create(1)
    renewed = await replica.rooms.renew_code(pb.RenewCodeRequest(room_id=room.room_id), replica.call(1))
    assert renewed.room.code != room.code
    await refused(Reason.UNKNOWN_CODE, replica.join(2, room))
    await replica.join(2, renewed.room)
    get = pb.GetRoomRequest(room_id=room.room_id)
    assert (await replica.rooms.get_room(get, replica.call(2))).room.code == renewed.room.code
    await refused(Reason.NOT_IN_ROOM, replica.rooms.get_room(get, replica.call(3)))


# ----------------------------------------------------------------------------------------------- seats


async def test_seats(replica):
    room = await replica.create(1)
    await replica.join(2, room)
    await refused(Reason.SEAT_TAKEN, replica.sit(2, room, 0))
    await refused(Reason.BAD_INPUT, replica.sit(2, room, 4))
    await refused(Reason.NOT_IN_ROOM, replica.sit(3, room, 1))
    seated = await replica.sit(2, room, 2)
    assert (await replica.sit(2, room, 2)) == seated
    moved = await replica.sit(2, room, 3)
    assert [seat.player_id for seat in moved.seats] == [player(1), "", "", player(2)]
    swap = pb.SwapSeatsRequest(room_id=room.room_id, first=3, second=2)
    swapped = (await replica.rooms.swap_seats(swap, replica.call(1))).room
    assert swapped.seats[2].player_id == player(2)
    bots = pb.SetBotsRequest(room_id=room.room_id, difficulty=DIFFICULTY_EASY)
    filled = (await replica.rooms.set_bots(bots, replica.call(1))).room
    assert [seat.difficulty for seat in filled.seats] == [0, DIFFICULTY_EASY, 0, DIFFICULTY_EASY]
    bots.seat = 2
    await refused(Reason.SEAT_TAKEN, replica.rooms.set_bots(bots, replica.call(1)))
    bots.seat, bots.difficulty = 1, DIFFICULTY_NORMAL
    assert (await replica.rooms.set_bots(bots, replica.call(1))).room.seats[1].difficulty == DIFFICULTY_NORMAL
    away = pb.SetBotsRequest(room_id=room.room_id)
    cleared = (await replica.rooms.set_bots(away, replica.call(1))).room
    assert not any(seat.difficulty for seat in cleared.seats)
    stood = await replica.sit(2, room, None)
    assert not stood.seats[2].player_id


async def test_two_who_race_for_a_seat(house):
    for seed in range(20):
        replicas = [
            await house.replica(n, Jittery(house.store, random.Random(seed * 10 + n))) for n in range(2)
        ]
        room = await replicas[0].create(1)
        await replicas[0].join(2, room)
        await replicas[0].join(3, room)
        done = await asyncio.gather(
            replicas[0].sit(2, room, 1), replicas[1].sit(3, room, 1), return_exceptions=True
        )
        assert [isinstance(one, RefusedError) for one in done].count(True) == 1
        house.check()
        for number in (3, 2, 1):
            leave = pb.LeaveRoomRequest(room_id=room.room_id)
            await replicas[0].rooms.leave_room(leave, replicas[0].call(number))


async def test_only_the_host_decides(replica):
    room = await replica.create(1)
    await replica.join(2, room)
    name = {"room_id": room.room_id}
    servicer, guest, stranger = replica.rooms, replica.call(2), replica.call(3)
    for handle, request in (
        (servicer.swap_seats, pb.SwapSeatsRequest(**name, first=0, second=1)),
        (servicer.set_bots, pb.SetBotsRequest(**name, difficulty=DIFFICULTY_EASY)),
        (servicer.set_plan, pb.SetPlanRequest(**name, plan=PLAN)),
        (servicer.kick, pb.KickRequest(**name, player_id=player(1))),
        (servicer.hand_over, pb.HandOverRequest(**name, player_id=player(2))),
        (servicer.renew_code, pb.RenewCodeRequest(**name)),
        (servicer.start_room, pb.StartRoomRequest(**name)),
    ):
        await refused(Reason.NOT_HOST, handle(request, guest))
        await refused(Reason.NOT_IN_ROOM, handle(request, stranger))
    handed = await servicer.hand_over(pb.HandOverRequest(**name, player_id=player(2)), replica.call(1))
    assert handed.room.host_id == player(2)
    again = await servicer.hand_over(pb.HandOverRequest(**name, player_id=player(2)), replica.call(1))
    assert again == handed
    assert (await servicer.set_bots(pb.SetBotsRequest(**name, difficulty=DIFFICULTY_EASY), guest)).room


async def test_the_plan_changes_and_with_it_who_can_find_the_room(replica):
    room = await replica.create(1)
    plan = RoomPlan(preset="basic-1d")
    request = pb.SetPlanRequest(room_id=room.room_id, plan=plan, visibility=VISIBILITY_PUBLIC)
    changed = (await replica.rooms.set_plan(request, replica.call(1))).room
    assert changed.plan == plan
    assert changed.visibility == VISIBILITY_PUBLIC
    request.visibility = 0
    assert (await replica.rooms.set_plan(request, replica.call(1))).room == changed


# ----------------------------------------------------------------------------------------------- chips


async def test_who_takes_a_seat_must_afford_it(replica, house):
    house.funds.chips[player(1)] = house.funds.chips[player(2)] = 79
    await refused(Reason.INSUFFICIENT_FUNDS, replica.create(1, DEAR))
    room = await replica.create(1, DEAR, stand=True)
    await replica.join(2, room)
    await refused(Reason.INSUFFICIENT_FUNDS, replica.sit(2, room, 1))
    house.funds.chips[player(2)] = 80
    await replica.sit(2, room, 1)
    house.funds.checked.clear()
    await replica.sit(2, room, 2)
    assert not house.funds.checked, "who sits already is not asked again"
    dearer = RoomPlan(preset="classic-2d", stake=11)
    request = pb.SetPlanRequest(room_id=room.room_id, plan=dearer)
    await refused(Reason.INSUFFICIENT_FUNDS, replica.rooms.set_plan(request, replica.call(1)))
    assert house.funds.checked == [([player(2)], 11)]
    request.plan.stake = 0
    await replica.rooms.set_plan(request, replica.call(1))
    assert len(house.funds.checked) == 1, "play without stakes is never asked about"


# -------------------------------------------------------------------------------------------- starting


async def test_a_room_starts_when_its_seats_are_filled(replica):
    room = await replica.create(1)
    await replica.join(2, room)
    await replica.join(3, room)
    await replica.sit(2, room, 2)
    request = pb.StartRoomRequest(room_id=room.room_id)
    await refused(Reason.SEATS_NOT_FILLED, replica.rooms.start_room(request, replica.call(1)))
    started = await replica.begin(1, room)
    assert started.state == ROOM_STATE_STARTING
    assert started.table_id.startswith("tbl_")
    assert [seat.difficulty for seat in started.seats] == [0, DIFFICULTY_NORMAL, 0, DIFFICULTY_NORMAL]
    assert (await replica.place(2)) == PlaceRecord(room_id=room.room_id, table_id=started.table_id, seat=2)
    assert (await replica.place(3)) == PlaceRecord(room_id=room.room_id)
    assert (await replica.begin(1, room)) == started
    name = {"room_id": room.room_id}
    for handle, late in (
        (replica.rooms.leave_room, pb.LeaveRoomRequest(**name)),
        (replica.rooms.take_seat, pb.TakeSeatRequest(**name)),
        (replica.rooms.set_bots, pb.SetBotsRequest(**name)),
        (replica.rooms.set_plan, pb.SetPlanRequest(**name, plan=PLAN)),
        (replica.rooms.play_again, pb.PlayAgainRequest(**name, again=True)),
    ):
        await refused(Reason.WRONG_PHASE, handle(late, replica.call(1)))
    await replica.rooms.leave_room(pb.LeaveRoomRequest(**name), replica.call(3))


# ----------------------------------------------------------------------------------------------- codes


def test_codes_are_even_and_readable():
    chance = random.Random(1)
    codes = [make_code(chance.randbytes) for _ in range(20_000)]
    counts = {letter: sum(code.count(letter) for code in codes) for letter in ALPHABET}
    mean = 120_000 / len(ALPHABET)
    assert all(abs(count - mean) < 0.06 * mean for count in counts.values())
    assert not set("01258BGILOSUVZ") & set(ALPHABET)
    assert all(read_code(code.lower()) == code for code in codes[:100])
    for text in ("", "AAAAA", "AAAAAAA", "AAAAA0", "AAAAA.", "AAAAA*", "ААААAA", "ａａａａａａ", "AAAAſA"):
        assert read_code(text) is None, text
