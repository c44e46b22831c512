"""The signing keys of an issuer that changes them: DATA/keys/NAME.keys, and their public halves in NAME.jwks.

A new key is public at once and signs ``LEAD_S`` later, when every verifier has looked at the file again. The
key before it stays public for ``STAY_S`` after that, longer than any token that it signed lives.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.shell import jwks
from services.shell.keys import KeyFileError, keys_folder

LEAD_S: Final = 60
STAY_S: Final = 3600
LOOK_S: Final = 1.0
"""How often a ring looks at its file."""


class RingKey(NamedTuple):
    """One key of a ring."""

    kid: str
    key: Ed25519PrivateKey
    not_before: int
    """Seconds of Unix time from which it signs."""


class KeyRing:
    """The keys of an issuer of this machine; made on first use. Replicas that share DATA share it.

    Every method raises ``KeyFileError`` when the file of keys cannot be used.
    """

    def __init__(self, data: Path, issuer: str, now_s: Callable[[], float]) -> None:
        """Read the ring, or make it with one key that signs at once.

        Args:
            data: the data folder.
            issuer: the name of the files.
            now_s: the clock, seconds of Unix time.
        """
        folder = keys_folder(data)
        self._private = folder / f"{issuer}.keys"
        self._public = folder / f"{issuer}.jwks"
        self._now_s = now_s
        self._looked = now_s()
        self._keys: tuple[RingKey, ...] = ()
        self._refresh()

    def current(self) -> RingKey:
        """The key that signs now: the newest whose time has come."""
        self._look()
        now = self._now_s()
        return max(
            (key for key in self._keys if key.not_before <= now),
            key=lambda key: key.not_before,
            default=self._keys[0],
        )

    def listed(self) -> tuple[RingKey, ...]:
        """Every key that a living token may name, and those that will sign, oldest first."""
        self._look()
        return tuple(living(self._keys, self._now_s()))

    def key_set(self) -> str:
        """Their public halves, a JWKS."""
        return _public(self.listed())

    def rotate(self) -> RingKey:
        """Add a key; it signs from ``LEAD_S`` seconds on."""
        with self._locked():
            added = _new(int(self._now_s()) + LEAD_S)
            self._write([*living(self._load(), self._now_s()), added])
        return added

    def _look(self) -> None:
        if not 0 <= self._now_s() - self._looked < LOOK_S:
            self._refresh()

    def _refresh(self) -> None:
        """Read what others have changed, and take retired keys out of the files."""
        now = self._looked = self._now_s()
        self._keys = self._load() if self._private.exists() else ()
        kept = tuple(living(self._keys, now))
        if self._keys and kept == self._keys and self._public.exists():
            return
        with self._locked():
            self._write(tuple(living(self._load() if self._private.exists() else (), now)) or [_new(0)])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from changing the files meanwhile."""
        descriptor = os.open(self._private.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _load(self) -> tuple[RingKey, ...]:
        try:
            entries: Any = json.loads(self._private.read_bytes())["keys"]
            keys = tuple(sorted((_key(entry) for entry in entries), key=lambda key: key.not_before))
        except OSError as error:
            raise KeyFileError(f"{self._private} cannot be read: {error.strerror}") from None
        except (ValueError, TypeError, KeyError):
            raise KeyFileError(f"{self._private} is no ring of signing keys") from None
        if not keys:
            raise KeyFileError(f"{self._private} holds no key")
        return keys

    def _write(self, keys: Sequence[RingKey]) -> None:
        # The public file first: nothing may sign with a key that no verifier can find.
        _replace(self._public, _public(keys))
        entries = [
            {"kid": kid, "d": jwks.encode(key.private_bytes_raw()), "not_before": not_before}
            for kid, key, not_before in keys
        ]
        _replace(self._private, json.dumps({"keys": entries}))
        self._keys = tuple(keys)


def living(keys: Sequence[RingKey], now: float) -> list[RingKey]:
    """Those whose successor has not signed for ``STAY_S`` yet; keys come in the order of ``not_before``."""
    later = [*(key.not_before for key in keys), float("inf")][1:]
    return [key for key, superseded in zip(keys, later, strict=True) if now < superseded + STAY_S]


def _new(not_before: int) -> RingKey:
    key = Ed25519PrivateKey.generate()
    return RingKey(jwks.key_id(key.public_key()), key, not_before)


def _key(entry: Any) -> RingKey:
    key = Ed25519PrivateKey.from_private_bytes(jwks.decode(entry["d"]))
    return RingKey(str(entry["kid"]), key, int(entry["not_before"]))


def _public(keys: Sequence[RingKey]) -> str:
    return jwks.key_set({key.kid: key.key.public_key() for key in keys})


def _replace(path: Path, text: str) -> None:
    """Write a file whole and 0600, or leave it as it was."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(scratch, path)
