"""The database: SQLite or PostgreSQL by URL, transactions that are repeated where that helps, one writer.

SQLite is a file beside the other data, PostgreSQL what runs in production. Everything above speaks SQLAlchemy
Core; only what must be fast or differs by nature is told apart here.
"""

import asyncio
import fcntl
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, InterfaceError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from services.shell.config import ConfigError

T = TypeVar("T")
Work = Callable[[AsyncConnection], Awaitable[T]]

ATTEMPTS: Final = 8
"""How often a transaction is tried that lost against another one."""
KEYS: Final = 6
"""How often one is tried that finds a key taken, which may have been another one's doing just now."""
_BUSY_S: Final = 5.0
"""How long a transaction waits for another one's lock."""
_BUSY_MS: Final = int(_BUSY_S * 1000)
_CONNECT_S: Final = 3.0
_READING: Final = "ledger_reading"
_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_MIGRATION_LOCK: Final = 0x5A_1ED6E2
_WRITER_LOCK: Final = 0x5A_1ED6E3
_LOST: Final = frozenset({"40001", "40P01", "55P03", "23505"})
"""PostgreSQL: serialization failure, deadlock, lock not available, a key that another one made first."""
_GONE: Final = frozenset({"53300", "57P01", "57P02", "57P03"})
"""PostgreSQL: too many connections, shut down, crashed, starting."""


class DatabaseAway(Exception):
    """The database cannot be used now; the same work may be done later."""


class Database:
    """One database, its connections and transactions.

    Attributes:
        dialect: "sqlite" or "postgresql".
    """

    def __init__(self, url: str) -> None:
        """Nothing is connected yet.

        Args:
            url: ``sqlite+aiosqlite:///<file>`` or ``postgresql+asyncpg://…``.

        Raises:
            ConfigError: another kind of URL.
        """
        try:
            parsed = make_url(url)
        except ArgumentError:
            raise ConfigError("--database is no database's URL") from None
        if parsed.drivername not in {"sqlite+aiosqlite", "postgresql+asyncpg"}:
            raise ConfigError("--database begins with sqlite+aiosqlite:// or postgresql+asyncpg://")
        self.dialect = parsed.get_backend_name()
        self._file = Path(parsed.database or "") if self.dialect == "sqlite" else None
        if self._file is not None and str(self._file) in {"", ".", ":memory:"}:
            raise ConfigError("--database names no file")
        self._engine = _engine(url, self.dialect)

    async def close(self) -> None:
        """Close all connections."""
        await self._engine.dispose()

    async def migrate(self) -> None:
        """Bring the tables up to this version; any number of processes may do so at once.

        Raises:
            DatabaseAway: not reachable.
        """
        if self._file is not None:
            await asyncio.to_thread(self._file.parent.mkdir, parents=True, exist_ok=True)

        async def upgrade(connection: AsyncConnection) -> None:
            if self.dialect == "postgresql":
                await connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
            await connection.run_sync(_upgrade)

        await self.write(upgrade)

    async def write(self, work: Work[T]) -> T:
        """Do work in one transaction and commit it; repeated as a whole when it lost against another one.

        Args:
            work: takes the connection. It may run several times, so it must have no other effect.

        Raises:
            DatabaseAway: not reachable, or busy for too long. The work may have been committed all the same.
            IntegrityError: a row that cannot be, again and again.
        """
        attempt = 1
        while True:
            try:
                async with self._connected() as connection, connection.begin():
                    if self.dialect == "postgresql":
                        # The library begins with the first statement, and COPY does not count as one.
                        await connection.exec_driver_sql(f"SET LOCAL lock_timeout = {_BUSY_MS}")
                    return await work(connection)
            except DBAPIError as error:
                if away(error):
                    raise DatabaseAway(type(error).__name__) from error
                if not _lost(error) or attempt >= (KEYS if isinstance(error, IntegrityError) else ATTEMPTS):
                    if _busy(error):
                        raise DatabaseAway("busy") from error
                    raise
            await asyncio.sleep(random.uniform(0, 0.002 * 2**attempt))
            attempt += 1

    async def read(self, work: Work[T]) -> T:
        """Do work in a transaction that changes nothing and sees one state of the database.

        Raises:
            DatabaseAway: not reachable.
        """
        try:
            async with self._connected(reading=True) as connection, connection.begin():
                return await work(connection)
        except DBAPIError as error:
            if away(error) or _busy(error):
                raise DatabaseAway(type(error).__name__) from error
            raise

    @asynccontextmanager
    async def _connected(self, *, reading: bool = False) -> AsyncIterator[AsyncConnection]:
        """A connection; that there is none is told as ``DatabaseAway``."""
        try:
            connection = await self._engine.connect()
        except (OSError, TimeoutError, SQLAlchemyError) as error:
            raise DatabaseAway(type(error).__name__) from error
        try:
            if reading:
                options: dict[str, Any] = {_READING: True}
                if self.dialect == "postgresql":
                    options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
                connection = await connection.execution_options(**options)
            yield connection
        finally:
            await connection.close()

    @asynccontextmanager
    async def writer(self) -> AsyncIterator["Writer | None"]:
        """Be the one process that applies commits, for the length of the block; None while another one is.

        Raises:
            DatabaseAway: not reachable.
        """
        if self._file is not None:
            with _file_lock(self._file.with_name(self._file.name + ".writer")) as got:
                yield Writer(None) if got else None
            return
        async with self._connected() as connection:
            try:
                await connection.execution_options(isolation_level="AUTOCOMMIT")
                locked = await connection.scalar(text(f"SELECT pg_try_advisory_lock({_WRITER_LOCK})"))
            except DBAPIError as error:
                raise DatabaseAway(type(error).__name__) from error
            try:
                yield Writer(connection) if locked else None
            finally:
                # The lock belongs to the connection, so the connection must not go back into the pool.
                await connection.invalidate()


