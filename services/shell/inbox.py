"""Requests to NATS over one shared inbox, one answer or a batch of them.

The client library leaves a pending request waiting for its whole time-out when its connection drops, and has
no batched direct get. Here every pending request ends at once with the connection, so that a retry starts as
soon as the server is back.
"""

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import Final, Protocol

from nats import errors
from nats.aio.client import Client
from nats.aio.msg import Msg

STATUS: Final = "Status"
NO_RESPONDERS: Final = "503"


class NotSent(Exception):
    """There was no connection, so nothing was sent."""


class NoAnswer(Exception):
    """Nothing came in time, or the connection dropped: whoever was asked may or may not have done it."""


class Nobody(Exception):
    """No server listens on that subject now, so nobody received the request."""


class _Waiting(Protocol):
    """Something that waits for answers on one token of the inbox."""

    def take(self, message: Msg) -> None:
        """An answer came."""

    def fail(self) -> None:
        """No more will come."""


class _Single:
    """Waits for one answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[Msg] = loop.create_future()

    def take(self, message: Msg) -> None:
        if not self.future.done():
            self.future.set_result(message)

    def fail(self) -> None:
        if not self.future.done():
            self.future.set_exception(NoAnswer())


class _Batch:
    """Collects answers until one carries a status."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.messages: list[Msg] = []
        self.end: asyncio.Future[Msg] = loop.create_future()

    def take(self, message: Msg) -> None:
        if self.end.done():
            return
        if message.headers is not None and STATUS in message.headers:
            self.end.set_result(message)
        else:
            self.messages.append(message)

    def fail(self) -> None:
        if not self.end.done():
            self.end.set_exception(NoAnswer())


class Inbox:
    """One wildcard subscription for the answers to all requests of a connection."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._prefix = ""
        self._waiting: dict[str, _Waiting] = {}
        self._tokens = count()

    async def open(self) -> None:
        """Subscribe; the library renews it at every reconnection."""
        self._prefix = self._client.new_inbox() + "."
        await self._client.subscribe(self._prefix + "*", cb=self._dispatch)

    async def _dispatch(self, message: Msg) -> None:
        waiting = self._waiting.get(message.subject[len(self._prefix) :])
        if waiting is not None:
            waiting.take(message)

    def fail_all(self) -> None:
        """End every pending request with ``NoAnswer``: the connection has dropped."""
        for waiting in list(self._waiting.values()):
            waiting.fail()

    async def _send(
        self, waiting: _Waiting, token: str, subject: str, payload: bytes, headers: dict[str, str] | None
    ) -> None:
        if not self._client.is_connected:
            raise NotSent
        self._waiting[token] = waiting
        try:
            await self._client.publish(subject, payload, reply=self._prefix + token, headers=headers)
        except (
            errors.OutboundBufferLimitError,
            errors.ConnectionClosedError,
            errors.ConnectionDrainingError,
        ) as error:
            raise NotSent from error

    async def request(
        self, subject: str, payload: bytes, timeout_s: float, headers: dict[str, str] | None = None
    ) -> Msg:
        """Send one request and wait for its one answer.

        Raises:
            NotSent: no connection.
            NoAnswer: none within ``timeout_s`` seconds, or the connection dropped.
            Nobody: no server listens.
        """
        loop = asyncio.get_running_loop()
        token = str(next(self._tokens))
        waiting = _Single(loop)
        timer = loop.call_later(timeout_s, waiting.fail)
        try:
            await self._send(waiting, token, subject, payload, headers)
            message = await waiting.future
        finally:
            timer.cancel()
            self._waiting.pop(token, None)
        if message.headers is not None and message.headers.get(STATUS) == NO_RESPONDERS:
            raise Nobody
        return message

    async def request_batch(
        self, subject: str, payload: bytes, timeout_s: float
    ) -> tuple[list[Msg], Mapping[str, str]]:
        """Send one request whose answers end with a status message.

        Returns:
            The answers in the order they came, and the headers of the message that ended them.

        Raises:
            NotSent: no connection.
            NoAnswer: not all within ``timeout_s`` seconds, or the connection dropped.
            Nobody: no server listens.
        """
        loop = asyncio.get_running_loop()
        token = str(next(self._tokens))
        batch = _Batch(loop)
        timer = loop.call_later(timeout_s, batch.fail)
        try:
            await self._send(batch, token, subject, payload, None)
            end = await batch.end
        finally:
            timer.cancel()
            self._waiting.pop(token, None)
        headers = end.headers or {}
        if headers.get(STATUS) == NO_RESPONDERS:
            raise Nobody
        return batch.messages, headers
