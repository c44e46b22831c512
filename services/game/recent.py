"""The commands that a table remembers, so that a repeated one gets its first answer (ARCHITECTURE §2).

The last 16 commands of each seat, and of those without one, are kept packed: command id (16 bytes), check
(8), version (8, big-endian), oldest first. A refused command changes nothing and is not remembered.
"""

from typing import Final

from services.game.state import NOBODY, Table

REMEMBERED: Final = 16
_ID: Final = 16
_CHECK: Final = 8
_SIZE: Final = _ID + _CHECK + 8
_KEPT: Final = _SIZE * (REMEMBERED - 1)


class Reused:
    """The type of ``REUSED``."""


REUSED: Final = Reused()
"""The command id was used for another command."""


def remember(packed: bytes, command_id: bytes, check: bytes, version: int) -> bytes:
    """A slot with one more command, the oldest dropped beyond 16."""
    return packed[-_KEPT:] + command_id + check + version.to_bytes(8, "big")


def repeat_of(state: Table, player_id: str, command_id: bytes, check: bytes) -> int | Reused | None:
    """Whether a command is a repetition.

    Args:
        state: the table.
        player_id: who sends it.
        command_id: 16 bytes.
        check: 8 bytes, the keyed check of the command's body and its player.

    Returns:
        The version that recorded it before, ``REUSED`` when its id came with another body, ``None`` when it
        is new or older than the last 16.
    """
    seat = state.seat_of(player_id)
    for slot in (NOBODY,) if seat is None else (seat, NOBODY):
        found = _find(state.recent[slot], command_id, check)
        if found is not None:
            return found
    return None


def _find(packed: bytes, command_id: bytes, check: bytes) -> int | Reused | None:
    if command_id not in packed:
        return None
    for at in range(len(packed) - _SIZE, -1, -_SIZE):
        if packed[at : at + _ID] == command_id:
            if packed[at + _ID : at + _ID + _CHECK] != check:
                return REUSED
            return int.from_bytes(packed[at + _ID + _CHECK : at + _SIZE], "big")
    return None
