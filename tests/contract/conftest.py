"""The contracts are about answers, so a server that takes its time is no fault."""

import pytest
from support.broker import be_patient


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)
