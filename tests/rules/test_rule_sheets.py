"""Rule sheets: complete in both languages, moved by every option, and right in every example."""

import dataclasses
import json
import re
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_ext.codes import Preference as EnginePreference
from engine_ext.reference import Rules as TwinRules
from engine_ext.reference.ladders import generic_ladder as twins_ladder
from services.rules.judge import judge_with
from services.rules.judge_fields import CaseError, OrderOf, System
from services.rules.ladders import LADDERS
from services.rules.level_tables import LEVEL_TABLES
from services.rules.option_forms import RuleError
from services.rules.options import Declaring, Fallback, Multiplier, Preference, RuleSet, Throws
from services.rules.presets import PRESETS
from services.rules.scoring import result
from services.rules.sheet import LANGUAGES, sheet
from services.rules.sheet.catalogue import NOTES, SOURCES, markdown
from services.rules.sheet.examples import EXAMPLES
from services.rules.sheet.said import Said
from services.rules.sheet.shapes import generic_ladder, ladder_of, leads_told
from services.rules.shown import cards_text

# Values of every option that are worth trying, in their JSON form.
VALUES = {
    "decks": [1, 2, 3, 4],
    "kitty": [0, 6, 8, 12],
    "adjacency": ["tiers", "printed_rank"],
    "preference": ["tractors_first", "width_first"],
    "ladders": list(LADDERS),
    "throws": ["standard", "only_when_others_void", "not_when_others_void", "none"],
    "forced_component": ["lowest_beatable", "lowest", "smallest"],
    "throw_blockers": ["hidden", "shown"],
    "throw_fine_points": [0, 5, 10],
    "failed_throw_quarters": [0, 1, 2],
    "overruff": ["largest_component", "highest_card"],
    "multiplier": ["power", "titanic", "closed", "pairs", "last_trick"],
    "declaring": ["level_cards", "joker_backed"],
    "window": ["during_deal", "after_deal"],
    "minimum_cards": [1, 2],
    "minimum_jokers": [0, 1, 2],
    "first_declarer": ["first", "last"],
    "fallback": ["kitty_card", "no_trump", "spades"],
    "kitty_card": [1, 3, 4],
    "match_declares": ["never", "first_deal", "always"],
    "first_drawer": ["declarer", "random"],
    "redeal_few_trumps": [0, 1, 3],
    "bury_points_max": [None, 200],
    "level_table": list(LEVEL_TABLES),
    "start_level": ["2", "3", "5"],
    "match_end": ["reach_ace", "pass_ace", "loop"],
    "deals": [0, 8, 16],
    "hook_back": [[], ["J"], ["J", "Q"]],
    "stop_levels": [[], ["5"], ["5", "T"]],
    "must_defend": [[], ["5"], ["5", "K"]],
}
OPTIONS = [field.name for field in dataclasses.fields(RuleSet) if field.name != "preset"]
FLAGS = [field.name for field in dataclasses.fields(RuleSet) if field.type is bool]
VALUES |= {name: [False, True] for name in FLAGS}

LEVEL_CARD_OPTIONS = {
    "minimum_cards", "minimum_jokers", "jokers_ranked", "reinforce", "partner_reinforce", "self_counter",
    "equal_overrides",
}  # fmt: skip


def changes_nothing(rules: RuleSet, name: str, changed: RuleSet) -> bool:
    """Whether an option has no effect on play beside the others, so that a sheet need not tell it."""
    both = (rules, changed)
    can_fail = rules.throws in {Throws.STANDARD, Throws.NOT_WHEN_OTHERS_VOID}
    tractors = rules.tractors and rules.copies > 1
    match name:
        case "tractors":
            return rules.copies == 1
        case "level_joker_adjacent":
            return not tractors or rules.adjacency == "printed_rank"
        case "adjacency" | "level_gap":
            return not tractors
        case "preference":
            return not tractors or rules.copies < 3
        case "ladders":
            told = [[ladder_of(each, lead) for lead in leads_told(each)] for each in both]
            return told[0] == told[1]
        case "keep_groups_whole":
            return rules.copies < 3
        case "groups_stay_together":
            return rules.copies < 3
        case "wider_beats":
            return not tractors or rules.copies < 3
        case "forced_component" | "throw_blockers" | "throw_fine_points" | "failed_throw_quarters":
            return not can_fail
        case "overruff":
            return rules.throws is Throws.NONE
        case "multiplier":
            return not rules.kitty and Multiplier.LAST_TRICK not in {each.multiplier for each in both}
        case "jokers_ranked":
            return not rules.minimum_jokers or rules.declaring is Declaring.JOKER_BACKED
        case "kitty_card" | "match_declares":
            return rules.fallback is not Fallback.KITTY_CARD
        case "bury_points_max":
            return not rules.kitty
    return name in LEVEL_CARD_OPTIONS and rules.declaring is Declaring.JOKER_BACKED


