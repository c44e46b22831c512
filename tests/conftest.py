"""What several folders share: a real nats-server, a connection to it; and no haste, as machines are busy."""

import os
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from support.broker import PATIENCE_S, be_patient, running_server

from services.shell.broker import Broker
from services.shell.nats_server import NatsServer

settings.register_profile(
    "unhurried",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    # The same questions each time, so that a run fails for a change and not for its luck.
    derandomize="SHENGJI_EXPLORE" not in os.environ,
)
settings.load_profile("unhurried")

LONGEST_FIRST = ("integration", "cli", "ledger", "house", "bot", "lobby", "differential", "engine")
"""Folders whose files take long; a worker that got one of them last would be waited for by all."""


def _place(item: pytest.Item) -> int:
    folder = item.path.parent.name
    return LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes long; leave slow tests out unless ``-m`` asks for something."""
    items.sort(key=_place)
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
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in this process gives NATS up soon."""
    be_patient(monkeypatch)


@pytest.fixture
async def broker(nats_server: NatsServer) -> AsyncIterator[Broker]:
    """A connection to the module's server."""
    connection = await Broker.connect(nats_server.url, "test", within_s=PATIENCE_S)
    yield connection
    await connection.close()
