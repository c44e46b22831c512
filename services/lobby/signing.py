"""Access tokens of the lobby, and the public keys that prove them."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from services.shell.key_ring import KeyRing
from services.shell.tokens import LIFETIME_S, sign
from services.shell.trust import LOBBY_ISSUER


class Access(NamedTuple):
    """An access token."""

    token: str
    expires_at_ms: int
    """Milliseconds of Unix time."""


class Signer:
    """Signs players' tokens with the keys below DATA, which replicas share and may change at any time.

    Attributes:
        issuer: the ``iss`` of its tokens.
    """

    def __init__(self, data: Path, now_ms: Callable[[], int], issuer: str = LOBBY_ISSUER) -> None:
        """Read the keys; the first one is made if there is none.

        Raises:
            KeyFileError: they cannot be used.
        """
        self.issuer = issuer
        self._now_ms = now_ms
        self._ring = KeyRing(data, issuer, lambda: now_ms() / 1000)

    def access(self, player_id: str, operator: str) -> Access:
        """A token for a player of an operator (empty for the house), good for 15 minutes."""
        now_s = self._now_ms() // 1000
        kid, key, _ = self._ring.current()
        token = sign(key, self.issuer, player_id, now=now_s, kid=kid, operator=operator)
        return Access(token, (now_s + LIFETIME_S) * 1000)

    def key_set(self) -> str:
        """A JWKS of every key that a living token may name."""
        return self._ring.key_set()
