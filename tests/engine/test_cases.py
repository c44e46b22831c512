"""Every judge case that the engine answers, through both engines."""

import json
from pathlib import Path

import pytest
from support.cards import cards, counts, names, order
from support.engines import ENGINES, PRESET_NAMES, rules_of

from engine_ext.codes import Verdict

CASES = Path(__file__).parents[1] / "corpus" / "cases"
KINDS = ("shape", "follow", "throw", "trick", "kitty")


def load():
    for file in sorted(CASES.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            case = json.loads(line)
            if case["kind"] in KINDS and "expect" in case:
                yield case


ALL_CASES = list(load())


def answer(engine, case):
    deal = order(rules_of(engine, case["preset"]), case["level"], case["trump"])
    return globals()[f"answer_{case['kind']}"](deal, case)


def answer_shape(deal, case):
    shape = deal.shape(cards(case["cards"]))
    return {"components": [f"{c.width}x{c.length}" for c in shape]}


def answer_follow(deal, case):
    lead = deal.lead(cards(case["lead"]))
    verdict = lead.check_cards(cards(case["hand"]), cards(case["play"]))
    assert verdict == lead.check(counts(cards(case["hand"])), counts(cards(case["play"])))
    if verdict == Verdict.OK:
        return {"legal": True}
    return {"legal": False, "reason": Verdict(verdict).name.lower()}


def answer_throw(deal, case):
    throw = deal.throw(cards(case["lead"]), [cards(hand) for hand in case["others"]])
    if throw.verdict != Verdict.OK:
        return {"refused": Verdict(throw.verdict).name.lower()}
    return {"played": sorted(names(throw.played))}


def answer_trick(deal, case):
    plays = [cards(play) for play in case["plays"]]
    return {"winner": deal.winner(plays), "points": sum(deal.points(play) for play in plays)}


def answer_kitty(deal, case):
    return {"multiplier": deal.multiplier([cards(play) for play in case["plays"]])}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_expected(engine, kind):
    cases = [case for case in ALL_CASES if case["kind"] == kind]
    wrong = []
    for case in cases:
        got = answer(engine, case)
        if any(got.get(field) != value for field, value in case["expect"].items()):
            wrong.append((case["id"], got, case["expect"]))
    assert not wrong, f"{len(wrong)} of {len(cases)}: {wrong[:5]}"


def test_every_preset_and_kind_has_cases():
    seen = {(case["preset"], case["kind"]) for case in ALL_CASES}
    assert {(name, kind) for name in PRESET_NAMES for kind in KINDS} <= seen
