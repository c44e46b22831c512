"""The stream of a front end: whereabouts first, then everything that changes, until it must end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from support.broker import until
from support.stay_world import ANN, BEN, CAT, OTHER_ROOM, ROOM, TABLE, TICKET, House, opened, settled

from services.lobby.records import place_key, room_key
from services.lobby.stays import (
    EXPIRY_GRACE_S,
    IDLE_S,
    PLAYER_STAYS,
    SAYINGS_MOST,
    STUCK_S,
    TICKET_S,
)
from services.pb.lobby.v1.stored_pb2 import PlaceRecord
from services.rules.reasons import Reason
from services.shell.log_store import Unavailable, Why


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with opened() as made:
        yield made


# ---------------------------------------------------------------------------------------- what it tells


async def test_it_begins_with_the_whereabouts_and_makes_its_player_online(house: House) -> None:
    client = house.come(ANN)
    await client.got("whereabouts")
    assert not client.messages[0].whereabouts.room_id
    assert house.world.presence.is_online(ANN)
    client.task.cancel()
    await settled()
    assert not house.world.presence.is_online(ANN)


async def test_a_new_place_and_a_changed_room_are_told(house: House) -> None:
    ann, ben = house.come(ANN), house.come(BEN)
    await ann.got("whereabouts")
    await house.world.room(ROOM, ANN)
    await ann.got("whereabouts", "whereabouts")
    assert ann.messages[1].whereabouts.room.code == "ABC234"
    await house.world.room(ROOM, ANN, BEN, version=2)
    await ann.got("whereabouts", "whereabouts", "room")
    assert [member.online for member in ann.messages[2].room.members] == [True, True]
    await ben.got("whereabouts", "whereabouts")
    assert ben.messages[1].whereabouts.room.version == 2


async def test_whoever_is_sent_out_is_told(house: House) -> None:
    await house.world.room(ROOM, ANN, BEN)
    ann, ben = house.come(ANN), house.come(BEN)
    await ben.got("whereabouts")
    await house.world.put({place_key(BEN): None})
    await house.world.room(ROOM, ANN, version=2)
    await ben.got("whereabouts", "room_gone", "whereabouts")
    assert ben.messages[1].room_gone == ROOM
    assert not ben.messages[2].whereabouts.room_id
    await ann.got("whereabouts", "room")
    await house.world.put({place_key(ANN): None, room_key(ROOM): None})
    await ann.got("whereabouts", "room", "room_gone", "whereabouts")


async def test_moving_from_room_to_room_tells_both(house: House) -> None:
    await house.world.room(ROOM, ANN)
    ann = house.come(ANN)
    await ann.got("whereabouts")
    await house.world.room(OTHER_ROOM, ANN)
    await ann.got("whereabouts", "room_gone", "whereabouts")
    assert ann.messages[2].whereabouts.room.room_id == OTHER_ROOM


async def test_the_table_is_told_with_its_version(house: House) -> None:
    await house.world.room(ROOM, ANN, BEN)
    ann = house.come(ANN)
    await ann.got("whereabouts")
    house.world.table_log.versions[TABLE] = 17
    await house.world.put({place_key(ANN): PlaceRecord(room_id=ROOM, table_id=TABLE, seat=0)})
    await ann.got("whereabouts", "whereabouts")
    told = ann.messages[1].whereabouts
    assert (told.table_id, told.table_version, told.HasField("seat"), told.seat) == (TABLE, 17, True, 0)


@pytest.mark.parametrize("by_room", [True, False], ids=["as the room changes", "by and by"])
async def test_a_table_told_before_its_founding_is_told_again_with_its_version(
    house: House, by_room: bool
) -> None:
    await house.world.room(ROOM, ANN, table_id=TABLE)
    ann = house.come(ANN)
    await house.passing(1)
    await ann.got("whereabouts")
    assert not ann.messages[0].whereabouts.table_version
    house.world.table_log.versions[TABLE] = 1
    await (house.world.room(ROOM, ANN, version=2, table_id=TABLE) if by_room else house.passing(1))
    await until(lambda: len(ann.messages) > 1)
    told = ann.messages[1].whereabouts
    assert (told.table_id, told.table_version) == (TABLE, 1)


async def test_who_comes_and_goes_is_told_once_a_sweep(house: House) -> None:
    await house.world.room(ROOM, ANN, BEN, CAT)
    ann = house.come(ANN)
    await ann.got("whereabouts")
    house.come(BEN)
    house.come(CAT)
    await settled()
    await ann.got("whereabouts")
    await house.passing(1)
    await ann.got("whereabouts", "room")
    assert [member.online for member in ann.messages[1].room.members] == [True, True, True]
    house.clients[1].task.cancel()
    await house.passing(1)
    await ann.got("whereabouts", "room", "room")
    assert [member.online for member in ann.messages[2].room.members] == [True, False, True]
    await house.passing(1)
    await ann.got("whereabouts", "room", "room")


async def test_a_slow_client_gets_the_newest_room_not_every_one(house: House) -> None:
    await house.world.room(ROOM, ANN)
    ann = house.come(ANN)
    await ann.got("whereabouts")
    ann.reads.clear()
    for version in range(2, 50):
        await house.world.room(ROOM, ANN, version=version)
        await asyncio.sleep(0)
    ann.reads.set()
    await until(lambda: ann.messages[-1].room.version == 49)
    assert len(ann.messages) <= 3


async def test_a_mirror_that_is_behind_takes_nothing_back(house: House) -> None:
    await house.world.room(ROOM, ANN)
    await house.world.mirrors.rooms.stop()
    await house.world.room(ROOM, ANN, version=5)
    ann = house.come(ANN)
    await ann.got("whereabouts")
    assert ann.messages[0].whereabouts.room.version == 5
    await house.world.mirrors.rooms.start()
    await house.world.room(ROOM, ANN, version=6)
    await ann.got("whereabouts", "room")


async def test_a_ticket_is_told_at_once_and_every_five_seconds(house: House) -> None:
    ann = house.come(ANN)
    await ann.got("whereabouts")
    await house.world.ticket(TICKET, ANN)
    await ann.got("whereabouts", "whereabouts", "ticket")
    assert ann.messages[2].ticket.ticket_id == TICKET
    assert ann.messages[2].ticket.window == 75
    await house.passing(TICKET_S - 1)
    await ann.got("whereabouts", "whereabouts", "ticket")
    await house.passing(1)
    await ann.got("whereabouts", "whereabouts", "ticket", "ticket")
    await house.world.put({place_key(ANN): None})
    await house.passing(TICKET_S)
    await ann.got("whereabouts", "whereabouts", "ticket", "ticket", "whereabouts")


async def test_silence_is_broken_every_twenty_seconds(house: House) -> None:
    ann = house.come(ANN)
    await ann.got("whereabouts")
    await house.passing(IDLE_S - 1)
    await ann.got("whereabouts")
    await house.passing(1)
    await ann.got("whereabouts", "idle")
    idle = ann.messages[1].idle
    assert idle.server_now_ms == house.world.clock.ms()
    assert idle.token_expires_at_ms == house.world.clock.ms() + (900 - int(IDLE_S)) * 1000


async def test_what_is_said_in_the_room_is_told_to_all_of_it(house: House) -> None:
    for player in (ANN, BEN, CAT):
        await house.world.player(player)
    await house.world.room(ROOM, ANN, BEN)
    await house.world.room(OTHER_ROOM, CAT)
    ann, ben, cat = (house.come(player) for player in (ANN, BEN, CAT))
    await cat.got("whereabouts")
    await house.world.talk.say(ANN, "nice")
    await ann.got("whereabouts", "said")
    await ben.got("whereabouts", "said")
    assert ben.messages[1].said.player_id == ANN
    assert ben.messages[1].said.phrase_id == "nice"
    assert ben.messages[1].said.said_at_ms == house.world.clock.ms()
    await cat.got("whereabouts")


async def test_at_a_table_without_a_room_all_of_the_table_hear(house: House) -> None:
    for player, table in ((ANN, TABLE), (BEN, TABLE), (CAT, "tbl_b")):
        await house.world.put({place_key(player): PlaceRecord(table_id=table, seat=1)})
    ann, ben, cat = (house.come(player) for player in (ANN, BEN, CAT))
    await cat.got("whereabouts")
    await house.world.talk.say(ANN, "nice")
    await ann.got("whereabouts", "said")
    await ben.got("whereabouts", "said")
    await cat.got("whereabouts")


async def test_whom_one_has_muted_one_does_not_hear(house: House) -> None:
    for player in (ANN, BEN):
        await house.world.player(player)
    await house.world.room(ROOM, ANN, BEN)
    ann, ben = house.come(ANN), house.come(BEN)
    await ben.got("whereabouts")
    await house.world.talk.mute(BEN, ANN, True)
    await house.world.talk.say(ANN, "nice")
    await ann.got("whereabouts", "said")
    await ben.got("whereabouts")
    await house.world.talk.mute(BEN, ANN, False)
    await house.world.talk.say(ANN, "nice")
    await ben.got("whereabouts", "said")


# ------------------------------------------------------------------------------------------- how it ends


async def test_it_ends_a_minute_after_its_token(house: House) -> None:
    ann = house.come(ANN, lives_s=30)
    await ann.got("whereabouts")
    await house.passing(30 + EXPIRY_GRACE_S - 1)
    await ann.got("whereabouts", "idle")
    await house.passing(1)
    assert (await ann.ended()).reason is Reason.UNAUTHENTICATED


async def test_it_lives_on_when_renewed(house: House) -> None:
    ann = house.come(ANN, lives_s=30)
    await ann.got("whereabouts")
    await house.passing(29)
    await house.renewals.renew(ANN, int(house.world.clock.now) + 900)
    await house.passing(899)
    assert not ann.task.done()
    assert ann.messages[-1].idle.token_expires_at_ms == house.world.clock.ms() + 1000
    await house.passing(1 + EXPIRY_GRACE_S)
    assert (await ann.ended()).reason is Reason.UNAUTHENTICATED


async def test_a_guest_s_stay_is_not_prolonged_by_the_operator_s_user(house: House) -> None:
    """Who became an operator's user stays in the house no longer than its last token of the house."""
    ann = house.come(ANN, lives_s=30)
    await ann.got("whereabouts")
    user = house.world.call(ANN, "acme", lives_s=900)
    await house.renewals.renew(user.holder, user.expires_at)
    await house.passing(30 + EXPIRY_GRACE_S)
    assert (await ann.ended()).reason is Reason.UNAUTHENTICATED


