"""The ways into the core: they agree, refuse what makes no sense, and nothing replaces a missing core."""

import random
import subprocess
import sys
import threading

import pytest
from support.cards import cards, counts, order
from support.engines import core, rules_of

import engine_ext
from engine_ext.codes import Verdict


def positions(count):
    """A lead of a tractor, a pair and a single, and hands and plays for it as cards."""
    rng = random.Random(count)
    lead = order(rules_of("core", "classic-2d"), "T", "S").lead(cards("HA HA HK HK H8 H8 H9"))
    deck = list(range(54)) * 2
    made = []
    for _ in range(count):
        suited = [card for card in deck if 13 <= card < 26]
        hand = rng.sample(suited, rng.randint(3, 14)) + rng.sample([c for c in deck if c < 13], 11)
        made.append((bytes(hand), bytes(rng.sample(hand, 7) if rng.random() < 0.5 else hand[:7])))
    return lead, made


def test_counts_cards_and_batches_agree():
    lead, made = positions(2_000)
    single = [lead.check(counts(hand), counts(play)) for hand, play in made]
    assert len(set(single)) == 3
    assert [lead.check_cards(hand, play) for hand, play in made] == single
    hands = b"".join(counts(hand) for hand, _ in made)
    plays = b"".join(counts(play) for _, play in made)
    assert list(lead.check_batch(hands, plays)) == single
    assert lead.check_batch(b"", b"") == b""


def test_answers_do_not_depend_on_earlier_ones():
    lead, made = positions(500)
    forward = [lead.check_cards(hand, play) for hand, play in made]
    backward = [lead.check_cards(hand, play) for hand, play in reversed(made)]
    assert backward[::-1] == forward


def test_threads_do_not_disturb_each_other():
    lead = order(rules_of("core", "bigkitty-4d"), "3", "S").lead(
        cards("S2 S2 S2 S4 S4 S4 S6 S6 S7 S7 S8 S8 ST ST ST SQ SQ SQ SQ BJ")
    )
    rng = random.Random(4)
    deck = [card for card in range(54) if lead.components and card < 13] * 4
    hands = [counts(rng.sample(deck, 30)) for _ in range(200)]
    expected = [lead.owed(hand) for hand in hands]
    wrong = []

    def work():
        wrong.extend(hand for hand, owed in zip(hands, expected, strict=True) if lead.owed(hand) != owed)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_orders_are_cached():
    rules = core.Rules(decks=2)
    assert rules.order(3, 1) is rules.order(3, 1)
    assert rules.order(3, 1).rules is rules
    assert (rules.order(3, 1).level, rules.order(3, 1).trump) == (3, 1)


def test_orders_and_leads_are_made_by_their_makers_only():
    for made in (core.Order, core.Lead):
        with pytest.raises(TypeError, match="is made by"):
            made()


def test_nothing_is_taken_for_cards_but_bytes():
    deal = order(rules_of("core", "classic-2d"), "T", "S")
    lead = deal.lead(cards("HA"))
    for wrong in (None, [1], "HA", bytearray(54)):
        for call in (
            lambda wrong=wrong: lead.check(wrong, bytes(54)),
            lambda wrong=wrong: lead.check_cards(b"", wrong),
            lambda wrong=wrong: lead.follows(wrong),
            lambda wrong=wrong: deal.winner([b"\x00", wrong]),
            lambda wrong=wrong: deal.throw(b"\x00", [b"", b"", wrong]),
            lambda wrong=wrong: deal.shape(wrong),
        ):
            with pytest.raises(TypeError):
                call()


def test_a_ladder_ends_in_any_cards():
    rules = core.Rules(decks=2, ladders={(2, 1): ((((2, 1),),),)})
    deal = rules.order(8, 0)
    assert deal.lead(cards("HA HA")).check_cards(cards("H3 H4 H5"), cards("H3 H4")) == Verdict.OK


def test_the_package_says_which_engine_it_is():
    assert engine_ext.IMPLEMENTATION == "cython"
    assert engine_ext.Rules is core.Rules


def test_a_missing_core_is_an_error_and_not_the_twin():
    script = "import sys; sys.modules['engine_ext._core'] = None; import engine_ext"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "ImportError: engine_ext._core is not compiled in " in done.stderr
    assert "pip install -e . there" in done.stderr
