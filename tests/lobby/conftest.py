"""A busy machine is no failure."""

import pytest
from support.broker import give_time


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Services that wait long for NATS."""
    give_time(monkeypatch)