def words(rules: RuleSet, language: str) -> str:
    """A whole sheet as one text."""
    told = []
    for section in sheet(rules):
        told.append(section.title)
        for paragraph in section.paragraphs:
            told += [paragraph.said, *paragraph.steps, *chain.from_iterable(paragraph.table)]
        for example in section.examples:
            told += [example.setting, *(hand.label for hand in example.hands), example.said]
            told += [Said(*(cards_text(hand.cards, to) for to in LANGUAGES)) for hand in example.hands]
    return "\n".join(text.tell(language) for text in told)


def examples(rules: RuleSet):
    return [example for section in sheet(rules) for example in section.examples]


class TwinSystem(System):
    """A judge's system that asks the plain twin instead of the compiled core."""

    def order(self, case):
        trump = {"S": 0, "B": 0, "H": 1, "R": 1, "C": 2, "D": 3, "NT": 4}[case["trump"]]
        return OrderOf(TwinRules(**self.rules.engine_options()).order(self.level(case), trump))


def check(rules: RuleSet) -> None:
    """A sheet is whole, in both languages, and each of its examples is so."""
    for section in sheet(rules):
        assert section.paragraphs
        for paragraph in section.paragraphs:
            width = {len(row) for row in paragraph.table}
            assert len(width) <= 1
            for text in (
                section.title,
                paragraph.said,
                *paragraph.steps,
                *chain.from_iterable(paragraph.table),
            ):
                complete(text)
        for example in section.examples:
            complete(example.said)
            complete(example.setting)
            assert example.hands
            assert judge_with(TwinSystem(rules), example.case) == example.result, example


def complete(text: Said) -> None:
    for language in LANGUAGES:
        told = text.tell(language)
        assert told == told.strip() != "", text
        assert "{" not in told
        assert "  " not in told
        assert "None" not in told
    assert not any("\u4e00" <= character <= "\u9fff" for character in text.en), text


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_a_whole_sheet_whose_examples_are_true(name):
    rules = PRESETS[name]
    check(rules)
    assert len(examples(rules)) >= 10


def test_options_tried_are_all_options():
    assert set(VALUES) == set(OPTIONS)


@st.composite
def overridden(draw) -> RuleSet:
    """A preset with a few options changed to something valid."""
    rules = PRESETS[draw(st.sampled_from(sorted(PRESETS)))]
    for name in draw(st.lists(st.sampled_from(OPTIONS), max_size=8, unique=True)):
        try:
            rules = rules.with_overrides({name: draw(st.sampled_from(VALUES[name]))})
        except RuleError:
            continue
    return rules


@settings(max_examples=25, deadline=None)
@given(overridden())
def test_any_rules_have_a_whole_sheet_whose_examples_are_true(rules):
    check(rules)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_sheet_tells_every_change_of_an_option(name):
    changed_somewhere = False
    for rules in PRESETS.values():
        for value in VALUES[name]:
            try:
                other = rules.with_overrides({name: value})
            except RuleError:
                continue
            if other == rules or changes_nothing(rules, name, other):
                continue
            changed_somewhere = True
            for language in LANGUAGES:
                assert words(rules, language) != words(other, language), (rules.preset, name, value)
    assert changed_somewhere


def test_a_sheet_follows_from_the_options_and_not_from_the_name():
    rules = PRESETS["classic-2d"]
    assert sheet(dataclasses.replace(rules, preset="house-rules")) == sheet(rules)


