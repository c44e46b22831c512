"""Every option of a rule set: its value in a preset, what else it may be, and what it means."""

import inspect
import json
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final, get_type_hints

from services.cli.columns import wrap
from services.rules.ladders import LADDERS
from services.rules.level_tables import LEVEL_TABLES
from services.rules.options import RuleSet

_ATTRIBUTE: Final = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.M)
_RANKS: Final = '"2" to "A"'


def option_lines(chosen: RuleSet, width: int) -> Iterator[str]:
    """By name: each option's value, what else it may be, and its meaning (in English)."""
    meanings, hints, values = _meanings(), get_type_hints(RuleSet), chosen.to_json()
    yield f"NAME = value in {chosen.preset}; `--option NAME=JSON` changes it"
    for name in sorted(values.keys() - {"preset"}):
        yield ""
        yield f"{name} = {json.dumps(values[name], ensure_ascii=False)}"
        yield from wrap(f"may be {_domain(name, hints[name])}", width, "    ", "    ")
        yield from wrap(meanings[name], width, "    ", "    ")


def _domain(name: str, hint: Any) -> str:
    """What an option may be, in its JSON form."""
    if name == "start_level":
        return _RANKS
    if name in {"hook_back", "stop_levels", "must_defend"}:
        return f"a list of ranks, {_RANKS}"
    if name == "ladders":
        return ", ".join(json.dumps(each) for each in LADDERS)
    if name == "level_table":
        return ", ".join(json.dumps(each) for each in LEVEL_TABLES) + ", or an object as above"
    if hint is bool:
        return "true or false"
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return ", ".join(json.dumps(member.value) for member in hint)
    return "a whole number" if hint is int else "a whole number or null"


def _meanings() -> dict[str, str]:
    """What the attributes of a rule set mean, as its class says it."""
    _, _, attributes = inspect.cleandoc(RuleSet.__doc__ or "").partition("Attributes:")
    return {name: " ".join(_plain(told).split()) for name, told in _ATTRIBUTE.findall(attributes)}


def _plain(told: str) -> str:
    """A text without the marks of code; JSON's null is Python's None."""
    return told.replace("``None``", "null").replace("``", "")
