"""The connection of a service to NATS, and the streams that all services share.

The client library's defaults lose seconds at every fault, so each setting that matters is given here; the
figures behind them are in README.md in this folder.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from nats import errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext, api
from nats.js.errors import APIError

from services.game.ids import STREAMS, stream_subjects
from services.shell.inbox import Inbox
from services.shell.logs import fault_of
from services.shell.nats_users import inbox_prefix

LEAST_SERVER: Final = (2, 15)
"""Oldest nats-server that is accepted: scheduled messages and one fsync a raft entry."""
RECONNECT_WAIT_S: Final = 0.1
PING_INTERVAL_S: Final = 1
PINGS_OUTSTANDING: Final = 2
CONNECT_TIMEOUT_S: Final = 1
API_TIMEOUT_S: Final = 1.0
"""Time for one answer of the server; whoever needs longer asks again."""
LIVE_MESSAGES_MAX: Final = 65_536
"""Live copies that may wait in one subscription; beyond, the newest is dropped, a gap like any other."""

TIMER_STREAM: Final = "SJ_TIMERS"
SNAPSHOT_BUCKET: Final = "SJ_SNAPSHOTS"
SNAPSHOT_STREAM: Final = "KV_" + SNAPSHOT_BUCKET
SNAPSHOT_AGE_S: Final = 7 * 24 * 3600.0
"""A snapshot is a cache, and tables close after a day."""
LOBBY_BUCKET: Final = "SJ_LOBBY"
LOBBY_STREAM: Final = "KV_" + LOBBY_BUCKET
TOMBSTONE_S: Final = 3600
"""How long the lobby's bucket remembers that a record was taken away, or has ended by itself."""
REPORT_STREAM: Final = "SJ_REPORTS"
_NAME_IN_USE: Final = 10058
_BLANK: Final = " \t\n\r\v\f"

_log = logging.getLogger(__name__)
Hook = Callable[[], None]


class BrokerError(Exception):
    """No connection that could be used; the message says why."""


class _Client(Client):
    """The library's connection, with a quicker look at headers: theirs weighs each letter of each name.

    A table of 10,000 commits comes with 80,000 headers, which took a fifth of its load.
    """

    @staticmethod
    def _parse_header_lines(raw: bytes) -> dict[str, str]:
        """The headers of a message, ``Name: value`` lines that end in CRLF."""
        headers: dict[str, str] = {}
        for line in raw.decode("utf-8", "replace").split("\r\n"):
            name, colon, value = line.partition(":")
            if colon:
                headers[name.strip(_BLANK)] = value.strip(_BLANK)
        return headers


