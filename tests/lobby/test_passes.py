"""Matchmaking passes: matches are made whole or not at all, whoever looks, fails or cancels meanwhile."""

import asyncio
import random
from itertools import count, pairwise

import pytest
from support.broker import until
from support.match_world import MatchHouse, Searcher, Unsteady, numbers_of
from support.room_world import player

from services.lobby.matching import match
from services.lobby.passes import ABSENT_S, AT_ONCE, EVERY_S, PASS_KEY, TURN_S
from services.lobby.records import place_key
from services.lobby.store import Write
from services.pb.event.v1.event_pb2 import DIFFICULTY_EASY, DIFFICULTY_UNSPECIFIED
from services.pb.lobby.v1.room_pb2 import (
    ROOM_STATE_OPEN,
    ROOM_STATE_SEARCHING,
    ROOM_STATE_STARTING,
    VISIBILITY_CODE,
)
from services.pb.lobby.v1.stored_pb2 import (
    TICKET_END_CANCELLED,
    TICKET_END_MATCHED,
    TICKET_END_OFFLINE,
    PlaceRecord,
    RoomRecord,
)
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.log_store import Unavailable


@pytest.fixture
async def house():
    house = MatchHouse()
    await house.players(*range(12))
    yield house
    house.check()


@pytest.fixture
async def searcher(house):
    return await house.searcher()


# -------------------------------------------------------------------------------------------------- one match


async def test_four_become_a_room_that_starts(house, searcher):
    for number in range(4):
        await searcher.create(number, stake=2)
        house.clock.now += 1
    await searcher.passes.look()
    (record,) = house.records("room", RoomRecord).values()
    room = record.room
    assert (room.state, room.host_id, room.visibility) == (ROOM_STATE_STARTING, player(0), VISIBILITY_CODE)
    assert (room.plan.preset, room.plan.stake) == ("classic-2d", 2)
    assert {member.player_id: member.name for member in room.members} == {
        player(number): f"P{number}" for number in range(4)
    }
    assert room.seats[0].player_id == player(0)
    assert room.table_id.startswith("tbl_")
    for seat, held in enumerate(room.seats):
        place = PlaceRecord.FromString((await house.store.get(place_key(held.player_id))).value)
        assert place == PlaceRecord(room_id=room.room_id, table_id=room.table_id, seat=seat)
    metrics = searcher.deps.metrics
    assert metrics.matches["people"]._value.get() == 1
    assert sum(metrics.ticket_wait.counts) == 4
    await searcher.passes.look()
    assert len(house.records("room", RoomRecord)) == 1


async def test_the_table_of_a_match_is_founded(house, searcher):
    for number in range(4):
        await searcher.create(number)
    await searcher.passes.look()
    (room_id,) = house.records("room", RoomRecord)
    assert await searcher.replica.founding().step(room_id)
    (request,) = house.tables.founded.values()
    assert sorted(seat.player_id for seat in request.seats) == sorted(player(number) for number in range(4))


async def test_partners_leave_their_room_for_that_of_the_match(house, searcher):
    one, other = await searcher.partners(0, 1), await searcher.partners(2, 3)
    await searcher.create(0, room=one)
    house.clock.now += 1
    await searcher.create(2, room=other)
    await searcher.passes.look()
    (record,) = house.records("room", RoomRecord).values()
    assert [seat.player_id for seat in record.room.seats] == [player(n) for n in (0, 2, 1, 3)]
    assert record.room.room_id not in (one.room_id, other.room_id)
    assert not await searcher.replica.has_code(one.code)


async def test_a_pair_and_two_singles(house, searcher):
    await searcher.create(5)
    room = await searcher.partners(0, 1)
    await searcher.create(0, room=room)
    await searcher.create(6)
    await searcher.passes.look()
    (record,) = house.records("room", RoomRecord).values()
    seats = [seat.player_id for seat in record.room.seats]
    assert {seats[0], seats[2]} in ({player(5), player(6)}, {player(0), player(1)})


