"""What every bus does, in memory and on a real server alike."""

import asyncio

import pytest
from support.broker import PATIENCE_S, until

from services.shell.broker import Broker
from services.shell.bus import Bus, MemoryBus, NatsBus
from services.shell.nats_server import NatsServer


class BusContract:
    """The contract; an adapter's class provides ``bus``."""

    async def test_whoever_listens_is_told_in_order(self, bus: Bus) -> None:
        one: list[bytes] = []
        two: list[bytes] = []
        await bus.hear("order", one.append)
        await bus.hear("order", two.append)
        news = [b"%d" % number for number in range(100)]
        for text in news:
            await bus.tell("order", text)
        await until(lambda: one == two == news)

    async def test_topics_are_apart(self, bus: Bus) -> None:
        mine: list[bytes] = []
        others: list[bytes] = []
        await bus.hear("mine", mine.append)
        await bus.hear("others", others.append)
        await bus.tell("mine", bytes(range(256)))
        await bus.tell("others", b"")
        await until(lambda: bool(mine and others))
        assert (mine, others) == ([bytes(range(256))], [b""])

    async def test_nothing_is_kept(self, bus: Bus) -> None:
        heard: list[bytes] = []
        await bus.tell("kept", b"early")
        await bus.hear("kept", heard.append)
        await bus.tell("kept", b"late")
        await until(lambda: bool(heard))
        assert heard == [b"late"]


class TestMemoryBus(BusContract):
    @pytest.fixture
    def bus(self) -> MemoryBus:
        return MemoryBus()


class TestNatsBus(BusContract):
    @pytest.fixture
    def bus(self, broker: Broker) -> NatsBus:
        return NatsBus(broker)

    async def test_other_processes_hear_it_at_once(self, nats_server: NatsServer, bus: NatsBus) -> None:
        connection = await Broker.connect(nats_server.url, "other")
        heard: list[bytes] = []
        await NatsBus(connection).hear("others", heard.append)
        await bus.tell("others", b"news")
        await until(lambda: heard == [b"news"])
        await connection.close()

    async def test_a_restart_loses_what_was_told_meanwhile_and_no_more(
        self, nats_server: NatsServer, broker: Broker, bus: NatsBus
    ) -> None:
        heard: list[bytes] = []
        await bus.hear("restart", heard.append)
        nats_server.kill()
        await until(lambda: not broker.connected)
        await bus.tell("restart", b"lost")
        await nats_server.start(within_s=PATIENCE_S)
        await until(lambda: broker.epoch == 1)  # what it subscribed to is renewed then
        await bus.tell("restart", b"heard")
        await until(lambda: bool(heard))
        await asyncio.sleep(0.1)
        assert heard == [b"heard"]

    async def test_a_closed_connection_tells_nobody(self, nats_server: NatsServer) -> None:
        connection = await Broker.connect(nats_server.url, "closed")
        await connection.close()
        await NatsBus(connection).tell("closed", b"news")
