"""``Store`` in JetStream: one subject a record, several changed in one atomic batch.

What every answer of the server means stands in the table of services/shell/README.md; the same holds here,
and more. A batch that the server dropped, or had no place for, is not stored: again. Every message names the
change that it belongs to, so after a lost answer a record tells whose it is; its value would not, since two
writers may count to the same number. One record of a change is proof of all, and their revisions are
neighbours. A server killed while it stores a batch finishes that when it starts, before it serves anybody.
"""

import asyncio
import base64
import json
import math
import random
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from nats import errors

from services.lobby.store import NOTHING, Conflict, Entry, Listener, Write, check_key, check_writes
from services.lobby.store_following import JetStreamFollowing
from services.shell.broker import API_TIMEOUT_S, LOBBY_BUCKET, LOBBY_STREAM, TOMBSTONE_S, Broker
from services.shell.inbox import NoAnswer, Nobody, NotSent
from services.shell.js_api import BATCH_DROPPED, EXPECTED, get_message, header_lines
from services.shell.log_append import Answer, Outcome, given_up
from services.shell.log_jetstream import outcome_of
from services.shell.log_store import Unavailable, Why

COMMIT_TIMEOUT_S: Final = 3.0
"""How long a change is tried."""
ATTEMPT_S: Final = 1.5
"""How long one try waits for its answer; batches of several processes queue up before the stream."""
READ_TIMEOUT_S: Final = 3.0
OPEN_BATCHES: Final = 16
"""Batches that a process has open at once; the server allows a stream 50."""
_CHANGE: Final = "Sj-Change"
"""Header: the change that a message belongs to, the same in every try."""
_PAUSE_S: Final = (0.005, 0.020)
_ROOT: Final = f"$KV.{LOBBY_BUCKET}."


class _Kept(NamedTuple):
    """A record as the leader has it."""

    entry: Entry
    change: str


class JetStreamStore:
    """``Store`` in the bucket of the lobby."""

    def __init__(
        self,
        broker: Broker,
        *,
        timeout_s: float = COMMIT_TIMEOUT_S,
        on_conflict: Callable[[], object] = lambda: None,
    ) -> None:
        """Use a connection.

        Args:
            broker: it; the streams are there already (``broker.ensure_lobby_streams``).
            timeout_s: how long a change is tried.
            on_conflict: called for each change that another was faster than.
        """
        self._broker = broker
        self._timeout_s = timeout_s
        self._on_conflict = on_conflict
        self._open = asyncio.Semaphore(OPEN_BATCHES)
        self._followings: set[JetStreamFollowing] = set()
        broker.on_reconnect(self._reconnected)

    async def get(self, key: str) -> Entry:
        """See ``Store.get``."""
        return (await self._kept(check_key(key))).entry

    async def _kept(self, key: str) -> _Kept:
        now = asyncio.get_running_loop().time
        give_up = now() + READ_TIMEOUT_S
        while True:
            try:
                message = await get_message(
                    self._broker.inbox, LOBBY_STREAM, {"last_by_subj": _ROOT + key}, API_TIMEOUT_S
                )
            except Unavailable as error:
                if error.why is not Why.NO_ANSWER or now() >= give_up:
                    raise
                await asyncio.sleep(0.03)
            else:
                return _kept_as(message)

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        """See ``Store.commit``.

        Raises:
            Unavailable: no answer in the time; ``outcome_unknown`` when it may have been changed.
        """
        check_writes(writes)
        try:
            return await self._commit(writes)
        except Conflict:
            self._on_conflict()
            raise

    async def _commit(self, writes: Sequence[Write]) -> list[int]:
        change = uuid.uuid4().hex
        now = asyncio.get_running_loop().time
        give_up = now() + self._timeout_s
        unknown = False
        while True:
            answer = await self._attempt(change, writes, give_up - now())
            if answer.outcome is Outcome.ACKNOWLEDGED:
                return _revisions(answer.sequence - len(writes) + 1, len(writes))
            unknown = unknown or answer.outcome is Outcome.NO_ANSWER
            if answer.outcome in _SETTLED and unknown:
                revisions = await self._made(change, writes)
                if revisions is not None:
                    return revisions
            elif answer.outcome is Outcome.WRONG_LAST:
                raise Conflict
            pause_s = _pause(answer, unknown)
            if now() + pause_s >= give_up:
                raise given_up(answer, unknown)
            await asyncio.sleep(pause_s)

    async def _attempt(self, change: str, writes: Sequence[Write], left_s: float) -> Answer:
        """Send the change once; never raises for what a server or a network does."""
        timeout_s = max(0.01, min(ATTEMPT_S, left_s))
        try:
            if len(writes) == 1:
                return await self._request(writes[0], _headers(change, writes[0]), timeout_s)
            async with asyncio.timeout(max(0.01, left_s)):
                await self._open.acquire()
        except TimeoutError:
            return Answer(Outcome.IN_FLIGHT, detail="too many changes at once")
        try:
            return await self._batch(change, writes, timeout_s)
        finally:
            self._open.release()

    async def _batch(self, change: str, writes: Sequence[Write], timeout_s: float) -> Answer:
        # An id of its own: what is left of a try that broke off must not become part of the next.
        batch = uuid.uuid4().hex
        for number, write in enumerate(writes, 1):
            headers = _headers(change, write) | {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}
            if number == len(writes):
                headers["Nats-Batch-Commit"] = "1"
                return await self._request(write, headers, timeout_s)
            try:
                await self._broker.client.publish(_ROOT + write.key, write.value, headers=headers)
            except errors.Error:
                break
        # Without its last message a batch comes to nothing.
        return Answer(Outcome.NOT_SENT)

    async def _request(self, write: Write, headers: dict[str, str], timeout_s: float) -> Answer:
        try:
            message = await self._broker.inbox.request(_ROOT + write.key, write.value, timeout_s, headers)
        except NotSent:
            return Answer(Outcome.NOT_SENT)
        except NoAnswer:
            return Answer(Outcome.NO_ANSWER)
        except Nobody:
            return Answer(Outcome.NOBODY)
        return _answer(json.loads(message.data))

    async def _made(self, change: str, writes: Sequence[Write]) -> list[int] | None:
        """The revisions of a change that was made though its answer was lost; None if nobody can tell.

        Raises:
            Conflict: it was not made and never will be, or all its records have been changed since.
        """
        try:
            kept = await asyncio.gather(*(self._kept(write.key) for write in writes))
        except Unavailable:
            return None
        for number, record in enumerate(kept):
            if record.change == change:
                return _revisions(record.entry.revision - number, len(writes))
        if any(record.entry.revision > write.expected for record, write in zip(kept, writes, strict=True)):
            raise Conflict
        return None  # a stale leader, or the store is full

    async def follow(self, prefix: str, listener: Listener) -> JetStreamFollowing:
        """See ``Store.follow``. What the listener raises is logged, and does not end it."""
        check_key(prefix + ".x")
        following = JetStreamFollowing(self._broker, prefix, listener, self.get, self._followings.discard)
        self._followings.add(following)
        await following.start()
        return following

    def _reconnected(self) -> None:
        for following in self._followings:
            following.renew()


