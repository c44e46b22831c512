"""Who may do what on NATS: least permissions, as data.

Table services write; all others can only read the log, readers and the lobby also as it grows: what goes to
the live subjects are copies of recorded commits, sealed as in the log. Bots, lobby and ledger each keep
their own place in it; records, reports and bus are the lobby's. Nobody may subscribe to the subjects that
commits are published to: rejected attempts can be seen there, and a subscriber would hide that no stream is
listening.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from services.game.ids import STREAMS
from services.shell.keys import keys_folder

_INGEST: Final = "sj.v1.table.>"
_LIVE: Final = "sj.v1.live.>"
_BUS: Final = "sj.v1.bus.>"
_STREAMS: Final = tuple(f"SJ_TABLES_{number}" for number in range(STREAMS))
_READ: Final = (
    "$JS.API.INFO",
    *(f"$JS.API.STREAM.INFO.{stream}" for stream in _STREAMS),
    *(f"$JS.API.STREAM.MSG.GET.{stream}" for stream in _STREAMS),
    *(f"$JS.API.DIRECT.GET.{stream}" for stream in _STREAMS),
    *(f"$JS.API.DIRECT.GET.{stream}.>" for stream in _STREAMS),
)
_VERBS: Final = ("CREATE", "INFO", "MSG.GET")
_LOBBY: Final = ("KV_SJ_LOBBY", "SJ_REPORTS")


def _consume(name: str) -> tuple[str, ...]:
    """What it takes to have a durable consumer of that name on every log stream."""
    return (
        *(f"$JS.API.CONSUMER.INFO.{stream}.{name}" for stream in _STREAMS),
        *(f"$JS.API.CONSUMER.DURABLE.CREATE.{stream}.{name}" for stream in _STREAMS),
        *(f"$JS.API.CONSUMER.CREATE.{stream}.{name}.>" for stream in _STREAMS),
        *(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}" for stream in _STREAMS),
        *(f"$JS.ACK.{stream}.{name}.>" for stream in _STREAMS),
    )


_BEGIN_ANEW: Final = tuple(f"$JS.API.CONSUMER.DELETE.{stream}.ledger" for stream in _STREAMS)
"""Its place is in its database: whoever becomes the writer makes the consumers anew from there."""
_KEEP: Final = (
    *(f"$JS.API.STREAM.{verb}.{stream}" for stream in _LOBBY for verb in _VERBS),
    *(f"$JS.API.DIRECT.GET.{stream}" for stream in _LOBBY),
    *(f"$JS.API.DIRECT.GET.{stream}.>" for stream in _LOBBY),
    *(f"$JS.API.CONSUMER.CREATE.{stream}" for stream in _LOBBY),
    *(f"$JS.FC.{stream}.>" for stream in _LOBBY),
    "$KV.SJ_LOBBY.>",
    "sj.v1.reports.>",
    _BUS,
)
"""The lobby's own. It makes its two streams, since it may start before any table service, and changes none: a
stream that is changed to be republished writes to any subject."""
_TAKE_OUT: Final = (
    *(f"$JS.API.CONSUMER.LIST.{stream}" for stream in _STREAMS),
    *(f"$JS.API.STREAM.PURGE.{stream}" for stream in _STREAMS),
)
"""A purge names what goes in its body, so whoever may purge may empty the log: nobody else may."""


@dataclass(frozen=True, slots=True)
class NatsUser:
    """A user of NATS and what it may do.

    Attributes:
        name: the user, and the service that connects as it.
        publish: subjects it may publish to; None for all.
        subscribe: subjects it may subscribe to; None for all but the commits' own.
    """

    name: str
    publish: tuple[str, ...] | None
    subscribe: tuple[str, ...] | None


def inbox_prefix(name: str) -> str:
    """Where answers to a user go: each has a place of its own, so that none reads another's."""
    return "_INBOX_" + "".join(letter if letter.isalnum() else "_" for letter in name)


USERS: Final = (
    NatsUser("table", None, None),
    NatsUser("bot", (*_READ, *_consume("bots")), (f"{inbox_prefix('bot')}.>",)),
    NatsUser("reader", _READ, (f"{inbox_prefix('reader')}.>", _LIVE)),
    NatsUser("lobby", (*_READ, *_consume("lobby"), *_KEEP), (f"{inbox_prefix('lobby')}.>", _LIVE, _BUS)),
    NatsUser("ledger", (*_READ, *_consume("ledger"), *_BEGIN_ANEW), (f"{inbox_prefix('ledger')}.>",)),
    NatsUser("archiver", (*_READ, *_TAKE_OUT), (f"{inbox_prefix('archiver')}.>",)),
)


def passwords(data: Path) -> dict[str, str]:
    """The users' passwords, from DATA/keys/nats.json; made on first use, and for users that came later."""
    path = keys_folder(data) / "nats.json"
    with _alone(path.parent):
        known: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
        missing = [user.name for user in USERS if user.name not in known]
        if missing:
            known |= {name: secrets.token_urlsafe(24) for name in missing}
            _replace(path, json.dumps(known).encode())
    return known


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes that do the same out of a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, content: bytes) -> None:
    """Put a file's new contents in place of the old ones, whole and 0600."""
    scratch = path.with_name(f"{path.name}.tmp")
    scratch.unlink(missing_ok=True)
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


def authorization(known: Mapping[str, str]) -> str:
    """The ``authorization`` block of a nats-server's configuration."""
    users = []
    for user in USERS:
        publish = "" if user.publish is None else f"publish: {{ allow: {json.dumps(user.publish)} }}, "
        subscribe = (
            f'{{ deny: ["{_INGEST}"] }}'
            if user.subscribe is None
            else f"{{ allow: {json.dumps(user.subscribe)} }}"
        )
        users.append(
            f"    {{ user: {user.name}, password: {json.dumps(known[user.name])},\n"
            f"      permissions: {{ {publish}subscribe: {subscribe} }} }}"
        )
    return "authorization {\n  users: [\n" + "\n".join(users) + "\n  ]\n}"


def url_as(url: str, name: str, known: Mapping[str, str]) -> str:
    """A server's URL with a user's name and password in it."""
    scheme, _, place = url.partition("://")
    return f"{scheme}://{name}:{quote(known[name], safe='')}@{place}"
