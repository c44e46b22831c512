"""Durable timers by JetStream's scheduled messages.

A table's schedule stands on its own subject, so a newer one replaces it; when it is due the server stores its
payload under the due subject of the same stream and drops the schedule. One durable consumer, shared by all
replicas, hands due timers out; the work-queue stream forgets them when they are acknowledged. The server
looks for due schedules four times a second.
"""

import asyncio
import base64
import contextlib
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from nats import errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import api

from services.game.errors import BadId
from services.game.ids import TableId, partition
from services.shell.broker import API_TIMEOUT_S, TIMER_STREAM, Broker, BrokerError
from services.shell.inbox import STATUS
from services.shell.js_api import EXPECTED, IN_FLIGHT, WRONG_LAST, ask, get_message, refusal
from services.shell.log_store import Unavailable, Why
from services.shell.logs import fault_of
from services.shell.timers import BACKUP_S, CONCURRENT, Armed, Due, Handler, TimerBase

CONSUMER: Final = "table"
ACK_WAIT_S: Final = 5.0
PULL_S: Final = 1.0
"""How long the server keeps one request for due timers."""
_ARM: Final = "sj.v1.timer.arm"
_DUE: Final = "sj.v1.timer.due"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_log = logging.getLogger(__name__)


def _place(table_id: str) -> str:
    return f"{partition(table_id):02x}.{table_id}"


def _pack(due: Due) -> bytes:
    return json.dumps({"version": due.version, "deadline_us": due.deadline_us}).encode()


def _unpack(subject: str, payload: bytes) -> Due:
    """The timer of a message.

    Raises:
        ValueError: it is none of ours.
    """
    try:
        table_id = TableId(subject.rpartition(".")[2])
        values = json.loads(payload)
        return Due(table_id, int(values["version"]), int(values["deadline_us"]))
    except (BadId, KeyError, TypeError) as error:
        raise ValueError(f"no timer: {subject} {payload[:80]!r}") from error


class JetStreamTimers(TimerBase):
    """``Timers`` on NATS JetStream."""

    def __init__(self, broker: Broker, now_us: Callable[[], int], backup_s: float = BACKUP_S) -> None:
        super().__init__(now_us, backup_s)
        self._broker = broker
        self._inbox = broker.client.new_inbox()
        self._subscription: Subscription | None = None
        self._puller: asyncio.Task[None] | None = None
        self._handling: set[asyncio.Task[None]] = set()
        self._free = asyncio.Event()
        self._asked = 0
        """Timers still to come for the present request."""
        self._ended = asyncio.Event()
        """The present request is over."""

    async def _find(self, table_id: str) -> Armed | None:
        subject = f"{_ARM}.{_place(table_id)}"
        request = {"last_by_subj": subject}
        message = await get_message(self._broker.inbox, TIMER_STREAM, request, API_TIMEOUT_S)
        if message is None:
            return None
        return Armed(_unpack(subject, base64.b64decode(message["data"])), message["seq"])

    async def _schedule(self, due: Due, at_us: int, replaces: int) -> int | None:
        place = _place(due.table_id)
        at = (_EPOCH + timedelta(microseconds=at_us)).isoformat(timespec="microseconds")
        headers = {
            "Nats-Schedule": f"@at {at.replace('+00:00', 'Z')}",
            "Nats-Schedule-Target": f"{_DUE}.{place}",
            EXPECTED: str(replaces),
        }
        answer = await ask(self._broker.inbox, f"{_ARM}.{place}", _pack(due), API_TIMEOUT_S, headers)
        error = answer.get("error")
        if error is None:
            return int(answer["seq"])
        if error.get("err_code") == WRONG_LAST or error.get("err_code") in IN_FLIGHT:
            return None
        raise refusal(error)

    async def start(self, handler: Handler) -> None:
        """See ``Timers.start``."""
        config = api.ConsumerConfig(
            durable_name=CONSUMER,
            filter_subject=f"{_DUE}.*.*",
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=ACK_WAIT_S,
            max_ack_pending=1000,
            max_deliver=-1,
        )

        async def take(message: Msg) -> None:
            self._take(message, handler)

        try:
            await self._broker.js.add_consumer(TIMER_STREAM, config)
            self._subscription = await self._broker.subscribe(self._inbox, take)
        except (errors.Error, TimeoutError, BrokerError) as error:
            raise Unavailable(Why.NO_ANSWER, f"the timers' consumer: {error}") from error
        self._puller = asyncio.create_task(self._pull_for_ever())

    async def _pull_for_ever(self) -> None:
        """Ask for as many due timers as can be handled, again as soon as a request is over."""
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{TIMER_STREAM}.{CONSUMER}"
        while True:
            while len(self._handling) >= CONCURRENT:
                self._free.clear()
                await self._free.wait()
            self._asked = CONCURRENT - len(self._handling)
            self._ended.clear()
            request = json.dumps({"batch": self._asked, "expires": round(PULL_S * 1e9)}).encode()
            try:
                await self._broker.client.publish(subject, request, reply=self._inbox)
                # A request that was lost has no end.
                async with asyncio.timeout(PULL_S + 0.5):
                    await self._ended.wait()
            except (errors.Error, TimeoutError):
                await asyncio.sleep(0.1)

    def _take(self, message: Msg, handler: Handler) -> None:
        status = (message.headers or {}).get(STATUS)
        if status is not None:
            self._ended.set()
            return
        self._asked -= 1
        if self._asked <= 0:
            self._ended.set()
        task = asyncio.create_task(self._handle(message, handler))
        self._handling.add(task)
        task.add_done_callback(self._handled)

    def _handled(self, task: asyncio.Task[None]) -> None:
        self._handling.discard(task)
        self._free.set()

    async def _handle(self, message: Msg, handler: Handler) -> None:
        try:
            due = _unpack(message.subject, message.data)
        except ValueError as error:
            _log.error("timer_unreadable", extra={"fault": fault_of(error)})
            again_s = None
        else:
            again_s = await self._fired(due, handler)
        # Without a connection the timer is handed over again, which does no harm.
        with contextlib.suppress(errors.Error):
            if again_s is None:
                await message.ack()
            else:
                await message.nak(again_s)

    async def stop(self) -> None:
        """See ``Timers.stop``."""
        tasks = [*self._handling] + ([self._puller] if self._puller is not None else [])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._puller = None
        if self._subscription is not None:
            with contextlib.suppress(errors.Error):
                await self._subscription.unsubscribe()
            self._subscription = None
