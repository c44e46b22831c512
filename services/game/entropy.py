"""Where randomness comes from. Pure code never makes any: it is handed an ``Entropy`` and draws from it."""

import builtins
import hashlib
import hmac
import secrets
from typing import Final, Protocol

from services.game.framing import frame

_LABEL: Final = b"shengji seeded entropy v1"


class Entropy(Protocol):
    """A source of random bytes."""

    def bytes(self, n: int) -> builtins.bytes:
        """The next n random bytes."""
        ...

    def for_commit(self, table_id: str, version: int) -> "Entropy":
        """The source to draw from while one commit is decided and sealed."""
        ...


class SystemEntropy:
    """The operating system's randomness: what every real table plays with."""

    def bytes(self, n: int) -> builtins.bytes:
        """The next n random bytes."""
        return secrets.token_bytes(n)

    def for_commit(self, table_id: str, version: int) -> "SystemEntropy":
        """Itself: true randomness needs no scope."""
        return self


class SeededEntropy:
    """Bytes that anybody can foresee who knows the seed text: for development and tests only.

    Block i of a stream is HMAC-SHA256(key = SHA-256(seed text), frame(label, scope…) ‖ i as 8 bytes). A
    stream depends on the seed text and the scope alone, so whichever replica decides a commit, and however
    often, it draws the same bytes. (Two different commands that race for one version draw the same bytes too,
    nonces included: one more reason why a table with such a seed keeps no secrets.)

    Args:
        seed: any text, `insecure_entropy` of the table.
        scope: what the stream is for; empty for the stream of the seed itself.
    """

    def __init__(self, seed: str, *scope: builtins.bytes) -> None:
        self._seed = seed
        self._key = hashlib.sha256(seed.encode()).digest()
        self._prefix = frame(_LABEL, *scope)
        self._block = 0
        self._rest = b""

    def bytes(self, n: int) -> builtins.bytes:
        """The next n bytes of the stream."""
        while len(self._rest) < n:
            self._rest += hmac.digest(self._key, self._prefix + self._block.to_bytes(8, "big"), "sha256")
            self._block += 1
        drawn, self._rest = self._rest[:n], self._rest[n:]
        return drawn

    def for_commit(self, table_id: str, version: int) -> "SeededEntropy":
        """A fresh stream for one commit of one table."""
        return SeededEntropy(self._seed, b"commit", table_id.encode(), version.to_bytes(8, "big"))
