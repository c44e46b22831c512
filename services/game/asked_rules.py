"""Rules as a request asks for them: a preset's name, and options that are to differ from it."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Final

from services.game.commands import Refusal
from services.pb.event.v1.event_pb2 import RuleOption
from services.rules.option_forms import RuleError
from services.rules.options import RuleSet
from services.rules.presets import UnknownPreset, preset
from services.rules.reasons import Reason

_OPTIONS: Final = {option.name for option in dataclasses.fields(RuleSet)} - {"preset"}


def asked_rules(name: str, overrides: Sequence[RuleOption] = ()) -> RuleSet | Refusal:
    """The rules of a preset with some options changed, or why there are none such.

    Returns:
        The rules; or a refusal UNKNOWN_PRESET, UNKNOWN_OPTION or BAD_OPTION.
    """
    try:
        chosen = preset(name)
    except UnknownPreset:
        return Refusal(Reason.UNKNOWN_PRESET, {"preset": name})
    values: dict[str, object] = {}
    for option in overrides:
        if option.name not in _OPTIONS:
            return Refusal(Reason.UNKNOWN_OPTION, {"option": option.name})
        if option.name in values:
            return _bad_option(option.name, "is given twice")
        try:
            values[option.name] = json.loads(option.value, parse_constant=_no_number)
        except (ValueError, RecursionError):
            return _bad_option(option.name, "is no JSON")
    try:
        return chosen.with_overrides(values)
    except RuleError as error:
        return _bad_option(error.option, error.message)


def _bad_option(option: str, detail: str) -> Refusal:
    return Refusal(Reason.BAD_OPTION, {"option": option, "detail": detail})


def _no_number(text: str) -> object:
    raise ValueError(text)
