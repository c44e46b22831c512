"""Two replicas on a real nats-server: who is online and what is said reaches the other."""

from collections.abc import AsyncIterator

import pytest
from support.broker import until
from support.presence_world import Clock, World

from services.lobby.store_memory import MemoryStore
from services.lobby.talk import Saying
from services.shell.broker import Broker
from services.shell.bus import NatsBus
from services.shell.nats_server import NatsServer

ANN, BEN = (f"ply_{number:026}" for number in range(2))


@pytest.fixture
async def worlds(nats_server: NatsServer) -> AsyncIterator[list[World]]:
    store, clock = MemoryStore(), Clock()
    brokers = [await Broker.connect(nats_server.url, "test") for _ in range(2)]
    made = [World(store, NatsBus(broker), clock, seed) for seed, broker in enumerate(brokers)]
    for world in made:
        await world.start()
        await world.presence.start()
    for broker in brokers:
        await broker.client.flush(60)  # the server knows who listens
    yield made
    for world, broker in zip(made, brokers, strict=True):
        await world.presence.stop()
        await broker.close()


async def test_who_is_online_here_is_online_there(worlds: list[World]) -> None:
    here, there = worlds
    here.presence.enter(ANN, "acme")
    await until(lambda: there.presence.is_online(ANN))
    assert there.presence.online("acme") == 1
    await here.presence.stop()
    await until(lambda: not there.presence.is_online(ANN))  # told so: no time passes, nobody is silent


async def test_what_is_said_here_is_heard_there(worlds: list[World]) -> None:
    here, there = worlds
    heard: list[Saying] = []
    there.talk.on_said(heard.append)
    await here.room("rom_a", ANN, BEN)
    await here.talk.say(ANN, "nice")
    await until(lambda: bool(heard))
    assert heard[0].said.player_id == ANN
