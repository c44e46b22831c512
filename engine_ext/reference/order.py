"""The order of cards in one deal, and everything that is judged by it."""

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

from engine_ext.codes import CARDS, MAX_WIDTH, TRUMP
from engine_ext.reference.follows import Lead
from engine_ext.reference.listings import Listing, copies_of
from engine_ext.reference.shapes import Component, Size, cut, largeness
from engine_ext.reference.throws import Throw, judge_throw
from engine_ext.reference.tiers import Rank, SuitOrder, effective_suit, printed_suits, suit_order
from engine_ext.reference.tricks import multiplier_of, winning

if TYPE_CHECKING:
    from engine_ext.reference.rules import Rules

_POINTS = {3: 5, 8: 10, 11: 10}
"""Points of the ranks five, ten and king (RULES §1)."""


class Order:
    """The order of cards for one level and trump (RULES §2); made by ``Rules.order``."""

    def __init__(self, rules: "Rules", level: int, trump: int) -> None:
        self.rules = rules
        self.level = level
        self.trump = trump
        self.suits: dict[int, SuitOrder] = {
            suit: suit_order(rules, level, trump, suit)
            for suit in (*printed_suits(rules), TRUMP)
            if suit != trump or suit == TRUMP
        }
        self._suit_of = [effective_suit(rules, level, trump, card) for card in range(CARDS)]

    def suit(self, card: int) -> int:
        """The effective suit 0..4 of a card index; 4 is TRUMP.

        Raises:
            ValueError: no card has the index.
        """
        if card not in range(CARDS):
            raise ValueError(f"a card is 0..{CARDS - 1}, not {card}")
        return self._suit_of[card]

    def tier(self, card: int) -> int:
        """The rank of a card inside its effective suit; equal tiers are equal cards in play.

        Raises:
            ValueError: no card has the index.
        """
        return next(kind.tier for kind in self.suits[self.suit(card)].kinds if card in kind.cards)

    def shape(self, cards: bytes) -> tuple[Component, ...]:
        """Cut cards of one effective suit into components, larger first (RULES §3).

        Raises:
            ValueError: no cards, or more than one effective suit.
        """
        return tuple(placed.component for placed in cut(self.suits[self.one_suit(cards)], cards))

    def lead(self, cards: bytes) -> Lead:
        """Compile a lead.

        Raises:
            ValueError: no cards, or more than one effective suit.
        """
        return Lead(self, cards)

    def throw(self, cards: bytes, others: Sequence[bytes]) -> Throw:
        """Judge a lead against the three other hands (cards), given in turn order (RULES §4).

        Raises:
            ValueError: no cards, other than three hands, or cards that the decks do not hold.
        """
        if len(others) != 3:
            raise ValueError(f"a throw is judged against three hands, not {len(others)}")
        for some in (cards, *others):
            self.counts(some)
        if not cards:
            raise ValueError("a lead needs cards")
        return judge_throw(self, cards, others)

    def winner(self, plays: Sequence[bytes]) -> int:
        """The index of the winning play, the lead being the first (RULES §6).

        Raises:
            ValueError: no plays, plays of unequal length, or a lead of mixed suits.
        """
        for play in plays:
            self.counts(play)
        return winning(self, plays)[0]

    def multiplier(self, plays: Sequence[bytes]) -> int:
        """The multiplier of RULES §8 for the last trick, decided by the components of its winning play (D21).

        Raises:
            ValueError: as ``winner``.
        """
        for play in plays:
            self.counts(play)
        return multiplier_of(self.rules.multiplier, winning(self, plays)[1].sizes)

    def points(self, cards: bytes) -> int:
        """The points of cards: 5, 10, 10 for each 5, ten, king."""
        self.counts(cards)
        return sum(_POINTS.get(card % 13, 0) for card in cards if card < 52)

    def leads(self, hand: bytes, cap: int = 64) -> Listing:
        """Plain leads (one component) of a hand given as counts, larger and higher first."""
        self.check_counts(hand)
        found: dict[bytes, tuple[tuple[bool, int, int], Rank]] = {}
        for suited in self.suits.values():
            held = [[card for card in kind.cards for _ in range(hand[card])] for kind in suited.kinds]
            for length, runs in suited.runs.items():
                for width in range(1 if length == 1 else 2, MAX_WIDTH + 1):
                    for run in runs:
                        for groups in product(*(copies_of(held[place], width) for place in run.kinds)):
                            play = bytes(sorted(b"".join(groups)))
                            found.setdefault(play, (largeness((width, length)), run.rank))
        return Listing.of(sorted(sorted(found), key=lambda play: found[play], reverse=True), cap)

    def one_suit(self, cards: bytes) -> int:
        """The one effective suit of cards.

        Raises:
            ValueError: no cards, more than one effective suit, or cards that the decks do not hold.
        """
        self.counts(cards)
        suits = {self.suit(card) for card in cards}
        if len(suits) != 1:
            raise ValueError("a lead needs cards" if not suits else "the cards are not of one effective suit")
        return suits.pop()

    def wider_sizes(self, size: Size) -> list[Size]:
        """The wider components of as many cards, which beat a tractor where ``wider_beats`` (RULES §6)."""
        width, length = size
        if not self.rules.wider_beats or length == 1:
            return []
        cards = width * length
        return [(wider, cards // wider) for wider in range(width + 1, MAX_WIDTH + 1) if cards % wider == 0]

    def counts(self, cards: bytes) -> bytes:
        """Cards as counts.

        Raises:
            ValueError: cards that the decks do not hold.
        """
        counts = [0] * CARDS
        for card in cards:
            if card >= CARDS:
                raise ValueError(f"a card is 0..{CARDS - 1}, not {card}")
            counts[card] += 1
        self.check_counts(bytes(counts))
        return bytes(counts)

    def check_counts(self, counts: bytes) -> None:
        """Refuse a vector that no hand can be.

        Raises:
            ValueError: other than 54 bytes, or a count above what the decks hold.
        """
        if len(counts) != CARDS:
            raise ValueError(f"counts are {CARDS} bytes, not {len(counts)}")
        if max(counts) > self.rules.decks:
            raise ValueError(f"{max(counts)} copies of a card, the decks hold {self.rules.decks}")
