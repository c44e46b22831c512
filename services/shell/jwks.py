"""JSON Web Key Sets of Ed25519 keys (RFC 7517, RFC 8037): text in, text out."""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

KEYS_MOST: Final = 64
"""Keys of one set; more is a mistake."""


class JwksError(ValueError):
    """A text that is no set of Ed25519 keys; the message says why and quotes no key."""


def encode(raw: bytes) -> str:
    """Base64url without padding, as JOSE writes bytes."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """The bytes of base64url without padding.

    Raises:
        JwksError: it is none.
    """
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise JwksError("a value is not base64url") from None


def key_id(key: Ed25519PublicKey) -> str:
    """The ``kid`` of a key: its thumbprint (RFC 7638, RFC 8037 §2), 43 characters."""
    shape = f'{{"crv":"Ed25519","kty":"OKP","x":"{encode(key.public_bytes_raw())}"}}'
    return encode(hashlib.sha256(shape.encode()).digest())


def key_set(keys: Mapping[str, Ed25519PublicKey]) -> str:
    """The set of keys by ``kid``, as JSON."""
    return json.dumps(
        {
            "keys": [
                {
                    "kty": "OKP",
                    "crv": "Ed25519",
                    "use": "sig",
                    "alg": "EdDSA",
                    "kid": kid,
                    "x": encode(key.public_bytes_raw()),
                }
                for kid, key in keys.items()
            ]
        }
    )


def read_keys(text: str | bytes) -> dict[str, Ed25519PublicKey]:
    """The Ed25519 signing keys of a set by ``kid``; keys of other kinds or uses are not for us and left out.

    Raises:
        JwksError: no such set; or a ``kid`` that is missing or stands twice.
    """
    try:
        listed: Any = json.loads(text)["keys"]
    except (ValueError, TypeError, KeyError):
        raise JwksError("no JSON object with keys") from None
    if not isinstance(listed, list) or len(listed) > KEYS_MOST:
        raise JwksError(f"keys is a list of at most {KEYS_MOST}")
    keys: dict[str, Ed25519PublicKey] = {}
    for entry in listed:
        if not isinstance(entry, dict):
            raise JwksError("a key is no object")
        if (entry.get("kty"), entry.get("crv")) != ("OKP", "Ed25519") or entry.get("use", "sig") != "sig":
            continue
        kid, point = entry.get("kid"), entry.get("x")
        if not isinstance(kid, str) or not kid or kid in keys or not isinstance(point, str):
            raise JwksError("every key has a kid of its own, and x")
        try:
            keys[kid] = Ed25519PublicKey.from_public_bytes(decode(point))
        except ValueError:
            raise JwksError("x is no Ed25519 key") from None
    return keys
