"""Components and ladders in words (RULES §3, §5)."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from services.rules.ladders import LADDERS, Ladder, Shape, Step
from services.rules.options import Preference, RuleSet
from services.rules.sheet.said import Said
from services.rules.shown import group_text, number_text, run_text, shape_text

_COUNTED: Final = {2: "对", 3: "组三张", 4: "组四张"}
_ENUMERATED: Final = 6
"""A ladder that no source prints is told step by step for leads of at most so many cards."""


def shape_said(shape: Shape) -> Said:
    """The name of a component: ``pair``, ``tractor of 3 pairs``."""
    return Said(shape_text(*shape, "zh"), shape_text(*shape, "en"))


def _plural(name: str) -> str:
    return name.replace("tractor", "tractors") if name.startswith("tractor") else name + "s"


def leads_told(rules: RuleSet) -> list[Shape]:
    """The leads whose ladder is told: groups, short tractors, and all with a ladder of their own."""
    shapes = [(width, 1) for width in range(2, rules.copies + 1)]
    if rules.tractors:
        shapes += [
            (width, length)
            for width in range(2, rules.copies + 1)
            for length in (2, 3)
            if width * length <= _ENUMERATED
        ]
    shapes += [
        shape
        for shape in LADDERS[rules.ladders]
        if shape[0] <= rules.copies and (shape[1] == 1 or rules.tractors)
    ]
    return sorted(set(shapes))


def ladder_of(rules: RuleSet, lead: Shape) -> Ladder:
    """The ladder of a lead with the steps that these decks can make, best first."""
    printed = LADDERS[rules.ladders].get(lead)
    steps = generic_ladder(lead, rules.preference) if printed is None else printed
    held = []
    for step in steps:
        possible = tuple(groups for groups in step if _can_be(rules, groups))
        if possible and possible not in held:
            held.append(possible)
    return tuple(held)


def _can_be(rules: RuleSet, groups: tuple[Shape, ...]) -> bool:
    return all(width <= rules.copies and (length == 1 or rules.tractors) for width, length in groups)


def generic_ladder(lead: Shape, preference: Preference) -> Ladder:
    """The ladder of RULES §5 for a lead that has none of its own."""
    width, length = lead
    shapes = [(w, n) for w in range(2, width + 1) for n in range(1, length + 1)]
    if preference is Preference.TRACTORS_FIRST:
        shapes.sort(key=lambda shape: (shape[1] > 1, shape), reverse=True)
    else:
        shapes.sort(reverse=True)
    return tuple((groups,) for groups in _multisets(shapes, width * length))


def _multisets(shapes: list[Shape], cards: int) -> Iterator[tuple[Shape, ...]]:
    for index, (width, length) in enumerate(shapes):
        if width * length <= cards:
            for rest in _multisets(shapes[index:], cards - width * length):
                yield ((width, length), *rest)
    yield ()


def step_said(step: Step, cards: int) -> Said:
    """A step in words; ``cards`` is how many the lead has."""
    told = [_groups_said(groups, cards) for groups in step]
    return Said("，或 ".join(text.zh for text in told), ", or ".join(text.en for text in told))


def _groups_said(groups: tuple[Shape, ...], cards: int) -> Said:
    if not groups:
        return Said("任意该花色的牌", "any cards of the suit")
    zh, en = [], []
    for (width, length), count in Counter(groups).items():
        name = shape_said((width, length))
        if length == 1:
            zh.append(f"{number_text(count)}{_COUNTED[width]}")
        else:
            zh.append(name.zh if count == 1 else f"{number_text(count)}副{name.zh}")
        en.append(f"a {name.en}" if count == 1 else f"{count} {_plural(name.en)}")
    loose = cards - sum(width * length for width, length in groups)
    if loose:
        zh.append(f"{loose} 张任意")
        en.append(f"{loose} other{'s' if loose > 1 else ''}")
    return Said(" + ".join(zh), " + ".join(en))


def larger_said(rules: RuleSet) -> Said:
    """The order of components, larger first (RULES §3)."""
    widths = range(rules.copies, 1, -1)
    zh = [run_text(width) for width in widths] if rules.tractors else []
    en = [f"tractors of {group_text(width, 'en')}s" for width in widths] if rules.tractors else []
    zh += [group_text(width, "zh") for width in (*widths, 1)]
    en += [f"{group_text(width, 'en')}s" for width in (*widths, 1)]
    return Said(" > ".join(zh), " > ".join(en))
