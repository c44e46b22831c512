"""What anybody at the table could remember of the present deal: the fold of its public events.

Nothing here depends on whose memory it is or on any hidden card: fields of an event that are secret (hands,
kitty, buried cards) are never read, so all bots of a table share one memory.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from engine_ext.codes import CARDS
from services.game.wire import cards_from_wire, level_from_wire, trump_from_wire
from services.pb.event.v1 import event_pb2
from services.rules.cards import SEATS
from services.rules.declaring import Deal, Declarations, Standing, judge_pass, judge_showing
from services.rules.options import RuleSet

if TYPE_CHECKING:
    import engine_ext

EFFECTIVE_SUITS: Final = 5
"""Four side suits and TRUMP."""


class Memory:
    """The public knowledge of one deal.

    Attributes:
        rules: the table's rules.
        deal: the deal's number, 0 before the first.
        level: the deal's level 0..12, once dealing began.
        first_drawer: who drew first.
        holder: who holds the declarer's place; ``None`` on a first deal.
        declarations: the declarations, counters and passes so far, as far as they are public.
        sealed_standing: the standing declaration's cards are sealed, and ``declarations`` holds spades in
        their
            place.
        order: the order of cards, once trump is settled.
        declarer: who plays as declarer, once known.
        gone: how many copies of each card have been played.
        void: for each seat and effective suit, whether it has shown that it holds none.
        no_pair: for each seat and effective suit, whether it has shown that it holds no two identical cards.
        known: for each seat, copies of cards that it has shown and not yet played (who took the kitty may
            have buried some of them).
        trick: the plays of the open trick as (seat, cards).
    """

    def __init__(self, rules: RuleSet) -> None:
        self.rules = rules
        self.deal = 0
        self._begin()

    def _begin(self) -> None:
        self.level = 0
        self.first_drawer = 0
        self.holder: int | None = None
        self.declarations = Declarations()
        self.sealed_standing = False
        self.order: engine_ext.Order | None = None
        self.declarer: int | None = None
        self.gone = bytearray(CARDS)
        self.void = [[False] * EFFECTIVE_SUITS for _ in range(SEATS)]
        self.no_pair = [[False] * EFFECTIVE_SUITS for _ in range(SEATS)]
        self.known = [bytearray(CARDS) for _ in range(SEATS)]
        self.trick: list[tuple[int, bytes]] = []

    @property
    def dealt(self) -> Deal:
        """The deal as the rules of declaring see it."""
        return Deal(self.level, self.holder, self.first_drawer)

    def observe_all(self, events: Iterable[event_pb2.Event]) -> None:
        """Take in several events, in order."""
        for event in events:
            self.observe(event)

    def observe(self, event: event_pb2.Event) -> None:
        """Take in the next public event of the table; kinds that tell nothing about cards change nothing."""
        kind = event.WhichOneof("kind")
        if kind == "cards_played":
            self._played(event.cards_played)
        elif kind == "trick_taken":
            self.trick = []
        elif kind == "deal_started":
            self._started(event.deal_started)
        elif kind == "declared":
            self._declared(event.declared)
        elif kind == "passed":
            self._passed(event.passed.seat)
        elif kind == "declaring_closed":
            self._closed(event.declaring_closed)
        elif kind == "countered":
            self._countered(event.countered)

    def _started(self, started: event_pb2.DealStarted) -> None:
        self._begin()
        self.deal = started.deal
        self.level = level_from_wire(started.level)
        self.first_drawer = started.first_drawer
        self.holder = started.declarer if started.HasField("declarer") else None
        self.declarer = self.holder

    def _declared(self, declared: event_pb2.Declared) -> None:
        seat, cards = declared.seat, cards_from_wire(declared.cards)
        self.sealed_standing = not cards
        if not cards:
            cards = bytes([self.level]) * declared.count
            self.declarations = self.declarations.accept(Standing(seat, cards, trump=0), seat, cards)
            return
        accepted = judge_showing(self.rules, self.dealt, self.declarations, seat, cards)
        assert isinstance(accepted, Declarations), "the log holds accepted showings only"
        self.declarations = accepted
        self._shown(seat, cards)

    def _passed(self, seat: int) -> None:
        if self.order is not None:
            return  # on a mutiny or a counter: it tells nothing about cards
        accepted = judge_pass(self.declarations, seat)
        assert isinstance(accepted, Declarations), "the log holds accepted passes only"
        self.declarations = accepted

    def _shown(self, seat: int, cards: bytes) -> None:
        """A seat's showings of one card overlap, so they count once at their widest."""
        known = self.known[seat]
        for card in set(cards):
            known[card] = max(known[card], cards.count(card))

    def _closed(self, closed: event_pb2.DeclaringClosed) -> None:
        for declared in closed.opened:
            self._shown(declared.seat, cards_from_wire(declared.cards))
        self.declarer = closed.declarer
        self.order = self.rules.engine().order(self.level, trump_from_wire(closed.trump))

    def _countered(self, countered: event_pb2.Countered) -> None:
        """Another trump; what the suits were called before makes no difference, since nothing was played."""
        seat, cards = countered.seat, cards_from_wire(countered.cards)
        trump = trump_from_wire(countered.trump)
        self.declarations = replace(self.declarations, standing=Standing(seat, cards, trump))
        self._shown(seat, cards)
        self.order = self.rules.engine().order(self.level, trump)

    def _played(self, played: event_pb2.CardsPlayed) -> None:
        seat, cards = played.seat, cards_from_wire(played.cards)
        if self.trick:
            self._learn_from_follow(seat, cards)
        known = self.known[seat]
        for card in cards:
            self.gone[card] += 1
            if known[card]:
                known[card] -= 1
        if played.attempted:
            self._took_back(seat, cards, cards_from_wire(played.attempted))
        self.trick.append((seat, cards))

    def _took_back(self, seat: int, stood: bytes, attempted: bytes) -> None:
        """A failed throw shows every card that it returns to the hand."""
        for card in set(attempted):
            back = attempted.count(card) - stood.count(card)
            self.known[seat][card] = max(self.known[seat][card], back)

    def _learn_from_follow(self, seat: int, cards: bytes) -> None:
        """What a follow tells (RULES §5).

        Who does not follow suit with all cards has no more of it. Who follows a group with cards of the suit
        alone, no two of them identical, has no pair of it.
        """
        order = self.order
        assert order is not None, "cards are played only when trump is settled"
        lead = self.trick[0][1]
        suit = order.suit(lead[0])
        if any(order.suit(card) != suit for card in cards):
            self.void[seat][suit] = True
            self.no_pair[seat][suit] = True
            return
        asked = max(component.width for component in order.shape(lead))
        # Under keep_groups_whole a wider group than the one asked for may have been kept back.
        told = asked >= (self.rules.copies if self.rules.keep_groups_whole else 2)
        if told and all(component.width == 1 for component in order.shape(cards)):
            self.no_pair[seat][suit] = True
