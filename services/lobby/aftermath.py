"""What happens at a table, made true in its room: the match over, the table closed, a player gone.

All replicas share one durable consumer for each log stream, of commits of kind ``d`` alone. A commit is
acknowledged after its room was changed, so none is lost with a replica; twice, or in another order, they come
to the same.
"""

from typing import Final

from services.lobby import room_tables
from services.lobby.deps import Deps
from services.lobby.mirror import Mirror
from services.lobby.records import Change, atomically, room_key
from services.lobby.room_saving import save_room
from services.lobby.room_tables import Happened
from services.pb.lobby.v1.stored_pb2 import RoomRecord
from services.pb.log.v1.log_pb2 import Commit
from services.shell.broker import Broker
from services.shell.deliveries import Deliveries, Delivery, Durable
from services.shell.errors import RefusedError
from services.shell.log_store import Unavailable
from services.shell.logs import fault_of

DURABLE: Final = Durable(
    "lobby", "what the lobby makes of tables", "sj.v1.table.*.*.d", ack_wait_s=10.0, waiting=1024
)
AGAIN_S: Final = 1.0
UNKNOWN_S: Final = 10.0
"""For so long the room of a new commit's table may not be known here yet; then the table is nobody's."""


def what_happened(commit: Commit) -> Happened:
    """What a commit says that concerns a room."""
    left, over = [], False
    for event in commit.events:
        match event.WhichOneof("kind"):
            case "seat_left":
                left.append(event.seat_left.player_id)
            case "match_ended" | "table_closed":
                over = True
    return Happened(tuple(left), over)


class Rooms:
    """Which room a table belongs to, from the mirror."""

    def __init__(self, rooms: Mirror[RoomRecord]) -> None:
        self._by_table: dict[str, str] = {}
        for room_id, record in rooms.items():
            self._heard(room_id, None, record)
        rooms.on_change(self._heard)

    def of(self, table_id: str) -> str | None:
        """The room's id, if there is one."""
        return self._by_table.get(table_id)

    def _heard(self, room_id: str, before: RoomRecord | None, after: RoomRecord | None) -> None:
        was = before.room.table_id if before is not None else ""
        now = after.room.table_id if after is not None else ""
        if was != now:
            self._by_table.pop(was, None)
            if now:
                self._by_table[now] = room_id


class Aftermath:
    """Follows the tables of all rooms, together with the other replicas."""

    def __init__(self, deps: Deps, rooms: Mirror[RoomRecord], broker: Broker | None = None) -> None:
        """Make it; nothing is followed before ``start``.

        Args:
            deps: the store, the clock, metrics and log.
            rooms: the mirror of rooms.
            broker: where commits come from; None when somebody else hands them to ``take``.
        """
        self._deps = deps
        self._rooms = Rooms(rooms)
        self._deliveries = (
            Deliveries(broker, DURABLE, deps.log, self._deliver) if broker is not None else None
        )

    def start(self) -> None:
        """Begin to follow; the mirror has started."""
        if self._deliveries is not None:
            self._deliveries.start()

    async def stop(self) -> None:
        """Follow no more."""
        if self._deliveries is not None:
            await self._deliveries.stop()

    async def _deliver(self, table_id: str, delivery: Delivery) -> None:
        try:
            if not await self.take(table_id, delivery.commit):
                await delivery.again(AGAIN_S)
                return
        except (Unavailable, RefusedError) as error:
            self._deps.log.warning("aftermath_waits", table_id=table_id, fault=fault_of(error))
            await delivery.again(AGAIN_S)
            return
        except Exception as error:  # one table's trouble stops no other; the commit comes again
            self._deps.log.error("fault", rpc="aftermath", table_id=table_id, fault=fault_of(error))
            await delivery.again(UNKNOWN_S)
            return
        await delivery.done()

    async def take(self, table_id: str, commit: Commit) -> bool:
        """Make true what a commit says; False: its table may be of a room that is not known here yet.

        Raises:
            Unavailable: the store cannot be used.
            RefusedError: BUSY, when others changed the room too often meanwhile.
        """
        what = what_happened(commit)
        if what == Happened():
            return True
        age_s = self._deps.now_ms() / 1000 - commit.recorded_at_us / 1e6
        room_id = self._rooms.of(table_id)
        if room_id is None:
            return age_s > UNKNOWN_S
        if await make_true(self._deps, room_id, table_id, what):
            self._deps.metrics.aftermath_lag.observe(max(0.0, age_s))
        return True


async def make_true(deps: Deps, room_id: str, table_id: str, what: Happened) -> bool:
    """Change a room as something that happened at its table says; whether it changed.

    Raises:
        Unavailable: the store cannot be used.
        RefusedError: BUSY.
    """

    async def work(change: Change) -> bool:
        before = await change.get(room_key(room_id), RoomRecord)
        if before is None:
            return False
        after = room_tables.happened(before, table_id, what, deps.now_ms())
        await save_room(change, before, after)
        return after is not before

    return await atomically(deps.store, work)
