"""The ends of rooms that nobody ends: all have been offline, or nobody goes on after the match.

A room whose table plays is never ended here. But if its table turns out to be over in the log, as after a
commit that no replica could place, the room is told so late.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

from services.lobby import rooms
from services.lobby.aftermath import make_true, what_happened
from services.lobby.deps import Deps
from services.lobby.mirror import Mirror
from services.lobby.records import Change, atomically, room_key
from services.lobby.room_saving import save_room
from services.lobby.room_tables import Happened
from services.lobby.room_views import Online
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_AFTER, ROOM_STATE_PLAYING
from services.pb.lobby.v1.stored_pb2 import RoomRecord
from services.pb.log.v1.log_pb2 import Commit
from services.shell.errors import RefusedError
from services.shell.log_store import LogStore, Unavailable
from services.shell.logs import fault_of

SWEEP_S: Final = 5.0
OFFLINE_S: Final = 120.0
"""A room ends when all its members have been away for so long and nothing has changed in it either,"""
AFTER_S: Final = 120.0
"""or so long after a match when nothing has changed in it since."""
HEAL_S: Final = 180.0
"""How often tables of rooms are looked up in the log."""
HEAL_AGE_S: Final = 60.0
"""A room that changed later than so long ago needs no healing."""
_TABLES_AT_ONCE: Final = 200


class RoomSweeper:
    """Ends rooms in the background."""

    def __init__(self, deps: Deps, mirror: Mirror[RoomRecord], presence: Online, log_store: LogStore) -> None:
        self._deps = deps
        self._mirror = mirror
        self._presence = presence
        self._log_store = log_store
        self._life: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; the mirror has started."""
        self._life = asyncio.create_task(self._live(), name="room sweeper")

    async def stop(self) -> None:
        """End no more."""
        if self._life is not None:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)

    async def _live(self) -> None:
        heal_in = 0.0
        while True:
            try:
                await self.sweep()
                if heal_in <= 0:
                    await self.heal()
                    heal_in = HEAL_S
            except (Unavailable, RefusedError) as error:
                self._deps.log.warning("sweep_waits", fault=fault_of(error))
            except Exception as error:
                self._deps.log.error("fault", rpc="room_sweeper", fault=fault_of(error))
            heal_in -= SWEEP_S
            await asyncio.sleep(SWEEP_S)

    async def sweep(self) -> None:
        """End what is to end now.

        Raises:
            Unavailable: the store cannot be used.
            RefusedError: BUSY.
        """
        self._deps.metrics.rooms.set(len(self._mirror))
        for room_id, record in self._mirror.items():
            why = self._why_over(record)
            if why and await self._end(room_id, record.room.version):
                self._deps.metrics.ended_rooms[why].inc()

    def _why_over(self, record: RoomRecord) -> str:
        """Why a room is to end: "offline" or "after"; empty when it is not."""
        room = record.room
        still_s = (self._deps.now_ms() - record.changed_at_ms) / 1000
        if room.state not in rooms.SETTLED:
            return ""
        if room.state == ROOM_STATE_AFTER and still_s >= AFTER_S:
            return "after"
        away = all(self._presence.absent_s(member.player_id) >= OFFLINE_S for member in room.members)
        return "offline" if away and still_s >= OFFLINE_S else ""

    async def _end(self, room_id: str, version: int) -> bool:
        """End a room unless it has changed since it was looked at."""

        async def work(change: Change) -> bool:
            before = await change.get(room_key(room_id), RoomRecord)
            if before is None or before.room.version != version:
                return False
            await save_room(change, before, rooms.end(before, self._deps.now_ms()))
            return True

        return await atomically(self._deps.store, work)

    async def heal(self) -> None:
        """Tell rooms whose tables are over what nobody told them.

        Raises:
            Unavailable: the store or the log cannot be used.
            RefusedError: BUSY.
        """
        for tables in self._batches():
            newest = await self._log_store.last(tables)
            for table_id, sequence in newest.items():
                stored = await self._log_store.read(table_id, sequence - 1, min_sequence=sequence)
                over = any(what_happened(Commit.FromString(commit.payload)).over for commit in stored)
                if over and await make_true(self._deps, tables[table_id], table_id, Happened(over=True)):
                    self._deps.log.warning("room_healed", table_id=table_id)

    def _batches(self) -> Iterator[dict[str, str]]:
        """The tables that have been played at for a while, with their rooms."""
        still = self._deps.now_ms() - HEAL_AGE_S * 1000
        playing = [
            (record.room.table_id, room_id)
            for room_id, record in self._mirror.items()
            if record.room.state == ROOM_STATE_PLAYING and record.changed_at_ms <= still
        ]
        for start in range(0, len(playing), _TABLES_AT_ONCE):
            yield dict(playing[start : start + _TABLES_AT_ONCE])
