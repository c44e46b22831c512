"""DATA: the folder that holds everything a host must keep, and the lock that says who uses it.

nats/      the log, as nats-server stores it        logs/      what the services print
keys/      master and signing keys (0700)           run.lock   who runs here, and where to reach it
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from services.shell.config import ServiceConfig, load

_LOCK: Final = "run.lock"


class DataInUse(Exception):
    """Another process runs on the folder."""

    def __init__(self, path: Path, running: "Running | None") -> None:
        who = f"`shengji {running.command}` (process {running.pid})" if running else "another process"
        super().__init__(f"{path} is in use by {who}; stop it or choose another folder with --data")


class NoData(Exception):
    """There is no data folder at a path."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"there is no data folder at {path}: `shengji up` and `shengji demo` make one")


@dataclass(frozen=True, slots=True)
class Running:
    """Who holds a folder, as run.lock records it."""

    pid: int
    """The process."""
    command: str
    """The subcommand, such as ``up``."""
    nats: str
    """The address of its nats-server for a reader of the log, password included."""
    table: str
    """The address of its table service, host:port."""
    lobby: str
    """The address of its lobby service, host:port."""
    ledger: str
    """The address of its ledger service, host:port."""


def default_data() -> Path:
    """The folder that services take too: ``$SHENGJI_DATA``, else ``$XDG_DATA_HOME/shengji``.

    ``$XDG_DATA_HOME`` is ``~/.local/share`` where it is not set.
    """
    told = {name: os.environ[name] for name in ("SHENGJI_DATA", "XDG_DATA_HOME") if os.environ.get(name)}
    return load(ServiceConfig, {}, told).data


def existing(path: Path) -> Path:
    """The path itself, for who reads a data folder and must not make one.

    Raises:
        NoData: nothing that a house keeps is there.
    """
    if not any((path / name).is_dir() for name in ("nats", "keys", "archive")):
        raise NoData(path)
    return path


def writable(path: Path | None) -> Path:
    """The folder to make keys or a store in: the default one, or one that is there; else it is mistyped.

    Raises:
        NoData: a folder was named and is not there.
    """
    if path is None:
        return default_data()
    if not path.is_dir():
        raise NoData(path)
    return path


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a folder for this process; it is made when missing.

    Raises:
        DataInUse: another process holds it.
    """
    path.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataInUse(path, running(path)) from None
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def announce(path: Path, who: Running) -> None:
    """Record in a held folder how to reach what runs on it."""
    (path / _LOCK).write_text(json.dumps(asdict(who)) + "\n")


def running(path: Path) -> Running | None:
    """What the holder of a folder announced, or None when nothing runs there (or it has not said yet)."""
    try:
        return Running(**json.loads((path / _LOCK).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
