"""Streams that live as long as their player's token, and longer when a fresh one comes, wherever it comes.

A token is shown when a stream begins; a later one comes by a call of its own, to any replica. That replica
extends the streams that it serves and tells the others, who extend theirs. Nothing is kept: a replica that
was not told (its connection to NATS was away) lets its streams end, which the streams themselves announce in
time, so a client renews again or begins anew.
"""

import json
import logging
from collections.abc import Callable
from typing import Final

from services.shell.bus import Bus

_log: Final = logging.getLogger(__name__)


class Lease:
    """How long one stream may live.

    Attributes:
        player_id: whose stream it is.
        expires_at: when the newest token ends that its player has shown, seconds of Unix time.
    """

    __slots__ = ("expires_at", "player_id", "renewed")

    def __init__(self, player_id: str, expires_at: int, renewed: Callable[[], None]) -> None:
        self.player_id = player_id
        self.expires_at = expires_at
        self.renewed = renewed


class Renewals:
    """The leases of all streams of one kind that this process serves."""

    def __init__(self, bus: Bus, topic: str) -> None:
        """Know of no stream yet.

        Args:
            bus: reaches the other replicas.
            topic: of the bus, one for each kind of stream.
        """
        self._bus = bus
        self._topic = topic
        self._leases: dict[str, set[Lease]] = {}

    def __len__(self) -> int:
        """How many streams there are."""
        return sum(map(len, self._leases.values()))

    async def start(self) -> None:
        """Listen to the other replicas from now on."""
        await self._bus.hear(self._topic, self._heard)

    def enter(self, player_id: str, expires_at: int, renewed: Callable[[], None]) -> Lease:
        """A stream begins.

        Args:
            player_id: whose it is.
            expires_at: when its token ends, seconds of Unix time.
            renewed: called each time ``expires_at`` has become later; must not block.
        """
        lease = Lease(player_id, expires_at, renewed)
        self._leases.setdefault(player_id, set()).add(lease)
        return lease

    def leave(self, lease: Lease) -> None:
        """A stream has ended."""
        leases = self._leases.get(lease.player_id, set())
        leases.discard(lease)
        if not leases:
            self._leases.pop(lease.player_id, None)

    async def renew(self, player_id: str, expires_at: int) -> None:
        """A player has shown a token that ends then: no stream of that player ends before it.

        It never shortens what an earlier token gave.
        """
        self._extend(player_id, expires_at)
        await self._bus.tell(self._topic, json.dumps([player_id, expires_at]).encode())

    def _heard(self, news: bytes) -> None:
        try:
            player_id, expires_at = json.loads(news)
        except (ValueError, TypeError):
            player_id = expires_at = None
        if not isinstance(player_id, str) or type(expires_at) is not int:
            _log.warning("renewal_not_understood")
            return
        self._extend(player_id, expires_at)

    def _extend(self, player_id: str, expires_at: int) -> None:
        for lease in tuple(self._leases.get(player_id, ())):
            if expires_at > lease.expires_at:
                lease.expires_at = expires_at
                lease.renewed()