def test_no_example_is_silent_where_it_should_be_told():
    """Every answer that an engine gives has a text, and every example is told somewhere."""
    told = set()
    for rules in PRESETS.values():
        system = System(rules)
        shown = {json.dumps(example.case) for example in examples(rules)}
        for each in chain.from_iterable(EXAMPLES.values()):
            if not each.when(rules):
                continue
            try:
                answer = judge_with(system, each.case)
            except CaseError:
                continue
            key = json.dumps(each.case)
            assert key in shown, (rules.preset, each.case, answer)
            told.add(key)
    everything = {json.dumps(each.case) for each in chain.from_iterable(EXAMPLES.values())}
    assert told == everything


@pytest.mark.parametrize(
    ("preset", "cards", "expected"),
    [
        ("classic-2d", "♥KKQQ", "a tractor."),
        ("classic-2d", "♥5533", "no tractor."),
        ("classic-2d", "♥AA22", "no tractor."),
        ("tournament-2d", "LJ LJ ♠10 10", "no tractor."),
        ("classic-4d", "♠AA22", "a tractor: the lowest of the trump suit."),
        ("classic-2d", "♥98844", "fails: ♥9 is played."),
        ("closed-2d", "♥98844", "fails: ♥44 is played."),
        ("bigkitty-4d", "♥98888444", "fails: ♥9 is played."),
    ],
)
def test_examples_of_the_sources(preset, cards, expected):
    found = [each for each in examples(PRESETS[preset]) if cards_text(each.hands[0].cards, "en") == cards]
    assert found[0].said.en == expected


@pytest.mark.parametrize("preference", list(Preference))
@pytest.mark.parametrize("lead", [(2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1), (4, 2)])
def test_ladders_told_are_those_of_the_engine(lead, preference):
    assert generic_ladder(lead, preference) == twins_ladder(lead, EnginePreference[preference.name])


@pytest.mark.parametrize("name", LEVEL_TABLES)
def test_level_tables_told_are_those_that_score(name):
    """Each row is asked at both of its ends."""
    rules = PRESETS["classic-2d"].with_overrides({"level_table": name})
    (section,) = (section for section in sheet(rules) if section.key == "levels")
    for points, says in section.paragraphs[0].table[1:]:
        ends = [int(number) for number in points.en.split(" ")[0].split("–")]
        for total in ends:
            gives = result(rules.level_table, total)
            assert ("take over" in says.en) == gives.attackers_take_over
            gained = says.en.split("gain")[-1].strip("s ").split(" ")[0] if gives.gained else "no"
            assert gained == (str(gives.gained) if gives.gained else "no") or "no level" in says.en
            assert ("no level" in says.en) == (gives.gained == 0)


def test_every_preset_is_in_the_catalogue():
    assert set(NOTES) == set(PRESETS)
    for note in NOTES.values():
        complete(note.what)
        complete(note.source)
        assert note.source.en[:3] in SOURCES
    for language in LANGUAGES:
        assert len(markdown(language).splitlines()) == len(PRESETS) + 2


def test_cards_for_readers():
    assert cards_text(["HK", "HK", "ST", "ST", "S9", "BJ", "LJ", "DA"], "en") == "♥KK ♠10 10 9 BJ LJ ♦A"
    assert cards_text(["BJ", "HT"], "zh") == "大王 ♥10"


@pytest.mark.parametrize("decks", [1, 2, 3, 4])
@pytest.mark.parametrize("multiplier", ["titanic", "closed"])
def test_multipliers_told_are_those_that_count(multiplier, decks):
    """Groups of each width, and tractors of two of them."""
    base = PRESETS[{1: "classic-1d", 2: "classic-2d", 3: "classic-3d", 4: "bigkitty-4d"}[decks]]
    rules = base.with_overrides({"multiplier": multiplier})
    (section,) = (section for section in sheet(rules) if section.key == "kitty")
    told = " ".join(
        [p.said.en for p in section.paragraphs] + [s.en for p in section.paragraphs for s in p.steps]
    )
    order = rules.engine().order(0, 4)
    for width, name in list(enumerate(["single", "pair", "triple", "quad"], 1))[:decks]:
        group, after = bytes([14] * width), bytes([15] * width)
        assert re.search(rf"\b{name}:? {order.multiplier([group])}\b", told)
        if width > 1 and multiplier == "closed":
            assert f"tractor of {name}s {order.multiplier([group + after])}" in told
        elif width > 1:
            assert f"tractor of {name}s: 2 × {width} to" in told
            assert order.multiplier([group + after]) == 2 * width**2
