"""What only table services can make or check for a table: resume tokens and spectator codes."""

import base64
import binascii
import hmac
import struct
from typing import Final, NamedTuple

from services.game.framing import frame
from services.game.keys import Keyring, command_check
from services.rules.reasons import Reason
from services.shell.errors import RefusedError

_RESUME: Final = b"shengji resume v1"
_SPECTATOR: Final = b"shengji spectator v1"
_MAC: Final = 8
_PLACE: Final = struct.Struct(">QHQ")


class Place(NamedTuple):
    """Where in the life of a table a watcher is; places are ordered by (version, drawn)."""

    version: int
    drawn: int
    """Cards that each seat has drawn in the open deal."""
    sequence: int
    """The log's sequence of that version's commit."""


class TableSecrets:
    """The secrets of one table; every replica that has the master keys makes the same."""

    __slots__ = ("_key", "_keyring", "_table_id")

    def __init__(self, keyring: Keyring, table_id: str) -> None:
        self._keyring = keyring
        self._table_id = table_id
        self._key = _resume_key(keyring, keyring.current, table_id)

    def resume_token(self, place: Place) -> str:
        """The opaque text by which a watcher goes on behind a place."""
        packed = _PLACE.pack(*place)
        return _text(packed + _mac(self._key, packed))

    def place_of(self, token: str) -> Place:
        """The place that a resume token names.

        Raises:
            RefusedError: BAD_INPUT, the token is not one of this table's.
        """
        try:
            raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except (binascii.Error, ValueError):
            raw = b""
        if _text(raw) != token:  # one place has one text: the decoder skips what it does not know
            raw = b""
        packed, mac = raw[: _PLACE.size], raw[_PLACE.size :]
        keys = (_resume_key(self._keyring, key_id, self._table_id) for key_id in self._keyring.key_ids)
        if len(raw) != _PLACE.size + _MAC or not any(
            hmac.compare_digest(_mac(key, packed), mac) for key in keys
        ):
            raise RefusedError(
                Reason.BAD_INPUT, {"field": "after", "detail": "is no resume token of this table"}
            )
        return Place(*_PLACE.unpack(packed))


def spectator_code(keyring: Keyring, table_id: str, key_id: str = "") -> str:
    """What a spectator of a LINK table shows: 13 characters that follow from the table and a master key."""
    mac = command_check(keyring, key_id or keyring.current, table_id, frame(_SPECTATOR))
    return base64.b32encode(mac).decode().rstrip("=").lower()


def is_spectator_code(keyring: Keyring, table_id: str, code: str) -> bool:
    """Whether a code is the table's, under whichever of the master keys it was made."""
    given = code.encode()
    return any(
        hmac.compare_digest(spectator_code(keyring, table_id, key_id).encode(), given)
        for key_id in keyring.key_ids
    )


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _resume_key(keyring: Keyring, key_id: str, table_id: str) -> bytes:
    return hmac.digest(keyring.master(key_id), frame(_RESUME, table_id.encode("ascii")), "sha256")


def _mac(key: bytes, packed: bytes) -> bytes:
    return hmac.digest(key, packed, "sha256")[:_MAC]
