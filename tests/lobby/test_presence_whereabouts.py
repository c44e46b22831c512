"""Where a player is, as one call says it."""

import pytest
from support.presence_world import World

from services.lobby.records import place_key, room_key
from services.lobby.store import Entry
from services.pb.lobby.v1.presence_service_pb2 import Whereabouts
from services.pb.lobby.v1.stored_pb2 import PlaceRecord

ANN, BEN = (f"ply_{number:026}" for number in range(2))


async def test_nowhere() -> None:
    assert await World().finder.of(ANN) == Whereabouts()


async def test_in_a_room_with_who_is_online() -> None:
    world = World()
    await world.room("rom_a", ANN, BEN)
    world.presence.enter(BEN, "")
    found = await world.finder.of(ANN)
    assert (found.room_id, found.table_id, found.HasField("seat")) == ("rom_a", "", False)
    assert found.room.code == "ABC234"
    assert [member.online for member in found.room.members] == [False, True]


async def test_the_record_counts_not_the_mirror() -> None:
    world = World()  # its mirrors know nothing
    await world.ticket("tkt_a", ANN)
    assert await world.finder.of(ANN) == Whereabouts(ticket_id="tkt_a")


async def test_at_a_table_with_its_version() -> None:
    world = World()
    world.table_log.versions["tbl_a"] = 9
    await world.put({place_key(ANN): PlaceRecord(table_id="tbl_a", seat=0)})
    found = await world.finder.of(ANN)
    assert found.HasField("seat")
    assert found == Whereabouts(table_id="tbl_a", table_version=9, seat=0)


async def test_a_table_that_is_being_founded_has_version_0() -> None:
    world = World()
    await world.put({place_key(ANN): PlaceRecord(table_id="tbl_a", seat=2)})
    assert await world.finder.of(ANN) == Whereabouts(table_id="tbl_a", seat=2)


async def test_the_codes_of_a_room_are_its_members_alone() -> None:
    world = World()
    await world.room("rom_a", BEN, spectator_code="watch")
    await world.put({place_key(ANN): PlaceRecord(room_id="rom_a")})
    theirs, stranger = (await world.finder.of(BEN)).room, (await world.finder.of(ANN)).room
    assert (theirs.code, theirs.spectator_code) == ("ABC234", "watch")
    assert (stranger.code, stranger.spectator_code) == ("", "")


async def test_a_place_in_a_room_that_is_gone_is_nowhere() -> None:
    world = World()
    await world.put({place_key(ANN): PlaceRecord(room_id="rom_gone", table_id="tbl_a")})
    assert await world.finder.of(ANN) == Whereabouts()


async def test_a_room_that_ends_between_two_reads_is_read_again() -> None:
    world = World()
    await world.room("rom_a", ANN)
    get = world.store.get

    async def ends(key: str) -> Entry:
        if key == room_key("rom_a"):
            world.store.get = get  # type: ignore[method-assign]
            await world.put({room_key("rom_a"): None})
            await world.room("rom_b", ANN)
        return await get(key)

    world.store.get = ends  # type: ignore[method-assign]
    assert (await world.finder.of(ANN)).room.room_id == "rom_b"


@pytest.mark.parametrize("subject", ["bot:normal", "svc:lobby", "a..b", ":"])
async def test_bots_services_and_strangers_are_nowhere(subject: str) -> None:
    assert await World().finder.of(subject) == Whereabouts()
