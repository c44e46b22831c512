"""Houses and calls that several files use."""

from collections.abc import AsyncIterator

import pytest
from support.calls import Calls
from support.house import House
from support.lobby_people import LobbyCalls


@pytest.fixture
async def calls(house: House) -> AsyncIterator[Calls]:
    """Calls to all replicas of the module's house."""
    calls = Calls([replica.address for replica in house.replicas], house.token)
    yield calls
    await calls.close()


@pytest.fixture
async def lobby(house: House) -> AsyncIterator[LobbyCalls]:
    """Calls to all lobby replicas of the module's house."""
    lobby = LobbyCalls([replica.address for replica in house.lobbies])
    yield lobby
    await lobby.close()


@pytest.fixture
async def tables(house: House, lobby: LobbyCalls) -> AsyncIterator[Calls]:
    """Calls to all table replicas as people who have signed in at the lobby."""
    calls = Calls([replica.address for replica in house.replicas], lobby.token)
    yield calls
    await calls.close()
