"""What positions are made of: the rule sets, and the lead shapes that each of them knows."""

from engine_ext.codes import Adjacency, ForcedComponent, Multiplier, Overruff, Preference, ThrowPolicy
from services.rules.presets import PRESET_NAMES, preset

MIXED = {
    "mixed-printed-throws": {
        "decks": 4,
        "permanent_twos": True,
        "adjacency": Adjacency.PRINTED_RANK,
        "wider_beats": True,
        "forced_component": ForcedComponent.SMALLEST,
        "multiplier": Multiplier.TITANIC,
    },
    "mixed-two-colour-2d": {
        "decks": 2,
        "two_colour": True,
        "permanent_twos": True,
        "keep_groups_whole": True,
        "multiplier": Multiplier.CLOSED,
    },
    "mixed-letter": {
        "decks": 2,
        "throws": ThrowPolicy.NOT_WHEN_OTHERS_VOID,
        "forced_component": ForcedComponent.SMALLEST,
        "permanent_twos": True,
        "level_joker_adjacent": False,
        "overruff": Overruff.HIGHEST_CARD,
    },
    "mixed-together-3d": {
        "decks": 3,
        "groups_stay_together": True,
        "keep_groups_whole": True,
        "preference": Preference.WIDTH_FIRST,
        "multiplier": Multiplier.PAIRS,
    },
    "mixed-whole-4d": {
        "decks": 4,
        "keep_groups_whole": True,
        "forced_component": ForcedComponent.LOWEST,
        "multiplier": Multiplier.CLOSED,
    },
    "mixed-printed-no-twos": {
        "decks": 3,
        "adjacency": Adjacency.PRINTED_RANK,
        "multiplier": Multiplier.LAST_TRICK,
    },
    "mixed-gap": {"decks": 2, "level_gap": True, "multiplier": Multiplier.PAIRS},
    "mixed-gap-two-colour": {"decks": 2, "level_gap": True, "two_colour": True, "permanent_twos": True},
    "mixed-gap-printed": {
        "decks": 4,
        "level_gap": True,
        "adjacency": Adjacency.PRINTED_RANK,
        "wider_beats": True,
        "keep_groups_whole": True,
    },
    "mixed-alternatives": {
        "decks": 4,
        "wider_beats": True,
        "groups_stay_together": True,
        "ladders": {
            (2, 2): ((((2, 2),), ((4, 1),)), (((3, 1),), ((2, 1), (2, 1))), (((2, 1),),), ((),)),
            (3, 1): ((((3, 1),),), (((2, 1),),), ((),)),
            (2, 3): ((((2, 3),), ((3, 2),)), (((2, 2), (2, 1)), ((4, 1), (2, 1))), (((2, 1),),), ((),)),
        },
    },
}
"""Options in combinations that no preset has."""

OPTIONS = {name: preset(name).engine_options() for name in PRESET_NAMES} | MIXED
"""The engine's options of every rule set that positions are made for."""

_COMMON = [(2, 1), (2, 2), (2, 3), (2, 4)]
_SINGLES = [((1, 1),) * 2, ((1, 1),) * 3]
_PAIRS = [
    ((2, 1), (1, 1)),
    ((2, 1), (2, 1)),
    ((2, 2), (1, 1)),
    ((2, 2), (2, 1)),
    ((2, 2), (2, 1), (1, 1)),
    ((2, 2), (2, 2)),
    ((2, 3), (2, 1)),
    ((2, 1), (2, 1), (1, 1)),
]
_TRIPLES = [
    ((3, 1), (2, 1)),
    ((3, 1), (1, 1)),
    ((3, 1), (3, 1)),
    ((3, 2), (2, 1)),
    ((2, 2), (3, 1)),
    ((3, 2), (2, 2)),
    ((3, 2), (2, 3)),
]
_QUADS = [
    ((4, 1), (3, 1)),
    ((4, 1), (2, 1)),
    ((4, 1), (4, 1)),
    ((2, 2), (4, 1)),
    ((2, 3), (2, 2)),
    ((2, 3), (4, 1), (1, 1)),
]


def plain_sizes(rules):
    """The component sizes led alone."""
    sizes = [(1, 1)]
    if rules.copies >= 2:
        sizes += _COMMON
    if rules.copies >= 3:
        sizes += [(3, 1), (3, 2), (3, 3)]
    if rules.copies >= 4:
        sizes += [(4, 1), (4, 2)]
    return [size for size in sizes if size[1] == 1 or rules.tractors]


def throw_sizes(rules):
    """The component sizes led together, larger first."""
    throws = list(_SINGLES)
    if rules.copies >= 2:
        throws += _PAIRS
    if rules.copies >= 3:
        throws += _TRIPLES
    if rules.copies >= 4:
        throws += _QUADS
    if not rules.tractors:
        throws = [throw for throw in throws if all(length == 1 for _, length in throw)]
    return throws