async def test_who_does_not_read_is_cut_off(house: House) -> None:
    await house.world.room(ROOM, ANN)
    ann = house.come(ANN)
    await ann.got("whereabouts")
    ann.reads.clear()
    await house.world.room(ROOM, ANN, version=2)
    await house.passing(STUCK_S)
    assert not ann.task.done()
    await house.passing(1)
    assert (await ann.ended()).reason is Reason.SLOW_READER
    assert not house.world.presence.is_online(ANN)


async def test_sayings_do_not_pile_up(house: House) -> None:
    await house.world.room(ROOM, ANN, BEN)
    ann = house.come(ANN)
    await ann.got("whereabouts")
    ann.reads.clear()
    for _ in range(SAYINGS_MOST + 2):
        await house.world.talk.say(BEN, "nice")
        house.world.clock.now += 2
        await asyncio.sleep(0)
    assert (await ann.ended()).reason is Reason.SLOW_READER


async def test_draining_ends_all_and_lets_nobody_in(house: House) -> None:
    ann, ben = house.come(ANN), house.come(BEN)
    await ben.got("whereabouts")
    house.stays.drain()
    assert (await ann.ended()).reason is Reason.DRAINING
    assert (await ben.ended()).reason is Reason.DRAINING
    assert (await house.come(CAT).ended()).reason is Reason.DRAINING


