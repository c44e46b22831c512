"""A world with stays in it, and front ends that read them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from unittest.mock import patch

import pytest

from services.lobby import stays as module
from services.lobby.stays import Stays, StayTools
from services.pb.lobby.v1.match_service_pb2 import Ticket
from services.pb.lobby.v1.presence_service_pb2 import StayResponse
from services.pb.lobby.v1.stored_pb2 import TicketRecord
from services.shell.bus import MemoryBus
from services.shell.errors import RefusedError
from services.shell.renewals import Renewals
from support.broker import PATIENCE_S, until
from support.presence_world import World, started

ANN, BEN, CAT = (f"ply_{number:026}" for number in range(3))
ROOM, OTHER_ROOM, TABLE, TICKET = "rom_a", "rom_b", "tbl_a", "tkt_a"


async def settled() -> None:
    """Let everybody do what they can do now: all is in memory, so a few turns each will do."""
    for _ in range(50):
        await asyncio.sleep(0)


class Client:
    """A front end that reads a stay; ``reads`` cleared, it does not."""

    def __init__(self, stays: Stays, world: World, player_id: str, lives_s: int = 900) -> None:
        self.messages: list[StayResponse] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.task = asyncio.create_task(stays.stay(world.call(player_id, lives_s=lives_s), self._write))

    async def _write(self, message: bytes) -> None:
        await self.reads.wait()
        self.messages.append(StayResponse.FromString(message))

    @property
    def kinds(self) -> list[str | None]:
        """What came, in order."""
        return [message.WhichOneof("content") for message in self.messages]

    async def got(self, *kinds: str) -> None:
        """Wait until exactly these have come."""
        with suppress(TimeoutError):
            await until(lambda: len(self.messages) >= len(kinds))
        await settled()
        assert self.kinds == list(kinds)

    async def ended(self) -> RefusedError:
        """Why it has ended."""
        with pytest.raises(RefusedError) as refused:
            await asyncio.wait_for(self.task, PATIENCE_S)
        return refused.value


class House:
    """A world with its stays."""

    def __init__(self, limit: int = 100) -> None:
        self.world = World()
        self.renewals = Renewals(MemoryBus(), "stays")
        self.stays = Stays(
            StayTools(
                self.world.deps,
                self.world.mirrors,
                self.world.presence,
                self.world.finder,
                self.world.talk,
                self.renewals,
                _with_window,
                self.world.clock,
            ),
            limit,
        )
        self.clients: list[Client] = []

    def come(self, player_id: str, lives_s: int = 900) -> Client:
        """Have a player stay."""
        self.clients.append(Client(self.stays, self.world, player_id, lives_s))
        return self.clients[-1]

    async def passing(self, passing_s: float) -> None:
        """Let time pass."""
        await settled()
        self.world.clock.now += passing_s
        self.stays.sweep()
        await settled()


def _with_window(record: TicketRecord) -> Ticket:
    ticket = Ticket(window=75)
    ticket.MergeFrom(record.ticket)
    return ticket


@asynccontextmanager
async def opened(limit: int = 100, sweep_s: float = 3600.0) -> AsyncIterator[House]:
    """A house whose clients are all gone at the end, with nothing left of them.

    Args:
        limit: of stays.
        sweep_s: how often it looks at the time by itself; by default only ``passing`` has it look.
    """
    made = House(limit)
    with patch.object(module, "SWEEP_S", sweep_s):
        async with started(made.world):
            await made.stays.start()
            try:
                yield made
            finally:
                for client in made.clients:
                    client.task.cancel()
                await asyncio.gather(*(client.task for client in made.clients), return_exceptions=True)
                await made.stays.stop()
    assert len(made.stays) == 0
    assert not made.stays._of_player
    assert not len(made.renewals)
    assert made.world.presence.online("") == 0
    assert made.world.registry.get_sample_value("shengji_stays") == 0
