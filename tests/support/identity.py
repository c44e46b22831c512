"""Replicas of what signs players in, in memory, with a clock that tests turn."""

import json
import random
import uuid
from io import StringIO
from pathlib import Path

from prometheus_client import CollectorRegistry

from services.lobby.accounts import Accounts, NewPlayer, SignedIn
from services.lobby.deps import Deps
from services.lobby.members import Members
from services.lobby.metrics import LobbyMetrics
from services.lobby.operators import ApiKeys, Operators
from services.lobby.ports import EqualRatings, NoFunds
from services.lobby.sessions import Sessions
from services.lobby.signing import Signer
from services.lobby.store import Store
from services.lobby.store_memory import MemoryStore
from services.lobby.users import Users
from services.pb.lobby.v1 import player_service_pb2 as pb
from services.rules.reasons import Reason
from services.shell.bus import MemoryBus
from services.shell.errors import RefusedError
from services.shell.logs import Log
from services.shell.tokens import Identity, Verifier
from services.shell.trust import trusted

HOME, AWAY = "192.0.2.1", "198.51.100.9"
HOUSE = NewPlayer("", "")


class Clock:
    """Seconds that pass when told to."""

    now = 1_900_000_000.0

    def __call__(self) -> float:
        return self.now

    def ms(self) -> int:
        """Milliseconds of Unix time."""
        return round(self.now * 1000)


class Desk:
    """One replica; several may share a store, a clock and a data folder."""

    def __init__(self, data: Path, clock: Clock, store: Store | None = None, seed: int = 1) -> None:
        self.clock = clock
        self.store = store or MemoryStore(clock)
        self.registry = CollectorRegistry()
        self.deps = Deps(
            store=self.store,
            bus=MemoryBus(),
            now_ms=clock.ms,
            random=random.Random(seed).randbytes,
            ratings=EqualRatings(),
            funds=NoFunds(),
            metrics=LobbyMetrics(self.registry),
            log=Log("lobby", "error", StringIO()),
        )
        self.signer = Signer(data, clock.ms)
        self.verifier = Verifier(trusted(data), "lobby", clock=clock)
        self.sessions = Sessions(self.deps, self.signer)
        self.accounts = Accounts(self.deps, self.sessions)
        self.members = Members(self.store)
        self.users = Users(self.deps, self.sessions, self.verifier, self.members)
        self.keys = ApiKeys(self.deps)
        self.operators = Operators(self.store, clock.ms, self.deps.random)

    async def guest(self, operator: str = "") -> SignedIn:
        """A new guest."""
        return await self.accounts.sign_in_guest(NewPlayer(operator, ""))

    async def device(self, device: pb.Device, address: str = HOME, operator: str = "") -> SignedIn:
        """A sign-in with a device."""
        return await self.accounts.sign_in_device(device, NewPlayer(operator, ""), address)

    async def user(self, operator: str, user_id: str, guest_token: str = "", name: str = "") -> SignedIn:
        """A sign-in of an operator's user."""
        return await self.users.sign_in(NewPlayer(operator, name, "", user_id), guest_token)

    async def refresh(self, token: str, request: str = "", address: str = HOME) -> pb.Tokens:
        """New tokens, by a request of its own unless one is named."""
        return await self.sessions.refresh(token, request or str(uuid.uuid4()), address)

    def identity(self, tokens: pb.Tokens) -> Identity:
        """What the access token proves."""
        return self.verifier.verify(tokens.access_token)

    def count(self, name: str, **labels: str) -> float:
        """A metric's present value."""
        return self.registry.get_sample_value(name, labels) or 0.0


def device(name: str = "phone-0001", secret: bytes = b"s" * 16) -> pb.Device:
    """A device."""
    return pb.Device(device_id=name, secret=secret)


async def refusal(awaitable: object) -> RefusedError:
    """The refusal that something ends with."""
    try:
        done = await awaitable  # type: ignore[misc]
    except RefusedError as error:
        return error
    raise AssertionError(f"not refused: {done}")


async def reason(awaitable: object) -> Reason:
    """Why something is refused."""
    return (await refusal(awaitable)).reason


def kids(key_set: str) -> list[str]:
    """The key ids of a JWKS."""
    return [key["kid"] for key in json.loads(key_set)["keys"]]
