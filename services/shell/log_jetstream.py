"""The log in JetStream: four streams, one subject a table and kind, compare-and-set over both kinds."""

import asyncio
import base64
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from itertools import count
from typing import Any, Final, NamedTuple

from nats import errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from services.game.ids import (
    KINDS,
    Kind,
    every_live_subject,
    every_subject,
    live_subject,
    parse_subject,
    stream_name,
    subject,
)
from services.shell.broker import API_TIMEOUT_S, Broker, BrokerError
from services.shell.inbox import STATUS, NoAnswer, Nobody, NotSent
from services.shell.js_api import (
    EXPECTED,
    EXPECTED_SUBJECT,
    IN_FLIGHT,
    NOT_READY,
    PENDING,
    SEQUENCE,
    STORE_FULL,
    SUBJECT,
    WRONG_LAST,
    ask,
    get_message,
    header_lines,
)
from services.shell.log_append import Answer, Appender, Ends, Outcome
from services.shell.log_store import (
    APPEND_TIMEOUT_S,
    READ_TIMEOUT_S,
    Appended,
    Listening,
    LiveCallback,
    Lost,
    Stored,
    Tell,
    Unavailable,
    Why,
)
from services.shell.trace import TRACEPARENT

COLD_LOADS: Final = 16
"""Reads under way at once; the server works through them on about one core."""
COLD_LOADS_WAITING: Final = 256
"""Reads that may wait for those; the next one is told to come back."""
BATCH: Final = 2500
"""Messages of one batched direct get."""
BATCH_TIMEOUT_S: Final = 3.0
"""For all answers of one; a connection that has died is noticed in that time."""
LAST_BATCH: Final = 500
"""Tables of one ``multi_last``: the server gives at most 1,024 messages, and a table has two subjects."""
STALE_READS: Final = 5
"""Direct gets that may miss a commit known to be there, before its leader is asked."""

_ENDS: Final = {"204", "404"}
"""How a batch ends: with its end, or without any message."""


class _Route(NamedTuple):
    """A table's places, worked out once."""

    stream: str
    every: str
    subjects: Mapping[str, str]
    acknowledged: bytes
    """How the server's acknowledgement begins; the sequence and a brace follow."""


@lru_cache(maxsize=16_384)
def _route(table_id: str) -> _Route:
    """The places of a table.

    Raises:
        BadId: no table id.
    """
    stream = stream_name(table_id)
    return _Route(
        stream,
        every_subject(table_id),
        {kind: subject(table_id, kind) for kind in KINDS},
        f'{{"stream":"{stream}","seq":'.encode(),
    )


def _previous(headers: Mapping[str, str]) -> int:
    """The expectation that a stored commit was accepted with: the table's commit before it, of either kind.

    ``Nats-Last-Sequence`` would be the one before it of the same kind.
    """
    return int(headers.get(EXPECTED, -1))


def _stored(message: Msg) -> Stored:
    headers = message.headers or {}
    return Stored(int(headers[SEQUENCE]), message.data, _previous(headers))


