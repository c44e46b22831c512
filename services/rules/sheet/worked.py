"""Worked examples: which apply to a rule set, and what its engine makes of them.

The examples are data (``examples.py``). Each goes through the judge under the rules of the sheet; of the
texts that it comes with, the one that fits the judge's answer is told. So an example can be left out, but not
be wrong.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from services.rules.cards import parse_level
from services.rules.judge import judge_with
from services.rules.judge_fields import CaseError, System
from services.rules.options import RuleSet
from services.rules.sheet.cases import Told
from services.rules.sheet.examples import EXAMPLES
from services.rules.sheet.said import NOTHING, Example, Hand, Said, cards_said
from services.rules.shown import rank_text

_TRUMPS: Final = {
    "S": Said("主黑桃 ♠", "trump ♠"),
    "H": Said("主红桃 ♥", "trump ♥"),
    "C": Said("主梅花 ♣", "trump ♣"),
    "D": Said("主方块 ♦", "trump ♦"),
    "B": Said("主黑色 ♠♣", "trump black ♠♣"),
    "R": Said("主红色 ♥♦", "trump red ♥♦"),
    "NT": Said("无主", "no-trump"),
}
_SEATS: Final = (Said("甲", "A"), Said("乙", "B"), Said("丙", "C"), Said("丁", "D"))
_OTHERS: Final = (Said("下家", "next"), Said("对家", "partner"), Said("上家", "last"))


def worked(rules: RuleSet, topic: str) -> tuple[Example, ...]:
    """The examples of a topic that apply to these rules."""
    system = System(rules)
    return tuple(_worked(system, topic))


def _worked(system: System, topic: str) -> Iterator[Example]:
    for told in EXAMPLES[topic]:
        if not told.when(system.rules):
            continue
        try:
            result = judge_with(system, told.case)
        except CaseError:
            continue  # cards that these decks, or trumps that these suits, do not have
        said = _said(told, result)
        if said is not None:
            yield Example(_setting(told.case), tuple(_hands(told.case)), said, told.case, result)


def _said(told: Told, result: Mapping[str, Any]) -> Said | None:
    shown = {name: _shown(name, value) for name, value in result.items()}
    for expected, said in told.outcomes:
        if all(result.get(name) == value for name, value in expected.items()):
            return Said(
                said.zh.format(**{name: value.zh for name, value in shown.items()}),
                said.en.format(**{name: value.en for name, value in shown.items()}),
            )
    return None


def _shown(name: str, value: Any) -> Said:
    if name == "trump":
        return _TRUMPS[value]
    if name in {"declarer", "winner"}:
        return _SEATS[value]
    if isinstance(value, list) and value and all(isinstance(card, str) for card in value):
        return cards_said(value) if len(value[0]) == 2 else NOTHING
    return Said(str(value), str(value))


def _setting(case: Mapping[str, Any]) -> Said:
    level = rank_text(parse_level(case["level"]))
    if "trump" not in case:
        return Said(f"打 {level}", f"level {level}")
    trump = _TRUMPS[case["trump"]]
    return Said(f"打 {level}，{trump.zh}", f"level {level}, {trump.en}")


def _hands(case: Mapping[str, Any]) -> Iterator[Hand]:
    """The cards of a case as they are shown."""
    match case["kind"]:
        case "shape":
            yield Hand(NOTHING, tuple(case["cards"]))
        case "throw":
            yield Hand(Said("甩", "throw"), tuple(case["lead"]))
            for label, cards in zip(_OTHERS, case["others"], strict=True):
                if cards:
                    yield Hand(Said(f"{label.zh}有", f"{label.en} holds"), tuple(cards))
        case "follow":
            yield Hand(Said("首家出", "lead"), tuple(case["lead"]))
            yield Hand(Said("手里有", "hand"), tuple(case["hand"]))
            yield Hand(Said("跟出", "follow"), tuple(case["play"]))
        case "trick" | "kitty":
            for seat, play in enumerate(case["plays"][: case["shown"]]):
                yield Hand(_SEATS[seat], tuple(play))
        case "declare":
            for showing in case["declarations"]:
                who = _SEATS[showing["seat"]]
                yield Hand(Said(f"{who.zh}亮", f"{who.en} shows"), tuple(showing["cards"]))