async def test_bots_fill_after_the_wait(house, searcher):
    await searcher.create(0, bots_after_s=20, bots=DIFFICULTY_EASY)
    await searcher.create(1)
    house.clock.now += 19
    await searcher.passes.look()
    assert house.records("room", RoomRecord) == {}
    house.clock.now += 1
    await searcher.passes.look()
    (record,) = house.records("room", RoomRecord).values()
    assert [seat.player_id for seat in record.room.seats] == [player(0), "", "", ""]
    assert [seat.difficulty for seat in record.room.seats] == [DIFFICULTY_UNSPECIFIED, *[DIFFICULTY_EASY] * 3]
    assert searcher.deps.metrics.matches["bots"]._value.get() == 1
    assert await searcher.room_of(1) is None


async def test_a_ticket_cancelled_after_the_choice_is_in_no_match(house, searcher):
    tickets = [await searcher.create(number) for number in range(4)]
    (group,) = match(await searcher.passes._waiting(), house.clock.ms())
    await searcher.cancel(2, tickets[2].ticket_id)
    await searcher.passes._make(group)
    assert house.records("room", RoomRecord) == {}
    assert [house.tickets()[one.ticket_id].end for one in tickets] == [0, 0, TICKET_END_CANCELLED, 0]


async def test_two_replicas_that_chose_the_same_make_one_match(house, searcher):
    other = await house.searcher(2)
    for number in range(4):
        await searcher.create(number)
    (group,) = match(await searcher.passes._waiting(), house.clock.ms())
    await asyncio.gather(searcher.passes._make(group), other.passes._make(group))
    assert len(house.records("room", RoomRecord)) == 1
    made = [one.deps.metrics.matches["people"]._value.get() for one in (searcher, other)]
    assert sum(made) == 1


# ---------------------------------------------------------------------------------------------------- absence


async def test_a_ticket_outlives_its_connection_by_thirty_seconds(house, searcher):
    alone, stays = await searcher.create(0), await searcher.create(3)
    room = await searcher.partners(1, 2)
    pair = await searcher.create(1, room=room)
    house.presence.away = {player(0): ABSENT_S - 1, player(2): ABSENT_S - 1}
    await searcher.passes.look()
    assert (await searcher.room_of(0)) is not None, "away for a moment is not gone"
    assert house.tickets()[pair.ticket_id].end == house.tickets()[alone.ticket_id].end == TICKET_END_MATCHED
    assert house.tickets()[stays.ticket_id].end == TICKET_END_MATCHED


async def test_tickets_of_who_is_gone_are_dropped(house, searcher):
    alone, stays = await searcher.create(0), await searcher.create(3)
    room = await searcher.partners(1, 2)
    pair = await searcher.create(1, room=room)
    house.presence.away = {player(0): ABSENT_S, player(2): ABSENT_S}
    house.clock.now += ABSENT_S
    await searcher.passes.look()
    ends = {ticket_id: record.end for ticket_id, record in house.tickets().items()}
    assert ends == {
        alone.ticket_id: TICKET_END_OFFLINE,
        pair.ticket_id: TICKET_END_OFFLINE,
        stays.ticket_id: 0,
    }
    assert await searcher.replica.place(0) is None
    assert (await searcher.replica.record(room.room_id)).room.state == ROOM_STATE_OPEN
    assert searcher.deps.metrics.dropped_tickets["offline"]._value.get() == 2


async def test_who_has_just_come_back_is_not_taken_for_gone(house, searcher):
    """Comings are told about once a second, and tickets at once."""
    ticket = await searcher.create(0)
    house.presence.away = {player(0): 10 * ABSENT_S}
    house.clock.now += ABSENT_S - 1
    await searcher.passes.look()
    assert house.tickets()[ticket.ticket_id].end == 0
    house.clock.now += 1
    await searcher.passes.look()
    assert house.tickets()[ticket.ticket_id].end == TICKET_END_OFFLINE


