"""Who may do what on NATS: least permissions, as data.

Table services write; bots and readers can only read the log, readers also as it grows: what goes to the
live subjects are copies of recorded commits, sealed as in the log. Nobody may subscribe to the subjects
that commits are published to: rejected attempts can be seen there, and a subscriber would hide that no
stream is listening.
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from services.game.ids import STREAMS
from services.shell.keys import keys_folder, write_once

_INGEST: Final = "sj.v1.table.>"
_LIVE: Final = "sj.v1.live.>"
_STREAMS: Final = tuple(f"SJ_TABLES_{number}" for number in range(STREAMS))
_READ: Final = (
    "$JS.API.INFO",
    *(f"$JS.API.STREAM.INFO.{stream}" for stream in _STREAMS),
    *(f"$JS.API.STREAM.MSG.GET.{stream}" for stream in _STREAMS),
    *(f"$JS.API.DIRECT.GET.{stream}" for stream in _STREAMS),
    *(f"$JS.API.DIRECT.GET.{stream}.>" for stream in _STREAMS),
)
_CONSUME: Final = (
    *(f"$JS.API.CONSUMER.INFO.{stream}.bots" for stream in _STREAMS),
    *(f"$JS.API.CONSUMER.DURABLE.CREATE.{stream}.bots" for stream in _STREAMS),
    *(f"$JS.API.CONSUMER.CREATE.{stream}.bots.>" for stream in _STREAMS),
    *(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.bots" for stream in _STREAMS),
    "$JS.ACK.>",
)


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
    NatsUser("bot", (*_READ, *_CONSUME), (f"{inbox_prefix('bot')}.>",)),
    NatsUser("reader", _READ, (f"{inbox_prefix('reader')}.>", _LIVE)),
)


def passwords(data: Path) -> dict[str, str]:
    """The users' passwords, from DATA/keys/nats.json; made on first use."""
    path = keys_folder(data) / "nats.json"
    write_once(path, json.dumps({user.name: secrets.token_urlsafe(24) for user in USERS}).encode())
    known: dict[str, str] = json.loads(path.read_text())
    return known


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
