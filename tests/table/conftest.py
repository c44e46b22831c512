"""Fixtures of the table service's tests: replicas on the module's nats-server, sharing one DATA."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.broker import give_time
from support.serving import Game, Replica, replica

from services.shell.keys import master_keys, signing_key
from services.shell.nats_server import NatsServer


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Services that wait long for NATS, for a version that is asked for, and with what is late."""
    give_time(monkeypatch)
    monkeypatch.setattr("services.table.servicer.VIEW_WAIT_S", 60.0)
    monkeypatch.setattr("services.table.deadlines.LATE_US", 600_000_000)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DATA folder with all keys."""
    folder = tmp_path_factory.mktemp("data")
    signing_key(folder, "local")
    signing_key(folder, "bots")
    signing_key(folder, "services")
    master_keys(folder)
    return folder


@pytest.fixture
async def one(nats_server: NatsServer, data: Path) -> AsyncIterator[Replica]:
    """A replica."""
    async with replica(nats_server.url, data) as running:
        yield running


@pytest.fixture
async def two(nats_server: NatsServer, data: Path, one: Replica) -> AsyncIterator[tuple[Replica, Replica]]:
    """Two replicas."""
    async with replica(nats_server.url, data) as other:
        yield one, other


@pytest.fixture
async def game(one: Replica) -> Game:
    """A table with four players at one replica, just founded."""
    game = Game([one])
    await game.found()
    return game
