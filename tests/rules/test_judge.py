"""The judge on what makes no sense: always one answer a line, and the first fault by name."""

import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.rules.judge import judge_line, judge_lines
from services.rules.presets import PRESET_NAMES
from services.rules.reasons import Reason

PLACE = {"id": "x", "preset": "classic-2d", "level": "T", "trump": "S"}
TRICK = [["HK"], ["HA"], ["H2"], ["H3"]]
SAMPLES = {
    "shape": {**PLACE, "kind": "shape", "cards": ["HK", "HK"]},
    "follow": {**PLACE, "kind": "follow", "lead": ["HK"], "hand": ["HA", "S3"], "play": ["HA"]},
    "throw": {**PLACE, "kind": "throw", "lead": ["HA", "HK"], "others": [["H3"], ["H4"], []]},
    "trick": {**PLACE, "kind": "trick", "plays": TRICK},
    "kitty": {**PLACE, "kind": "kitty", "plays": TRICK, "kitty": []},
    "score": {"id": "x", "preset": "classic-2d", "kind": "score", "attackers_points": 80},
    "declare": {
        **PLACE,
        "kind": "declare",
        "first_deal": False,
        "declarer": 2,
        "kitty": [],
        "declarations": [{"seat": 1, "cards": ["HT"]}],
        "hands": [[], [], [], []],
    },
}


def answer(case):
    return json.loads(judge_line(json.dumps(case)))


def error(case):
    got = answer(case)
    assert "result" not in got, got
    return got["error"]["code"], got["error"]["message"]


@pytest.mark.parametrize("kind", SAMPLES)
def test_samples_are_judged(kind):
    assert answer(SAMPLES[kind])["id"] == "x"
    assert "result" in answer(SAMPLES[kind])


@pytest.mark.parametrize(
    ("kind", "field"),
    [(kind, field) for kind, case in SAMPLES.items() for field in case if field not in {"id", "hands"}],
)
def test_a_missing_field_is_named(kind, field):
    if (kind, field) == ("declare", "trump"):
        return
    code, text = error({key: value for key, value in SAMPLES[kind].items() if key != field})
    assert code == "bad_input"
    assert f"field {field} " in text


WRONG = [None, True, 7, -1, 1.5, "", "X", [], {}, [[]], [None], [1], {"a": 1}, [["HK"]], "大王"]


@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind, case in SAMPLES.items() for field in case if field != "id"]
)
def test_a_wrong_field_is_an_error_or_has_a_meaning(kind, field):
    for value in WRONG:
        got = answer({**SAMPLES[kind], field: value})
        assert got["id"] == "x"
        assert ("result" in got) != ("error" in got)


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        ({"preset": ["classic-2d"]}, "bad_input", "preset"),
        ({"preset": "classic-9d"}, "unknown_preset", "classic-9d"),
        ({"kind": {}}, "bad_input", "kind"),
        ({"kind": "guess"}, "unknown_kind", "guess"),
        ({"level": 10}, "bad_input", "level"),
        ({"level": "10"}, "bad_input", "level"),
        ({"trump": "R"}, "bad_input", "trump"),
        ({"trump": "s"}, "bad_input", "trump"),
        ({"lead": "HK"}, "bad_input", "lead"),
        ({"lead": []}, "bad_input", "lead"),
        ({"lead": ["HK", "CK"]}, "mixed_suits", "one suit"),
        ({"lead": ["H1"]}, "bad_card", "H1"),
        ({"hand": [["HA"]]}, "bad_card", "list"),
        ({"hand": [None]}, "bad_card", "NoneType"),
        ({"hand": ["HA"] * 3}, "too_many_copies", "HA"),
        ({"hand": ["HA", "HA", "LJ", "LJ", "LJ"]}, "too_many_copies", "LJ"),
        ({"play": None}, "bad_input", "play"),
        ({"play": ["HA"] * 3}, "too_many_copies", "HA"),
        ({"preset": "nope", "kind": "nope"}, "unknown_preset", "nope"),
        ({"kind": "nope", "level": "nope"}, "unknown_kind", "nope"),
        ({"level": "nope", "trump": "nope"}, "bad_input", "level"),
        ({"trump": "nope", "lead": []}, "bad_input", "trump"),
        ({"lead": ["HK", "CK"], "hand": 1}, "bad_input", "hand"),
    ],
)
def test_the_first_fault_is_told(change, code, text):
    got_code, got_text = error({**SAMPLES["follow"], **change})
    assert got_code == code
    assert text in got_text


