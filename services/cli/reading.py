"""Reading the log of a data folder, whether or not a house runs on it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

from nats.js.errors import NotFoundError

from services.cli.data import held, running
from services.game.errors import BadId
from services.game.ids import STREAMS, parse_subject
from services.shell.broker import Broker
from services.shell.log_jetstream import JetStreamLog
from services.shell.nats_server import NatsServer
from services.shell.nats_users import passwords, url_as


class LogReader:
    """What the log of one NATS holds."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._store = JetStreamLog(broker)

    async def tables(self) -> list[str]:
        """All tables, in the order of their founding."""
        found: set[str] = set()
        for stream in range(STREAMS):
            try:
                info = await self._broker.js.stream_info(f"SJ_TABLES_{stream}", subjects_filter=">")
            except NotFoundError:
                continue
            for subject in info.state.subjects or {}:
                try:
                    found.add(parse_subject(subject).table_id)
                except BadId:
                    continue
        return sorted(found)

    async def commits(self, table_id: str) -> list[bytes]:
        """The stored bytes of a table's commits, from version 1 on.

        Raises:
            BadId: no table id.
            Unavailable: not readable now.
        """
        last = await self._store.last([table_id])
        if table_id not in last:
            return []
        return [stored.payload for stored in await self._store.read(table_id, min_sequence=last[table_id])]


@asynccontextmanager
async def reader_at(url: str) -> AsyncIterator[LogReader]:
    """A reader of the NATS at a URL."""
    broker = await Broker.connect(url, "reader")
    try:
        yield LogReader(broker)
    finally:
        await broker.close()


@asynccontextmanager
async def reader_of(data: Path) -> AsyncIterator[LogReader]:
    """A reader of a data folder: of the house that runs on it, else of a nats-server started for the purpose.

    Raises:
        DataInUse: somebody holds the folder and does not say where to reach it.
        NatsServerError: nats-server cannot run.
    """
    who = running(data)
    with nullcontext() if who else held(data):
        if who:
            async with reader_at(who.nats) as reader:
                yield reader
            return
        known = passwords(data)
        server = NatsServer(data / "nats", passwords=known)
        await server.start()
        try:
            async with reader_at(url_as(server.url, "reader", known)) as reader:
                yield reader
        finally:
            await server.stop()
