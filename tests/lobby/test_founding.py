"""Tables of rooms that start: founded once, whatever dies between two steps, and what becomes of refusals."""

import asyncio
import random

import pytest
from support.broker import until
from support.room_world import DEAR, PLAN, House, Jittery, player

from services.lobby.founding import SETTLING_MS
from services.lobby.records import Change, atomically, place_key, room_key
from services.lobby.room_checks import Person
from services.lobby.room_saving import save_room
from services.lobby.room_tables import matched
from services.lobby.table_client import TableRefusal, TableUnreachable
from services.pb.event.v1.event_pb2 import DIFFICULTY_EASY, DIFFICULTY_NORMAL
from services.pb.lobby.v1.room_pb2 import (
    ROOM_STATE_OPEN,
    ROOM_STATE_PLAYING,
    ROOM_STATE_STARTING,
    RoomPlan,
)
from services.pb.lobby.v1.stored_pb2 import PlaceRecord, RoomRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError


class Crash(BaseException):
    """The process died."""


class Fuse:
    """Burns with every step; the process dies when it is out."""

    def __init__(self, steps):
        self.left = steps

    def burn(self):
        self.left -= 1
        if self.left == 0:
            raise Crash


class Mortal:
    """Anything whose every call is two steps: before it and after it."""

    def __init__(self, real, fuse, *names):
        self._real = real
        for name in names:
            setattr(self, name, self._around(getattr(real, name), fuse))

    @staticmethod
    def _around(call, fuse):
        async def called(*args):
            fuse.burn()
            done = await call(*args)
            fuse.burn()
            return done

        return called


@pytest.fixture
async def house():
    house = House()
    await house.players(*range(20))
    yield house
    house.check()


async def starting(house, plan=PLAN):
    replica = await house.replica()
    room = await replica.create(1, plan)
    await replica.join(2, room)
    await replica.sit(2, room, 2)
    return replica, await replica.begin(1, room)


async def test_a_table_is_founded_as_the_room_says(house):
    replica, room = await starting(house, DEAR)
    founding = replica.founding()
    assert await founding.step(room.room_id)
    playing = (await replica.record(room.room_id)).room
    assert playing.state == ROOM_STATE_PLAYING
    assert playing.spectator_code == "look"
    (table_id, request), *more = house.tables.founded.items()
    assert not more
    assert table_id == room.table_id
    assert [(seat.seat, seat.player_id, seat.difficulty) for seat in request.seats] == [
        (0, player(1), 0),
        (1, "", DIFFICULTY_NORMAL),
        (2, player(2), 0),
        (3, "", DIFFICULTY_NORMAL),
    ]
    assert request.stake == 10
    assert request.preset == "classic-2d"
    assert not request.previous_table_id
    assert house.funds.held == {table_id: ([player(1), player(2)], 10)}
    assert await founding.step(room.room_id), "once more, and nothing happens"
    assert house.tables.calls == 1


async def test_in_the_background_by_several_replicas_at_once(house):
    replicas = [await house.replica(n, Jittery(house.store, random.Random(n))) for n in range(3)]
    foundings = [replica.founding() for replica in replicas]
    for founding in foundings:
        founding.start()
    rooms = []
    for number in range(10):
        room = await replicas[0].create(number, RoomPlan(preset="classic-2d", stake=number % 2))
        rooms.append(await replicas[0].begin(number, room))
    await until(
        lambda: all(
            record.room.state == ROOM_STATE_PLAYING for record in house.records("room", RoomRecord).values()
        )
    )
    for founding in foundings:
        await founding.stop()
    assert house.tables.founded.keys() == {room.table_id for room in rooms}
    assert len(house.funds.held) == 5


@pytest.mark.parametrize("fault", [TableUnreachable("UNAVAILABLE"), OSError("unforeseen")])
async def test_what_passes_is_tried_again(house, fault):
    replica, _ = await starting(house)
    house.tables.faults = [fault, fault]
    founding = replica.founding()
    founding.start()
    await until(lambda: bool(house.tables.founded))
    await founding.stop()
    assert house.tables.calls == 3


async def test_a_killed_replica_leaves_nothing_half_done(house):
    """Die at every step of founding; another replica goes on; there is one table, held once."""
    deaths = 0
    for steps in range(1, 60):
        replica, room = await starting(house, DEAR)
        fuse = Fuse(steps)
        dying = replica.founding()
        dying._deps = dying._deps._replace(
            store=Mortal(house.store, fuse, "get", "commit"),
            funds=Mortal(house.funds, fuse, "hold", "release"),
        )
        dying._tables = Mortal(house.tables, fuse, "create_table")
        try:
            await dying.step(room.room_id)
        except Crash:
            deaths += 1
        house.check()
        record = await replica.record(room.room_id)
        assert record.room.state in (ROOM_STATE_STARTING, ROOM_STATE_PLAYING)
        assert await (await house.replica(seed=2)).founding().step(room.room_id)
        record = await replica.record(room.room_id)
        assert record.room.state == ROOM_STATE_PLAYING
        assert list(house.tables.founded) == [room.table_id]
        assert house.funds.held == {room.table_id: ([player(1), player(2)], 10)}
        house.empty()
        if fuse.left > 0:
            break
    assert deaths == steps - 1 == 14, "every step was died at"


