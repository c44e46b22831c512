"""Reading the log of a data folder, whether or not a house runs on it, and the archive behind it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

from nats.js.errors import NotFoundError

from services.cli.data import existing, held, running
from services.game.errors import BadId
from services.game.ids import STREAMS, parse_subject
from services.ledger.archive import Archive
from services.ledger.audit import TableLog
from services.shell.broker import Broker
from services.shell.log_jetstream import JetStreamLog
from services.shell.nats_server import NatsServer
from services.shell.nats_users import passwords, url_as


class LogReader:
    """What the log of one NATS holds, and the archive behind it."""

    def __init__(self, broker: Broker, archive: Archive | None = None) -> None:
        self._broker = broker
        self._store = JetStreamLog(broker)
        self._archive = archive

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
        if self._archive is not None:
            found.update(await asyncio.to_thread(self._archive.tables))
        return sorted(found)

    async def commits(self, table_id: str) -> list[bytes]:
        """The stored bytes of a table's commits, from version 1 on; see ``log``."""
        return list((await self.log(table_id)).commits)

    async def log(self, table_id: str) -> TableLog:
        """A table's commits: out of the stream or, if that has dropped some or all, the archive.

        Raises:
            BadId: no table id.
            Unavailable: not readable now.
            ArchiveDamaged: the archive is not what was stored.
        """
        last = (await self._store.last([table_id])).get(table_id, 0)
        stored = await self._store.read(table_id, min_sequence=last) if last else []
        whole = bool(stored) and stored[0].previous == 0
        if not whole and self._archive is not None:
            place = await asyncio.to_thread(self._archive.find, table_id)
            if place is not None:
                return TableLog(await asyncio.to_thread(self._archive.read, place), [], last)
        return TableLog([one.payload for one in stored], [one.sequence for one in stored], last)

    async def created(self) -> Mapping[int, str]:
        """When each stream was made, as the ledger notes it."""
        found: dict[int, str] = {}
        for stream in range(STREAMS):
            try:
                info = await self._broker.js.stream_info(f"SJ_TABLES_{stream}")
            except NotFoundError:
                continue
            found[stream] = str(info.created or "")
        return found


def archive_of(data: Path) -> Archive:
    """The archive of a data folder."""
    return Archive(data / "archive")


@asynccontextmanager
async def reader_at(url: str, archive: Archive | None = None) -> AsyncIterator[LogReader]:
    """A reader of the NATS at a URL, and of an archive if one is named."""
    broker = await Broker.connect(url, "reader")
    try:
        yield LogReader(broker, archive)
    finally:
        await broker.close()


@asynccontextmanager
async def reader_of(data: Path, archive: Archive | None = None) -> AsyncIterator[LogReader]:
    """A reader of a data folder: of the house that runs on it, else of a nats-server started for the purpose.

    Args:
        data: the folder.
        archive: another archive than the folder's own.

    Raises:
        NoData: there is no such folder.
        DataInUse: somebody holds the folder and does not say where to reach it.
        NatsServerError: nats-server cannot run.
    """
    async with broker_of(data, "reader") as broker:
        yield LogReader(broker, archive or archive_of(data))


@asynccontextmanager
async def broker_of(data: Path, user: str) -> AsyncIterator[Broker]:
    """A connection as a NATS user to the house on a data folder, or to a nats-server started for the purpose.

    Raises:
        NoData, DataInUse, NatsServerError: see ``reader_of``.
    """
    who, server = running(existing(data)), None
    with nullcontext() if who else held(data):
        if who:
            url = who.nats if user == "reader" else _without_user(who.nats)
        else:
            server = NatsServer(data / "nats", passwords=passwords(data))
            await server.start()
            url = server.url
        try:
            if "@" not in url:
                url = url_as(url, user, passwords(data))
            broker = await Broker.connect(url, user)
            try:
                yield broker
            finally:
                await broker.close()
        finally:
            if server is not None:
                await server.stop()


def _without_user(url: str) -> str:
    scheme, _, place = url.partition("://")
    return f"{scheme}://{place.rpartition('@')[2]}"