class _JetStreamWire:
    """Single publishes and reads for the ``Appender``."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._request = broker.inbox.request

    @property
    def epoch(self) -> int:
        return self._broker.epoch

    def stream(self, table_id: str) -> str:
        return _route(table_id).stream

    async def publish(
        self, table_id: str, expected: int, payload: bytes, kind: Kind, timeout_s: float
    ) -> Answer:
        route = _route(table_id)
        headers = {EXPECTED: str(expected), EXPECTED_SUBJECT: route.every}
        traceparent = TRACEPARENT.get()
        if traceparent:
            headers["traceparent"] = traceparent
        try:
            message = await self._request(route.subjects[kind], payload, timeout_s, headers)
        except NotSent:
            return Answer(Outcome.NOT_SENT)
        except NoAnswer:
            return Answer(Outcome.NO_ANSWER)
        except Nobody:
            return Answer(Outcome.NOBODY)
        data = message.data
        if data.startswith(route.acknowledged) and data[len(route.acknowledged) : -1].isdigit():
            return Answer(Outcome.ACKNOWLEDGED, int(data[len(route.acknowledged) : -1]))
        error = json.loads(data).get("error")
        if error is None:
            # Another stream's, or a duplicate's, which is that of another message (we send no ids).
            return Answer(Outcome.REFUSED, detail=f"acknowledged as {data!r}")
        return outcome_of(error)

    async def first_after(self, table_id: str, sequence: int, timeout_s: float) -> Stored | None:
        route = _route(table_id)
        request = {"seq": sequence + 1, "next_by_subj": route.every}
        message = await get_message(self._broker.inbox, route.stream, request, timeout_s)
        if message is None:
            return None
        headers = header_lines(base64.b64decode(message.get("hdrs", "")))
        return Stored(message["seq"], base64.b64decode(message.get("data", "")), _previous(headers))

    async def ends(self, stream: str, timeout_s: float) -> Ends | None:
        try:
            info = await ask(self._broker.inbox, f"$JS.API.STREAM.INFO.{stream}", b"", timeout_s)
        except Unavailable:
            return None
        if "error" in info:
            return None
        return Ends(info["state"]["last_seq"], info["config"]["num_replicas"])

    async def announce(self, table_id: str, commit: Stored, kind: Kind) -> None:
        route = _route(table_id)
        headers = {
            EXPECTED: str(commit.previous),
            SUBJECT: route.subjects[kind],
            SEQUENCE: str(commit.sequence),
        }
        try:
            await self._broker.client.publish(live_subject(table_id, kind), commit.payload, headers=headers)
        except errors.Error:
            # Watchers elsewhere see the commit at their next poll.
            return


def outcome_of(error: Mapping[str, Any]) -> Answer:
    """What a refused publish came to; the codes are listed in README.md."""
    code, detail = error.get("err_code", 0), error.get("description", "")
    # "wrong last sequence: 42"
    last = detail.rpartition(" ")[2]
    if code == WRONG_LAST and last.isdigit():
        return Answer(Outcome.WRONG_LAST, int(last))
    if code in IN_FLIGHT:
        outcome = Outcome.IN_FLIGHT
    elif code in STORE_FULL:
        outcome = Outcome.STORE_FULL
    elif code in NOT_READY or error.get("code") == 503:
        outcome = Outcome.NOBODY
    else:
        outcome = Outcome.REFUSED
    return Answer(outcome, detail=f"{code} {detail}")


class _Found:
    """What a read has found so far.

    Attributes:
        after: the sequence that it began behind.
        commits: what it has found.
        reached: the sequence of the last one.
    """

    def __init__(self, after: int, tell: Tell) -> None:
        self.after = after
        self.commits: list[Stored] = []
        self.reached = after
        self._tell = tell

    def add(self, commits: list[Stored]) -> None:
        """Add the next commits."""
        if commits:
            self.commits += commits
            self.reached = commits[-1].sequence
            self._tell(commits)


class JetStreamLog:
    """A ``LogStore`` on NATS JetStream.

    Attributes:
        appender: its counts are the log's metrics.
        reads_waiting: reads that wait for their turn.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._wire = _JetStreamWire(broker)
        self._turns = asyncio.Semaphore(COLD_LOADS)
        self.appender = Appender(self._wire)
        self.reads_waiting = 0

    async def append(
        self, table_id: str, expected: int, payload: bytes, kind: Kind, *, timeout_s: float = APPEND_TIMEOUT_S
    ) -> Appended | Lost:
        """See ``LogStore.append``."""
        return await self.appender.append(table_id, expected, payload, kind, timeout_s)

    async def read(
        self,
        table_id: str,
        after: int = 0,
        *,
        min_sequence: int = 0,
        timeout_s: float = READ_TIMEOUT_S,
        tell: Tell = lambda _: None,
    ) -> list[Stored]:
        """See ``LogStore.read``."""
        found = _Found(after, tell)
        try:
            async with asyncio.timeout(timeout_s), self._turn():
                await self._read(table_id, found, min_sequence)
        except TimeoutError:
            detail = f"{table_id} was not read as far as {min_sequence} in {timeout_s} s"
            raise Unavailable(Why.NO_ANSWER, detail) from None
        return found.commits

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self.reads_waiting >= COLD_LOADS_WAITING:
            raise Unavailable(Why.BUSY, "too many tables are being loaded", retry_after_s=1.0)
        self.reads_waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self.reads_waiting -= 1
        try:
            yield
        finally:
            self._turns.release()

    async def _read(self, table_id: str, found: _Found, min_sequence: int) -> None:
        for tries in count(1):
            try:
                whole = await self._read_direct(table_id, found)
                # What any replica may lack or not know yet, the leader is asked for.
                if not whole or not (found.commits or found.after) or tries > STALE_READS:
                    await self._read_leader(table_id, found)
            except Unavailable as error:
                if error.why is not Why.NO_ANSWER:
                    raise
            else:
                if found.reached >= min_sequence:
                    return
            await asyncio.sleep(min(0.005 * tries, 0.1))

    async def _read_direct(self, table_id: str, found: _Found) -> bool:
        """Add what any replica has by batched direct gets; False if a commit is missing between two."""
        route = _route(table_id)
        while True:
            request = {"seq": found.reached + 1, "batch": BATCH, "next_by_subj": route.every}
            messages, end = await self._batch(route.stream, request)
            commits = [_stored(message) for message in messages]
            before = [found.reached, *(commit.sequence for commit in commits)]
            missing = next((at for at, commit in enumerate(commits) if commit.previous > before[at]), None)
            found.add(commits[:missing])
            if missing is not None:
                return False
            if not messages or int(end.get(PENDING, 0)) == 0:
                return True

    async def _read_leader(self, table_id: str, found: _Found) -> None:
        """Add what the leader has, one by one."""
        while True:
            commit = await self._wire.first_after(table_id, found.reached, API_TIMEOUT_S)
            if commit is None:
                return
            found.add([commit])

    async def last(self, table_ids: Iterable[str]) -> Mapping[str, int]:
        """See ``LogStore.last``."""
        by_stream: dict[str, list[str]] = defaultdict(list)
        for table_id in table_ids:
            route = _route(table_id)
            by_stream[route.stream].append(route.every)
        found: dict[str, int] = {}
        for stream, subjects in by_stream.items():
            for subjects_of_one in batched(subjects, LAST_BATCH):
                messages, _ = await self._batch(stream, {"multi_last": subjects_of_one})
                for message in messages:
                    headers = message.headers or {}
                    table_id = parse_subject(headers[SUBJECT]).table_id
                    found[table_id] = max(int(headers[SEQUENCE]), found.get(table_id, 0))
        return found

    async def _batch(self, stream: str, request: Mapping[str, object]) -> tuple[list[Msg], Mapping[str, str]]:
        subject = f"$JS.API.DIRECT.GET.{stream}"
        try:
            messages, end = await self._broker.inbox.request_batch(
                subject, json.dumps(request).encode(), BATCH_TIMEOUT_S
            )
        except NotSent:
            raise Unavailable(Why.NOT_CONNECTED) from None
        except (NoAnswer, Nobody):
            raise Unavailable(Why.NO_ANSWER) from None
        if end[STATUS] not in _ENDS:
            raise Unavailable(Why.REFUSED, f"{subject} answered {dict(end)}")
        return messages, end

    async def listen(self, table_id: str, callback: LiveCallback) -> Listening:
        """See ``LogStore.listen``."""

        async def deliver(message: Msg) -> None:
            callback(_stored(message))

        try:
            subscription = await self._broker.subscribe(every_live_subject(table_id), deliver)
        except BrokerError as error:
            raise Unavailable(Why.NOT_CONNECTED, str(error)) from error
        return _Listening(subscription)


def batched(items: list[str], size: int) -> Iterator[list[str]]:
    """The items in lists of at most ``size``."""
    return (items[start : start + size] for start in range(0, len(items), size))


class _Listening:
    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    async def stop(self) -> None:
        try:
            await self._subscription.unsubscribe()
        except (errors.ConnectionClosedError, errors.ConnectionDrainingError, errors.BadSubscriptionError):
            # It has ended already.
            return
