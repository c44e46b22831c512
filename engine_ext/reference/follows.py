"""Following a lead: what a hand owes and which plays are legal (RULES §5)."""

from collections.abc import Iterator
from operator import gt
from typing import TYPE_CHECKING

from engine_ext.codes import CARDS, Verdict
from engine_ext.reference.ladders import Groups
from engine_ext.reference.listings import Listing, selections
from engine_ext.reference.shapes import Component, Held, cut, held_of, take_all

if TYPE_CHECKING:
    from engine_ext.reference.order import Order

Usable = list[int] | None
"""Kinds that groups may be made of; None for all."""
Vector = tuple[int, ...]
"""The ladder step of each component of the lead, the largest component first; smaller is better."""


class Lead:
    """A compiled lead; made by ``Order.lead``."""

    def __init__(self, order: "Order", cards: bytes) -> None:
        self._order = order
        self.cards = bytes(sorted(cards))
        self.suit = order.one_suit(cards)
        self.size = len(cards)
        self._suit_order = order.suits[self.suit]
        placed = cut(self._suit_order, cards)
        self.components: tuple[Component, ...] = tuple(p.component for p in placed)
        self._sizes = tuple(p.size for p in placed)
        self._ladders = [order.rules.ladder(size) for size in self._sizes]
        self._obligations: dict[Held, Vector] = {}

    def check(self, hand: bytes, play: bytes) -> int:
        """A Verdict for a follow; hand and play as counts, the hand before the play.

        Raises:
            ValueError: a vector that is not 54 bytes, or a count above what the rules' decks hold.
        """
        self._order.check_counts(hand)
        self._order.check_counts(play)
        if sum(play) != self.size:
            return Verdict.WRONG_COUNT
        if any(map(gt, play, hand)):
            return Verdict.NOT_IN_HAND
        held, played = self._of_suit(hand), self._of_suit(play)
        if sum(played) != min(sum(held), self.size):
            return Verdict.MUST_FOLLOW_SUIT
        if sum(held) > self.size and self._answer(played) > self._obligation(held):
            return Verdict.MUST_FOLLOW_SHAPE
        return Verdict.OK

    def check_cards(self, hand: bytes, play: bytes) -> int:
        """The same for cards given as indices in any order."""
        return self.check(self._order.counts(hand), self._order.counts(play))

    def check_batch(self, hands: bytes, plays: bytes) -> bytes:
        """The same for n positions laid end to end.

        Raises:
            ValueError: lengths that differ or are no multiple of 54, or as ``check``.
        """
        if len(hands) != len(plays) or len(hands) % CARDS:
            raise ValueError(
                f"hands and plays must be n * {CARDS} bytes each, not {len(hands)} and {len(plays)}"
            )
        starts = range(0, len(hands), CARDS)
        return bytes(self.check(hands[i : i + CARDS], plays[i : i + CARDS]) for i in starts)

    def owed(self, hand: bytes) -> tuple[Groups, ...]:
        """The groups that a hand owes to each component, largest first; see ``_core.pyi``."""
        self._order.check_counts(hand)
        held = self._of_suit(hand)
        if sum(held) <= self.size:
            return ()
        return next(self._realisations({held}, self._obligation(held), self._usable(held)))

    def follows(self, hand: bytes, cap: int = 64) -> Listing:
        """All legal follows of a hand given as counts; the better answers first, then the lower cards.

        It tries every selection of cards, which is slow for long suits.
        """
        self._order.check_counts(hand)
        cards = [card for card in range(CARDS) for _ in range(hand[card])]
        own = [card for card in cards if self._order.suit(card) == self.suit]
        free = [card for card in cards if self._order.suit(card) != self.suit]
        if len(own) > self.size:
            plays = selections(own, self.size)
        else:
            plays = {bytes(sorted([*own, *rest])) for rest in selections(free, self.size - len(own))}
        legal = [play for play in plays if self.check(hand, self._order.counts(play)) == Verdict.OK]
        legal.sort(key=lambda play: (self._answer(held_of(self._suit_order, play)), self._height(play)))
        return Listing.of(legal, cap)

    def _height(self, play: bytes) -> tuple[list[int], bytes]:
        return sorted(self._order.tier(card) for card in play), play

    def _of_suit(self, counts: bytes) -> Held:
        return tuple([sum([counts[card] for card in kind.cards]) for kind in self._suit_order.kinds])

    def _obligation(self, held: Held) -> Vector:
        """What a hand owes, remembered, since a hand is asked about many plays."""
        if held not in self._obligations:
            self._obligations[held] = self._vector(held, self._usable(held))
        return self._obligations[held]

    def _answer(self, played: Held) -> Vector:
        """How well a play answers: its groups may always be broken."""
        return self._vector(played, [None] * len(self._sizes))

    def _usable(self, held: Held) -> list[Usable]:
        """For each component of the lead the kinds that it obliges a hand to use.

        Under ``keep_groups_whole`` groups wider than the component are left out (RULES §5, 002 "可以不拆").
        """
        if not self._order.rules.keep_groups_whole:
            return [None] * len(self._sizes)
        return [[place for place, count in enumerate(held) if count <= width] for width, _ in self._sizes]

    def _vector(self, held: Held, usable: list[Usable]) -> Vector:
        """The lexicographically best vector of ladder steps that disjoint groups can realise.

        Component by component the first step that can be realised is taken, in all ways it can be realised,
        since the next component may depend on which.
        """
        vector = []
        left = {held}
        for ladder, kinds in zip(self._ladders, usable, strict=True):
            for index, step in enumerate(ladder):
                after = set[Held]()
                for groups in step:
                    after |= take_all(self._suit_order, left, groups, kinds)
                if after:
                    vector.append(index)
                    left = after
                    break
        return tuple(vector)

    def _realisations(
        self, left: set[Held], vector: Vector, usable: list[Usable]
    ) -> Iterator[tuple[Groups, ...]]:
        """The alternatives, one a component, with which a vector can be realised as a whole."""
        if not vector:
            yield ()
            return
        ladder = self._ladders[-len(vector)]
        for groups in ladder[vector[0]]:
            after = take_all(self._suit_order, left, groups, usable[0])
            if after:
                for rest in self._realisations(after, vector[1:], usable[1:]):
                    yield (groups, *rest)
