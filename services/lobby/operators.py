"""Operators and their API keys: ``opk_<key id>.<secret>``, the key id ``<operator>_<8 letters or digits>``.

The key id names the operator, so a key is looked up without an index; of the secret only the hash is kept.
"""

import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from services.lobby.deps import Deps
from services.lobby.records import Change, atomically, operator_key
from services.lobby.slowing import WrongError, tried
from services.lobby.store import Entry, Store
from services.pb.lobby.v1.stored_pb2 import OperatorKey, OperatorRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.jwks import encode
from services.shell.tokens import is_operator

PREFIX: Final = "opk_"
KEYS_MOST: Final = 8
"""API keys of one operator: some in use, one coming, one going."""
_SECRET_BYTES: Final = 32


class ApiKeys:
    """Tells operators by their API keys; ``authenticate`` is what the guard asks."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    async def authenticate(self, key: str, address: str) -> str:
        """The operator whose key this is.

        Raises:
            RefusedError: UNAUTHENTICATED: nobody's, or of one that is suspended; RATE_LIMITED: too many wrong
                tries.
            Unavailable: the store cannot be used.
        """
        key_id, _, secret = key.removeprefix(PREFIX).partition(".")
        name = key_id.rpartition("_")[0]
        if not key.startswith(PREFIX) or not is_operator(name) or not secret:
            raise RefusedError(Reason.UNAUTHENTICATED, {"detail": "that is no API key"})

        async def work(change: Change) -> OperatorRecord:
            operator = await change.get(operator_key(name), OperatorRecord)
            keys = operator.keys if operator is not None else ()
            shown = sha256(secret.encode()).digest()
            right = [known for known in keys if hmac.compare_digest(known.secret_hash, shown)]
            if operator is None or key_id not in [known.key_id for known in right]:
                raise WrongError(Reason.UNAUTHENTICATED)
            return operator

        operator = await tried(self._deps, "key", key_id[:64], address, work)
        if operator.suspended:
            raise RefusedError(Reason.UNAUTHENTICATED, {"detail": "the operator is suspended"})
        return operator.name


class OperatorError(Exception):
    """What the host asked for cannot be done to an operator; the message says why."""


class Operators:
    """Operators as the host deals with them."""

    def __init__(self, store: Store, now_ms: Callable[[], int], random: Callable[[int], bytes]) -> None:
        self._store = store
        self._now_ms = now_ms
        self._random = random

    async def add(self, name: str) -> str:
        """A new operator; its first API key, which nobody can see again.

        Raises:
            OperatorError: no name of one, or there is one of that name.
            Unavailable: the store cannot be used.
        """
        if not is_operator(name):
            raise OperatorError("an operator's name is 2 to 32 of a-z 0-9 -")

        async def work(change: Change) -> str:
            if await change.get(operator_key(name), OperatorRecord) is not None:
                raise OperatorError(f"there is an operator {name} already; see `shengji operator new-key`")
            record = OperatorRecord(name=name, created_at_ms=self._now_ms())
            return await self._put_key(change, record)

        return await atomically(self._store, work)

    async def new_key(self, name: str) -> str:
        """One more API key of an operator.

        Raises:
            OperatorError: no such operator, or it has 8 keys.
            Unavailable: the store cannot be used.
        """

        async def work(change: Change) -> str:
            record = await self._get(change, name)
            if len(record.keys) >= KEYS_MOST:
                raise OperatorError(f"{name} has {KEYS_MOST} keys; drop one first")
            return await self._put_key(change, record)

        return await atomically(self._store, work)

    async def drop_key(self, name: str, key_id: str) -> None:
        """Take a key from an operator at once; one that is gone already is a success.

        Raises:
            OperatorError: no such operator.
            Unavailable: the store cannot be used.
        """

        async def work(change: Change) -> None:
            record = await self._get(change, name)
            kept = [key for key in record.keys if key.key_id != key_id]
            del record.keys[:]
            record.keys.extend(kept)
            await change.put(operator_key(name), record)

        await atomically(self._store, work)

    async def suspend(self, name: str, suspended: bool = True) -> None:
        """Serve an operator and its players no more, or again.

        Raises:
            OperatorError: no such operator.
            Unavailable: the store cannot be used.
        """

        async def work(change: Change) -> None:
            record = await self._get(change, name)
            record.suspended = suspended
            await change.put(operator_key(name), record)

        await atomically(self._store, work)

    async def list(self) -> list[OperatorRecord]:
        """All operators by name.

        Raises:
            Unavailable: the store cannot be used.
        """
        found: list[OperatorRecord] = []

        def hear(_: str, entry: Entry) -> None:
            if entry.value:
                found.append(OperatorRecord.FromString(entry.value))

        following = await self._store.follow("operator", hear)
        await following.stop()
        return sorted({record.name: record for record in found}.values(), key=lambda record: record.name)

    async def _get(self, change: Change, name: str) -> OperatorRecord:
        record = await change.get(operator_key(name), OperatorRecord) if is_operator(name) else None
        if record is None:
            raise OperatorError(f"there is no operator {name}")
        return record

    async def _put_key(self, change: Change, record: OperatorRecord) -> str:
        key_id = f"{record.name}_{self._random(4).hex()}"
        secret = encode(self._random(_SECRET_BYTES))
        key = OperatorKey(
            key_id=key_id, secret_hash=sha256(secret.encode()).digest(), created_at_ms=self._now_ms()
        )
        record.keys.append(key)
        await change.put(operator_key(record.name), record)
        return f"{PREFIX}{key_id}.{secret}"
