"""The benchmarks run and report; what they measure is nobody's test."""

import json
import math
from random import Random

import pytest
from click.testing import CliRunner

from services.bench import positions
from services.bench.figures import Bar, Figure, percentile, shown, spread
from services.bench.fold import fold
from services.bench.legality import legality
from services.bench.lines import NAMES
from services.bench.scale import Scale
from services.bench.worst import Search
from services.cli.main import main
from services.rules.cards import parse_cards
from services.rules.presets import preset

QUICK = Scale(quick=True)


@pytest.mark.parametrize("run", [legality, fold])
def test_lines_of_one_core_give_figures(run):
    figures = run(QUICK)
    assert figures
    for figure in figures:
        assert all(math.isfinite(value) and value > 0 for value in figure.values), figure.what
        assert (figure.met is None) == (figure.bar is None)


def test_half_of_the_positions_owe_and_all_differ():
    made = positions.positions("HQ HQ", 400, Random(1))
    assert len(set(made.pairs)) == 400
    order = preset("classic-2d").engine().order(8, 0)
    lead = order.lead(parse_cards(["HQ", "HQ"]))
    assert sum(any(lead.owed(hand)) for hand, _ in made.pairs) == made.owing == 200
    assert all(sum(hand) == positions.HAND and sum(play) == 2 for hand, play in made.pairs)


def test_the_search_keeps_the_dearest():
    search = Search(Random(1))
    search.run(3000)
    times = [dear.nanoseconds for dear in search.elite]
    assert search.tried >= 3000
    assert times == sorted(times, reverse=True)


def test_a_figure_says_whether_its_bar_is_met():
    rate = Figure("play", "a", "1/s", (8.0, 9.0, 30.0), Bar(">=", 0.8, "ratio"), (10.0, 10.0, 10.0))
    assert (rate.measured, rate.ratio, rate.met) == (9.0, 0.9, True)
    slow = Figure("play", "b", "ms", (31.0,), Bar("<=", 30))
    assert slow.met is False
    assert Figure("play", "c", "ms", (1.0,)).met is None
    assert percentile(list(range(1, 101)), 0.99) == 99
    assert (shown(1234567), spread((3.0, 1.0, 2.0))) == ("1.23 M", "2 [1–3]")


def test_the_command_prints_the_machine_and_its_figures():
    done = CliRunner().invoke(main, ["bench", "--quick", "--only", "deals", "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["machine"]["cores"]
    (figure,) = document["figures"]
    assert figure["line"] == "deals"
    assert figure["met"] in (True, False)


def test_help_names_every_line():
    text = CliRunner().invoke(main, ["bench", "--help"]).output
    assert all(f"{name} " in text for name in NAMES)