class Writer:
    """The right to apply commits."""

    def __init__(self, connection: AsyncConnection | None) -> None:
        self._connection = connection

    async def check(self) -> None:
        """That the right still holds: PostgreSQL's ends with the connection that took it.

        Two writers at once would do no harm, since what one applied the other finds applied: only waste.

        Raises:
            DatabaseAway: it does not.
        """
        if self._connection is None:
            return
        try:
            await self._connection.scalar(text("SELECT 1"))
        except DBAPIError as error:
            raise DatabaseAway(type(error).__name__) from error


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    """A migrated database for the length of a block.

    Raises:
        ConfigError: not such a URL.
        DatabaseAway: not reachable.
    """
    database = Database(url)
    try:
        await database.migrate()
        yield database
    finally:
        await database.close()


def away(error: DBAPIError) -> bool:
    """Whether an error says that the database is not there, rather than that the work cannot be done."""
    if error.connection_invalidated or isinstance(error, InterfaceError):
        return True
    if isinstance(error.orig, OSError | TimeoutError):
        return True
    state = _state(error)
    if state is not None:
        return state in _GONE or state.startswith("08")
    return any(words in str(error.orig) for words in ("unable to open", "disk I/O", "connection is closed"))


def _lost(error: DBAPIError) -> bool:
    """Whether the same work may succeed when it is done again."""
    return _state(error) in _LOST or _busy(error)


def _busy(error: DBAPIError) -> bool:
    return "database is locked" in str(error.orig) or "database table is locked" in str(error.orig)


def _state(error: DBAPIError) -> str | None:
    """PostgreSQL's five letters; None for SQLite."""
    return getattr(error.orig, "sqlstate", None)


def _engine(url: str, dialect: str) -> AsyncEngine:
    if dialect == "postgresql":
        return create_async_engine(
            url,
            pool_size=8,
            pool_timeout=_CONNECT_S,
            pool_pre_ping=True,
            connect_args={"timeout": _CONNECT_S},
        )
    engine = create_async_engine(url, pool_size=8, pool_timeout=_BUSY_S, connect_args={"timeout": _BUSY_S})
    event.listen(engine.sync_engine, "connect", _configure_sqlite)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


def _configure_sqlite(connection: Any, _: object) -> None:
    # The driver's own idea of when a transaction begins is turned off: `_begin_sqlite` says it.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "cache_size = -65536"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that will write takes its turn at the start; one that upgrades later could only fail.
    reading = connection.get_execution_options().get(_READING)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def _upgrade(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


@contextmanager
def _file_lock(path: Path) -> Iterator[bool]:
    """A lock beside the database's file, as long as the block or the process; False when somebody has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
