"""Doorbells: every commit of every table, delivered at least once to one of the bot processes.

All processes share one durable pull consumer for each log stream. What is not acknowledged comes again after
``ACK_WAIT_S``, so a table whose process died is looked at by another. A consumer that does not exist yet
begins with the newest commit of each table, so tables that were waiting for bots are looked at as well.
"""

import asyncio
import contextlib
import time
from typing import Final

from google.protobuf.message import DecodeError
from nats import errors
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from nats.js.errors import APIError

from services.bot.metrics import BotMetrics
from services.bot.tables import Tables
from services.game.errors import BadId
from services.game.ids import STREAMS, parse_subject
from services.pb.log.v1.log_pb2 import Commit
from services.shell.broker import Broker
from services.shell.logs import Log, fault_of

DURABLE: Final = "bots"
ACK_WAIT_S: Final = 1.5
WAITING: Final = 4096
"""Doorbells of one stream that may be out at once."""
_BATCH: Final = 64
_FETCH_S: Final = 1.0
_CROWD: Final = 4096
"""Tables being served at which no more doorbells are fetched."""
_PAUSE_S: Final = 0.2


class MessageBell:
    """A doorbell as JetStream delivers it."""

    __slots__ = ("_message", "commit", "sequence")

    def __init__(self, message: Msg, commit: Commit) -> None:
        self._message = message
        self.commit = commit
        self.sequence = message.metadata.sequence.stream

    async def done(self) -> None:
        """See ``Bell``; if it is lost, the doorbell rings once more for nothing."""
        with contextlib.suppress(errors.Error):
            await self._message.ack()

    async def again(self) -> None:
        """See ``Bell``; likewise."""
        with contextlib.suppress(errors.Error):
            await self._message.nak()

    async def busy(self) -> None:
        """See ``Bell``; likewise."""
        with contextlib.suppress(errors.Error):
            await self._message.in_progress()


class Doorbells:
    """Fetches doorbells and rings them at the tables."""

    def __init__(self, broker: Broker, tables: Tables, metrics: BotMetrics, log: Log) -> None:
        self._broker = broker
        self._tables = tables
        self._metrics = metrics
        self._log = log
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to fetch; consumers that are missing are made as soon as their streams are there."""
        self._tasks = [asyncio.create_task(self._fetch(number)) for number in range(STREAMS)]

    async def stop(self) -> None:
        """Fetch no more; what was fetched is with the tables, what still comes is given back.

        A fetch is not cut short: the server would go on to answer it, into the void.
        """
        self._stopping = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_FETCH_S + _PAUSE_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _fetch(self, number: int) -> None:
        """Fetch from one stream until told to stop; faults heal by asking again."""
        subscription: JetStreamContext.PullSubscription | None = None
        while not self._stopping:
            try:
                if subscription is None:
                    await _ensure(self._broker.js, number)
                    subscription = await self._broker.js.pull_subscribe_bind(DURABLE, f"SJ_TABLES_{number}")
                await self._tables.room(_CROWD)
                messages = await subscription.fetch(_BATCH, timeout=_FETCH_S)
            except TimeoutError:
                continue
            except (APIError, errors.Error) as error:
                self._log.warning("doorbells_away", fault=fault_of(error))
                await _give_up(subscription)
                subscription = None
                await asyncio.sleep(_PAUSE_S)
                continue
            for message in messages:
                if self._stopping:
                    await message.nak()
                else:
                    await self._ring(number, message)

    async def _ring(self, number: int, message: Msg) -> None:
        metadata = message.metadata
        self._metrics.lag_messages[str(number)].set(metadata.num_pending)
        try:
            place = parse_subject(message.subject)
            commit = Commit.FromString(message.data)
        except (BadId, DecodeError) as error:
            self._log.error("not_a_commit", fault=fault_of(error))
            await message.ack()
            return
        self._metrics.lag_seconds.observe(max(0.0, time.time() - commit.recorded_at_us / 1e6))
        self._tables.ring(place.table_id, MessageBell(message, commit))


async def _give_up(subscription: JetStreamContext.PullSubscription | None) -> None:
    """End a subscription that failed, so that the next one begins anew."""
    if subscription is None:
        return
    try:
        await subscription.unsubscribe()
    except errors.Error:
        return  # it has ended already


async def _ensure(js: JetStreamContext, number: int) -> None:
    """Make one stream's consumer, or agree with the one that is there."""
    await js.add_consumer(
        f"SJ_TABLES_{number}",
        api.ConsumerConfig(
            durable_name=DURABLE,
            description="doorbells of the bots",
            deliver_policy=api.DeliverPolicy.LAST_PER_SUBJECT,
            filter_subject="sj.v1.table.>",
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=ACK_WAIT_S,
            max_ack_pending=WAITING,
        ),
    )
