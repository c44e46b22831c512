"""What the lobby reads in the log of a table: how far it is, and who has sat there."""

import base64
from collections.abc import Iterable
from typing import Final, Protocol

from services.game.errors import BadId
from services.game.ids import every_subject, stream_name, subject
from services.pb.log.v1.log_pb2 import Commit
from services.shell.broker import API_TIMEOUT_S, Broker
from services.shell.js_api import get_message

DEALS_MOST: Final = 4_000
"""Commits read for one question; no match is as long."""


class TableLog(Protocol):
    """Questions about a table. Every method raises ``Unavailable`` when the log cannot be read now."""

    async def version_of(self, table_id: str) -> int:
        """The table's newest version; 0 when there is no such table, or not yet."""

    async def seated(self, table_id: str) -> frozenset[str]:
        """Every player, bots included, who has a seat there or once had."""


class JetStreamTableLog:
    """``TableLog`` on the streams that keep the tables."""

    def __init__(self, broker: Broker) -> None:
        self._inbox = broker.inbox

    async def version_of(self, table_id: str) -> int:
        """See ``TableLog.version_of``."""
        try:
            stream, every = stream_name(table_id), every_subject(table_id)
        except BadId:
            return 0
        message = await get_message(self._inbox, stream, {"last_by_subj": every}, API_TIMEOUT_S)
        return Commit.FromString(base64.b64decode(message["data"])).version if message else 0

    async def seated(self, table_id: str) -> frozenset[str]:
        """See ``TableLog.seated``; reads the commits of kind ``d`` one by one: seats change in no others."""
        try:
            stream, wanted = stream_name(table_id), subject(table_id, "d")
        except BadId:
            return frozenset()
        found: set[str] = set()
        sequence = 0
        for _ in range(DEALS_MOST):
            request = {"seq": sequence + 1, "next_by_subj": wanted}
            message = await get_message(self._inbox, stream, request, API_TIMEOUT_S)
            if message is None:
                break
            sequence = int(message["seq"])
            found |= seated_by([Commit.FromString(base64.b64decode(message["data"]))])
        return frozenset(found)


def seated_by(commits: Iterable[Commit]) -> set[str]:
    """Whom commits name as sitting or leaving."""
    found: set[str] = set()
    for commit in commits:
        for event in commit.events:
            if event.HasField("table_opened"):
                found.update(seat.player_id for seat in event.table_opened.seats)
            elif event.HasField("seat_taken"):
                found.add(event.seat_taken.seat.player_id)
            elif event.HasField("seat_left"):
                found.add(event.seat_left.player_id)
    found.discard("")
    return found
