"""`shengji rules`: fits a terminal, speaks two languages, takes options."""

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from services.cli.columns import pad, wrap
from services.cli.main import main
from services.cli.rules import locale_language
from services.rules.presets import PRESETS

WIDTH = 80


def run(*arguments: str, code: int = 0, **environment: str) -> str:
    result = CliRunner(env={"LC_ALL": None, "LC_MESSAGES": None, "LANG": None, **environment}).invoke(
        main, ["rules", *arguments]
    )
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("arguments", [(), *((name,) for name in PRESETS)])
def test_output_fits_80_columns(arguments, language):
    lines = run(*arguments, "--lang", language).splitlines()
    assert len(lines) > 60
    assert [line for line in lines if cell_len(line) > WIDTH] == []
    assert [line for line in lines if line.strip()[:1] in set("，。；：、！？）")] == []
    assert [line for line in lines if line != line.rstrip()] == []


def test_the_list_names_every_preset_and_its_source():
    output = run("--lang", "en")
    for name in PRESETS:
        assert f"\n{name} " in output
    assert "from 000 §3.1" in output


def test_language_comes_from_the_locale_unless_it_is_given():
    assert "牌与座位" in run("classic-2d", LANG="zh_CN.UTF-8")
    assert "Cards and players" in run("classic-2d", LANG="de_DE.UTF-8")
    assert "Cards and players" in run("classic-2d", "--lang", "en", LANG="zh_CN.UTF-8")
    assert locale_language({"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}) == "en"
    assert locale_language({"LC_ALL": "", "LANG": "zh_TW"}) == "zh"


def test_options_change_the_rules_told():
    output = run("classic-2d", "--option", "permanent_twos=true", "--option", "match_end=pass_ace")
    assert 'permanent_twos=true start_level="3" match_end="pass_ace"' in output
    assert "main twos" in output
    assert "A must be passed" in output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nine-decks",), "nine-decks"),
        (("classic-2d", "--option", "kitty=7"), "kitty"),
        (("classic-2d", "--option", "colour=1"), "colour"),
        (("classic-2d", "--option", "kitty"), "NAME=JSON"),
        (("--option", "kitty=8"), "PRESET"),
    ],
)
def test_nonsense_is_refused_by_name(arguments, says):
    assert says in run(*arguments, code=2)


def test_wrapping_counts_cells():
    assert wrap("一二三四五", 6) == ["一二三", "四五"]
    assert wrap("一二，三", 4) == ["一", "二，", "三"]
    assert wrap("one two three", 7, "- ", "  ") == ["- one", "  two", "  three"]
    assert wrap("一 two三", 6, "") == ["一 two", "三"]
    assert pad("一", 4) == "一  "


def test_every_option_is_listed_with_its_meaning():
    result = CliRunner().invoke(main, ["rules", "classic-2d", "--options"])
    assert result.exit_code == 0, result.output
    blocks = result.output.strip().split("\n\n")[1:]
    names = PRESETS["classic-2d"].to_json().keys() - {"preset"}
    assert [block.partition(" = ")[0] for block in blocks] == sorted(names)
    assert all("    may be " in block and len(block.splitlines()) >= 3 for block in blocks)
    assert "permanent_twos = false\n    may be true or false\n    all twos are trumps" in result.output


def test_an_unknown_option_names_the_list():
    result = CliRunner().invoke(main, ["rules", "classic-2d", "--option", "foo=1"])
    assert result.exit_code == 2
    assert "`shengji rules PRESET --options`" in " ".join(result.output.replace("│", " ").split())
