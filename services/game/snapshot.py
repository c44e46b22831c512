"""A table's state as bytes and back, exactly: a cache of the fold (ARCHITECTURE §2 Cold tables).

The bytes hold secrets in the clear; ``seal`` closes them before they are stored. Only code of the same
``FOLD_VERSION`` reads them; any other ignores the snapshot and folds the log.

Format: the fold version, then one value. A value is a tag byte and, by tag:

    0 none · 1 false · 2 true · 3 whole number (varint, zigzag) · 4 bytes, 5 text (length, content)
    6 tuple (length, values) · 7 rules (length, a serialised ``event.v1.RuleSet``)
    16 + n  a record: type n of ``_RECORDS``, its fields in their order
"""

from dataclasses import fields
from typing import Any, Final

from services.game.errors import BadInput
from services.game.evolve import FOLD_VERSION
from services.game.state import (
    Bury,
    Closed,
    Counter,
    Deal,
    Declaring,
    Founding,
    Mutiny,
    Over,
    Pace,
    Scored,
    Seating,
    SeatState,
    Seed,
    Settled,
    Table,
    Tricks,
)
from services.game.wire import rules_from_stored, stored_rules
from services.rules.declarations import Declarations, Standing
from services.rules.levels import Match, Outcome
from services.rules.options import RuleSet

_NONE, _FALSE, _TRUE, _WHOLE, _BYTES, _TEXT, _TUPLE, _RULES, _RECORD = 0, 1, 2, 3, 4, 5, 6, 7, 16

_RECORDS: Final[tuple[type[Any], ...]] = (
    Table,
    SeatState,
    Founding,
    Pace,
    Seed,
    Deal,
    Settled,
    Match,
    Declarations,
    Standing,
    Seating,
    Declaring,
    Mutiny,
    Bury,
    Counter,
    Tricks,
    Scored,
    Over,
    Closed,
)
_NUMBERS: Final = {record: number for number, record in enumerate(_RECORDS)}
_FIELDS: Final[tuple[tuple[str, ...], ...]] = tuple(
    tuple(getattr(record, "_fields", None) or (field.name for field in fields(record))) for record in _RECORDS
)


def layout() -> str:
    """Every record with its fields, in order: whoever changes it must raise ``FOLD_VERSION``."""
    return "\n".join(
        f"{record.__name__}({', '.join(names)})" for record, names in zip(_RECORDS, _FIELDS, strict=True)
    )


def pack(state: Table) -> bytes:
    """The state as bytes; equal states give equal bytes."""
    out = bytearray()
    _put_varint(out, FOLD_VERSION)
    _put(out, state)
    return bytes(out)


def unpack(packed: bytes) -> Table:
    """The state that ``pack`` wrote.

    Raises:
        BadInput: written by another fold version, or not by ``pack`` at all.
    """
    reader = _Reader(packed)
    try:
        if reader.varint() != FOLD_VERSION:
            raise BadInput("snapshot", "is of another fold version")
        state = reader.value()
    except (IndexError, ValueError, TypeError):
        raise BadInput("snapshot", "is damaged") from None
    if not isinstance(state, Table) or reader.at != len(packed):
        raise BadInput("snapshot", "is damaged")
    return state


def _put_varint(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _put_content(out: bytearray, tag: int, content: bytes) -> None:
    out.append(tag)
    _put_varint(out, len(content))
    out += content


def _put(out: bytearray, value: object) -> None:
    if value is None:
        out.append(_NONE)
    elif isinstance(value, bool):
        out.append(_TRUE if value else _FALSE)
    elif isinstance(value, int):
        out.append(_WHOLE)
        _put_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)
    elif isinstance(value, bytes):
        _put_content(out, _BYTES, value)
    elif isinstance(value, str):
        _put_content(out, _TEXT, value.encode())
    elif isinstance(value, RuleSet):
        _put_content(out, _RULES, stored_rules(value))
    elif type(value) in _NUMBERS:
        number = _NUMBERS[type(value)]
        out.append(_RECORD + number)
        for name in _FIELDS[number]:
            _put(out, getattr(value, name))
    elif type(value) is tuple:
        out.append(_TUPLE)
        _put_varint(out, len(value))
        for member in value:
            _put(out, member)
    else:
        raise TypeError(f"a state holds no {type(value).__name__}")


class _Reader:
    """Reads values one after another."""

    def __init__(self, packed: bytes) -> None:
        self.packed = packed
        self.at = 0

    def byte(self) -> int:
        self.at += 1
        return self.packed[self.at - 1]

    def varint(self) -> int:
        number = shift = 0
        while (byte := self.byte()) > 0x7F:
            number |= (byte & 0x7F) << shift
            shift += 7
        return number | byte << shift

    def content(self) -> bytes:
        size = self.varint()
        self.at += size
        if self.at > len(self.packed):
            raise IndexError("past the end")
        return self.packed[self.at - size : self.at]

    def value(self) -> Any:
        tag = self.byte()
        if tag >= _RECORD:
            return self.record(tag - _RECORD)
        match tag:
            case 0:
                return None
            case 1 | 2:
                return tag == _TRUE
            case 3:
                number = self.varint()
                return -(number + 1 >> 1) if number & 1 else number >> 1
            case 4:
                return self.content()
            case 5:
                return self.content().decode()
            case 6:
                return tuple(self.value() for _ in range(self.varint()))
            case 7:
                return rules_from_stored(self.content())
            case _:
                raise ValueError(f"no such tag: {tag}")

    def record(self, number: int) -> Any:
        kind = _RECORDS[number]
        values = [self.value() for _ in _FIELDS[number]]
        if kind is Match and values[-1] is not None:
            values[-1] = Outcome(values[-1])
        return kind(*values)
