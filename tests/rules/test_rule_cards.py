"""Text against codes, and counts against cards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_ext.codes import BIG_JOKER, CARDS, LITTLE_JOKER, NO_TRUMP
from services.rules import cards as c

CARD_LISTS = st.lists(st.integers(0, CARDS - 1), max_size=40).map(bytes)


def test_every_card_has_one_text_and_back():
    assert len(set(c.CARD_TEXTS)) == CARDS
    assert [c.parse_card(c.card_text(card)) for card in range(CARDS)] == list(range(CARDS))
    assert c.parse_cards(["S2", "SA", "H2", "D5", "LJ", "BJ"]) == bytes(
        [0, 12, 13, 3 * 13 + 3, LITTLE_JOKER, BIG_JOKER]
    )


@pytest.mark.parametrize("text", ["", "s2", "S1", "S10", "10S", "J", "LJ ", "T", "XA", "大王"])
def test_other_texts_are_no_cards(text):
    with pytest.raises(ValueError, match="no card"):
        c.parse_card(text)


def test_every_level_and_trump_has_one_text_and_back():
    assert [c.parse_level(c.level_text(level)) for level in range(c.RANKS)] == list(range(c.RANKS))
    assert [c.parse_trump(c.trump_text(t)) for t in range(5)] == list(range(5))
    assert [c.parse_trump(c.trump_text(t, two_colour=True), two_colour=True) for t in (0, 1, 4)] == [0, 1, 4]


@pytest.mark.parametrize(("text", "two_colour"), [("B", False), ("R", False), ("S", True), ("", True)])
def test_trumps_belong_to_their_system(text, two_colour):
    with pytest.raises(ValueError, match="no trump"):
        c.parse_trump(text, two_colour=two_colour)


@pytest.mark.parametrize("text", ["", "1", "10", "a", "LJ"])
def test_other_texts_are_no_levels(text):
    with pytest.raises(ValueError, match="no level"):
        c.parse_level(text)


@given(CARD_LISTS)
def test_counts_and_cards_are_two_forms_of_one_thing(cards):
    counts = c.counts_of(cards)
    assert len(counts) == CARDS
    assert c.cards_of(counts) == bytes(sorted(cards))


def test_counts_refuse_what_is_no_index():
    with pytest.raises(ValueError, match="54"):
        c.counts_of([54])


@given(CARD_LISTS, st.data())
def test_a_part_can_be_taken_away_and_no_more(cards, data):
    part = bytes(data.draw(st.permutations(cards)))[: data.draw(st.integers(0, len(cards)))]
    assert c.contains(cards, part)
    assert sorted(c.without(cards, part) + part) == sorted(cards)
    missing = next(card for card in range(CARDS) if card not in cards)
    assert not c.contains(cards, bytes([missing]))
    with pytest.raises(ValueError, match="not held"):
        c.without(cards, bytes([missing]))


@pytest.mark.parametrize("decks", [1, 2, 3, 4])
def test_a_deck_has_54_cards_and_100_points(decks):
    deck = c.deck(decks)
    assert len(deck) == 54 * decks
    assert c.points(deck) == 100 * decks
    assert set(c.counts_of(deck)) == {decks}


def test_points_by_card():
    assert [c.points(bytes([c.parse_card(t)])) for t in ("S5", "HT", "DK", "SA", "LJ", "BJ")] == [
        5,
        10,
        10,
        0,
        0,
        0,
    ]


def test_colours_identities_and_trumps():
    heart, diamond, spade = (c.parse_card(text) for text in ("H9", "D9", "S9"))
    assert c.identity(heart, two_colour=True) == c.identity(diamond, two_colour=True)
    assert c.identity(heart, two_colour=True) != c.identity(spade, two_colour=True)
    assert c.identity(heart, two_colour=False) != c.identity(diamond, two_colour=False)
    assert len({c.identity(card, two_colour=True) for card in range(CARDS)}) == 28
    assert [c.trump_of(card, two_colour=False) for card in (spade, heart, diamond, LITTLE_JOKER)] == [
        0,
        1,
        3,
        NO_TRUMP,
    ]
    assert [c.trump_of(card, two_colour=True) for card in (spade, heart, diamond)] == [0, 1, 1]
    assert c.joker_of_colour(c.colour_of(diamond)) == BIG_JOKER
    assert c.joker_of_colour(c.colour_of(spade)) == LITTLE_JOKER
