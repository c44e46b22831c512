"""What the `shengji` command says of itself, and in encodings that lack some of its characters."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from services.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("group", [[], ["operator"], ["keys"]], ids=["shengji", "operator", "keys"])
def test_no_summary_is_cut_off(group):
    result = CliRunner().invoke(main, [*group, "--help"], terminal_width=80)
    assert result.exit_code == 0
    assert "..." not in result.output.partition("Commands:")[2]


def test_examples_of_help_stand_as_they_are_to_be_typed():
    told = CliRunner().invoke(main, ["judge", "--help"]).output
    example = told.partition("case=")[1:]
    lines = [line.strip() for line in "".join(example).split("\n\n")[0].splitlines()]
    assert len(lines) == 3
    assert lines[-1] == 'echo "$case" | shengji judge'
    code = [*lines[:2], 'echo "$case"']
    case = subprocess.run(["sh", "-c", "\n".join(code)], check=True, capture_output=True, text=True).stdout
    judged = CliRunner().invoke(main, ["judge"], input=case)
    assert judged.output == '{"id": 1, "result": {"components": ["2x2"]}}\n'
    assert "worst    the dearest" in CliRunner().invoke(main, ["bench", "--help"]).output


def test_a_head_is_of_one_table(tmp_path):
    result = CliRunner().invoke(main, ["verify", "--data", str(tmp_path), "--head", "00"])
    assert result.exit_code == 2
    assert "TABLE" in result.output


@pytest.mark.parametrize("encoding", ["gbk", "latin-1", "cp437"])
def test_what_an_encoding_lacks_ends_no_command(encoding):
    ended = subprocess.run(
        [sys.executable, "-c", "from services.cli.main import main; main()", "rules", "classic-2d"],
        check=True,
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": encoding, "LANG": "en"},
        timeout=240,
    )
    assert re.search("[SHCD][2-9JQKA]{2}", ended.stdout.decode(encoding)), "suits are told by letters"


@pytest.mark.parametrize("arguments", [[], ["--match", "--create"], ["--join", "ABC234", "--match"]])
def test_play_is_told_one_way_in(arguments):
    result = CliRunner().invoke(main, ["play", "--guest", "--lobby", "127.0.0.1:1", *arguments])
    assert result.exit_code == (2 if arguments else 1)
    told = "exclude each other" if arguments else "Nobody answers at 127.0.0.1:1"
    assert told in result.output
