"""``Store.follow`` on JetStream: a nameless consumer that is made anew whenever it may have missed something.

The first one begins with the newest message of each record, a later one after the newest message told: what
ended meanwhile left an empty message, a tombstone or the server's marker of an ended time to live. These last
an hour, so after a longer absence all is listed again, and the leader is asked about what was not listed.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from nats import errors
from nats.aio.msg import Msg

from services.lobby.store import Entry, Listener
from services.shell.broker import API_TIMEOUT_S, LOBBY_BUCKET, LOBBY_STREAM, TOMBSTONE_S, Broker, BrokerError
from services.shell.js_api import create_consumer, last_sequence
from services.shell.log_store import Unavailable, Why
from services.shell.logs import fault_of

HEARTBEAT_S: Final = 1
"""How often the server says that there is nothing new."""
SILENCE_S: Final = 3.0
"""Without any word for so long the consumer is gone."""
FIRST_S: Final = 15.0
"""For all records that are there at the start."""
RELIST_AFTER_S: Final = TOMBSTONE_S / 2
"""After so long without a word what has ended may have left no trace."""
UNUSED_NS: Final = 10_000_000_000
"""After so long without us the server drops a consumer; far less than ``RELIST_AFTER_S``."""
_RETRY_S: Final = 0.2
_ROOT: Final = f"$KV.{LOBBY_BUCKET}."

_log = logging.getLogger(__name__)


class JetStreamFollowing:
    """One subscription to the records below a prefix; see ``Store.follow``."""

    def __init__(
        self,
        broker: Broker,
        prefix: str,
        listener: Listener,
        get: Callable[[str], Awaitable[Entry]],
        stopped: Callable[["JetStreamFollowing"], None],
    ) -> None:
        """Describe it; nothing happens before ``start``.

        Args:
            broker: the connection.
            prefix: which records, checked.
            listener: who is told.
            get: what the leader has under a key.
            stopped: called when it ends.
        """
        self._broker = broker
        self._prefix = prefix
        self._listener = listener
        self._get = get
        self._stopped = stopped
        self._messages: asyncio.Queue[Msg | None] = asyncio.Queue()
        self._seen = 0
        """The newest sequence told; whatever comes with a lower one is old, as from a replica that lags."""
        self._present: set[str] = set()
        self._listed: set[str] = set()
        self._listing = True
        self._heard_at = 0.0
        self._first: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Tell all that is there, and go on.

        Raises:
            Unavailable: it cannot be read now; nothing goes on.
        """
        self._first = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run())
        try:
            async with asyncio.timeout(FIRST_S):
                await self._first
        except TimeoutError:
            raise Unavailable(Why.NO_ANSWER, "the records were not listed in time") from None
        finally:
            if not self._first.done() or self._first.cancelled() or self._first.exception() is not None:
                await self.stop()

    async def stop(self) -> None:
        """See ``Following.stop``."""
        self._stopped(self)
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def renew(self) -> None:
        """Begin a new consumer: the connection has come back, and may have lost some of its messages."""
        self._messages.put_nowait(None)

    async def _run(self) -> None:
        assert self._first is not None
        while True:
            try:
                await self._consume()
            except Exception as error:  # whatever it was: who follows must not fall silent
                if not self._first.done():
                    self._first.set_exception(_shown(error))
                    return
                level = logging.DEBUG if isinstance(error, Unavailable) else logging.ERROR
                _log.log(level, "follow_failed", extra={"detail": self._prefix, "fault": fault_of(error)})
            await asyncio.sleep(_RETRY_S)

    async def _consume(self) -> None:
        """Tell what one consumer delivers until it may have missed something."""
        messages = self._messages = asyncio.Queue()
        place = self._broker.client.new_inbox()
        subscription = await self._broker.subscribe(place, messages.put)
        try:
            await self._create(place)
            await self._listen(messages)
        finally:
            with contextlib.suppress(errors.Error):  # it ended with the connection
                await subscription.unsubscribe()

    async def _create(self, place: str) -> None:
        loop = asyncio.get_running_loop()
        config: dict[str, object] = {
            "deliver_subject": place,
            "filter_subject": f"{_ROOT}{self._prefix}.>",
            "ack_policy": "none",
            "max_deliver": 1,
            "replay_policy": "instant",
            "flow_control": True,
            "idle_heartbeat": HEARTBEAT_S * 1_000_000_000,
            "inactive_threshold": UNUSED_NS,
            "mem_storage": True,
            "num_replicas": 1,
        }
        if loop.time() - self._heard_at > RELIST_AFTER_S:
            self._listing = True
        if self._listing:
            self._listed.clear()
            config["deliver_policy"] = "last_per_subject"
        else:
            end = await last_sequence(self._broker.inbox, LOBBY_STREAM, API_TIMEOUT_S)
            if end < self._seen:
                # A leader that lags for a moment, or a store that was put back to an earlier state.
                _log.error("store_behind", extra={"detail": self._prefix, "count": self._seen - end})
                raise Unavailable(Why.BEHIND, f"ends at {end}, but {self._seen} was told")
            config |= {"deliver_policy": "by_start_sequence", "opt_start_seq": self._seen + 1}
        pending = await create_consumer(self._broker.inbox, LOBBY_STREAM, config, API_TIMEOUT_S)
        self._heard_at = loop.time()
        if pending == 0:
            await self._all_listed()

    async def _listen(self, messages: "asyncio.Queue[Msg | None]") -> None:
        loop = asyncio.get_running_loop()
        delivered = 0
        while True:
            try:
                async with asyncio.timeout(SILENCE_S):
                    message = await messages.get()
            except TimeoutError:
                return
            if message is None:
                return
            self._heard_at = loop.time()
            headers = message.headers or {}
            if "Status" in headers:
                if not await self._status(message, headers, delivered):
                    return
                continue
            place = message.metadata
            delivered += 1
            if place.sequence.consumer != delivered:
                return
            self._tell(message.subject.removeprefix(_ROOT), Entry(message.data, place.sequence.stream))
            if place.num_pending == 0:
                await self._all_listed()

    async def _status(self, message: Msg, headers: dict[str, str], delivered: int) -> bool:
        """Answer a word of the server's that is no record; whether nothing is missing."""
        ready = message.reply or headers.get("Nats-Consumer-Stalled", "")
        if ready:
            try:
                await self._broker.client.publish(ready)
            except errors.Error:
                return False
        last = headers.get("Nats-Last-Consumer")
        if last is None:
            return headers["Status"] == "100"
        if int(last) != delivered:
            return False
        if "Nats-Consumer-Stalled" not in headers:  # a server that waits for us has more to tell
            await self._all_listed()
        return True

    def _tell(self, key: str, entry: Entry) -> None:
        if self._listing:
            self._listed.add(key)
        if entry.revision <= self._seen:
            return
        self._seen = entry.revision
        if entry.value:
            self._present.add(key)
        elif key in self._present:
            self._present.discard(key)
        else:
            return
        self._say(key, entry)

    def _say(self, key: str, entry: Entry) -> None:
        try:
            self._listener(key, entry)
        except Exception as error:
            _log.exception("listener_failed", extra={"detail": self._prefix, "fault": fault_of(error)})

    async def _all_listed(self) -> None:
        """All that the consumer found at its start has been told."""
        if not self._listing:
            return
        for key in self._present - self._listed:
            entry = await self._get(key)
            if not entry.value:
                self._present.discard(key)
                # Its trace may be gone; what is put there from now on has a higher number than all told.
                self._say(key, Entry(b"", max(entry.revision, self._seen)))
        self._listing = False
        self._listed.clear()
        assert self._first is not None
        if not self._first.done():
            self._first.set_result(None)


def _shown(error: Exception) -> Exception:
    """What the caller of ``follow`` gets: a connection that is closed is one that is not there."""
    return Unavailable(Why.NOT_CONNECTED) if isinstance(error, BrokerError) else error
