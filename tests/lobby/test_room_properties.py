"""Many players and rooms on two replicas that race: whatever they do, records agree."""

import asyncio
import random
import uuid

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.room_world import DEAR, PLAN, House, Jittery, player

from services.lobby.aftermath import Aftermath
from services.lobby.room_sweeper import RoomSweeper
from services.pb.event.v1 import event_pb2 as events
from services.pb.lobby.v1 import room_service_pb2 as pb
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_AFTER
from services.pb.lobby.v1.stored_pb2 import RoomRecord
from services.pb.log.v1.log_pb2 import Commit
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.log_memory import MemoryLog

PLAYERS = 7
PEOPLE = st.integers(0, PLAYERS - 1)
SEATS = st.integers(0, 3)
FAULTS = {Reason.INTERNAL, Reason.UNAVAILABLE}


class Lobby(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 1_000_000))
    def begin(self, seed):
        self.runner = asyncio.Runner()
        self.chance = random.Random(seed)
        self.house = House()
        self.runner.run(self._begin())

    async def _begin(self):
        await self.house.players(*range(PLAYERS))
        self.replicas = [
            await self.house.replica(number, Jittery(self.house.store, self.chance)) for number in range(2)
        ]

    def teardown(self):
        if hasattr(self, "runner"):
            self.runner.close()

    # ------------------------------------------------------------------------------------------- helpers

    def rooms(self):
        return sorted(self.house.records("room", RoomRecord).values(), key=lambda record: record.room.code)

    def room(self, pick):
        rooms = self.rooms()
        return rooms[pick % len(rooms)] if rooms else None

    def member(self, record, pick):
        """One of a room's members."""
        members = record.room.members
        return self.number(members[pick % len(members)].player_id)

    def together(self, *calls):
        """Do calls at once; each ends well, or is refused for a reason."""

        async def both():
            return await asyncio.gather(*(self._safely(call) for call in calls))

        done = self.runner.run(both())
        self.house.clock.now += 0.5
        assert not FAULTS & {one for one in done if isinstance(one, Reason)}
        return done

    @staticmethod
    async def _safely(call):
        try:
            return await call
        except RefusedError as refused:
            return refused.reason

    def servicer(self):
        return self.replicas[self.chance.randrange(2)].rooms

    def call(self, number):
        return self.replicas[0].call(number)

    # --------------------------------------------------------------------------------------------- rules

    @rule(first=PEOPLE, second=PEOPLE, dear=st.booleans())
    def create(self, first, second, dear):
        plan = DEAR if dear else PLAN
        self.together(self.replicas[0].create(first, plan), self.replicas[1].create(second, plan))

    @rule(number=PEOPLE)
    def create_twice(self, number):
        request = uuid.UUID(int=self.chance.getrandbits(128))
        one, other = self.together(*(each.create(number, request=request) for each in self.replicas))
        assert one == other or Reason.BUSY in (one, other)

    @rule(people=st.lists(PEOPLE, min_size=1, max_size=4), pick=st.integers(0, 9))
    def join(self, people, pick):
        record = self.room(pick)
        if record:
            self.together(
                *(self.replicas[i % 2].join(number, record.room) for i, number in enumerate(people))
            )

    @rule(first=PEOPLE, second=PEOPLE, pick=st.integers(0, 9), seats=st.tuples(SEATS, SEATS))
    def sit(self, first, second, pick, seats):
        record = self.room(pick)
        if record:
            self.together(
                self.replicas[0].sit(self.member(record, first), record.room, seats[0]),
                self.replicas[1].sit(self.member(record, second), record.room, seats[1]),
            )

    @rule(first=PEOPLE, second=PEOPLE, pick=st.integers(0, 9))
    def leave(self, first, second, pick):
        record = self.room(pick)
        if record:
            request = pb.LeaveRoomRequest(room_id=record.room.room_id)
            self.together(
                self.servicer().leave_room(request, self.call(self.member(record, first))),
                self.servicer().leave_room(request, self.call(second)),
            )

    @rule(whom=PEOPLE, comes=PEOPLE, pick=st.integers(0, 9))
    def kick(self, whom, comes, pick):
        record = self.room(pick)
        if record:
            host = self.number(record.room.host_id)
            request = pb.KickRequest(room_id=record.room.room_id, player_id=player(self.member(record, whom)))
            self.together(
                self.servicer().kick(request, self.call(host)), self.replicas[1].join(comes, record.room)
            )

    @rule(whom=PEOPLE, pick=st.integers(0, 9), seats=st.tuples(SEATS, SEATS))
    def host_decides(self, whom, pick, seats):
        record = self.room(pick)
        if record:
            host, room_id = self.call(self.number(record.room.host_id)), record.room.room_id
            swap = pb.SwapSeatsRequest(room_id=room_id, first=seats[0], second=seats[1])
            whom = player(self.member(record, whom))
            hand = pb.HandOverRequest(room_id=room_id, player_id=whom)
            self.together(
                self.servicer().swap_seats(swap, host),
                self.servicer().hand_over(hand, host),
                self.servicer().renew_code(pb.RenewCodeRequest(room_id=room_id), host),
            )

    @rule(pick=st.integers(0, 9), leaver=PEOPLE)
    def start(self, pick, leaver):
        record = self.room(pick)
        if record:
            room = record.room
            request = pb.LeaveRoomRequest(room_id=room.room_id)
            self.together(
                self.replicas[0].begin(self.number(room.host_id), room),
                self.servicer().leave_room(request, self.call(self.member(record, leaver))),
            )

    @rule(poor=st.booleans())
    def found(self, poor):
        for record in self.rooms():
            self.house.funds.refusals = [Reason.INSUFFICIENT_FUNDS] if poor else []
            steps = (replica.founding().step(record.room.room_id) for replica in self.replicas)
            self.together(*steps)
            self.house.funds.refusals = []

    @rule(leaver=PEOPLE, dear=st.booleans())
    def whole_match(self, leaver, dear):
        """Some room, or a new one, to the end of a match."""
        self.create(leaver, leaver, dear)
        for pick in range(len(self.rooms())):
            self.join([leaver], pick)
            self.sit(0, leaver, pick, (0, 2))
            self.start(pick, leaver)
        self.found(poor=False)
        for pick in range(len(self.rooms())):
            self.table_says(pick, leaver, over=True, escapes=leaver == 0, joins=leaver)

    @rule(pick=st.integers(0, 9), leaver=PEOPLE, over=st.booleans(), escapes=st.booleans(), joins=PEOPLE)
    def table_says(self, pick, leaver, over, escapes, joins):
        record = self.room(pick)
        if record and record.room.table_id in self.house.tables.founded:
            left = events.SeatLeft(player_id=player(self.member(record, leaver)), escaped=True)
            said = [events.Event(seat_left=left)] if escapes else []
            if over or not said:
                said.append(events.Event(match_ended=events.MatchEnded()))
            commit = Commit(events=said, recorded_at_us=round(self.house.clock.now * 1e6))
            takes = (
                Aftermath(replica.deps, replica.world.mirrors.rooms).take(record.room.table_id, commit)
                for replica in self.replicas
            )
            self.together(*takes, self.replicas[0].join(joins, record.room))

    @rule(wants=st.sampled_from([True, True, False]))
    def play_again(self, wants):
        for record in self.rooms():
            if record.room.state != ROOM_STATE_AFTER:
                continue
            request = pb.PlayAgainRequest(room_id=record.room.room_id, again=wants)
            people = [self.number(seat.player_id) for seat in record.room.seats if seat.player_id]
            self.together(*(self.servicer().play_again(request, self.call(number)) for number in people))

    @rule(away=st.sets(PEOPLE), seconds=st.sampled_from([1, 1, 1, 130]))
    def sweep(self, away, seconds):
        self.house.clock.now += seconds
        self.house.presence.away = {player(number): 500.0 for number in away}
        self.together(
            *(
                RoomSweeper(
                    replica.deps, replica.world.mirrors.rooms, self.house.presence, MemoryLog()
                ).sweep()
                for replica in self.replicas
            )
        )

    @staticmethod
    def number(player_id):
        return next(number for number in range(PLAYERS) if player(number) == player_id)

    # --------------------------------------------------------------------------------------- always true

    @invariant()
    def records_agree(self):
        if hasattr(self, "house"):
            self.house.check()

    @invariant()
    def mirrors_know(self):
        for replica in getattr(self, "replicas", ()):
            known = dict(replica.world.mirrors.rooms.items())
            assert known == self.house.records("room", RoomRecord)

    @invariant()
    def chips_are_held_for_tables_alone(self):
        if hasattr(self, "house"):
            assert set(self.house.funds.held) <= set(self.house.tables.founded)


Lobby.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestLobby = pytest.mark.filterwarnings("ignore::ResourceWarning")(Lobby.TestCase)