class Broker:
    """One connection to NATS that comes back for ever, and refuses at once while it is away.

    Attributes:
        client: the library's connection, for subscriptions.
        js: its JetStream context with our time-out, for streams and consumers.
        inbox: requests with answers.
        epoch: how often the connection has come back; whoever cached something of the server's compares it.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.js: JetStreamContext = client.jetstream(timeout=API_TIMEOUT_S)
        self.inbox = Inbox(client)
        self.epoch = 0
        self._closing = False
        self._hooks: list[Hook] = []

    @classmethod
    async def connect(cls, servers: str | Sequence[str], name: str, *, within_s: float = 10.0) -> "Broker":
        """Connect, waiting for the server if it is still starting.

        Args:
            servers: one URL, several, or several in one text separated by commas.
            name: the service's name, as NATS' own monitoring shows it; answers come to an inbox of that name.
            within_s: how long to try.

        Raises:
            BrokerError: no server answers in that time, or it is too old.
        """
        urls = servers.split(",") if isinstance(servers, str) else list(servers)
        broker = cls(_Client())
        opening = asyncio.create_task(broker._open(urls, name))
        try:
            await asyncio.wait({opening}, timeout=within_s)
            if not opening.done():
                raise BrokerError(f"no NATS server answers at {', '.join(urls)}")
            opening.result()
        except errors.Error as error:
            raise BrokerError(f"NATS at {', '.join(urls)} refuses: {error}") from error
        finally:
            # The library can swallow a cancellation between two attempts, so it is told until it ends.
            while not opening.done():
                opening.cancel()
                await asyncio.wait({opening}, timeout=0.1)
            if opening.cancelled() or opening.exception() is not None:
                await broker.close()
        version = broker.client.connected_server_version
        if (version.major, version.minor) < LEAST_SERVER:
            await broker.close()
            least = ".".join(map(str, LEAST_SERVER))
            raise BrokerError(f"nats-server {version.major}.{version.minor} is too old; {least} is needed")
        return broker

    async def _open(self, urls: list[str], name: str) -> None:
        await self.client.connect(
            servers=urls,
            name=name,
            inbox_prefix=inbox_prefix(name),
            reconnect_time_wait=RECONNECT_WAIT_S,  # type: ignore[arg-type]  # any number of seconds will do
            max_reconnect_attempts=-1,
            connect_timeout=CONNECT_TIMEOUT_S,
            ping_interval=PING_INTERVAL_S,
            max_outstanding_pings=PINGS_OUTSTANDING,
            pending_size=0,  # nothing is kept to be sent later while the connection is away
            error_cb=self._failed,
            disconnected_cb=self._disconnected,
            reconnected_cb=self._reconnected,
            closed_cb=self._closed,
        )
        if not self.client.is_connected:  # the library takes another line than PONG for a success
            raise errors.Error("the first PING was not answered")
        await self.inbox.open()

    @property
    def connected(self) -> bool:
        """Something sent now would reach a server, as far as is known."""
        return self.client.is_connected

    @property
    def closed(self) -> bool:
        """The connection has ended and will not come back: the process should end too."""
        return self.client.is_closed

    def on_reconnect(self, hook: Hook) -> None:
        """Call ``hook`` each time the connection has come back; it must not block."""
        self._hooks.append(hook)

    async def subscribe(self, subject: str, callback: Callable[[Msg], Awaitable[None]]) -> Subscription:
        """A plain subscription, renewed at every reconnection.

        Raises:
            BrokerError: the connection is closed.
        """
        try:
            return await self.client.subscribe(subject, cb=callback, pending_msgs_limit=LIVE_MESSAGES_MAX)
        except (errors.ConnectionClosedError, errors.ConnectionDrainingError) as error:
            raise BrokerError("the connection to NATS is closed") from error

    async def close(self) -> None:
        """End the connection; everything pending ends with ``NoAnswer``."""
        self._closing = True
        self.inbox.fail_all()
        await self.client.close()

    async def _failed(self, error: Exception) -> None:
        # Every failed attempt to connect comes here, ten a second, so only what else went wrong is a warning.
        away = not self.client.is_connected
        _log.log(logging.DEBUG if away else logging.WARNING, "nats_error", extra={"fault": fault_of(error)})

    async def _disconnected(self) -> None:
        self.inbox.fail_all()
        if not self._closing:
            _log.warning("nats_disconnected")

    async def _reconnected(self) -> None:
        self.epoch += 1
        _log.warning("nats_reconnected", extra={"count": self.epoch})
        for hook in self._hooks:
            hook()

    async def _closed(self) -> None:
        if not self._closing:
            error = self.client.last_error
            _log.critical("nats_closed", extra={"fault": fault_of(error)} if error is not None else None)


def table_stream(number: int, replicas: int) -> api.StreamConfig:
    """The configuration of log stream 0..3, from which nothing is aged out, evicted or rolled up."""
    return api.StreamConfig(
        name=f"SJ_TABLES_{number}",
        description="commits of tables, one message each",
        subjects=stream_subjects(number),
        retention=api.RetentionPolicy.LIMITS,
        discard=api.DiscardPolicy.NEW,
        storage=api.StorageType.FILE,
        num_replicas=replicas,
        deny_delete=True,
        allow_rollup_hdrs=False,
        allow_direct=True,
        republish=api.RePublish(src="sj.v1.table.>", dest="sj.v1.live.>"),
    )


def timer_stream(replicas: int) -> api.StreamConfig:
    """The configuration of the timers' stream: the schedules, and what is due until it is acknowledged.

    Under ``interest`` retention schedules vanish, and limits would evict armed timers, so there are none.
    """
    return api.StreamConfig(
        name=TIMER_STREAM,
        description="turn timers: schedules, and those that are due",
        subjects=["sj.v1.timer.arm.*.*", "sj.v1.timer.due.*.*"],
        retention=api.RetentionPolicy.WORK_QUEUE,
        storage=api.StorageType.FILE,
        num_replicas=replicas,
        allow_direct=True,
        allow_msg_schedules=True,
    )


def snapshot_stream(replicas: int) -> api.StreamConfig:
    """The configuration of the snapshots' bucket, laid out as NATS' key-value buckets are."""
    return api.StreamConfig(
        name=SNAPSHOT_STREAM,
        description="sealed snapshots of tables, a cache",
        subjects=[f"$KV.{SNAPSHOT_BUCKET}.>"],
        discard=api.DiscardPolicy.NEW,
        storage=api.StorageType.FILE,
        num_replicas=replicas,
        max_msgs_per_subject=1,
        max_age=SNAPSHOT_AGE_S,
        deny_delete=True,
        allow_rollup_hdrs=True,
        allow_direct=True,
    )


def lobby_stream(replicas: int) -> api.StreamConfig:
    """The configuration of the lobby's records, several of which change in one atomic batch.

    The server marks the end of a record that had a time to live, so that followers hear of it; for that it
    insists on allowing rollups, and with them purges.
    """
    return api.StreamConfig(
        name=LOBBY_STREAM,
        description="the lobby's records",
        subjects=[f"$KV.{LOBBY_BUCKET}.>"],
        discard=api.DiscardPolicy.NEW,
        storage=api.StorageType.FILE,
        num_replicas=replicas,
        max_msgs_per_subject=1,
        deny_delete=True,
        allow_rollup_hdrs=True,
        allow_direct=True,
        allow_atomic=True,
        allow_msg_ttl=True,
        subject_delete_marker_ttl=TOMBSTONE_S,
    )


def report_stream(replicas: int) -> api.StreamConfig:
    """The configuration of the players' reports, ``sj.v1.reports.<operator>.<report>``; kept for good."""
    return api.StreamConfig(
        name=REPORT_STREAM,
        description="what players reported",
        subjects=["sj.v1.reports.>"],
        discard=api.DiscardPolicy.NEW,
        storage=api.StorageType.FILE,
        num_replicas=replicas,
        deny_delete=True,
        deny_purge=True,
        allow_direct=True,
    )