@pytest.mark.parametrize(
    ("kind", "change", "code", "text"),
    [
        ("shape", {"cards": []}, "bad_input", "cards"),
        ("shape", {"cards": ["HK", "DK"]}, "mixed_suits", ""),
        ("throw", {"others": [[], []]}, "bad_input", "others"),
        ("throw", {"others": [[], [], [], []]}, "bad_input", "others"),
        ("throw", {"others": [[], {}, []]}, "bad_input", "others[1]"),
        ("throw", {"others": [[], [], ["ZZ"]]}, "bad_card", "ZZ"),
        ("throw", {"lead": []}, "bad_input", "lead"),
        ("trick", {"plays": TRICK[:3]}, "bad_input", "plays"),
        ("trick", {"plays": [*TRICK, ["H4"]]}, "bad_input", "plays"),
        ("trick", {"plays": [["HK", "HK"], ["HA"], ["H2"], ["H3"]]}, "bad_input", "plays"),
        ("trick", {"plays": [[], [], [], []]}, "bad_input", "plays"),
        ("trick", {"plays": [["HK", "CK"]] * 4}, "mixed_suits", ""),
        ("kitty", {"kitty": ["HK"] * 3}, "too_many_copies", "HK"),
        ("score", {"attackers_points": True}, "bad_input", "attackers_points"),
        ("score", {"attackers_points": 80.0}, "bad_input", "attackers_points"),
        ("score", {"attackers_points": "80"}, "bad_input", "attackers_points"),
        ("declare", {"first_deal": 1}, "bad_input", "first_deal"),
        ("declare", {"first_deal": True}, "bad_input", "declarer"),
        ("declare", {"declarer": 4}, "bad_input", "declarer"),
        ("declare", {"declarer": False}, "bad_input", "declarer"),
        ("declare", {"declarations": [[1, ["HT"]]]}, "bad_input", "declarations[0]"),
        ("declare", {"declarations": [{"seat": 9, "cards": []}]}, "bad_input", "declarations[0].seat"),
        ("declare", {"declarations": [{"seat": 1}]}, "bad_input", "declarations[0].cards"),
        ("declare", {"declarations": [{"seat": 1, "cards": ["HT"] * 3}]}, "too_many_copies", "HT"),
        ("declare", {"hands": [[], [], []]}, "bad_input", "hands"),
    ],
)
def test_the_fault_of_a_kind_is_told(kind, change, code, text):
    got_code, got_text = error({**SAMPLES[kind], **change})
    assert got_code == code
    assert text in got_text


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "null",
        "1",
        '"x"',
        "nonsense",
        '{"id": "x", "level": NaN}',
        '{"id": Infinity}',
        "{'id': 1}",
        "\ufeff{}",
        "[" * 100_000,
        '{"id":' * 100_000,
        '{"id": "x", "attackers_points": ' + "9" * 5000 + "}",
        '{"id": "x"} {"id": "y"}',
    ],
)
def test_a_line_that_is_no_json_object_has_no_id(line):
    got = json.loads(judge_line(line))
    assert got["id"] is None
    assert got["error"]["code"] == "bad_input"
    assert "line" in got["error"]["message"]


@pytest.mark.parametrize("line", ["", "\n", "   ", "\t\r\n", "\u3000"])
def test_a_blank_line_is_skipped(line):
    assert judge_line(line) is None


@pytest.mark.parametrize("case_id", [None, "", "大王\ud800", 0, -7, 10**4000, 1.5, True])
def test_ids_come_back_as_they_were(case_id):
    assert answer({**SAMPLES["score"], "id": case_id})["id"] == case_id


@pytest.mark.parametrize("case_id", [[], {}, [1], {"a": 1}])
def test_other_ids_are_refused(case_id):
    got = answer({**SAMPLES["score"], "id": case_id})
    assert (got["id"], got["error"]["code"]) == (None, "bad_input")
    assert json.loads(judge_line('{"id": 1e999}'))["id"] is None


