"""Fixtures that several folders share: a real nats-server, and a connection to it."""

from collections.abc import AsyncIterator, Iterator

import pytest
from support.broker import running_server

from services.shell.broker import Broker
from services.shell.nats_server import NatsServer


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out unless ``-m`` asks for something."""
    if config.option.markexpr:
        return
    slow = [item for item in items if item.get_closest_marker("slow") is not None]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item.get_closest_marker("slow") is None]


@pytest.fixture(scope="module")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """A server of this module's own with our streams on it; a test that kills it must start it again."""
    with running_server(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture
async def broker(nats_server: NatsServer) -> AsyncIterator[Broker]:
    """A connection to the module's server."""
    connection = await Broker.connect(nats_server.url, "test")
    yield connection
    await connection.close()
