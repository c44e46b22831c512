"""Every judge case of the corpus, through the judge itself."""

import json
from pathlib import Path

import pytest

from services.rules.judge import judge_line, judge_lines

CASES = Path(__file__).parents[1] / "corpus" / "cases"
FILES = ("seeds", "random", "sharp", "errors")
SIZES = {"seeds": 187, "random": 2268, "sharp": 312, "errors": 12}


@pytest.mark.parametrize("name", FILES)
def test_the_judge_answers_as_expected(name):
    lines = (CASES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == SIZES[name]
    wrong = []
    for line, answer in zip(lines, judge_lines(lines), strict=True):
        case, got = json.loads(line), json.loads(answer)
        if got["id"] != case["id"] or not agrees(case, got):
            wrong.append((case, got))
    assert not wrong


def agrees(case, got):
    if "expect_error" in case:
        return (
            got["error"]["code"] == case["expect_error"] and got["error"]["message"] and "result" not in got
        )
    return "error" not in got and all(got["result"].get(key) == want for key, want in case["expect"].items())


def test_an_answer_can_be_wrong():
    """The comparison itself must be able to fail."""
    case = json.loads((CASES / "seeds.jsonl").read_text(encoding="utf-8").splitlines()[0])
    got = json.loads(judge_line(json.dumps(case)))
    assert agrees(case, got)
    assert not agrees({**case, "expect": {"components": ["1x1"]}}, got)
    assert not agrees({**case, "expect": {"more": 1}}, got)
