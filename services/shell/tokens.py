"""Who calls: EdDSA JWTs {iss, sub, scope, exp, jti, op}, verified by public keys, remembered until expiry."""

import re
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from services.game.ids import SERVICE_PREFIX

ALGORITHM: Final = "EdDSA"
LIFETIME_S: Final = 15 * 60
"""How long a token lives unless its signer says otherwise."""
SCOPES: Final = "table lobby ledger"
"""Every service: what a token is for unless its signer says otherwise."""
BOT_PREFIX: Final = "bot:"
MAX_TOKEN_BYTES: Final = 2048
EXPIRY_MOST: Final = 253_402_300_799
"""The end of the year 9999; in milliseconds it still fits whatever tells it."""
REMEMBERED: Final = 20_000
"""Verified tokens kept at most; one costs about 75 µs to verify again."""
LOOK_S: Final = 1.0
"""How often issuers' key files are looked at."""
_SUBJECT: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_OPERATOR: Final = re.compile(r"[a-z0-9-]{2,32}")


def is_player_id(text: str) -> bool:
    """Whether a text can be the subject of a token: 1..64 characters of ``A-Z a-z 0-9 _ . : -``."""
    return _SUBJECT.fullmatch(text) is not None


def is_operator(text: str) -> bool:
    """Whether a text can be an operator's name: 2..32 characters of ``a-z 0-9 -``."""
    return _OPERATOR.fullmatch(text) is not None


class TokenError(Exception):
    """A token that proves nothing; the message says why and never quotes it."""


class Kind(Enum):
    """Whom an issuer may speak for."""

    PLAYERS = ""
    """Any subject but those of the other kinds."""
    BOTS = BOT_PREFIX
    SERVICES = SERVICE_PREFIX


def kind_of(subject: str) -> Kind:
    """The kind of a token's subject, by its prefix."""
    if subject.startswith(BOT_PREFIX):
        return Kind.BOTS
    return Kind.SERVICES if subject.startswith(SERVICE_PREFIX) else Kind.PLAYERS


class Keys:
    """An issuer's public keys: one for whatever ``kid`` a token names, or one for each ``kid``."""

    def __init__(self, keys: Ed25519PublicKey | Mapping[str, Ed25519PublicKey]) -> None:
        self._keys = keys

    def find(self, kid: str) -> Ed25519PublicKey | None:
        """The key that a token naming this ``kid`` (empty: none) must be signed with, or None."""
        return self._keys.get(kid) if isinstance(self._keys, Mapping) else self._keys

    def changed(self) -> bool:
        """Look whether there are other keys now, and take them; these never change."""
        return False


@dataclass(frozen=True, slots=True)
class Issuer:
    """Who may sign tokens."""

    name: str
    keys: Keys
    kind: Kind = Kind.PLAYERS


@dataclass(frozen=True, slots=True)
class Identity:
    """What a good token proves."""

    player_id: str
    scope: str
    expires_at: int
    """Seconds of Unix time."""
    operator: str = ""
    """The operator that the player belongs to, empty for the house."""
    issuer: str = ""


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
        self._looked = clock()
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
        now = self._clock()
        if not 0 <= now - self._looked < LOOK_S:
            self._look(now)
        identity = self._known.get(token)
        return identity if identity is not None and identity.expires_at > now else None

    def _look(self, now: float) -> None:
        """Take changed keys; what was verified with those before counts no more, until verified again."""
        self._looked = now
        changed = [issuer.name for issuer in self._issuers.values() if issuer.keys.changed()]
        if changed:
            self._known.clear()

    def _read(self, token: str) -> Identity:
        if len(token) > MAX_TOKEN_BYTES:
            raise TokenError("the token is too long")
        try:
            kid = jwt.get_unverified_header(token).get("kid", "")
            stated = jwt.decode(token, options={"verify_signature": False})
            issuer = self._issuers.get(stated.get("iss", ""))
            if issuer is None:
                raise TokenError("the token's issuer is not trusted here")
            key = issuer.keys.find(kid)
            if key is None:
                raise TokenError("the token's issuer has no such key")
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[ALGORITHM],
                options={
                    "require": ["iss", "sub", "scope", "exp", "jti"],
                    "verify_exp": False,
                    "verify_aud": False,
                },
            )
        except (jwt.InvalidTokenError, TypeError):
            raise TokenError("the token is not valid") from None
        return self._proved(issuer, claims)

    def _proved(self, issuer: Issuer, claims: Mapping[str, Any]) -> Identity:
        player, scope, expires = claims["sub"], claims["scope"], claims["exp"]
        operator = claims.get("op", "")
        if not isinstance(player, str) or not is_player_id(player):
            raise TokenError("the token's subject is no player id")
        if kind_of(player) is not issuer.kind:
            raise TokenError("the token's issuer may not speak for that subject")
        if not isinstance(scope, str) or self._scope not in scope.split():
            raise TokenError("the token is for another scope")
        if type(expires) is not int:
            raise TokenError("the token's expiry is no whole number")
        if expires > EXPIRY_MOST:
            raise TokenError("the token's expiry is beyond all time")
        if "op" in claims and (not isinstance(operator, str) or not is_operator(operator)):
            raise TokenError("the token's operator is no name of one")
        return Identity(player, scope, expires, operator, issuer.name)


def sign(
    key: Ed25519PrivateKey,
    issuer: str,
    player_id: str,
    *,
    scope: str = SCOPES,
    lifetime_s: int = LIFETIME_S,
    now: float | None = None,
    kid: str = "",
    operator: str = "",
) -> str:
    """Make a token for a player.

    Args:
        key: the issuer's private key.
        issuer: its name.
        player_id: the subject.
        scope: the services that it is for, separated by spaces.
        lifetime_s: seconds until it ends.
        now: seconds of Unix time; None for the clock's.
        kid: the key's name in the issuer's key set, empty for an issuer of one key.
        operator: that the player belongs to, empty for the house.

    Raises:
        ValueError: the player id is not 1..64 characters of ``A-Z a-z 0-9 _ . : -``; or no such operator's
            name can be.
    """
    if not is_player_id(player_id):
        raise ValueError(f"{player_id!r} is no player id")
    if operator and not is_operator(operator):
        raise ValueError(f"{operator!r} is no operator's name")
    expires = int(time.time() if now is None else now) + lifetime_s
    claims = {"iss": issuer, "sub": player_id, "scope": scope, "exp": expires, "jti": uuid.uuid4().hex}
    if operator:
        claims["op"] = operator
    return jwt.encode(claims, key, algorithm=ALGORITHM, headers={"kid": kid} if kid else None)
