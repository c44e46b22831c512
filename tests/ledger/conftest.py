"""A new database of each kind."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.databases import KINDS, new_database, new_url

from services.ledger import database as module
from services.ledger.database import Database


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here nobody gives up waiting for a connection or a lock, however much the machine has to do."""
    for name, longer in (("_CONNECT_S", 60.0), ("_BUSY_S", 60.0), ("_BUSY_MS", 60_000)):
        monkeypatch.setattr(module, name, longer)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Which database; a class of tests for one kind alone overrides it."""
    return request.param


@pytest.fixture
def database_url(kind: str, tmp_path: Path) -> str:
    """Where a new, empty database is."""
    return new_url(kind, tmp_path)


@pytest.fixture
async def database(kind: str, tmp_path: Path) -> AsyncIterator[Database]:
    """A new migrated database; a module that needs more in it overrides it."""
    made = await new_database(kind, tmp_path)
    yield made
    await made.close()
