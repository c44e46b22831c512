"""A crowd of people in the lobby: who they are, what they do at random, and what became of it."""

import asyncio
import math
import time
import uuid
from collections import Counter

from services.lobby.tickets import ticket_id_of
from services.pb.lobby.v1 import match_service_pb2 as match_pb
from services.pb.lobby.v1 import room_service_pb2 as room_pb
from services.pb.lobby.v1.room_pb2 import (
    ROOM_STATE_PLAYING,
    RoomPlan,
)
from services.pb.table.v1 import table_service_pb2 as pb
from support.calls import Refused
from support.house import patience
from support.lobby_people import Person, plan

HEALED_S = 30.0
"""In this time what a kill interrupted goes on: a delivery that died with its replica comes after 10 s."""


def expected(refused, *reasons):
    """Raise a refusal unless it is for one of some reasons."""
    if refused.reason not in reasons:
        raise refused


class TimeIsUp(Exception):
    """Everybody stays where they are."""


class Crowd:
    """All people, and the codes of rooms that they tell each other.

    Attributes:
        done: what happened how often.
        changes: changes of rooms that were acknowledged: the newest version of each.
        until: when time is up.
    """

    def __init__(self, tables):
        self.tables = tables
        self.until = math.inf
        self.codes = {}
        self.done = Counter()
        self.changes = {}

    def did(self, what):
        """Whether all this has happened."""
        return all(self.done[one] for one in what)

    def saw(self, room):
        self.changes[room.room_id] = max(room.version, self.changes.get(room.room_id, 0))


