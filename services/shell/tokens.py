"""Who calls: EdDSA JWTs {iss, sub, scope, exp, jti}, verified with public keys, remembered until expiry."""

import re
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ALGORITHM: Final = "EdDSA"
LIFETIME_S: Final = 15 * 60
"""How long a token lives unless its signer says otherwise."""
BOT_PREFIX: Final = "bot:"
MAX_TOKEN_BYTES: Final = 2048
REMEMBERED: Final = 20_000
"""Verified tokens kept at most; one costs about 75 µs to verify again."""
_SUBJECT: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def is_player_id(text: str) -> bool:
    """Whether a text can be the subject of a token: 1..64 characters of ``A-Z a-z 0-9 _ . : -``."""
    return _SUBJECT.fullmatch(text) is not None


class TokenError(Exception):
    """A token that proves nothing; the message says why and never quotes it."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """Who may sign tokens."""

    name: str
    key: Ed25519PublicKey
    bots: bool = False
    """True: only for subjects ``bot:…``. False: for any subject but those."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a good token proves."""

    player_id: str
    scope: str
    expires_at: int
    """Seconds of Unix time."""


class Verifier:
    """Verifies tokens for one scope."""

    def __init__(
        self,
        issuers: Iterable[Issuer],
        scope: str,
        *,
        remembered: int = REMEMBERED,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._issuers: Mapping[str, Issuer] = {issuer.name: issuer for issuer in issuers}
        self._scope = scope
        self._remembered = remembered
        self._clock = clock
        self._known: OrderedDict[str, Identity] = OrderedDict()

    def verify(self, token: str) -> Identity:
        """Who shows this token.

        Raises:
            TokenError: malformed, expired, badly signed, of a stranger, or for another scope.
        """
        identity = self.recall(token)
        if identity is not None:
            return identity
        self._known.pop(token, None)
        identity = self._read(token)
        if identity.expires_at <= self._clock():
            raise TokenError("the token has expired")
        self._known[token] = identity
        if len(self._known) > self._remembered:
            self._known.popitem(last=False)
        return identity

    def recall(self, token: str) -> Identity | None:
        """Who shows this token, if it was verified before and holds still."""
        identity = self._known.get(token)
        return identity if identity is not None and identity.expires_at > self._clock() else None

    def _read(self, token: str) -> Identity:
        if len(token) > MAX_TOKEN_BYTES:
            raise TokenError("the token is too long")
        try:
            stated = jwt.decode(token, options={"verify_signature": False})
            issuer = self._issuers.get(stated.get("iss", ""))
            if issuer is None:
                raise TokenError("the token's issuer is not trusted here")
            claims: dict[str, Any] = jwt.decode(
                token,
                issuer.key,
                algorithms=[ALGORITHM],
                options={
                    "require": ["iss", "sub", "scope", "exp", "jti"],
                    "verify_exp": False,
                    "verify_aud": False,
                },
            )
        except (jwt.InvalidTokenError, TypeError):
            raise TokenError("the token is not valid") from None
        player, scope, expires = claims["sub"], claims["scope"], claims["exp"]
        if not isinstance(player, str) or not is_player_id(player):
            raise TokenError("the token's subject is no player id")
        if player.startswith(BOT_PREFIX) != issuer.bots:
            raise TokenError("the token's issuer may not speak for that subject")
        if not isinstance(scope, str) or self._scope not in scope.split():
            raise TokenError("the token is for another scope")
        if type(expires) is not int:
            raise TokenError("the token's expiry is no whole number")
        return Identity(player, scope, expires)


def sign(
    key: Ed25519PrivateKey,
    issuer: str,
    player_id: str,
    *,
    scope: str = "table",
    lifetime_s: int = LIFETIME_S,
    now: float | None = None,
) -> str:
    """Make a token for a player.

    Raises:
        ValueError: the player id is not 1..64 characters of ``A-Z a-z 0-9 _ . : -``.
    """
    if not is_player_id(player_id):
        raise ValueError(f"{player_id!r} is no player id")
    expires = int(time.time() if now is None else now) + lifetime_s
    claims = {"iss": issuer, "sub": player_id, "scope": scope, "exp": expires, "jti": uuid.uuid4().hex}
    return jwt.encode(claims, key, algorithm=ALGORITHM)
