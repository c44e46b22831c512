"""The two engines, and the rules of every preset in both."""

from functools import cache

import engine_ext._core as core
from engine_ext import reference as twin
from services.rules.presets import PRESET_NAMES, preset

ENGINES = {"core": core, "twin": twin}


@cache
def rules_of(engine, name):
    return ENGINES[engine].Rules(**preset(name).engine_options())


__all__ = ["ENGINES", "PRESET_NAMES", "core", "rules_of", "twin"]
