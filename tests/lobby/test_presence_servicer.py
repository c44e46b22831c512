"""PresenceService as its callers see it."""

from uuid import UUID

import pytest
from support.broker import new_table
from support.presence_world import World

from services.lobby.presence_servicer import ASKED_MOST, PresenceServicer
from services.lobby.records import place_key
from services.lobby.report_store import MemoryReports
from services.lobby.reports import Reports
from services.lobby.stays import Stays, StayTools
from services.pb.event.v1.event_pb2 import SPECTATORS_LINK, SPECTATORS_OFF, SPECTATORS_PUBLIC
from services.pb.lobby.v1 import presence_service_pb2 as pb
from services.pb.lobby.v1.room_pb2 import RoomPlan
from services.pb.lobby.v1.stored_pb2 import PlaceRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError

ANN, BEN, CAT, DAN = (f"ply_{number:026}" for number in range(4))


class FakeRenewals:
    """``stays.Renewals``."""

    def __init__(self) -> None:
        self.renewed: list[tuple[str, float]] = []

    def enter(self, player_id: str, expires_at: float, wake: object) -> "FakeRenewals":
        return self

    def leave(self, lease: object) -> None:
        pass

    @property
    def expires_at(self) -> float:
        return float("inf")

    async def renew(self, player_id: str, expires_at: float) -> None:
        self.renewed.append((player_id, expires_at))


class House:
    def __init__(self) -> None:
        self.world = world = World()
        self.renewals = FakeRenewals()
        tools = StayTools(
            world.deps,
            world.mirrors,
            world.presence,
            world.finder,
            world.talk,
            self.renewals,
            lambda record: record.ticket,
            world.clock,
        )
        self.servicer = PresenceServicer(
            world.mirrors,
            world.presence,
            world.finder,
            Stays(tools, 10),
            self.renewals,
            world.talk,
            Reports(world.deps, MemoryReports(), world.table_log),
        )

    async def asked(self, *players: str, operator: str = "") -> pb.GetPresenceResponse:
        request = pb.GetPresenceRequest(player_ids=players)
        return await self.servicer.get_presence(request, self.world.call(ANN, operator))


@pytest.fixture
async def house() -> House:
    made = House()
    await made.world.start()
    return made


async def test_presence_says_what_somebody_does(house: House) -> None:
    world = house.world
    await world.room("rom_a", BEN)
    await world.ticket("tkt_a", CAT)
    await world.put({place_key(DAN): PlaceRecord(table_id="tbl_a", seat=1)})
    for player in (ANN, BEN, CAT, DAN):
        world.presence.enter(player, "")
    told = await house.asked(DAN, CAT, BEN, ANN, "ply_unknown")
    assert [(one.player_id, one.doing, one.table_id) for one in told.players] == [
        (DAN, pb.DOING_PLAYING, ""),
        (CAT, pb.DOING_WAITING, ""),
        (BEN, pb.DOING_IN_ROOM, ""),
        (ANN, pb.DOING_ONLINE, ""),
        ("ply_unknown", pb.DOING_UNSPECIFIED, ""),
    ]
    assert told.online == 4


async def test_whoever_is_offline_does_nothing_whatever_their_place(house: House) -> None:
    await house.world.room("rom_a", BEN)
    told = await house.asked(BEN)
    assert (told.players[0].doing, told.online) == (pb.DOING_UNSPECIFIED, 0)


async def test_another_operators_players_are_not_shown(house: House) -> None:
    house.world.presence.enter(BEN, "acme")
    house.world.presence.enter(ANN, "")
    told = await house.asked(BEN)
    assert (told.players[0].doing, told.online) == (pb.DOING_UNSPECIFIED, 1)
    told = await house.asked(BEN, ANN, operator="acme")
    assert [one.doing for one in told.players] == [pb.DOING_ONLINE, pb.DOING_UNSPECIFIED]


@pytest.mark.parametrize(
    ("spectators", "shown"),
    [(0, ""), (SPECTATORS_OFF, ""), (SPECTATORS_LINK, "tbl_a"), (SPECTATORS_PUBLIC, "tbl_a")],
)
async def test_the_table_is_named_where_it_can_be_watched(house: House, spectators: int, shown: str) -> None:
    plan = RoomPlan(spectators=spectators)  # type: ignore[arg-type]
    await house.world.room("rom_a", BEN, table_id="tbl_a", plan=plan)
    if not spectators:
        await house.world.room("rom_a", BEN, table_id="tbl_a")
    house.world.presence.enter(BEN, "")
    told = await house.asked(BEN)
    assert (told.players[0].doing, told.players[0].table_id) == (pb.DOING_PLAYING, shown)


async def test_at_most_a_hundred_are_asked_for(house: House) -> None:
    await house.asked(*[BEN] * ASKED_MOST)
    with pytest.raises(RefusedError) as refused:
        await house.asked(*[BEN] * (ASKED_MOST + 1))
    assert refused.value.reason is Reason.TOO_LARGE


async def test_renewing_lasts_as_long_as_the_token_of_the_call(house: House) -> None:
    call = house.world.call(ANN, lives_s=600)
    answer = await house.servicer.renew(pb.RenewRequest(), call)
    assert house.renewals.renewed == [(ANN, call.expires_at)]
    assert answer.expires_at_ms == house.world.clock.ms() + 600_000
    user = house.world.call(ANN, "acme", lives_s=600)
    await house.servicer.renew(pb.RenewRequest(), user)
    assert house.renewals.renewed[1:] == [(f"{ANN} acme", user.expires_at)], "of another realm's streams"


async def test_the_other_calls(house: House) -> None:
    world, call = house.world, house.world.call(ANN)
    await world.player(ANN)
    await world.player(BEN)
    await world.room("rom_a", ANN, BEN)
    where = await house.servicer.get_whereabouts(pb.GetWhereaboutsRequest(), call)
    assert where.whereabouts.room_id == "rom_a"
    assert await house.servicer.say(pb.SayRequest(phrase_id="nice"), call) == pb.SayResponse()
    phrases = (await house.servicer.list_phrases(pb.ListPhrasesRequest(), call)).phrases
    assert phrases[0].phrase_id == "hello"
    await house.servicer.mute(pb.MuteRequest(player_id=BEN, muted=True), call)
    assert await world.talk.muted_by(ANN) == {BEN}
    table_id = str(new_table())
    world.table_log.versions[table_id] = 3
    world.table_log.players[table_id] = {ANN}
    report = pb.ReportRequest(
        request_id=str(UUID(int=1)),
        table_id=table_id,
        version=1,
        player_id=BEN,
        kind=pb.REPORT_KIND_PROGRAM,
    )
    assert (await house.servicer.report(report, call)).report_id.startswith("rep_")


async def test_staying_is_being_online(house: House) -> None:
    seen: list[tuple[str | None, bool]] = []

    async def write(message: bytes) -> None:
        kind = pb.StayResponse.FromString(message).WhichOneof("content")
        seen.append((kind, house.world.presence.is_online(ANN)))
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await house.servicer.stay(pb.StayRequest(), house.world.call(ANN), write)
    assert seen == [("whereabouts", True)]
    assert not house.world.presence.is_online(ANN)
