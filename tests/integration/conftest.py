"""Houses and calls that several files use."""

from collections.abc import AsyncIterator

import pytest
from support.calls import Calls
from support.house import House


@pytest.fixture
async def calls(house: House) -> AsyncIterator[Calls]:
    """Calls to all replicas of the module's house."""
    calls = Calls([replica.address for replica in house.replicas], house.token)
    yield calls
    await calls.close()
