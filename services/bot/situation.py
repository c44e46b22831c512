"""One decision of a seat, once trump is settled: own cards, public memory, and what is still unseen."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from engine_ext.codes import CARDS, TRUMP
from services.bot.memory import EFFECTIVE_SUITS, Memory
from services.rules.cards import CARD_POINTS, SEATS, counts_of, identity
from services.rules.options import RuleSet

if TYPE_CHECKING:
    import engine_ext


@dataclass(frozen=True, slots=True)
class Table:
    """What an order says about all cards, looked up once.

    Attributes:
        suit: the effective suit 0..4 of each card.
        tier: the rank of each card inside its effective suit.
        same: the identity of each card; equal for identical cards (RULES §2).
        members: for each effective suit its cards, lowest tier first.
    """

    suit: tuple[int, ...]
    tier: tuple[int, ...]
    same: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]


@lru_cache(maxsize=1024)
def table_of(order: "engine_ext.Order", two_colour: bool) -> Table:
    """The lookup table of an order."""
    suit = tuple(order.suit(card) for card in range(CARDS))
    tier = tuple(order.tier(card) for card in range(CARDS))
    same = tuple(identity(card, two_colour=two_colour) for card in range(CARDS))
    members = tuple(
        tuple(sorted((card for card in range(CARDS) if suit[card] == which), key=lambda card: tier[card]))
        for which in range(EFFECTIVE_SUITS)
    )
    return Table(suit, tier, same, members)


@dataclass(slots=True)
class Situation:
    """What one seat may know when it is to lead or follow, or to bury.

    Attributes:
        rules: the table's rules.
        order: the order of cards.
        memory: the public memory.
        seat: whose decision it is.
        hand: its cards, ascending.
        buried: the cards it buried itself; empty for all others.
        sizes: cards in hand of each seat now.
        kitty_size: cards that lie buried.
        table: the order's lookup table.
        suits: the hand by effective suit, lowest tier first.
        unseen: copies of each card that lie neither in this hand nor on the table nor in the own kitty.
        hidden: how many cards these are in all: the other hands and a kitty that others buried.
    """

    rules: RuleSet
    order: "engine_ext.Order"
    memory: Memory
    seat: int
    hand: bytes
    buried: bytes
    sizes: Sequence[int]
    kitty_size: int
    table: Table = field(init=False)
    suits: tuple[bytes, ...] = field(init=False)
    unseen: bytearray = field(init=False)
    hidden: int = field(init=False)
    _outside: dict[int, tuple[tuple[int, int], ...]] = field(init=False, default_factory=dict)
    _known: dict[tuple[int, int], tuple[tuple[int, int], ...]] = field(init=False, default_factory=dict)
    _counts: list[int] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.table = table_of(self.order, self.rules.two_colour)
        suit, tier = self.table.suit, self.table.tier
        by_tier = sorted(self.hand, key=lambda card: (tier[card], card))
        self.suits = tuple(
            bytes(card for card in by_tier if suit[card] == which) for which in range(EFFECTIVE_SUITS)
        )
        decks, gone = self.rules.decks, self.memory.gone
        unseen = bytearray(decks - gone[card] for card in range(CARDS))
        for card in self.hand + self.buried:
            unseen[card] -= 1
        self.unseen = unseen
        self.hidden = max(1, sum(unseen))

    @property
    def partner(self) -> int:
        """The seat opposite."""
        return (self.seat + 2) % SEATS

    @property
    def attacker(self) -> bool:
        """Whether this seat is one of the attackers."""
        declarer = self.memory.declarer
        return declarer is not None and (self.seat - declarer) % 2 == 1

    def mine(self, seat: int) -> bool:
        """Whether a seat is on this seat's side."""
        return (seat - self.seat) % 2 == 0

    def outside(self, suit: int) -> tuple[tuple[int, int], ...]:
        """Unseen cards of an effective suit as (tier, copies), one for each identity, highest first."""
        found = self._outside.get(suit)
        if found is None:
            copies: dict[int, list[int]] = {}
            for card in reversed(self.table.members[suit]):
                if self.unseen[card]:
                    entry = copies.setdefault(self.table.same[card], [self.table.tier[card], 0])
                    entry[1] += self.unseen[card]
            found = tuple((tier, count) for tier, count in copies.values())
            self._outside[suit] = found
        return found

    def outside_count(self, suit: int) -> int:
        """How many cards of an effective suit are unseen."""
        if not self._counts:
            self._counts = [sum(self.unseen[card] for card in members) for members in self.table.members]
        return self._counts[suit]

    def known(self, seat: int, suit: int) -> tuple[tuple[int, int], ...]:
        """Cards of a suit that another seat has shown and must still hold, as (tier, copies)."""
        found = self._known.get((seat, suit))
        if found is None:
            shown, tier = self.memory.known[seat], self.table.tier
            found = tuple(
                (tier[card], shown[card])
                for card in self.table.members[suit]
                if shown[card] and self.unseen[card]
            )
            self._known[seat, suit] = found
        return found

    def may_hold(self, seat: int, suit: int) -> bytes:
        """Every unseen card of a suit that another seat may hold: a superset of what it holds."""
        if self.memory.void[seat][suit] or not self.sizes[seat]:
            return b""
        single = self.memory.no_pair[seat][suit]
        cards: list[int] = []
        met: set[int] = set()
        for card in self.table.members[suit]:
            copies = self.unseen[card]
            if copies and single:
                if self.table.same[card] in met:
                    continue
                met.add(self.table.same[card])
                copies = 1
            cards.extend([card] * copies)
        return bytes(cards)

    @property
    def plain_suits(self) -> tuple[bytes, ...]:
        """The hand's side suits, lowest tier first."""
        return self.suits[:TRUMP]

    @property
    def trumps(self) -> bytes:
        """The hand's trumps, lowest tier first."""
        return self.suits[TRUMP]

    def top(self, cards: bytes) -> int:
        """The highest tier among cards."""
        tier = self.table.tier
        return max(tier[card] for card in cards)

    def counts(self) -> bytes:
        """The hand as 54 counts."""
        return counts_of(self.hand)


def points_of(cards: bytes) -> int:
    """The points of cards (RULES §1)."""
    return sum(CARD_POINTS[card] for card in cards)