async def test_of_too_many_stays_the_oldest_gives_way(house: House) -> None:
    clients = [house.come(ANN) for _ in range(PLAYER_STAYS + 1)]
    refused = await clients[0].ended()
    assert (refused.reason, refused.retry_after_s) == (Reason.RATE_LIMITED, 60)
    for client in clients[1:]:
        await client.got("whereabouts")
    assert house.world.presence.is_online(ANN)


async def test_a_full_process_takes_no_more() -> None:
    async with opened(limit=2) as house:
        await house.come(ANN).got("whereabouts")
        await house.come(BEN).got("whereabouts")
        assert (await house.come(CAT).ended()).reason is Reason.BUSY
        assert not house.world.presence.is_online(CAT)


async def test_a_store_out_of_reach_is_waited_for_once_it_has_begun(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = house.come(ANN)
    await ann.got("whereabouts")
    get: Callable[[str], Awaitable[object]] = house.world.store.get

    async def gone(key: str) -> object:
        raise Unavailable(Why.NO_ANSWER)

    await house.world.room(ROOM, ANN)
    monkeypatch.setattr(house.world.store, "get", gone)
    await house.passing(1)
    await ann.got("whereabouts")
    with pytest.raises(Unavailable):
        await house.come(BEN).task
    monkeypatch.setattr(house.world.store, "get", get)
    await house.passing(1)
    await ann.got("whereabouts", "whereabouts")


async def test_time_is_looked_at_by_itself() -> None:
    async with opened(sweep_s=0.01) as house:
        ann = house.come(ANN)
        await ann.got("whereabouts")
        house.world.clock.now += IDLE_S
        await ann.got("whereabouts", "idle")
