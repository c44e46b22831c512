import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.game import shuffle

SEED = bytes(range(32))
CLIENTS = [bytes([seat]) * 32 for seat in range(4)]
TABLE = "tbl_01hf7yat00e02840r40m30e209"
DEALS = [(decks, kitty) for decks, kitty in [(1, 6), (2, 8), (3, 6), (4, 0), (4, 8), (4, 12)]]


def deck(seed=SEED, clients=CLIENTS, table=TABLE, deal=1, decks=2):
    return shuffle.deck_order(seed, clients, table, deal, decks)


@pytest.mark.parametrize("decks", [1, 2, 3, 4])
def test_a_deck_holds_every_card_once_a_deck(decks):
    assert Counter(deck(decks=decks)) == dict.fromkeys(range(54), decks)


def test_everything_that_goes_in_counts():
    changed = [
        deck(seed=bytes(32)),
        deck(table=TABLE[:-1] + "0"),
        deck(deal=2),
        *(deck(clients=[*CLIENTS[:i], b"\xff" * 32, *CLIENTS[i + 1 :]]) for i in range(4)),
        deck(clients=CLIENTS[::-1]),
    ]
    assert len({deck(), *changed}) == 1 + len(changed)
    assert deck() == deck()


def test_first_drawer_is_a_seat_and_independent_of_the_deck():
    drawers = Counter(shuffle.first_drawer(SEED, CLIENTS, TABLE, deal) for deal in range(1, 401))
    assert set(drawers) == {0, 1, 2, 3}
    assert min(drawers.values()) > 60


def test_every_card_is_anywhere_equally_often():
    """A coarse chi-square of where one card lies, 54 places, 2000 deals: 99.99 % of fair shuffles pass."""
    places = Counter(deck(deal=n, decks=1).index(0) for n in range(1, 2001))
    expected = 2000 / 54
    assert sum((places[at] - expected) ** 2 / expected for at in range(54)) < 98


def test_numbers_below_a_bound_reject_the_incomplete_last_round():
    words = iter([2**32 - 1, 2**32 - 4, 5])
    assert shuffle._below(3, words) == (2**32 - 4) % 3
    assert shuffle._below(3, words) == 2
    assert shuffle._below(4, iter([2**32 - 1])) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"seed": b"short"},
        {"clients": CLIENTS[:3]},
        {"clients": [*CLIENTS[:3], b""]},
        {"clients": [*CLIENTS, SEED]},
    ],
)
def test_seeds_of_wrong_size_are_refused(change):
    with pytest.raises(ValueError, match="32 bytes"):
        deck(**change)


def test_commitment_is_sha256():
    assert shuffle.commitment(SEED) == hashlib.sha256(SEED).digest()


@given(st.binary(max_size=40))
def test_client_seeds_are_filled_up_with_zeros(seed):
    if len(seed) > 32:
        with pytest.raises(ValueError, match="at most 32"):
            shuffle.padded_client_seed(seed)
    else:
        assert shuffle.padded_client_seed(seed) == seed + b"\0" * (32 - len(seed))


@pytest.mark.parametrize(("decks", "kitty"), DEALS)
@pytest.mark.parametrize("first", range(4))
def test_cards_are_dealt_one_at_a_time_from_the_first_drawer(decks, kitty, first):
    cards = deck(decks=decks)
    size = (54 * decks - kitty) // 4
    hands, left = shuffle.deal_cards(cards, first, size)
    drawn = [[], [], [], []]
    for at, card in enumerate(cards[: 4 * size]):
        drawn[(first + at) % 4].append(card)
    assert [list(hand) for hand in hands] == drawn
    assert left == cards[4 * size :]
    assert len(left) == kitty
