"""What the parts of the lobby stand on."""

from collections.abc import Callable
from typing import NamedTuple

from services.game.ids import new_id
from services.lobby.metrics import LobbyMetrics
from services.lobby.mirror import Mirror
from services.lobby.ports import Funds, Ratings
from services.lobby.store import Store
from services.pb.lobby.v1.stored_pb2 import PlaceRecord, RoomRecord, TicketRecord
from services.shell.bus import Bus
from services.shell.logs import Log


class Deps(NamedTuple):
    """The ports and tools that the parts of the lobby share."""

    store: Store
    bus: Bus
    now_ms: Callable[[], int]
    """The clock, milliseconds of Unix time."""
    random: Callable[[int], bytes]
    """So many random bytes."""
    ratings: Ratings
    funds: Funds
    metrics: LobbyMetrics
    log: Log
    foreseen: bool = False
    """Ids carry no time, so that with seeded bytes they repeat; never for real play."""

    def new_id(self, prefix: str) -> str:
        """A new id, such as ``rom_…``."""
        return new_id(prefix, 0 if self.foreseen else self.now_ms(), self.random(10))


class Mirrors(NamedTuple):
    """What this replica knows of the records that lists, streams and passes look at."""

    rooms: Mirror[RoomRecord]
    places: Mirror[PlaceRecord]
    tickets: Mirror[TicketRecord]