async def test_a_ticket_that_no_place_names_holds_nobody_up(house, searcher):
    for number in range(5):
        await searcher.create(number)
        house.clock.now += 1
    entry = await house.store.get(place_key(player(2)))
    await house.store.commit([Write(place_key(player(2)), b"", entry.revision)])
    await searcher.passes.look()
    await searcher.passes.look()
    (record,) = house.records("room", RoomRecord).values()
    assert {member.player_id for member in record.room.members} == {player(n) for n in (0, 1, 3, 4)}


# ------------------------------------------------------------------------------------------------------ turns


async def test_replicas_take_turns(house):
    searchers = [await house.searcher(n) for n in range(3)]
    took = [await one.passes._take_turn() for one in searchers]
    assert took == [True, False, False]
    house.clock.now += TURN_S
    took = await asyncio.gather(*(one.passes._take_turn() for one in searchers))
    assert sorted(took) == [False, False, True]
    house.clock.now -= 3600
    assert await searchers[2].passes._take_turn(), "a turn in the future is a wrong clock's, and no turn"


async def test_of_all_who_would_take_a_turn_one_gets_it(house):
    chance = random.Random(5)
    searchers = [await house.searcher(n, Unsteady(house.store, chance)) for n in range(4)]
    for _ in range(20):
        house.clock.now += EVERY_S
        took = await asyncio.gather(*(one.passes._take_turn() for one in searchers))
        assert sum(took) == 1
    assert (await house.store.get(PASS_KEY)).value


async def test_it_runs_by_itself_and_survives_an_outage(house, monkeypatch):
    monkeypatch.setattr("services.lobby.passes.EVERY_S", 0.01)
    store = Unsteady(house.store, random.Random(1), fails=1.0)
    searcher = await house.searcher(store=store)
    helper = await house.searcher(2)
    for number in range(4):
        await helper.create(number)
    searcher.passes.start()
    await until(lambda: "pass_waits" in searcher.replica.world.log.getvalue())
    assert house.records("room", RoomRecord) == {}
    assert searcher.deps.metrics.tickets._value.get() == 4
    store.fails = 0.0
    await until(lambda: bool(house.records("room", RoomRecord)))
    await searcher.passes.stop()
    assert len(house.records("room", RoomRecord)) == 1


# ------------------------------------------------------------------------------------------ all of it at once


