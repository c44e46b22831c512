"""Writing prepared messages into JetStream as fast as it takes them: the past of a store that is measured.

A client library spends more on a message than the server does, so this speaks the protocol itself: messages
are sent in blocks, and the server's acknowledgements are only counted.
"""

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from services.shell.js_api import EXPECTED, EXPECTED_SUBJECT
from services.shell.nats_server import NatsServer

WINDOW: Final = 4_000
"""Messages on their way at once; the server drops what comes without bounds."""
_BLOCK: Final = 250
_INBOX: Final = "_BENCH.filled"
_ACKNOWLEDGED: Final = re.compile(rb'"stream":"[^"]*", ?"seq":\d+')
_READ: Final = 1 << 16


class Message(NamedTuple):
    """A message to be stored."""

    subject: str
    payload: bytes
    expected: int | None = None
    """The sequence of the last message on ``subjects``, None to store it without asking."""
    subjects: str = ""
    """The wildcard that ``expected`` is about."""


class RelaxedServer(NatsServer):
    """A nats-server that syncs now and then: for writing in minutes what took somebody weeks."""

    def _config(self) -> str:
        return super()._config().replace("sync_interval: always", "sync_interval: 2m")


def relaxed(server: NatsServer) -> RelaxedServer:
    """A relaxed server for the folder and ports of one that is stopped."""
    return RelaxedServer(Path(server.folder), port=server.port, http_port=server.http_port)


async def fill(server: NatsServer, messages: Iterable[Message]) -> int:
    """Store messages in order; how many.

    Raises:
        RuntimeError: the server refused one, or stopped answering.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(b'CONNECT {"verbose":false,"headers":true}\r\n' + f"SUB {_INBOX} 1\r\n".encode())
        return await _Filling(reader, writer).run(messages)
    finally:
        writer.close()


class _Filling:
    """One run of ``fill``."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._sent = 0
        self._stored = 0
        self._rest = b""

    async def run(self, messages: Iterable[Message]) -> int:
        block: list[bytes] = []
        for message in messages:
            block.append(_encode(message))
            if len(block) == _BLOCK:
                await self._send(block)
                block = []
        await self._send(block)
        while self._stored < self._sent:
            await self._count()
        return self._stored

    async def _send(self, block: list[bytes]) -> None:
        self._writer.write(b"".join(block))
        self._sent += len(block)
        await self._writer.drain()
        while self._sent - self._stored > WINDOW:
            await self._count()

    async def _count(self) -> None:
        """Take in what the server says."""
        data = await asyncio.wait_for(self._reader.read(_READ), 30)
        if not data:
            raise RuntimeError("nats-server closed the connection")
        if b"PING\r\n" in data:
            self._writer.write(b"PONG\r\n")
        lines = (self._rest + data).split(b"\r\n")
        self._rest = lines.pop()
        for line in lines:
            if _ACKNOWLEDGED.search(line):
                self._stored += 1
            elif b'"error"' in line or line.startswith(b"-ERR"):
                raise RuntimeError(f"nats-server refuses: {line.decode()}")


def _encode(message: Message) -> bytes:
    if message.expected is None:
        return b"PUB %b %b %d\r\n%b\r\n" % (
            message.subject.encode(),
            _INBOX.encode(),
            len(message.payload),
            message.payload,
        )
    lines = ("NATS/1.0", f"{EXPECTED}: {message.expected}", f"{EXPECTED_SUBJECT}: {message.subjects}", "", "")
    head = "\r\n".join(lines).encode()
    return b"HPUB %b %b %d %d\r\n%b%b\r\n" % (
        message.subject.encode(),
        _INBOX.encode(),
        len(head),
        len(head) + len(message.payload),
        head,
        message.payload,
    )
