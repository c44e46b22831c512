"""The log as the ledger reads it: four durable consumers, merged in the order of recording.

How far each stream was read is known to the database alone. JetStream's consumers begin there anew whenever
something was amiss, and their acknowledgements, which come after the database's commit, only tell whoever
clears the log what is not needed any more.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from nats import errors
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NotFoundError

from services.game.errors import BadId
from services.game.ids import STREAMS, parse_subject
from services.ledger.folding import Entry, entry
from services.ledger.merging import Merge
from services.shell.broker import Broker
from services.shell.logs import Log, fault_of

DURABLE: Final = "ledger"
FETCH: Final = 1000
"""Messages asked for at once."""
WAITING: Final = 8000
"""Messages of one stream in memory at most, about."""
STALLED_S: Final = 10.0
"""How long the others wait for a stream that does not answer."""
_FETCH_S: Final = 1.0
_PAUSE_S: Final = 0.2
_ACK_WAIT_S: Final = 30.0


class Place(NamedTuple):
    """How far a stream was read."""

    created: str
    """When the stream was made; sequences of another one mean nothing."""
    sequence: int


class Reader:
    """Reads all streams from where the database is.

    Attributes:
        behind: streams that end before that place: acknowledged commits were lost.
        lag: messages of each stream that are not here yet.
    """

    def __init__(self, broker: Broker, places: Mapping[int, Place], log: Log) -> None:
        """Read on after these places.

        Args:
            broker: the connection.
            places: of the streams by their numbers.
            log: gets what went wrong and heals.
        """
        self.behind: set[int] = set()
        self.lag = [0] * STREAMS
        self._log = log
        self._merge = Merge(STREAMS)
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._streams = [_Stream(broker, number, places[number], log) for number in range(STREAMS)]
        self._tasks: list[asyncio.Task[None]] = []

    async def places(self) -> dict[int, Place]:
        """Where each stream is read on, which is its beginning if it is not the one that was read before.

        Raises:
            nats.errors.Error: the server does not say.
        """
        for stream in self._streams:
            if await stream.look():
                self.behind.add(stream.number)
        return {stream.number: stream.place for stream in self._streams}

    def start(self) -> None:
        """Begin to read."""
        self._tasks = [asyncio.create_task(self._run(stream)) for stream in self._streams]

    async def stop(self) -> None:
        """Read no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def take(self, most: int, within_s: float) -> list[Entry]:
        """The next messages in the order of their recording: as soon as there are any, or none in time."""
        for task in self._tasks:
            if task.done():
                task.result()
        taken = self._merge.take(most)
        if not taken:
            self._news.clear()
            taken = self._merge.take(most)
            if not taken:
                try:
                    async with asyncio.timeout(within_s):
                        await self._news.wait()
                except TimeoutError:
                    return []
                taken = self._merge.take(most)
        self._room.set()
        return taken

    @property
    def caught_up(self) -> bool:
        """Everything that the log has was taken."""
        return self._merge.ended()

    def remaining(self, stream: int) -> int:
        """How many of a stream's messages were not taken yet."""
        return self._merge.waiting(stream) + self._streams[stream].pending

    async def done(self, entries: Sequence[Entry]) -> None:
        """Tell JetStream that these had their effect."""
        last = {message.stream: message.sequence for message in entries}
        for number, sequence in last.items():
            await self._streams[number].acknowledge(sequence)

    async def _run(self, stream: "_Stream") -> None:
        failing_since: float | None = None
        clock = asyncio.get_running_loop().time
        while True:
            while self._merge.waiting(stream.number) > WAITING:
                self._room.clear()
                await self._room.wait()
            try:
                entries, ended = await stream.fetch()
                failing_since = None
            except (APIError, errors.Error, OSError) as error:
                if failing_since is None:
                    failing_since = clock()
                    self._log.warning("log_away", fault=fault_of(error))
                stream.lose()
                entries, ended = [], clock() - failing_since > STALLED_S
                await asyncio.sleep(_PAUSE_S)
                if not ended:
                    continue
            self._merge.add(stream.number, entries, ended=ended)
            self._news.set()