class Storm:
    """Replicas look again and again while players cancel and go, stores fail and replicas are killed."""

    PLAYERS = 44

    def __init__(self, house: MatchHouse, seed: int) -> None:
        self.house = house
        self.chance = random.Random(seed)
        self.seeds = count(seed * 100 + 10)
        self.stores: list[Unsteady] = []
        self.cancelled: set[str] = set()
        self.refused: set[str] = set()
        self.begun: dict[str, list[int]] = {}

    async def searcher(self) -> Searcher:
        store = Unsteady(self.house.store, self.chance, fails=0.04)
        self.stores.append(store)
        return await self.house.searcher(next(self.seeds), store)

    async def begin(self, searcher: Searcher) -> None:
        """Singles and pairs with all kinds of wishes; every fifth request is lost."""
        wishes = {"bots_after_s": self.chance.choice((0, 0, 15))}
        number = 0
        while number < self.PLAYERS:
            room = None
            if number + 1 < self.PLAYERS and self.chance.random() < 0.3:
                room = await self.partners(number, number + 1)
            ticket = await self.tried(searcher.create(number, room=room, **wishes))
            if ticket is not None:
                self.begun[ticket.ticket_id] = numbers_of(ticket, self.PLAYERS)
            number += 2 if room is not None else 1
            self.house.clock.now += self.chance.random() * 3

    async def partners(self, host: int, guest: int):
        calm = await self.house.searcher(next(self.seeds))
        return await calm.partners(host, guest)

    async def tried(self, doing):
        try:
            return await doing
        except Unavailable:
            return None
        except RefusedError as error:
            if error.reason not in (Reason.BUSY, Reason.ELSEWHERE):
                raise
            return None

    async def look(self) -> None:
        """One replica's life: it looks some times, and may be killed anywhere."""
        searcher = await self.searcher()
        life = asyncio.create_task(self.looks(searcher))
        if self.chance.random() < 0.5:
            for _ in range(self.chance.randrange(400)):
                await asyncio.sleep(0)
            life.cancel()
        await asyncio.gather(life, return_exceptions=True)
        if not life.cancelled() and life.exception():
            raise life.exception()

    async def looks(self, searcher: Searcher) -> None:
        for _ in range(3):
            await searcher.passes.look()
            self.house.clock.now += self.chance.random() * 5

    async def cancel(self) -> None:
        """Players who change their minds; some of the answers are lost."""
        searcher = await self.searcher()
        for ticket_id, numbers in self.chance.sample(sorted(self.begun.items()), len(self.begun) // 3):
            for _ in range(self.chance.randrange(200)):
                await asyncio.sleep(0)
            try:
                await searcher.cancel(self.chance.choice(numbers), ticket_id)
                self.cancelled.add(ticket_id)
            except Unavailable:
                continue
            except RefusedError as error:
                if error.reason is Reason.ALREADY_MATCHED:
                    self.refused.add(ticket_id)

    async def away(self) -> None:
        """Some lose their connection for good."""
        for number in self.chance.sample(range(self.PLAYERS), 4):
            await asyncio.sleep(0)
            self.house.presence.away[player(number)] = ABSENT_S + 1

    def check(self) -> None:
        """Nobody is lost, doubled or in two places, and every ticket has one end."""
        self.house.check()
        ends = {ticket_id: record.end for ticket_id, record in self.house.tickets().items()}
        assert set(self.begun) <= set(ends)
        for ticket_id in self.cancelled:
            assert ends[ticket_id] in (TICKET_END_CANCELLED, TICKET_END_OFFLINE)
        for ticket_id in self.refused:
            assert ends[ticket_id] == TICKET_END_MATCHED
        rooms = self.house.records("room", RoomRecord).values()
        playing = sorted(
            member.player_id
            for record in rooms
            if record.room.state == ROOM_STATE_STARTING
            for member in record.room.members
        )
        matched = sorted(
            player_id
            for record in self.house.tickets().values()
            if record.end == TICKET_END_MATCHED
            for player_id in record.ticket.player_ids
        )
        assert playing == matched
        waiting = {ticket_id for ticket_id, end in ends.items() if not end}
        searching = {r.room.ticket_id for r in rooms if r.room.state == ROOM_STATE_SEARCHING}
        assert searching <= waiting


@pytest.mark.parametrize("seed", range(30))
async def test_nobody_is_lost_or_doubled(seed):
    house = MatchHouse()
    await house.players(*range(Storm.PLAYERS))
    storm = Storm(house, seed)
    await storm.begin(await storm.searcher())
    await asyncio.gather(storm.look(), storm.look(), storm.look(), storm.cancel(), storm.away())
    storm.check()
    calm = await house.searcher(1)
    for _ in range(3):
        await calm.passes.look()
        storm.check()
    left = [calm.passes._as_waiting(record) for record in house.tickets().values() if not record.end]
    assert match(left, house.clock.ms()) == [], "in the end everybody is matched who can be"
    assert all(waiting.present for waiting in left)


async def test_a_long_pass_leaves_others_their_turn():
    house = MatchHouse()
    searcher = await house.searcher()
    await fill(house, 800)
    matches = searcher.deps.metrics.matches["people"]._value
    made = [matches.get()]

    async def heart() -> None:
        while made[-1] < 200:
            await asyncio.sleep(0)
            made.append(matches.get())

    await asyncio.gather(searcher.passes.look(), heart())
    assert len(house.records("room", RoomRecord)) == 200
    assert max(after - before for before, after in pairwise(made)) <= AT_ONCE


async def fill(house: MatchHouse, players: int) -> None:
    """Tickets as they would be made, all alike."""
    searcher = await house.searcher(9)
    await house.players(*range(players))
    for number in range(players):
        await searcher.create(number)
