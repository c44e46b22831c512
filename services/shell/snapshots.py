"""Snapshots of tables: sealed bytes in a key-value bucket, where an older one never replaces a newer one.

A snapshot is a cache. What it says is believed only when the log agrees, so losing all of them costs time
only, and a failure to write one is not worth a second try.
"""

import base64
from dataclasses import dataclass
from typing import Final, Protocol

from services.game.ids import TableId
from services.shell.broker import API_TIMEOUT_S, SNAPSHOT_BUCKET, SNAPSHOT_STREAM, Broker
from services.shell.js_api import EXPECTED, IN_FLIGHT, WRONG_LAST, ask, get_message, refusal

SNAPSHOT_MAX: Final = 256 * 1024
"""Largest snapshot in bytes."""
_VERSION_BYTES: Final = 8
_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table's snapshot: the version that it includes last, and its sealed bytes."""

    version: int
    payload: bytes


class Snapshots(Protocol):
    """The newest snapshot of each table. Every method raises ``BadId`` and ``Unavailable``."""

    async def get(self, table_id: str) -> Snapshot | None:
        """The table's snapshot, None if there is none."""

    async def put(self, table_id: str, version: int, payload: bytes) -> bool:
        """Keep a snapshot unless one of the same or a later version is there; whether it was kept.

        Raises:
            ValueError: a version below 1, or bytes none or too many.
        """


def _check(version: int, payload: bytes) -> None:
    if version < 1 or not 0 < len(payload) <= SNAPSHOT_MAX:
        raise ValueError(f"no such snapshot: version {version}, {len(payload)} bytes")


class MemorySnapshots:
    """``Snapshots`` in memory."""

    def __init__(self) -> None:
        self._kept: dict[str, Snapshot] = {}

    async def get(self, table_id: str) -> Snapshot | None:
        """See ``Snapshots.get``."""
        return self._kept.get(TableId(table_id))

    async def put(self, table_id: str, version: int, payload: bytes) -> bool:
        """See ``Snapshots.put``."""
        _check(version, payload)
        kept = self._kept.get(TableId(table_id))
        if kept is not None and kept.version >= version:
            return False
        self._kept[table_id] = Snapshot(version, payload)
        return True


class JetStreamSnapshots:
    """``Snapshots`` in a JetStream key-value bucket; a value is the version in 8 bytes and the payload."""

    def __init__(self, broker: Broker) -> None:
        self._inbox = broker.inbox

    async def get(self, table_id: str) -> Snapshot | None:
        """See ``Snapshots.get``."""
        snapshot, _ = await self._get(TableId(table_id))
        return snapshot

    async def put(self, table_id: str, version: int, payload: bytes) -> bool:
        """See ``Snapshots.put``."""
        _check(version, payload)
        table_id = TableId(table_id)
        value = version.to_bytes(_VERSION_BYTES, "big") + payload
        for _ in range(_TRIES):
            kept, revision = await self._get(table_id)
            if kept is not None and kept.version >= version:
                return False
            headers = {EXPECTED: str(revision)}
            subject = f"$KV.{SNAPSHOT_BUCKET}.{table_id}"
            answer = await ask(self._inbox, subject, value, API_TIMEOUT_S, headers)
            error = answer.get("error")
            if error is None:
                return True
            if error.get("err_code") != WRONG_LAST and error.get("err_code") not in IN_FLIGHT:
                raise refusal(error)
        return False

    async def _get(self, table_id: str) -> tuple[Snapshot | None, int]:
        """The snapshot and its revision; without one, the revision that a first one expects."""
        request = {"last_by_subj": f"$KV.{SNAPSHOT_BUCKET}.{table_id}"}
        message = await get_message(self._inbox, SNAPSHOT_STREAM, request, API_TIMEOUT_S)
        if message is None:
            return None, 0
        value = base64.b64decode(message.get("data", ""))
        if len(value) <= _VERSION_BYTES:
            # A deletion by NATS' own tools leaves an empty marker.
            return None, message["seq"]
        return Snapshot(int.from_bytes(value[:_VERSION_BYTES], "big"), value[_VERSION_BYTES:]), message["seq"]