class _Stream:
    """One stream's durable consumer."""

    def __init__(self, broker: Broker, number: int, place: Place, log: Log) -> None:
        self.number = number
        self.place = place
        self.pending = 0
        self._broker = broker
        self._log = log
        self._name = f"SJ_TABLES_{number}"
        self._seen = place.sequence
        self._delivered = 0
        self._subscription: JetStreamContext.PullSubscription | None = None
        self._unacknowledged: deque[tuple[int, Msg]] = deque()

    async def look(self) -> bool:
        """See whether it is the stream that was read before; else begin anew. Whether it has lost its end."""
        info = await self._broker.js.stream_info(self._name)
        created = str(info.created or "")
        if created != self.place.created:
            self.place = Place(created, 0)
            self._seen = 0
        return info.state.last_seq < self.place.sequence

    async def fetch(self) -> tuple[list[Entry], bool]:
        """The next messages, if there are some soon, and whether there are no more for now."""
        if self._subscription is None:
            await self._begin()
        assert self._subscription is not None
        try:
            messages = await self._subscription.fetch(FETCH, timeout=_FETCH_S)
        except TimeoutError:
            self.pending = 0
            return [], True
        entries = []
        for message in messages:
            meta = message.metadata
            if meta.sequence.consumer != self._delivered + 1:
                # Something was delivered and did not come here: it must come first.
                self._log.warning("log_reordered", count=meta.sequence.consumer - self._delivered)
                self.lose()
                break
            self._delivered += 1
            self.pending = meta.num_pending
            if meta.sequence.stream <= self._seen:
                continue  # it was not acknowledged in time, and comes again
            self._seen = meta.sequence.stream
            made = self._read(message, meta.sequence.stream)
            if made is not None:
                entries.append(made)
        if self._delivered and messages:
            self._unacknowledged.append((self._seen, messages[-1]))
        return entries, self.pending == 0 and self._subscription is not None

    def _read(self, message: Msg, sequence: int) -> Entry | None:
        try:
            table_id = parse_subject(message.subject).table_id
        except BadId as error:
            self._log.error("not_a_commit", fault=fault_of(error))
            return None
        return entry(self.number, sequence, table_id, message.data)

    async def _begin(self) -> None:
        """A consumer that begins after what was seen, in place of the one that is there."""
        js = self._broker.js
        with contextlib.suppress(NotFoundError):
            await js.delete_consumer(self._name, DURABLE)
        await js.add_consumer(
            self._name,
            api.ConsumerConfig(
                durable_name=DURABLE,
                description="the ledger; its database knows how far it read",
                deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=self._seen + 1,
                filter_subject="sj.v1.table.*.*.d",
                ack_policy=api.AckPolicy.ALL,
                ack_wait=_ACK_WAIT_S,
                max_ack_pending=-1,
            ),
        )
        self._delivered = 0
        self._unacknowledged.clear()
        self._subscription = await js.pull_subscribe_bind(DURABLE, self._name)

    def lose(self) -> None:
        """Begin anew with the next fetch."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            task = asyncio.ensure_future(_end(subscription))
            _ENDING.add(task)
            task.add_done_callback(_ENDING.discard)

    async def acknowledge(self, sequence: int) -> None:
        """Everything up to a sequence had its effect."""
        newest: Msg | None = None
        while self._unacknowledged and self._unacknowledged[0][0] <= sequence:
            _, newest = self._unacknowledged.popleft()
        if newest is not None:
            try:
                await newest.ack()
            except errors.Error:
                return  # the next one says it as well


_ENDING: Final[set[asyncio.Future[None]]] = set()


async def _end(subscription: JetStreamContext.PullSubscription) -> None:
    try:
        await subscription.unsubscribe()
    except errors.Error:
        return  # it has ended already
