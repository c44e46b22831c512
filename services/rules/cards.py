"""Cards, suits, ranks, levels and trumps: the text that people write against the codes that engines use.

A card is an index 0..53 (``engine_ext.codes``); text is suit letter and rank (``ST``, ``D5``) or ``LJ``,
``BJ`` (RULES §1). Cards are ``bytes`` of indices, counts are 54 ``bytes`` of copies. A level is 0..12 for
2..A. A trump is a suit 0..3 or ``NO_TRUMP`` = 4; with two colours BLACK = 0, RED = 1 or ``NO_TRUMP``.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from engine_ext.codes import BIG_JOKER, CARDS, LITTLE_JOKER, NO_TRUMP

SUIT_LETTERS: Final = "SHCD"
RANK_LETTERS: Final = "23456789TJQKA"
RANKS: Final = 13
"""Ranks of a suit, and levels of a match."""
ACE: Final = 12
"""The level A."""
SEATS: Final = 4

CARD_TEXTS: Final[tuple[str, ...]] = (
    *(suit + rank for suit in SUIT_LETTERS for rank in RANK_LETTERS),
    "LJ",
    "BJ",
)
"""The text of every card by its index."""
CARD_INDEX: Final[dict[str, int]] = {text: index for index, text in enumerate(CARD_TEXTS)}
"""The index of every card by its text."""
CARD_POINTS: Final[bytes] = bytes(
    {"5": 5, "T": 10, "K": 10}.get(text[1], 0) if text[0] in SUIT_LETTERS else 0 for text in CARD_TEXTS
)
"""The points of every card by its index (RULES §1): 100 a deck."""
LEVEL_INDEX: Final[dict[str, int]] = {text: level for level, text in enumerate(RANK_LETTERS)}
TRUMP_INDEX: Final[dict[str, int]] = {"S": 0, "H": 1, "C": 2, "D": 3, "NT": NO_TRUMP}
TRUMP_INDEX_TWO_COLOUR: Final[dict[str, int]] = {"B": 0, "R": 1, "NT": NO_TRUMP}
_TRUMP_TEXT: Final = {index: text for text, index in TRUMP_INDEX.items()}
_TRUMP_TEXT_TWO_COLOUR: Final = {index: text for text, index in TRUMP_INDEX_TWO_COLOUR.items()}


class Suit(IntEnum):
    """Printed suits in the order that settles every free choice between suits (RULES §1)."""

    SPADES = 0
    HEARTS = 1
    CLUBS = 2
    DIAMONDS = 3


def parse_card(text: str) -> int:
    """The index of a card.

    Raises:
        ValueError: not the text of a card.
    """
    try:
        return CARD_INDEX[text]
    except KeyError:
        raise ValueError(f"{text!r} is no card") from None


def card_text(card: int) -> str:
    """The text of a card index 0..53."""
    return CARD_TEXTS[card]


def parse_cards(texts: Iterable[str]) -> bytes:
    """The indices of cards, in the order given.

    Raises:
        ValueError: one of them is no card.
    """
    return bytes(parse_card(text) for text in texts)


def card_texts(cards: bytes) -> list[str]:
    """The texts of cards, in the order given."""
    return [CARD_TEXTS[card] for card in cards]


def counts_of(cards: Iterable[int]) -> bytes:
    """The 54 counts of cards.

    Raises:
        ValueError: an index beyond 0..53.
    """
    counts = bytearray(CARDS)
    for card in cards:
        if not 0 <= card < CARDS:
            raise ValueError(f"{card} is no card index")
        counts[card] += 1
    return bytes(counts)


def cards_of(counts: bytes) -> bytes:
    """The cards of 54 counts, as ascending indices."""
    return bytes(card for card, copies in enumerate(counts) for _ in range(copies))


def contains(hand: bytes, cards: bytes) -> bool:
    """Whether a hand (cards) holds all of these cards, copies counted."""
    return all(hand.count(card) >= cards.count(card) for card in set(cards))


def without(hand: bytes, cards: bytes) -> bytes:
    """The hand less these cards, ascending.

    Raises:
        ValueError: the hand does not hold them all.
    """
    counts = bytearray(counts_of(hand))
    for card in cards:
        if not counts[card]:
            raise ValueError(f"{CARD_TEXTS[card]} is not held")
        counts[card] -= 1
    return cards_of(bytes(counts))


def points(cards: bytes) -> int:
    """The points of cards: 5 for a five, 10 for a ten or a king (RULES §1)."""
    return sum(CARD_POINTS[card] for card in cards)


def deck(decks: int) -> bytes:
    """All cards of so many decks, ascending."""
    return bytes(card for card in range(CARDS) for _ in range(decks))


def is_joker(card: int) -> bool:
    """Whether the card is the little or the big joker."""
    return card >= LITTLE_JOKER


def suit_of(card: int) -> int:
    """The printed suit 0..3 of a card that is no joker."""
    return card // RANKS


def rank_of(card: int) -> int:
    """The printed rank 0..12 (2..A) of a card that is no joker; ranks and levels share their numbers."""
    return card % RANKS


def colour_of(card: int) -> int:
    """The colour of a card that is no joker: 0 BLACK (S, C), 1 RED (H, D)."""
    return suit_of(card) & 1


def joker_of_colour(colour: int) -> int:
    """The joker of a colour: the big one is red, the little one black (RULES §7, 003)."""
    return BIG_JOKER if colour else LITTLE_JOKER


def identity(card: int, *, two_colour: bool) -> int:
    """What makes cards identical: the card, or with two colours its rank and colour (RULES §2)."""
    if two_colour and card < LITTLE_JOKER:
        return colour_of(card) * RANKS + rank_of(card)
    return card


def trump_of(card: int, *, two_colour: bool) -> int:
    """The trump that a shown or turned card makes: its suit or colour; a joker makes no-trump."""
    if card >= LITTLE_JOKER:
        return NO_TRUMP
    return colour_of(card) if two_colour else suit_of(card)


def parse_level(text: str) -> int:
    """The level 0..12 of "2".."A".

    Raises:
        ValueError: not a level.
    """
    try:
        return LEVEL_INDEX[text]
    except KeyError:
        raise ValueError(f"{text!r} is no level") from None


def level_text(level: int) -> str:
    """The text of a level 0..12."""
    return RANK_LETTERS[level]


def parse_trump(text: str, *, two_colour: bool = False) -> int:
    """The trump of "S", "H", "C", "D", "NT"; with two colours of "B", "R", "NT".

    Raises:
        ValueError: not a trump of that system.
    """
    try:
        return (TRUMP_INDEX_TWO_COLOUR if two_colour else TRUMP_INDEX)[text]
    except KeyError:
        raise ValueError(f"{text!r} is no trump") from None


def trump_text(trump: int, *, two_colour: bool = False) -> str:
    """The text of a trump."""
    return (_TRUMP_TEXT_TWO_COLOUR if two_colour else _TRUMP_TEXT)[trump]
