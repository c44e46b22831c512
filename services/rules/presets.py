"""The seventeen presets of RULES §10."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from services.rules.level_tables import LEVEL_TABLES
from services.rules.options import (
    Adjacency,
    Declaring,
    Fallback,
    FirstDeclarer,
    FirstDrawer,
    ForcedComponent,
    MatchDeclares,
    MatchEnd,
    Multiplier,
    Overruff,
    Preference,
    RuleSet,
    Throws,
    Window,
)


class UnknownPreset(KeyError):
    """There is no preset of that name.

    Attributes:
        name: the name asked for.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"there is no preset {self.name!r}"


# 000 §3.1: jokers from a pair on, the partner may add (对家保), one may change one's own declaration (自反)
_CLASSIC: Final[dict[str, Any]] = {
    "multiplier": Multiplier.POWER,
    "match_end": MatchEnd.REACH_ACE,
    "match_declares": MatchDeclares.FIRST_DEAL,
}
_CLASSIC_2D: Final[dict[str, Any]] = {
    **_CLASSIC,
    "decks": 2,
    "kitty": 8,
    "minimum_jokers": 2,
    "partner_reinforce": True,
    "self_counter": True,
    "level_table": LEVEL_TABLES["classic-2d"],
}
_CLASSIC_1D: Final[dict[str, Any]] = {
    **_CLASSIC,
    "decks": 1,
    "kitty": 6,
    "level_table": LEVEL_TABLES["classic-1d"],
}
# 001: declared after the deal, the last flip wins and makes the declarer
_BASIC: Final[dict[str, Any]] = {
    "multiplier": Multiplier.TITANIC,
    "window": Window.AFTER_DEAL,
    "first_declarer": FirstDeclarer.LAST,
    "match_end": MatchEnd.PASS_ACE,
}
_BASIC_1D: Final[dict[str, Any]] = {
    **_BASIC,
    "decks": 1,
    "kitty": 6,
    "equal_overrides": True,
    "level_table": LEVEL_TABLES["basic-1d"],
}
_BASIC_2D: Final[dict[str, Any]] = {
    **_BASIC,
    "decks": 2,
    "kitty": 8,
    "minimum_jokers": 2,
    "equal_overrides": True,
    "level_table": LEVEL_TABLES["basic-2d"],
}
# 002: groups may be kept whole, a failed throw plays its lowest component (D4), overruffs compare cards (D29)
_CLOSED: Final[dict[str, Any]] = {
    "keep_groups_whole": True,
    "forced_component": ForcedComponent.LOWEST,
    "overruff": Overruff.HIGHEST_CARD,
    "multiplier": Multiplier.CLOSED,
    "kitty_card": 1,
    "match_declares": MatchDeclares.FIRST_DEAL,
    "match_end": MatchEnd.PASS_ACE,
}

_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "classic-1d": _CLASSIC_1D,
    "classic-1d-2c": {**_CLASSIC_1D, "two_colour": True, "partner_reinforce": True, "self_counter": True},
    "classic-2d": _CLASSIC_2D,
    "classic-2d-fixed2": {**_CLASSIC_2D, "permanent_twos": True, "start_level": 1},
    "classic-3d": {
        **_CLASSIC_2D,
        "decks": 3,
        "kitty": 6,
        "ladders": "classic-3d",
        "level_table": LEVEL_TABLES["classic-3d"],
    },
    "classic-4d": {
        "decks": 4,
        "kitty": 0,
        "permanent_twos": True,
        "adjacency": Adjacency.PRINTED_RANK,
        "ladders": "classic-4d",
        "throws": Throws.ONLY_WHEN_OTHERS_VOID,
        "wider_beats": True,
        "multiplier": Multiplier.LAST_TRICK,
        "sealed": True,
        "first_declarer": FirstDeclarer.LAST,
        "fallback": Fallback.SPADES,
        "kitty_card": 0,
        "first_drawer": FirstDrawer.RANDOM,
        "level_table": LEVEL_TABLES["classic-4d"],
        "start_level": 1,
        "match_end": MatchEnd.REACH_ACE,
    },
    "basic-1d": _BASIC_1D,
    "basic-1d-power": {**_BASIC_1D, "multiplier": Multiplier.POWER},
    "basic-2d": _BASIC_2D,
    "basic-2d-power": {**_BASIC_2D, "multiplier": Multiplier.POWER},
    "basic-3d": {
        **_BASIC,
        "decks": 3,
        "kitty": 6,
        "preference": Preference.WIDTH_FIRST,
        "ladders": "basic-3d",
        "minimum_jokers": 2,
        "level_table": LEVEL_TABLES["classic-3d"],
    },
    "closed-1d": {**_CLOSED, "decks": 1, "kitty": 6, "level_table": LEVEL_TABLES["basic-1d"]},
    "closed-2d": {
        **_CLOSED,
        "decks": 2,
        "kitty": 8,
        "minimum_jokers": 2,
        "level_table": LEVEL_TABLES["basic-2d"],
    },
    "closed-3d": {
        **_CLOSED,
        "decks": 3,
        "kitty": 6,
        "ladders": "closed-3d",
        "minimum_cards": 2,
        "minimum_jokers": 2,
        "level_table": LEVEL_TABLES["classic-3d"],
    },
    "closed-4d": {
        **_CLOSED,
        "decks": 4,
        "kitty": 8,
        "tractors": False,
        "ladders": "closed-4d",
        "throws": Throws.NONE,
        "minimum_cards": 2,
        "minimum_jokers": 2,
        "level_table": LEVEL_TABLES["bigkitty-4d"],
    },
    "tournament-2d": {
        "decks": 2,
        "kitty": 8,
        "level_joker_adjacent": False,
        "failed_throw_quarters": 1,
        "multiplier": Multiplier.PAIRS,
        "declaring": Declaring.JOKER_BACKED,
        "first_declarer": FirstDeclarer.LAST,
        "match_declares": MatchDeclares.ALWAYS,
        "mutiny": True,
        "level_table": LEVEL_TABLES["tournament-2d"],
        "match_end": MatchEnd.LOOP,
        "deals": 16,
    },
    "bigkitty-4d": {
        "decks": 4,
        "kitty": 12,
        "ladders": "bigkitty-4d",
        "groups_stay_together": True,
        "multiplier": Multiplier.POWER,
        "minimum_jokers": 2,
        "jokers_ranked": True,
        "level_table": LEVEL_TABLES["bigkitty-4d"],
        "match_end": MatchEnd.PASS_ACE,
        "escape_fee": True,
    },
}

PRESETS: Final[Mapping[str, RuleSet]] = MappingProxyType(
    {name: RuleSet(preset=name, **options) for name, options in _OPTIONS.items()}
)
"""Every preset by its name."""
PRESET_NAMES: Final[tuple[str, ...]] = tuple(PRESETS)


def preset(name: str) -> RuleSet:
    """The rule set of a preset.

    Raises:
        UnknownPreset: there is none of that name.
    """
    try:
        return PRESETS[name]
    except KeyError:
        raise UnknownPreset(name) from None