_SETTLED: Final = frozenset({Outcome.WRONG_LAST, Outcome.STORE_FULL, Outcome.REFUSED})
"""After a try whose outcome is unknown these are reason to look whether it was made."""


def _headers(change: str, write: Write) -> dict[str, str]:
    headers = {EXPECTED: str(write.expected), _CHANGE: change}
    if not write.value:
        # What NATS' own tools read as a deletion, and what leaves no marker of its end.
        headers["KV-Operation"] = "PURGE"
        headers["Nats-TTL"] = f"{TOMBSTONE_S}s"
    elif write.ttl_s:
        headers["Nats-TTL"] = f"{math.ceil(write.ttl_s)}s"
    return headers


def _revisions(first: int, count: int) -> list[int]:
    return list(range(first, first + count))


def _answer(answer: dict[str, Any]) -> Answer:
    error = answer.get("error")
    if error is None:
        return Answer(Outcome.ACKNOWLEDGED, answer["seq"])
    if error.get("err_code") in BATCH_DROPPED:
        return Answer(Outcome.IN_FLIGHT, detail=f"{error['err_code']} {error.get('description', '')}")
    return outcome_of(error)


def _pause(answer: Answer, unknown: bool) -> float:
    """Seconds until the next try of the same change.

    Raises:
        Unavailable: trying again at once is of no use.
    """
    match answer.outcome:
        case Outcome.IN_FLIGHT:
            return random.uniform(*_PAUSE_S)
        case Outcome.STORE_FULL | Outcome.REFUSED:
            raise given_up(answer, unknown)
        case Outcome.NOT_SENT if not unknown:
            raise given_up(answer, unknown)
        case _:
            return 0.03


def _kept_as(message: dict[str, Any] | None) -> _Kept:
    if message is None:
        return _Kept(NOTHING, "")
    headers = header_lines(base64.b64decode(message.get("hdrs", "")))
    value = base64.b64decode(message.get("data", ""))
    return _Kept(Entry(value, message["seq"]), headers.get(_CHANGE, ""))
