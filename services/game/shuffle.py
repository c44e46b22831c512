"""How a deck comes about: a public function of the server's seed and the four players' seeds (RULES §7).

The server commits to its seed before any player's seed exists and reveals it when the deal ends, so that
anybody can repeat the shuffle. README.md, "Fairness and verification", tells the algorithm in words, with
test vectors.
"""

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from engine_ext.codes import CARDS
from services.game.framing import frame, u64
from services.rules.cards import SEATS

SEED_SIZE: Final = 32
"""Bytes of a server seed and of a client seed as mixed."""
DECK_LABEL: Final = b"shengji shuffle v1"
DRAWER_LABEL: Final = b"shengji first drawer v1"


class Deal(NamedTuple):
    """Who gets which cards."""

    hands: tuple[bytes, bytes, bytes, bytes]
    """The cards of seats 0..3 as indices, each in the order in which the seat draws them."""
    kitty: bytes
    """The cards left over, in deck order: card k of the rules is ``kitty[k - 1]``."""


def commitment(server_seed: bytes) -> bytes:
    """SHA-256 of a server seed: what is published before the players' seeds are known.

    The seed is 32 random bytes, so it cannot be searched for and needs no salt.
    """
    return hashlib.sha256(server_seed).digest()


def padded_client_seed(seed: bytes) -> bytes:
    """A player's 0..32 bytes as they are mixed: filled with zeros to 32.

    Raises:
        ValueError: more than 32 bytes.
    """
    if len(seed) > SEED_SIZE:
        raise ValueError(f"a client seed has at most {SEED_SIZE} bytes")
    return seed.ljust(SEED_SIZE, b"\0")


def deck_order(
    server_seed: bytes, client_seeds: Sequence[bytes], table_id: str, deal: int, decks: int
) -> bytes:
    """The shuffled deck.

    Args:
        server_seed: 32 bytes.
        client_seeds: of seats 0..3, 32 bytes each.
        table_id: the table.
        deal: the deal, from 1.
        decks: 1..4.

    Returns:
        54 * decks card indices; the first is drawn first.

    Raises:
        ValueError: seeds of a wrong size or number.
    """
    words = _words(DECK_LABEL, server_seed, client_seeds, table_id, deal)
    deck = bytearray(card for card in range(CARDS) for _ in range(decks))
    for last in range(len(deck) - 1, 0, -1):
        other = _below(last + 1, words)
        deck[last], deck[other] = deck[other], deck[last]
    return bytes(deck)


def first_drawer(server_seed: bytes, client_seeds: Sequence[bytes], table_id: str, deal: int) -> int:
    """The random seat 0..3 that draws first, where the rules want one (D18).

    Raises:
        ValueError: seeds of a wrong size or number.
    """
    return _below(SEATS, _words(DRAWER_LABEL, server_seed, client_seeds, table_id, deal))


def deal_cards(deck: bytes, first_drawer: int, hand_size: int) -> Deal:
    """Deals a deck one card at a time in turn order (RULES §7).

    Args:
        deck: card indices in deck order.
        first_drawer: the seat that gets the first card.
        hand_size: cards for each seat; what is left is the kitty.
    """
    dealt = SEATS * hand_size
    seat_0, seat_1, seat_2, seat_3 = (
        deck[(seat - first_drawer) % SEATS : dealt : SEATS] for seat in range(SEATS)
    )
    return Deal((seat_0, seat_1, seat_2, seat_3), deck[dealt:])


def _words(
    label: bytes, server_seed: bytes, client_seeds: Sequence[bytes], table_id: str, deal: int
) -> Iterator[int]:
    """An endless stream of 32-bit numbers, the same for the same arguments."""
    if len(client_seeds) != SEATS or any(len(seed) != SEED_SIZE for seed in (server_seed, *client_seeds)):
        raise ValueError(
            f"a shuffle takes one server seed and {SEATS} client seeds of {SEED_SIZE} bytes each"
        )
    prefix = frame(label, table_id.encode("ascii"), u64(deal), *client_seeds)
    return _stream(server_seed, prefix)


def _stream(key: bytes, prefix: bytes) -> Iterator[int]:
    block = 0
    while True:
        digest = hmac.digest(key, prefix + u64(block), "sha256")
        for at in range(0, len(digest), 4):
            yield int.from_bytes(digest[at : at + 4], "big")
        block += 1


def _below(bound: int, words: Iterator[int]) -> int:
    """A number 0..bound-1, each equally likely: words of the incomplete last round are thrown away."""
    limit = (1 << 32) - (1 << 32) % bound
    return next(word for word in words if word < limit) % bound
