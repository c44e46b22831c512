"""Stays over real connections, through the guard: a client that goes, one that does not read, a drain."""

import asyncio
import os
import time
from collections.abc import AsyncIterator

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from support.broker import PATIENCE_S, until
from support.presence_world import World

from services.lobby import stays as module
from services.lobby.presence_servicer import PresenceServicer
from services.lobby.report_store import MemoryReports
from services.lobby.reports import Reports
from services.lobby.stays import Stays, StayTools
from services.pb.lobby.v1 import presence_service_pb2 as pb
from services.pb.lobby.v1.presence_service_pb2_grpc import PresenceServiceStub
from services.shell.errors import DETAILS_KEY
from services.shell.limits import Buckets
from services.shell.metrics import RpcMetrics
from services.shell.rpc import Guard
from services.shell.tokens import Issuer, Keys, Verifier, sign

ANN, BEN = (f"ply_{number:026}" for number in range(2))
SERVICE = pb.DESCRIPTOR.services_by_name["PresenceService"]


class Lease:
    """``stays.Lease``."""

    expires_at = 1 << 33


class ForEver:
    """``stays.Renewals`` of streams that never end."""

    def enter(self, player_id: str, expires_at: int, renewed: object) -> Lease:
        return Lease()

    def leave(self, lease: Lease) -> None:
        pass

    async def renew(self, player_id: str, expires_at: int) -> None:
        pass


class House:
    """A server of PresenceService alone."""

    def __init__(self) -> None:
        self.world = world = World()
        world.clock.now = time.time()
        renewals, key = ForEver(), Ed25519PrivateKey.generate()
        self.key = key
        tools = StayTools(
            world.deps,
            world.mirrors,
            world.presence,
            world.finder,
            world.talk,
            renewals,
            lambda record: record.ticket,
            world.clock,
        )
        self.stays = Stays(tools, 100)
        servicer = PresenceServicer(
            world.mirrors,
            world.presence,
            world.finder,
            self.stays,
            renewals,
            world.talk,
            Reports(world.deps, MemoryReports(), world.table_log),
        )
        guard = Guard(
            "shengji.lobby",
            Verifier([Issuer("lobby", Keys(key.public_key()))], "lobby"),
            RpcMetrics(world.registry, SERVICE.methods_by_name),
            world.deps.log,
            Buckets(0, 1),
        )
        limits = dict.fromkeys(SERVICE.methods_by_name, Buckets(0, 1))
        self.server = grpc.aio.server()
        self.server.add_generic_rpc_handlers((guard.handlers(SERVICE, servicer, limits),))
        self.port = self.server.add_insecure_port("127.0.0.1:0")

    def client(self, player_id: str) -> tuple[grpc.aio.Channel, "grpc.aio.UnaryStreamCall[object, object]"]:
        """A channel of a player's, and a stay on it."""
        channel = grpc.aio.insecure_channel(
            f"127.0.0.1:{self.port}", options=[("grpc.use_local_subchannel_pool", 1)]
        )
        token = sign(self.key, "lobby", player_id, scope="lobby")
        stay = PresenceServiceStub(channel).Stay(
            pb.StayRequest(), metadata=(("authorization", f"Bearer {token}"),)
        )
        return channel, stay


@pytest.fixture
async def house(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setattr(module, "SWEEP_S", 0.05)
    made = House()
    await made.world.start()
    await made.stays.start()
    await made.server.start()
    yield made
    await made.stays.stop()
    await made.server.stop(0)


async def why(stay: "grpc.aio.UnaryStreamCall[object, object]") -> str:
    """The reason that a stay has ended with."""

    async def to_the_end() -> None:
        while await stay.read() is not grpc.aio.EOF:
            pass

    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await asyncio.wait_for(to_the_end(), PATIENCE_S)
    status = Status.FromString(dict(ended.value.trailing_metadata())[DETAILS_KEY])
    info = ErrorInfo()
    status.details[0].Unpack(info)
    return info.reason


async def test_a_client_that_goes_is_offline(house: House) -> None:
    channel, stay = house.client(ANN)
    assert (await stay.read()).WhichOneof("content") == "whereabouts"
    assert house.world.presence.is_online(ANN)
    await channel.close()
    await until(lambda: not house.world.presence.is_online(ANN))


async def test_draining_says_so(house: House) -> None:
    channel, stay = house.client(ANN)
    await stay.read()
    house.stays.drain()
    assert await why(stay) == "DRAINING"
    await channel.close()


async def test_a_client_that_does_not_read_is_cut_off_and_others_are_told_everything(house: House) -> None:
    await house.world.room("rom_a", ANN, BEN)
    slow_channel, slow = house.client(ANN)
    channel, stay = house.client(BEN)
    await slow.read()
    await stay.read()
    slow_stay, quick_stay = (house.stays._of_player[player][0] for player in (ANN, BEN))
    version, waits = 1, 0

    async def told_ben() -> None:
        nonlocal version
        version += 1
        await house.world.room("rom_a", ANN, BEN, version=version, spectator_code=os.urandom(4_000).hex())
        async with asyncio.timeout(PATIENCE_S):
            while (await stay.read()).room.version < version:
                pass
        await until(lambda: not quick_stay._writing_since)

    while waits < 20:  # so often a message to Ann has been under way while Ben read one
        assert version < 2_000
        await told_ben()
        waits = waits + 1 if slow_stay._writing_since else 0
    house.world.clock.now += module.STUCK_S + 1
    await until(lambda: not house.world.presence.is_online(ANN))
    assert await why(slow) == "SLOW_READER"
    await told_ben()
    await slow_channel.close()
    await channel.close()
