"""The compiled core answers like its twin, on positions shaped around every rule, for every rule set.

The follows fail when a step of a ladder was owed by too few hands, so that the mix cannot quietly thin out.
``pytest -m slow`` judges millions; ``-s`` prints what was met.
"""

import pytest
from support.differential import Pair, run_follows, run_orders, run_shapes, run_throws, run_tricks
from support.mixes import MIXED, OPTIONS

from engine_ext.codes import ThrowPolicy, Verdict


@pytest.fixture(scope="module", params=OPTIONS)
def pair(request):
    return Pair(request.param)


def test_orders_are_the_same(pair):
    assert run_orders(pair) == []


def test_shapes_are_the_same(pair):
    met, wrong = run_shapes(pair, seed=1, rounds=200)
    assert not wrong, f"{len(wrong)} of {met.total()}: " + "\n".join(wrong[:3])
    assert pair.twin.copies == 1 or not pair.twin.tractors or {0, 1, 2} <= set(met)


def test_follows_are_the_same(pair):
    mix, wrong = run_follows(pair, seed=1)
    print(mix.report(pair))
    assert not wrong, f"{len(wrong)} of {mix.positions}: " + "\n".join(wrong[:3])
    assert pair.unmet(mix) == [] or pair.name in MIXED
    assert mix.verdicts[Verdict.OK] > mix.positions / 4
    assert mix.verdicts[Verdict.MUST_FOLLOW_SHAPE] > mix.positions / 8 or pair.twin.copies == 1


def test_tricks_are_the_same(pair):
    met, wrong = run_tricks(pair, seed=1, rounds=20)
    assert not wrong, f"{len(wrong)} of {met.total()}: " + "\n".join(wrong[:3])
    won = [sum(count for (_, winner), count in met.items() if winner == seat) for seat in range(4)]
    assert min(won) > met.total() / 20, won
    assert all(sum(met[sizes, seat] for seat in (1, 2, 3)) for sizes, _ in met), "a lead that nothing beats"


def test_throws_are_the_same(pair):
    met, wrong = run_throws(pair, seed=1, rounds=25 if pair.twin.decks > 1 else 100)
    assert not wrong, f"{len(wrong)} of {met.total()}: " + "\n".join(wrong[:3])
    expected = {
        ThrowPolicy.STANDARD: {"OK", "failed", "MIXED_SUITS"},
        ThrowPolicy.ONLY_WHEN_OTHERS_VOID: {"OK", "THROW_NOT_ALLOWED", "MIXED_SUITS"},
        ThrowPolicy.NOT_WHEN_OTHERS_VOID: {"OK", "failed", "THROW_NOT_ALLOWED", "MIXED_SUITS"},
        ThrowPolicy.NONE: {"OK", "THROW_NOT_ALLOWED", "MIXED_SUITS"},
    }
    assert set(met) == expected[ThrowPolicy(pair.twin.throws)]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_more_are_the_same(pair, seed):
    mix, wrong = run_follows(pair, seed=seed, plays=12, throws=60, times=3)
    assert not wrong, f"{len(wrong)} of {mix.positions}: " + "\n".join(wrong[:3])
    for run, rounds in ((run_shapes, 2000), (run_tricks, 200), (run_throws, 200)):
        met, wrong = run(pair, seed=seed, rounds=rounds)
        assert not wrong, f"{len(wrong)} of {met.total()}: " + "\n".join(wrong[:3])
