"""The JSON form of each option: how its value is written, and how it is read back or refused.

The form follows from the option's type: booleans, whole numbers and enum values are themselves, levels and
ranks are "2".."A", a level table is an object.
"""

import dataclasses
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from services.rules.cards import LEVEL_INDEX, level_text
from services.rules.ladders import LADDERS
from services.rules.level_tables import LEVEL_TABLES, Band, LevelTable

if TYPE_CHECKING:
    from services.rules.options import RuleSet

_LEVEL: Final = "start_level"
_RANKS: Final = ("hook_back", "stop_levels", "must_defend")
_TABLE_KEYS: Final = {"declarers", "attackers", "step", "cap"}
_NAME_LENGTH: Final = 40


class RuleError(ValueError):
    """An option that does not exist, has no such value, or cannot stand beside the others.

    Attributes:
        option: the name of the option at fault.
        message: what is wrong, in English.
    """

    def __init__(self, option: str, message: str) -> None:
        super().__init__(f"{option}: {message}")
        self.option = option
        self.message = message


def write(rules: "RuleSet") -> dict[str, object]:
    """Every option of a rule set as a plain JSON value."""
    return {field.name: _plain(field.name, getattr(rules, field.name)) for field in dataclasses.fields(rules)}


def read(hints: Mapping[str, Any], name: str, value: object) -> Any:
    """The value of an option from its JSON form; ``hints`` are the types of all options by name.

    Raises:
        RuleError: no such option, or not a value of it.
    """
    if name not in hints:
        raise RuleError(name, "is no option")
    try:
        return _value(name, hints[name], value)
    except ValueError as error:
        raise RuleError(name, str(error)) from None


def _plain(name: str, value: object) -> object:
    if isinstance(value, LevelTable):
        return {
            "declarers": [list(band) for band in value.declarers],
            "attackers": [list(band) for band in value.attackers],
            "step": value.step,
            "cap": value.cap,
        }
    if isinstance(value, StrEnum):
        return value.value
    if name == _LEVEL and isinstance(value, int):
        return level_text(value)
    if isinstance(value, tuple):
        return [level_text(rank) for rank in value]
    return value


def _value(name: str, hint: Any, value: object) -> object:
    if name == _LEVEL:
        return _rank(value)
    if name in _RANKS:
        if not isinstance(value, list | tuple):
            raise ValueError("must be a list of ranks")
        return tuple(sorted({_rank(rank) for rank in value}))
    if name == "level_table":
        return _table(value)
    if name == "bury_points_max" and value is None:
        return None
    if hint is bool:
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return value
    if hint is str:
        return _name(name, value)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _member(hint, value)
    return _whole(value)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be a whole number")
    return value


def _member(kind: type[StrEnum], value: object) -> StrEnum:
    if isinstance(value, str):
        for member in kind:
            if member.value == value:
                return member
    raise ValueError(f"must be one of {', '.join(kind)}")


def _name(option: str, value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _NAME_LENGTH:
        raise ValueError("must be a name")
    if option == "ladders" and value not in LADDERS:
        raise ValueError(f"must be one of {', '.join(LADDERS)}")
    return value


def _rank(value: object) -> int:
    if not isinstance(value, str) or value not in LEVEL_INDEX:
        raise ValueError("must be a rank 2-9, T, J, Q, K or A")
    return LEVEL_INDEX[value]


def _table(value: object) -> LevelTable:
    if isinstance(value, str):
        if value not in LEVEL_TABLES:
            raise ValueError(f"must be a table or one of {', '.join(LEVEL_TABLES)}")
        return LEVEL_TABLES[value]
    if not isinstance(value, Mapping) or set(value) != _TABLE_KEYS:
        raise ValueError("must hold declarers, attackers, step and cap")
    cap = value["cap"]
    return LevelTable(
        declarers=_bands(value["declarers"]),
        attackers=_bands(value["attackers"]),
        step=_whole(value["step"]),
        cap=None if cap is None else _whole(cap),
    )


def _bands(value: object) -> tuple[Band, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("bands must be a list")
    bands = []
    for band in value:
        if not isinstance(band, list | tuple) or len(band) != 2:
            raise ValueError("a band must be [points, levels]")
        bands.append((_whole(band[0]), _whole(band[1])))
    return tuple(bands)
