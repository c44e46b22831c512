"""A TCP proxy that misbehaves on demand, to stand between a client and a server."""

import asyncio
from types import TracebackType
from typing import Self


class Proxy:
    """Passes bytes both ways between clients and one server until told otherwise.

    Attributes:
        port: where it listens, on the loopback interface.
        swallow: drop what the server says, so that acknowledgements are lost.
        hold: keep what clients say until this is False again, so that it arrives late.
        refuse: close new connections at once.
    """

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._released = asyncio.Event()
        self._released.set()
        self.port = 0
        self.swallow = False
        self.refuse = False

    @property
    def url(self) -> str:
        """The address for NATS clients."""
        return f"nats://127.0.0.1:{self.port}"

    @property
    def hold(self) -> bool:
        return not self._released.is_set()

    @hold.setter
    def hold(self, value: bool) -> None:
        if value:
            self._released.clear()
        else:
            self._released.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Break every connection."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self.refuse:
            writer.close()
            return
        self._writers.add(writer)
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            self._writers.discard(writer)
            writer.close()
            return
        self._writers.add(far_writer)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, far_writer, upstream=True))
                group.create_task(self._pass(far_reader, writer, upstream=False))
        finally:
            self._writers -= {writer, far_writer}
            writer.close()
            far_writer.close()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, upstream: bool
    ) -> None:
        try:
            while data := await reader.read(65536):
                if upstream:
                    await self._released.wait()
                elif self.swallow:
                    continue
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()