async def ensure_streams(broker: Broker, replicas: int = 1, *, within_s: float = 30.0) -> None:
    """Create what is missing: the log streams, the timers' stream, the snapshots' bucket, the lobby's two.

    Any number of processes may do this at once. A stream that exists with another configuration is changed to
    ours.

    Args:
        broker: the connection.
        replicas: copies of each stream: 1, or 3 in a cluster.
        within_s: how long to wait for a cluster that is still electing.

    Raises:
        BrokerError: the server refuses, or does not answer in that time.
    """
    tables = [table_stream(number, replicas) for number in range(STREAMS)]
    configs = [*tables, timer_stream(replicas), snapshot_stream(replicas), *_lobby_streams(replicas)]
    await _ensure(broker, configs, within_s, change=True)


async def ensure_lobby_streams(broker: Broker, replicas: int = 1, *, within_s: float = 30.0) -> None:
    """Create the lobby's two streams if nobody has: for the lobby, which may come first and makes no others.

    One that exists stays as it is: whoever may change a stream can have it republished into the log. A table
    service changes it, by ``ensure_streams``.

    Raises:
        BrokerError: the server refuses, or does not answer in that time.
    """
    await _ensure(broker, _lobby_streams(replicas), within_s, change=False)


def _lobby_streams(replicas: int) -> list[api.StreamConfig]:
    return [lobby_stream(replicas), report_stream(replicas)]


async def _ensure(broker: Broker, configs: list[api.StreamConfig], within_s: float, *, change: bool) -> None:
    loop = asyncio.get_running_loop()
    give_up = loop.time() + within_s
    while True:
        try:
            for config in configs:
                await _ensure_stream(broker.js, config, change)
        except (errors.Error, TimeoutError) as error:
            refused = isinstance(error, APIError) and error.code != 503
            if refused or loop.time() > give_up:
                raise BrokerError(f"the streams cannot be made: {error}") from error
            await asyncio.sleep(0.2)
        else:
            return


async def _ensure_stream(js: JetStreamContext, config: api.StreamConfig, change: bool) -> None:
    try:
        await js.add_stream(config)
    except APIError as error:
        if error.err_code != _NAME_IN_USE:
            raise
        if not change:
            return
        await js.update_stream(config)
        _log.warning("stream_changed", extra={"detail": config.name})