class Somebody(Person):
    """One of the crowd: does this and that, and checks at once what was acknowledged.

    Attributes:
        tickets: their tickets and what became of each, as far as they know.
        matched: the tables that matches have brought them to.
    """

    def __init__(self, crowd, calls, rng):
        super().__init__(calls, rng.randrange(2))
        self.crowd, self.rng = crowd, rng
        self.tickets = {}
        self.matched = []
        self.doing = ""

    async def live(self):
        """Until time is up."""
        try:
            while True:
                self.replica = self.rng.randrange(2)
                await self.pause(0.3)
                await self.rng.choice([self.host, self.host, self.visit, self.visit, self.visit, self.look])()
        except TimeIsUp:
            return
        except Exception as error:
            error.add_note(f"{self.player_id} was at: {self.doing}; whereabouts {self.stay.whereabouts}")
            raise

    async def pause(self, most_s):
        """Wait a moment; raises TimeIsUp."""
        await asyncio.sleep(self.rng.random() * most_s)
        if time.monotonic() > self.crowd.until:
            raise TimeIsUp

    async def holds(self, room, seat=None):
        """What was acknowledged is so at any replica."""
        self.crowd.saw(room)
        self.replica = self.rng.randrange(2)
        where = await self.whereabouts()
        if where.room_id != room.room_id:
            # Only a match takes the people of a room to another one.
            assert where.table_id, f"{self.player_id} came into {room.room_id} and is at {where}"
            return
        assert where.room.version >= room.version, "an older room than acknowledged"
        if seat is not None:
            assert where.room.seats[seat].player_id == self.player_id, where

    # ------------------------------------------------------------------------------------------------ rooms

    async def host(self):
        """Make a room and wait for others; leave it, start it, or look for opponents as two partners."""
        self.doing = "hosting"
        partners = self.rng.random() < 0.3
        room = await self.make_room(RoomPlan(preset="classic-1d") if partners else plan())
        self.crowd.done["rooms"] += 1
        await self.holds(room, 0)
        self.crowd.codes[room.room_id] = room.code
        await self.pause(1.5)
        self.crowd.codes.pop(room.room_id)
        choice = self.rng.random()
        if partners and await self.search(room.room_id):
            return
        if choice < 0.15:
            await self.leave_room(room.room_id)
            return
        started = await self.start(room.room_id)
        self.crowd.saw(started)
        self.crowd.done["starts"] += 1
        await self.play(started.table_id)

    async def visit(self):
        """Come into somebody's room, sit down, and go where it goes."""
        self.doing = "visiting"
        if not self.crowd.codes:
            return
        code = self.rng.choice(list(self.crowd.codes.values()))
        try:
            room = await self.join(code)
        except Refused as refused:
            expected(refused, "UNKNOWN_CODE", "WRONG_PHASE", "ROOM_FULL")  # it has ended, or begun
            return
        self.crowd.done["visits"] += 1
        await self.holds(room)
        seat = self.rng.randrange(1, 4)
        try:
            taken = await self.take_seat(room.room_id, seat)
        except Refused as refused:
            expected(refused, "SEAT_TAKEN", "WRONG_PHASE", "UNKNOWN_ROOM")
        else:
            self.crowd.done["seats"] += 1
            await self.holds(taken, seat)
        await self.stay_in(room.room_id)

    async def stay_in(self, room_id):
        """Wait for the table, or go when it is enough."""
        for _ in range(4):
            await self.pause(1)
            where = await self.whereabouts()
            if where.table_id:
                if where.room_id != room_id:
                    self.matched.append(where.table_id)
                await self.play(where.table_id)
                return
        try:
            await self.leave_room(room_id)
        except Refused as refused:
            expected(refused, "WRONG_PHASE")
            self.doing = "waiting for the end of a search, or for a table"
            await self.stay_in(room_id)

    async def leave_room(self, room_id):
        await self.settle("LeaveRoom", room_pb.LeaveRoomRequest(room_id=room_id))
        self.crowd.done["left"] += 1
        where = await self.whereabouts()
        assert where.room_id != room_id, "left and still there"
        if where.table_id:  # the room of two partners had become a match's by then
            self.matched.append(where.table_id)
            await self.play(where.table_id)

    async def play(self, table_id):
        """Go to a table when it plays, and leave it."""
        self.doing = f"waiting for {table_id}"

        def plays():
            where = self.stay.whereabouts
            return where.table_id == table_id and self.stay.room.state == ROOM_STATE_PLAYING

        await self.stay.until(plays, patience(HEALED_S))
        self.crowd.done["tables"] += 1
        await self.pause(0.6)
        self.doing = f"leaving {table_id}"
        leave = pb.LeaveRequest(context=pb.CommandContext(table_id=table_id))
        await self.crowd.tables.settle("Leave", leave, self.player_id)
        await self.stay.until(lambda: not self.stay.whereabouts.room_id, patience(HEALED_S))

    # ---------------------------------------------------------------------------------------------- tickets

    async def look(self):
        """Look for a match alone."""
        await self.search("")

    async def search(self, room_id):
        """Look for a match, perhaps cancel; False: these are no two partners."""
        self.doing = "searching"
        request = match_pb.CreateTicketRequest(
            request_id=str(uuid.UUID(int=self.rng.getrandbits(128))),
            preset="classic-1d",
            bots_after_s=self.rng.choice([0, 1, 2]),
            room_id=room_id,
        )
        ticket_id = ticket_id_of(self.player_id, uuid.UUID(request.request_id).bytes)
        try:
            ticket = (await self.settle("CreateTicket", request)).ticket
            assert ticket.ticket_id == ticket_id
            assert (len(ticket.player_ids) == 2) == bool(room_id)
        except Refused as refused:
            if room_id and refused.reason == "BAD_INPUT":
                return False
            expected(refused, "ALREADY_MATCHED")
        self.crowd.done["tickets"] += 1
        self.tickets[ticket_id] = "made"
        await self.pause(2)
        if self.rng.random() < 0.5 and await self.cancel(ticket_id):
            if room_id:
                await self.leave_room(room_id)
            return True
        self.doing = f"waiting for the match of {ticket_id}"
        give_up = time.monotonic() + patience(HEALED_S)
        while not (where := await self.whereabouts()).table_id:
            assert where.ticket_id == ticket_id, f"a ticket was lost: {where}"
            assert time.monotonic() < give_up or not request.bots_after_s, "bots never came"
            await self.pause(0.5)
        self.tickets[ticket_id] = "matched"
        self.matched.append(where.table_id)
        await self.play(where.table_id)
        return True

    async def cancel(self, ticket_id):
        """Stop looking; False: it is matched."""
        try:
            await self.settle("CancelTicket", match_pb.CancelTicketRequest(ticket_id=ticket_id))
        except Refused as refused:
            expected(refused, "ALREADY_MATCHED")
            return False
        self.tickets[ticket_id] = "cancelled"
        self.crowd.done["cancelled"] += 1
        where = await self.whereabouts()
        assert not where.ticket_id, "cancelled and still waiting"
        assert not where.table_id, "cancelled and matched"
        return True