async def test_a_refusal_for_good_opens_the_room_again(house):
    replica, room = await starting(house, DEAR)
    house.tables.faults = [TableRefusal("BAD_OPTION")]
    assert await replica.founding().step(room.room_id)
    record = await replica.record(room.room_id)
    assert record.room.state == ROOM_STATE_OPEN
    assert record.room.failed == "BAD_OPTION"
    assert not record.room.table_id
    assert not house.funds.held
    assert (await replica.place(2)) == PlaceRecord(room_id=room.room_id)
    begun = await replica.begin(1, room)
    assert begun.table_id != room.table_id
    assert not begun.failed
    await replica.founding().step(room.room_id)
    assert list(house.tables.founded) == [begun.table_id]


async def test_want_of_chips_opens_the_room_again(house):
    replica, room = await starting(house, DEAR)
    house.funds.chips[player(2)] = 0
    assert await replica.founding().step(room.room_id)
    record = await replica.record(room.room_id)
    assert (record.room.state, record.room.failed) == (ROOM_STATE_OPEN, "INSUFFICIENT_FUNDS")
    assert not house.tables.calls


async def test_chips_held_elsewhere_may_be_the_match_before_being_settled(house):
    replica, room = await starting(house, DEAR)
    founding = replica.founding()
    house.funds.refusals = [Reason.ELSEWHERE]
    assert not await founding.step(room.room_id)
    assert (await replica.record(room.room_id)).room.state == ROOM_STATE_STARTING
    house.clock.now += SETTLING_MS / 1000
    house.funds.refusals = [Reason.ELSEWHERE]
    assert await founding.step(room.room_id)
    assert (await replica.record(room.room_id)).room.failed == "ELSEWHERE"


async def test_a_ledger_that_was_away_has_time_to_settle_the_match_before(house):
    """It counts from when the ledger answers, however long the room has waited for that."""
    replica, room = await starting(house, DEAR)
    founding = replica.founding()
    for _ in range(2):
        house.funds.refusals = [Reason.ELSEWHERE]
        assert not await founding._tried(room.room_id)
        house.clock.now += SETTLING_MS / 1000
        house.funds.refusals = [Reason.UNAVAILABLE]
        assert not await founding._tried(room.room_id)
    assert await founding._tried(room.room_id)
    assert (await replica.record(room.room_id)).room.state == ROOM_STATE_PLAYING
    assert not founding._elsewhere_since


async def test_a_ledger_out_of_reach_fails_nothing(house):
    replica, room = await starting(house, DEAR)
    founding = replica.founding()
    house.clock.now += 3600
    house.funds.refusals = [Reason.UNAVAILABLE]
    with pytest.raises(RefusedError):
        await founding.step(room.room_id)
    assert await founding.step(room.room_id)
    assert (await replica.record(room.room_id)).room.state == ROOM_STATE_PLAYING


async def test_one_replica_is_refused_chips_that_another_gets():
    """Either there is a table and a room that plays, or neither, however the two meet."""
    outcomes = set()
    for seed in range(60):
        house = House()
        await house.players(1, 2)
        replica, room = await starting(house, DEAR)
        house.funds.refusals = [Reason.INSUFFICIENT_FUNDS]
        replicas = [
            await house.replica(n, Jittery(house.store, random.Random(seed * 7 + n))) for n in range(2)
        ]
        await asyncio.gather(*(one.founding().step(room.room_id) for one in replicas))
        record = await replica.record(room.room_id)
        outcomes.add(record.room.state)
        playing = record.room.state == ROOM_STATE_PLAYING
        assert list(house.tables.founded) == ([room.table_id] if playing else [])
        assert list(house.funds.held) == ([room.table_id] if playing else [])
        house.check()
    assert outcomes == {ROOM_STATE_OPEN, ROOM_STATE_PLAYING}


async def a_match(house, plan=DEAR):
    replica = await house.replica()
    record = matched(
        replica.deps.new_id("rom"),
        [Person(player(1), "P1"), Person(player(2), "P2"), DIFFICULTY_EASY, Person(player(3), "P3")],
        plan,
        "AAAAAA",
        operator="",
        now_ms=house.clock.ms(),
    )

    async def work(change: Change):
        for number in (1, 2, 3):
            await change.drop(place_key(player(number)))
        await save_room(change, None, record)

    await atomically(house.store, work)
    return replica, record.room


async def test_a_match_that_cannot_be_founded_is_over(house):
    replica, room = await a_match(house)
    assert room.state == ROOM_STATE_STARTING
    assert (await replica.place(3)) == PlaceRecord(room_id=room.room_id, table_id=room.table_id, seat=3)
    house.funds.chips[player(3)] = 1
    assert await replica.founding().step(room.room_id)
    assert await replica.record(room.room_id) is None
    assert not house.records("place", PlaceRecord)
    assert not house.tables.calls


async def test_a_match_plays_like_any_room(house):
    replica, room = await a_match(house)
    assert await replica.founding().step(room.room_id)
    assert (await replica.record(room.room_id)).room.state == ROOM_STATE_PLAYING
    assert list(house.tables.founded) == [room.table_id]


async def test_a_room_that_is_gone_needs_nothing(house):
    replica = await house.replica()
    assert await replica.founding().step(replica.deps.new_id("rom"))
    assert not (await house.store.get(room_key("x"))).value


async def test_chips_held_too_late_are_given_back(house):
    """One replica holds them just after another was refused them and has opened the room again."""
    replica, room = await starting(house, DEAR)
    other = await house.replica(seed=2)
    hold = house.funds.hold

    async def late(*asked):
        house.funds.hold = hold
        house.funds.refusals = [Reason.INSUFFICIENT_FUNDS]
        assert await other.founding().step(room.room_id)
        await hold(*asked)

    house.funds.hold = late
    assert await replica.founding().step(room.room_id)
    assert (await replica.record(room.room_id)).room.state == ROOM_STATE_OPEN
    assert not house.funds.held
    assert not house.tables.calls
