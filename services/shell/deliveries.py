"""Commits of all tables, each delivered at least once to one of the processes of a service.

All processes of a service share one durable pull consumer for each log stream. What is not acknowledged comes
again after ``ack_wait_s``, so what a process had when it died goes to another. A consumer that does not exist
yet begins with the newest commit under each subject.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError
from nats import errors
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from nats.js.errors import APIError

from services.game.errors import BadId
from services.game.ids import STREAMS, parse_subject
from services.pb.log.v1.log_pb2 import Commit
from services.shell.broker import Broker
from services.shell.logs import Log, fault_of

_BATCH: Final = 64
_FETCH_S: Final = 1.0
_PAUSE_S: Final = 0.2


class Delivery:
    """One commit as JetStream delivers it; an answer that is lost only makes it come once more.

    Attributes:
        commit: the commit; its sealed parts stay sealed.
        sequence: its place in its stream.
        stream: which log stream, 0 to 3.
        pending: how many the consumer still has for later.
    """

    __slots__ = ("_message", "commit", "pending", "sequence", "stream")

    def __init__(self, stream: int, message: Msg, commit: Commit) -> None:
        self._message = message
        self.commit = commit
        self.stream = stream
        self.sequence = message.metadata.sequence.stream
        self.pending = message.metadata.num_pending

    async def done(self) -> None:
        """Never deliver it again."""
        with contextlib.suppress(errors.Error):
            await self._message.ack()

    async def again(self, after_s: float = 0) -> None:
        """Deliver it again, at once or later, here or elsewhere."""
        with contextlib.suppress(errors.Error):
            await self._message.nak(after_s or None)

    async def busy(self) -> None:
        """It is being worked on: do not deliver it again yet."""
        with contextlib.suppress(errors.Error):
            await self._message.in_progress()


class Durable(NamedTuple):
    """What a service's consumers are like, one on each stream."""

    name: str
    description: str
    subjects: str
    """Which commits: a subject with wildcards."""
    ack_wait_s: float
    waiting: int
    """Deliveries of one stream that may be out at once."""


class Deliveries:
    """Fetches commits and hands them over."""

    def __init__(
        self,
        broker: Broker,
        durable: Durable,
        log: Log,
        take: Callable[[str, Delivery], Awaitable[None]],
        room: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Make it; nothing is fetched before ``start``.

        Args:
            broker: the connection.
            durable: what to fetch.
            log: says when the streams are out of reach.
            take: gets each table id and delivery, those of a stream one after the other, and sees to the
                answer.
            room: waits until there is room for more; None: there always is.
        """
        self._broker = broker
        self._durable = durable
        self._log = log
        self._take = take
        self._room = room
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to fetch; faults heal by asking again until the streams are there."""
        self._tasks = [asyncio.create_task(self._fetch(number)) for number in range(STREAMS)]

    async def stop(self) -> None:
        """Fetch no more; what still comes is given back.

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
                    await self._ensure(number)
                    subscription = await self._broker.js.pull_subscribe_bind(
                        self._durable.name, f"SJ_TABLES_{number}"
                    )
                if self._room is not None:
                    await self._room()
                messages = await subscription.fetch(_BATCH, timeout=_FETCH_S)
            except TimeoutError:
                continue
            except (APIError, errors.Error) as error:
                self._log.warning("deliveries_away", fault=fault_of(error))
                await _give_up(subscription)
                subscription = None
                await asyncio.sleep(_PAUSE_S)
                continue
            for message in messages:
                if self._stopping:
                    await message.nak()
                else:
                    await self._hand_over(number, message)

    async def _hand_over(self, number: int, message: Msg) -> None:
        try:
            place = parse_subject(message.subject)
            commit = Commit.FromString(message.data)
        except (BadId, DecodeError) as error:
            self._log.error("not_a_commit", fault=fault_of(error))
            await message.ack()
            return
        await self._take(place.table_id, Delivery(number, message, commit))

    async def _ensure(self, number: int) -> None:
        """Make one stream's consumer, or agree with the one that is there."""
        await self._broker.js.add_consumer(
            f"SJ_TABLES_{number}",
            api.ConsumerConfig(
                durable_name=self._durable.name,
                description=self._durable.description,
                deliver_policy=api.DeliverPolicy.LAST_PER_SUBJECT,
                filter_subject=self._durable.subjects,
                ack_policy=api.AckPolicy.EXPLICIT,
                ack_wait=self._durable.ack_wait_s,
                max_ack_pending=self._durable.waiting,
            ),
        )


async def _give_up(subscription: JetStreamContext.PullSubscription | None) -> None:
    """End a subscription that failed, so that the next one begins anew."""
    if subscription is None:
        return
    try:
        await subscription.unsubscribe()
    except errors.Error:
        return  # it has ended already