def test_a_missing_id_is_null():
    got = answer({key: value for key, value in SAMPLES["score"].items() if key != "id"})
    assert got == {"id": None, "result": {"declarers_up": 0, "attackers_up": 0, "attackers_take_over": True}}


def test_the_last_of_two_equal_keys_counts():
    assert json.loads(judge_line('{"id": 1, "id": 2, "preset": "x"}'))["id"] == 2


def test_lines_stay_in_order_and_blank_ones_vanish():
    lines = [json.dumps({**SAMPLES["score"], "id": number}) + "\n" for number in range(5)]
    got = [json.loads(line)["id"] for line in judge_lines([*lines[:2], "\n", "junk\n", *lines[2:]])]
    assert got == [0, 1, None, 2, 3, 4]


def test_an_illegal_follow_tells_what_was_owed():
    case = {
        **PLACE,
        "kind": "follow",
        "lead": ["HA", "HA", "HK", "HK", "H9"],
        "hand": ["H3", "H3", "H4", "H4", "H6", "H7", "S2"],
        "play": ["H3", "H3", "H4", "H6", "H7"],
    }
    got = answer(case)["result"]
    assert (got["legal"], got["reason"], got["owed"]) == (False, "must_follow_shape", [["2x2"], []])


def test_huge_totals_are_scored():
    case = {**SAMPLES["score"], "attackers_points": 10**3000}
    assert answer(case)["result"]["attackers_take_over"] is True
    assert answer({**case, "attackers_points": -(10**3000)})["result"]["declarers_up"] == 3
    assert sys.get_int_max_str_digits() >= 4000


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=6)
    | st.sampled_from(["HK", "S2", "LJ", "T", "NT", "R", *PRESET_NAMES, *SAMPLES]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)
FIELDS = sorted({field for case in SAMPLES.values() for field in case})


def check_one_answer(line):
    answer_line = judge_line(line)
    assert "\n" not in answer_line
    got = json.loads(answer_line)
    assert set(got) in ({"id", "result"}, {"id", "error"})
    if "error" in got:
        assert set(got["error"]) == {"code", "message"}
        assert got["error"]["code"] in {reason.value for reason in Reason}


@given(JSON)
def test_any_json_has_one_answer(value):
    check_one_answer(json.dumps(value))


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_any_fields_have_one_answer(case):
    check_one_answer(json.dumps(case))


@settings(max_examples=300)
@given(
    st.sampled_from(sorted(SAMPLES)),
    st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=2),
    st.sampled_from(PRESET_NAMES),
)
def test_any_change_of_a_case_has_one_answer(kind, change, preset):
    check_one_answer(json.dumps({**SAMPLES[kind], "preset": preset, **change}))


@given(st.text(min_size=1).filter(lambda text: not text.isspace()))
def test_any_text_has_one_answer(line):
    check_one_answer(line)


CARDS = st.lists(
    st.sampled_from([suit + rank for suit in "SHCD" for rank in "2345TKA"] + ["LJ", "BJ"]), max_size=9
)


@settings(max_examples=300)
@given(st.sampled_from(sorted(SAMPLES)), st.sampled_from(PRESET_NAMES), st.data())
def test_any_cards_have_one_answer(kind, preset, data):
    case = {**SAMPLES[kind], "preset": preset, "trump": data.draw(st.sampled_from(["S", "R", "NT"]))}
    for field in {"cards", "lead", "hand", "play", "kitty"} & set(case):
        case[field] = data.draw(CARDS)
    if kind in {"trick", "kitty"}:
        size = data.draw(st.integers(1, 5))
        case["plays"] = [
            data.draw(CARDS.map(lambda cards: (cards * 5 + ["LJ"] * 5)[:size])) for _ in range(4)
        ]
    if kind == "throw":
        case["others"] = [data.draw(CARDS) for _ in range(3)]
    if kind == "declare":
        case["declarations"] = [
            {"seat": data.draw(st.integers(0, 3)), "cards": data.draw(CARDS)} for _ in range(3)
        ]
        case["hands"] = [data.draw(CARDS) for _ in range(4)]
    check_one_answer(json.dumps(case))
