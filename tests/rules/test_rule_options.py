"""The rule set: its JSON form, overrides, and every impossible combination by the option's name."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.rules.ladders import LADDERS, engine_ladders
from services.rules.level_tables import LEVEL_TABLES, LevelTable
from services.rules.options import ADDED_LATER, RULES_VERSION, RuleError, RuleSet
from services.rules.presets import PRESET_NAMES, PRESETS, UnknownPreset, preset

OPTIONS = [field.name for field in dataclasses.fields(RuleSet)]
ENUMS = {
    name: [member.value for member in type(value)]
    for name in OPTIONS
    if hasattr(type(value := getattr(PRESETS["classic-2d"], name)), "__members__")
}
RANKS = list("23456789TJQKA")
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
)
PLAIN = st.one_of(
    JUNK,
    st.integers(-2, 20),
    st.sampled_from([value for values in ENUMS.values() for value in values]),
    st.sampled_from(sorted(LEVEL_TABLES)),
    st.sampled_from(RANKS),
    st.lists(st.sampled_from(RANKS), max_size=4),
)


def test_seventeen_presets_in_one_version():
    assert len(PRESET_NAMES) == 17
    assert RULES_VERSION == 1
    assert all(rules.preset == name for name, rules in PRESETS.items())
    with pytest.raises(UnknownPreset, match="no preset 'classic-9d'"):
        preset("classic-9d")


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_a_rule_set_survives_json(name):
    rules = preset(name)
    document = json.loads(json.dumps(rules.to_json()))
    assert list(document) == OPTIONS
    assert RuleSet.from_json(document) == rules


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_every_option_must_be_known_and_present_unless_it_came_later(name):
    document = preset(name).to_json()
    old = {key: value for key, value in document.items() if key not in ADDED_LATER}
    assert RuleSet.from_json(old) == preset(name)
    for option in OPTIONS:
        if option in ADDED_LATER:
            continue
        with pytest.raises(RuleError, match=f"{option}: is missing"):
            RuleSet.from_json({key: value for key, value in document.items() if key != option})
    with pytest.raises(RuleError, match="surprise: is no option"):
        RuleSet.from_json({**document, "surprise": 1})


@pytest.mark.parametrize(
    ("name", "hand", "kitty"),
    [
        ("classic-1d", 12, 6),
        ("classic-1d-2c", 12, 6),
        ("classic-2d", 25, 8),
        ("classic-2d-fixed2", 25, 8),
        ("classic-3d", 39, 6),
        ("classic-4d", 54, 0),
        ("basic-1d", 12, 6),
        ("basic-1d-power", 12, 6),
        ("basic-2d", 25, 8),
        ("basic-2d-power", 25, 8),
        ("basic-3d", 39, 6),
        ("closed-1d", 12, 6),
        ("closed-2d", 25, 8),
        ("closed-3d", 39, 6),
        ("closed-4d", 52, 8),
        ("tournament-2d", 25, 8),
        ("bigkitty-4d", 51, 12),
    ],
)
def test_hands_and_kitties(name, hand, kitty):
    rules = preset(name)
    assert (rules.hand_size, rules.kitty) == (hand, kitty)
    assert rules.hand_size * 4 + rules.kitty == 54 * rules.decks


def test_options_that_set_presets_apart():
    def having(option, value):
        return {name for name, rules in PRESETS.items() if getattr(rules, option) == value}

    classic = {"classic-2d", "classic-2d-fixed2", "classic-1d-2c", "classic-3d"}
    closed = {"closed-1d", "closed-2d", "closed-3d", "closed-4d"}
    assert having("self_counter", True) == having("partner_reinforce", True) == classic
    assert having("keep_groups_whole", True) == having("overruff", "highest_card") == closed
    assert having("forced_component", "lowest") == having("multiplier", "closed") == closed
    assert having("permanent_twos", True) == having("start_level", 1) == {"classic-2d-fixed2", "classic-4d"}
    assert having("tractors", False) == having("throws", "none") == {"closed-4d"}
    assert having("declaring", "joker_backed") == having("match_end", "loop") == {"tournament-2d"}
    assert having("mutiny", True) == having("failed_throw_quarters", 1) == {"tournament-2d"}
    assert having("level_joker_adjacent", False) == having("match_declares", "always") == {"tournament-2d"}
    assert having("jokers_ranked", True) == having("escape_fee", True) == {"bigkitty-4d"}
    assert having("groups_stay_together", True) == {"bigkitty-4d"}
    assert (
        having("sealed", True)
        == having("wider_beats", True)
        == having("fallback", "spades")
        == {"classic-4d"}
    )
    assert having("equal_overrides", True) == {"basic-1d", "basic-1d-power", "basic-2d", "basic-2d-power"}
    assert having("first_declarer", "last") == {n for n in PRESETS if n.startswith("basic")} | {
        "classic-4d",
        "tournament-2d",
    }
    assert having("minimum_cards", 2) == {"closed-3d", "closed-4d"}
    assert having("minimum_jokers", 0) == {
        "classic-1d",
        "classic-1d-2c",
        "classic-4d",
        "basic-1d",
        "basic-1d-power",
        "closed-1d",
        "tournament-2d",
    }
    assert having("match_end", "reach_ace") == {n for n in PRESETS if n.startswith("classic")}
    assert having("preference", "width_first") == {"basic-3d"}
    assert having("reinforce", True) == set(PRESETS)
    assert PRESETS["tournament-2d"].deals == 16


def test_options_off_in_all_presets():
    for rules in PRESETS.values():
        assert rules.throw_fine_points == 0
        assert rules.throw_blockers == "hidden"
        assert rules.forced_component != "smallest"
        assert not rules.level_gap
        assert rules.bury_points_max is None
        assert (rules.redeal_no_points, rules.redeal_few_trumps) == (False, 0)
        assert rules.hook_back == rules.stop_levels == rules.must_defend == ()


@pytest.mark.parametrize(
    ("name", "overrides", "option"),
    [
        ("classic-2d", {"kitty": 7}, "kitty"),
        ("classic-2d", {"decks": 3}, "kitty"),
        ("classic-2d", {"kitty": -4}, "kitty"),
        ("classic-2d", {"kitty": 108}, "kitty"),
        ("classic-2d", {"kitty_card": 9}, "kitty_card"),
        ("classic-2d", {"kitty_card": 0}, "kitty_card"),
        ("classic-2d", {"kitty": 0}, "kitty_card"),
        ("classic-2d", {"minimum_cards": 3}, "minimum_cards"),
        ("classic-2d", {"minimum_cards": 0}, "minimum_cards"),
        ("classic-2d", {"minimum_jokers": 3}, "minimum_jokers"),
        ("classic-1d-2c", {"minimum_cards": 3}, "minimum_cards"),
        ("classic-3d", {"declaring": "joker_backed"}, "declaring"),
        ("classic-1d", {"declaring": "joker_backed"}, "declaring"),
        ("classic-2d", {"declaring": "joker_backed", "two_colour": True}, "declaring"),
        ("tournament-2d", {"sealed": True}, "sealed"),
        ("closed-4d", {"multiplier": "titanic"}, "multiplier"),
        ("closed-4d", {"multiplier": "pairs"}, "multiplier"),
        ("closed-4d", {"multiplier": "power"}, "multiplier"),
        ("basic-2d", {"tractors": False}, "multiplier"),
        ("classic-2d", {"multiplier": "last_trick"}, "multiplier"),
        ("classic-2d", {"hook_back": ["J", "A"]}, "hook_back"),
        ("classic-2d", {"hook_back": ["10"]}, "hook_back"),
        ("classic-2d", {"hook_back": "J"}, "hook_back"),
        ("classic-2d", {"stop_levels": ["LJ"]}, "stop_levels"),
        ("classic-2d", {"stop_levels": [5]}, "stop_levels"),
        ("classic-2d", {"must_defend": ["BJ"]}, "must_defend"),
        ("classic-2d", {"must_defend": ["K", "A"]}, "must_defend"),
        ("classic-2d", {"must_defend": None}, "must_defend"),
        ("classic-2d", {"start_level": "1"}, "start_level"),
        ("classic-2d", {"start_level": "A"}, "start_level"),
        ("classic-2d", {"match_end": "loop"}, "deals"),
        ("tournament-2d", {"deals": 0}, "deals"),
        ("classic-2d", {"deals": -1}, "deals"),
        ("classic-2d", {"decks": 0}, "decks"),
        ("classic-2d", {"decks": 5}, "decks"),
        ("classic-2d", {"decks": 2.0}, "decks"),
        ("classic-2d", {"decks": True}, "decks"),
        ("classic-2d", {"permanent_twos": 1}, "permanent_twos"),
        ("classic-2d", {"throws": "sometimes"}, "throws"),
        ("classic-2d", {"throws": None}, "throws"),
        ("classic-2d", {"throw_blockers": True}, "throw_blockers"),
        ("classic-2d", {"level_gap": 1}, "level_gap"),
        ("classic-2d", {"ladders": "classic-5d"}, "ladders"),
        ("classic-2d", {"throw_fine_points": -5}, "throw_fine_points"),
        ("classic-2d", {"bury_points_max": -1}, "bury_points_max"),
        ("classic-2d", {"kitty": 16, "bury_points_max": 0}, "bury_points_max"),
        ("classic-2d", {"redeal_no_points": 1}, "redeal_no_points"),
        ("classic-2d", {"redeal_few_trumps": -1}, "redeal_few_trumps"),
        ("classic-2d", {"redeal_few_trumps": 10}, "redeal_few_trumps"),
        ("classic-2d", {"kitty": 100, "redeal_few_trumps": 3}, "redeal_few_trumps"),
        ("classic-1d-2c", {"redeal_few_trumps": 8}, "redeal_few_trumps"),
        ("classic-3d", {"two_colour": True}, "two_colour"),
        ("classic-2d", {"two_colour": True, "adjacency": "printed_rank"}, "two_colour"),
        ("classic-2d", {"level_table": "classic-5d"}, "level_table"),
        (
            "classic-2d",
            {"level_table": {"declarers": [], "attackers": [], "step": 0, "cap": None}},
            "level_table",
        ),
        ("classic-2d", {"preset": "basic-2d"}, "preset"),
        ("classic-2d", {"minimum": 1}, "minimum"),
    ],
)
def test_the_impossible_is_refused_by_name(name, overrides, option):
    with pytest.raises(RuleError) as caught:
        preset(name).with_overrides(overrides)
    assert caught.value.option == option
    assert caught.value.message


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("classic-2d", {"match_end": "pass_ace", "hook_back": ["A", "J"]}),
        ("classic-2d", {"match_end": "loop", "deals": 8}),
        ("classic-2d", {"throw_blockers": "shown", "must_defend": ["5", "T", "K"]}),
        ("classic-2d", {"redeal_no_points": True, "redeal_few_trumps": 9}),
        ("classic-4d", {"level_gap": True, "permanent_twos": False}),
        ("classic-1d-2c", {"level_gap": True}),
        ("classic-1d-2c", {"redeal_few_trumps": 7, "mutiny": True}),
        ("basic-2d", {"must_defend": ["5", "A"], "stop_levels": ["5"], "hook_back": ["A"]}),
        ("classic-2d", {"kitty": 0, "fallback": "no_trump", "multiplier": "last_trick"}),
        ("classic-2d", {"bury_points_max": 0, "throw_fine_points": 10, "stop_levels": ["5", "T", "K"]}),
        ("closed-4d", {"tractors": True, "throws": "standard", "multiplier": "power"}),
        ("basic-1d", {"two_colour": True, "minimum_cards": 2}),
        ("classic-4d", {"forced_component": "smallest", "throws": "standard", "hook_back": ["J"]}),
    ],
)
def test_the_possible_is_taken(name, overrides):
    rules = preset(name).with_overrides(overrides)
    assert {option: rules.to_json()[option] for option in overrides} == {
        **overrides,
        **(
            {"hook_back": sorted(overrides["hook_back"], key=RANKS.index)} if "hook_back" in overrides else {}
        ),
    }
    assert rules.preset == name


def test_the_start_level_follows_the_twos():
    assert preset("classic-2d").with_overrides({"permanent_twos": True}).start_level == 1
    assert preset("classic-2d-fixed2").with_overrides({"permanent_twos": False}).start_level == 0
    assert preset("classic-2d").with_overrides({"permanent_twos": True, "start_level": "6"}).start_level == 4
    assert preset("classic-2d-fixed2").with_overrides({"permanent_twos": True}).start_level == 1


@given(st.sampled_from(PRESET_NAMES), st.dictionaries(st.sampled_from(OPTIONS), PLAIN, max_size=4))
def test_any_overrides_are_a_rule_set_or_a_named_error(name, overrides):
    rules = fault = None
    try:
        rules = preset(name).with_overrides(overrides)
    except RuleError as error:
        fault = error
    if fault is None:
        assert RuleSet.from_json(json.loads(json.dumps(rules.to_json()))) == rules
    else:
        assert fault.option in OPTIONS


@given(st.dictionaries(st.text(max_size=8), JUNK, max_size=3))
def test_junk_documents_are_named_errors(document):
    with pytest.raises(RuleError):
        RuleSet.from_json(document)


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_the_engine_takes_every_preset(name):
    rules = preset(name)
    assert rules.engine() is rules.engine()
    assert rules.engine().decks == rules.decks
    assert rules.engine().order(5, 4).level == 5


@pytest.mark.parametrize("ladders", sorted(LADDERS))
@pytest.mark.parametrize("name", PRESET_NAMES)
def test_the_engine_takes_every_ladder_table_in_every_system(name, ladders):
    assert preset(name).with_overrides({"ladders": ladders}).engine().order(0, 0).level == 0


def test_printed_ladders_read_as_printed():
    bigkitty = engine_ladders("bigkitty-4d")[4, 2]
    assert len(bigkitty) == 18
    assert bigkitty[:4] == ((((4, 2),),), (((3, 2),),), (((2, 2), (2, 1), (2, 1)),), (((2, 2), (2, 1)),))
    assert bigkitty[-2:] == ((((2, 1),),), ((),))
    assert engine_ladders("classic-4d")[2, 4][0] == (((2, 4),), ((4, 1), (4, 1)))
    assert len(engine_ladders("classic-4d")[2, 4]) == 18
    assert len(engine_ladders("classic-4d")[4, 2]) == 20
    assert engine_ladders("classic-4d")[2, 4][1:] == engine_ladders("classic-4d")[4, 2][3:]
    assert engine_ladders("classic-3d")[3, 2][1:3] == (((((2, 2),),)), ((((3, 1), (3, 1)),)))
    assert engine_ladders("basic-3d")[3, 2][1:3] == (((((3, 1), (3, 1)),)), ((((2, 2),),)))
    assert engine_ladders("generic") == {}


@pytest.mark.parametrize("name", sorted(LADDERS))
def test_ladders_fall_and_fit(name):
    for (width, length), ladder in LADDERS[name].items():
        assert ladder[-1] == ((),)
        assert len(set(ladder)) == len(ladder)
        for step in ladder:
            assert all(sum(w * n for w, n in groups) <= width * length for groups in step)


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({"declarers": (), "attackers": ((0, 0),)}, "needs bands"),
        ({"declarers": ((40, 1), (20, 1)), "attackers": ((20, 0),)}, "rise"),
        ({"declarers": ((40, 1),), "attackers": ((80, 0),)}, "first band"),
        ({"declarers": ((40, 1), (80, 2)), "attackers": ((80, 0),)}, "worth less"),
        ({"declarers": ((40, 1),), "attackers": ((40, 2), (80, 1))}, "worth less"),
        ({"declarers": ((40, 1),), "attackers": ((40, 0), (80, 3)), "cap": 2}, "cap"),
        ({"declarers": ((40, 1),), "attackers": ((40, 0),), "step": -1}, "negative"),
    ],
)
def test_level_tables_without_sense_are_refused(table, fault):
    with pytest.raises(ValueError, match=fault):
        LevelTable(**table)
