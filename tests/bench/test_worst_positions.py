"""Four decks, hands of 54 and 60 cards: no check that a short search finds takes long.

A guard against a change that makes some positions explode; the figure itself is the bench's (`worst`).
"""

import time
from random import Random

import pytest

from engine_ext.codes import CARDS
from services.bench.worst import Search

POSITIONS = 20_000
BAR_US = 20_000
"""What explodes takes seconds; the dearest known take less than a millisecond."""
TIMES = 5
"""The best of so many, since the machine may be busy."""


def filled(rng, case, size):
    """The hand of a position with cards added at random until it has so many."""
    hand = bytearray(case.hand)
    while sum(hand) < size:
        card = rng.choice([card for card in range(CARDS) if hand[card] + case.lead.cards.count(card) < 4])
        hand[card] += 1
    return bytes(hand)


def best_us(call, *arguments):
    times = []
    for _ in range(TIMES):
        started = time.thread_time_ns()
        call(*arguments)
        times.append(time.thread_time_ns() - started)
    return min(times) / 1000


@pytest.mark.parametrize("size", [54, 60])
def test_the_dearest_positions_found_stay_cheap(size):
    rng = Random(size)
    search = Search(rng, size)
    search.run(POSITIONS)
    assert search.tried >= POSITIONS
    cases = [case for _, case in search.elite]
    assert len(cases) > 10
    assert all(sum(case.hand) <= size for case in cases)
    for case in cases:
        hand = filled(rng, case, size)
        assert best_us(case.lead.check, hand, case.play) <= BAR_US
        assert best_us(case.lead.owed, hand) <= BAR_US
        assert best_us(case.lead.follows, hand) <= BAR_US
