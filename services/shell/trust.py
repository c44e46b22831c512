"""Whom a service believes: issuers by name, what each may speak for, and the files with their public keys."""

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from services.shell.config import ConfigError
from services.shell.jwks import JwksError, read_keys
from services.shell.keys import KeyFileError, keys_folder, public_key, signing_key
from services.shell.tokens import Issuer, Keys, Kind

PLAYER_ISSUER: Final = "local"
"""Signs players' tokens for development (`shengji token`); its key is DATA/keys/local.key."""
LOBBY_ISSUER: Final = "lobby"
"""Signs players' tokens; its keys are DATA/keys/lobby.keys."""
BOT_ISSUER: Final = "bots"
SERVICE_ISSUER: Final = "services"
_log = logging.getLogger(__name__)


class FileKeys(Keys):
    """Keys from a file, PEM or JWKS, which is read again whenever it has changed."""

    def __init__(self, path: Path, *, required: bool = True) -> None:
        """Read the file.

        Args:
            path: the file; a JWKS begins with ``{``.
            required: False: without the file there are no keys until it comes.

        Raises:
            KeyFileError: it cannot be read, or holds no key.
        """
        self._path = path
        self._stamp = _stamp(path)
        super().__init__({} if self._stamp is None and not required else _read(path))

    def changed(self) -> bool:
        """Read the file again if it has changed; a file that became unusable leaves the keys as they were."""
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self._keys = _read(self._path)
        except KeyFileError:
            _log.warning("issuer_keys_unusable", extra={"detail": self._path.name})
            return False
        return True


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: Path) -> Ed25519PublicKey | Mapping[str, Ed25519PublicKey]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read: {error.strerror}") from None
    if not content.lstrip().startswith(b"{"):
        return public_key(path)
    try:
        return read_keys(content)
    except JwksError as error:
        raise KeyFileError(f"{path} is no key set: {error}") from None


def issuer_of(entry: str, kind: Kind) -> Issuer:
    """An issuer as it is configured: ``name=file``, the file PEM or JWKS.

    Raises:
        ConfigError: another form.
        KeyFileError: the file cannot be used.
    """
    name, equals, path = entry.partition("=")
    if not name or not equals or not path:
        raise ConfigError(f"an issuer is name=file, not {entry!r}")
    return Issuer(name, FileKeys(Path(path)), kind)


def trusted(
    data: Path, players: Iterable[str] = (), bots: Iterable[str] = (), services: Iterable[str] = ()
) -> list[Issuer]:
    """Everybody who is trusted: for each kind as configured, else this machine's own issuers below DATA/keys.

    Raises:
        ConfigError: an issuer that is not name=file.
        KeyFileError: a key cannot be used.
    """
    issuers: list[Issuer] = []
    for entries, kind, own in (
        (tuple(players), Kind.PLAYERS, PLAYER_ISSUER),
        (tuple(bots), Kind.BOTS, BOT_ISSUER),
        (tuple(services), Kind.SERVICES, SERVICE_ISSUER),
    ):
        issuers.extend(issuer_of(entry, kind) for entry in entries)
        if not entries:
            signing_key(data, own)
            issuers.append(Issuer(own, FileKeys(keys_folder(data) / f"{own}.pub"), kind))
        if not entries and kind is Kind.PLAYERS:
            path = keys_folder(data) / f"{LOBBY_ISSUER}.jwks"
            issuers.append(Issuer(LOBBY_ISSUER, FileKeys(path, required=False), kind))
    return issuers
