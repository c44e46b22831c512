"""What a player knows of a table: a snapshot, and every update folded into it. Pure.

The game is kept as the very message that the service would show (``TableView``), so that after any step it
can be compared with ``GetView``, and a client that was away simply starts from another snapshot.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from services.game.wire import cards_from_wire, cards_to_wire, level_from_wire, trump_from_wire
from services.pb.event.v1 import event_pb2 as events
from services.pb.table.v1.view_pb2 import (
    PHASE_BURY,
    PHASE_CLOSED,
    PHASE_COUNTER,
    PHASE_DECLARING,
    PHASE_MUTINY,
    PHASE_OVER,
    PHASE_SCORED,
    PHASE_SEATING,
    PHASE_TRICKS,
    PlayView,
    SeatView,
    TableView,
    Update,
)
from services.rules import declaring, joker_backed, mutiny
from services.rules.cards import trump_of
from services.rules.declarations import Deal, Declarations, Standing
from services.rules.options import Declaring, RuleSet

SEATS: Final = 4
DEALT: Final = frozenset({PHASE_DECLARING, PHASE_MUTINY, PHASE_BURY, PHASE_COUNTER, PHASE_TRICKS})
"""The phases in which a deal is open."""


class Unknown(Exception):
    """An event of a kind that this client does not know: ask for a view instead."""


class Game(NamedTuple):
    """A table as one receiver knows it; never changed, ``fold`` makes the next one."""

    view: TableView
    rules: RuleSet
    declarations: Declarations
    """What was shown in the open deal, as far as the receiver has seen it."""

    @property
    def me(self) -> int:
        """The receiver's seat; 0 for a spectator."""
        return self.view.my_seat

    @property
    def my_turn(self) -> bool:
        """Whether the receiver may act now."""
        return self.view.HasField("my_seat") and self.view.my_seat in self.view.to_act

    @property
    def all_drawn(self) -> bool:
        """Whether the last card has been drawn."""
        return self.view.drawn >= self.rules.hand_size

    @property
    def hand(self) -> bytes:
        """The receiver's cards."""
        return cards_from_wire(self.view.hand)

    @property
    def level(self) -> int:
        """The deal's level 0..12; 0 between deals."""
        return level_from_wire(self.view.level) if self.view.level else 0

    @property
    def trump(self) -> int | None:
        """The trump, once it is settled."""
        return trump_from_wire(self.view.trump) if self.view.trump else None

    @property
    def deal(self) -> Deal:
        """The open deal as the rules of declaring see it, while the window is open."""
        view = self.view
        declarer = view.declarer if view.HasField("declarer") else None
        return Deal(self.level, declarer, view.first_drawer)


def begin(view: TableView, rules: RuleSet) -> Game:
    """A game from a snapshot. What was shown before it is known as far as it still stands."""
    standing = _standing(rules, view.standing)
    passes = sum(1 << seat.seat for seat in view.seats if seat.passed) if view.phase == PHASE_DECLARING else 0
    return Game(view, rules, Declarations(standing=standing, passes=passes))


def _standing(rules: RuleSet, shown: events.Declared) -> Standing | None:
    if not (cards := cards_from_wire(shown.cards)):
        return None
    if rules.declaring is Declaring.JOKER_BACKED:
        return joker_backed.standing_of(shown.seat, cards, locked=len(cards) == 3)
    return Standing(shown.seat, cards, trump_of(cards[0], two_colour=rules.two_colour))


def fold(game: Game, update: Update) -> Game:
    """The game after one more update; raises ``Unknown`` at an event that this client does not know."""
    view = TableView()
    view.CopyFrom(game.view)
    draft = _Draft(view, game.rules, game.declarations, list(update.to_act))
    for event in update.events:
        kind = event.WhichOneof("kind")
        handler = _HANDLERS.get(str(kind))
        if handler is None:
            raise Unknown(str(kind))
        handler(draft, getattr(event, str(kind)))
    view.hand.extend(update.drawn_cards)
    view.version, view.drawn, view.turn_version = update.version, update.drawn, update.turn_version
    view.to_act[:] = update.to_act
    view.deadline_ms, view.server_now_ms = update.deadline_ms, update.server_now_ms
    if view.phase == PHASE_DECLARING:
        for seat in view.seats:
            seat.hand_size = update.drawn
    return Game(view, game.rules, draft.declarations)


class _Draft:
    """A view while an update is folded into it."""

    def __init__(
        self, view: TableView, rules: RuleSet, declarations: Declarations, to_act: list[int]
    ) -> None:
        self.view = view
        self.rules = rules
        self.declarations = declarations
        self.to_act = to_act

    def clear_deal(self) -> None:
        """Nothing of a deal is left on the table."""
        for name in (
            "level", "trump", "declarer", "first_drawer", "standing", "hand", "kitty", "trick", "last_trick",
            "last_winner", "attackers_points",
        ):  # fmt: skip
            self.view.ClearField(name)
        for seat in self.view.seats:
            seat.hand_size = 0
        self.nobody_passed()
        self.declarations = Declarations()

    def nobody_passed(self) -> None:
        for seat in self.view.seats:
            seat.passed = False

    def nobody_ready(self) -> None:
        for seat in self.view.seats:
            seat.ready = False

    def enter(self, phase: Any) -> None:
        """The next phase of the open deal."""
        self.view.phase = phase
        self.nobody_passed()
        for seat in self.view.seats:
            seat.hand_size = self.rules.hand_size

    def take_out(self, cards: Any) -> None:
        """Cards leave the receiver's hand."""
        hand = list(self.view.hand)
        for card in cards:
            hand.remove(card)
        self.view.hand[:] = hand

    def show_standing(self) -> None:
        standing = self.declarations.standing
        if standing is not None:
            cards = cards_to_wire(standing.cards + standing.added)
            self.view.standing.CopyFrom(
                events.Declared(seat=standing.seat, cards=cards, count=standing.count)
            )

    def accept(self, event: events.Declared, deal: Deal) -> None:
        """Judge a showing as the table did; after a snapshot what went before may be unknown."""
        cards, seat = cards_from_wire(event.cards), event.seat
        judged = declaring.judge_showing(self.rules, deal, self.declarations, seat, cards)
        if not isinstance(judged, Declarations):
            judged = self.declarations.accept(_known(self.rules, event), seat, cards)
        self.declarations = judged
        self.show_standing()

    def after_window(self, declarer: int) -> None:
        """The declarer takes the kitty, where there is one, or leads."""
        if self.rules.kitty:
            self.to_bury(declarer)
        else:
            self.enter(PHASE_TRICKS)

    def to_bury(self, seat: int) -> None:
        self.enter(PHASE_BURY)
        self.view.ClearField("kitty")
        self.view.seats[seat].hand_size += self.rules.kitty


def _known(rules: RuleSet, event: events.Declared) -> Standing:
    standing = _standing(rules, event)
    assert standing is not None, "an open showing has cards"
    return standing


# ------------------------------------------------------------------------------------------------ the events


def _seat_taken(draft: _Draft, event: events.SeatTaken) -> None:
    taken = event.seat
    draft.view.seats[taken.seat].CopyFrom(
        SeatView(seat=taken.seat, player_id=taken.player_id, difficulty=taken.difficulty)
    )


def _seat_left(draft: _Draft, event: events.SeatLeft) -> None:
    seat = draft.view.seats[event.seat]
    if event.escaped:
        seat.escaped = seat.auto_play = True
    else:
        seat.CopyFrom(SeatView(seat=event.seat))


def _seed_committed(draft: _Draft, event: events.SeedCommitted) -> None:
    draft.view.next_seed_commitment = event.next_seed.commitment
    draft.nobody_ready()


def _seat_ready(draft: _Draft, event: events.SeatReady) -> None:
    draft.view.seats[event.seat].ready = True


def _deal_started(draft: _Draft, event: events.DealStarted) -> None:
    view = draft.view
    draft.clear_deal()
    draft.nobody_ready()
    view.ClearField("last_score")
    view.phase, view.deal, view.level = PHASE_DECLARING, event.deal, event.level
    view.levels[:] = event.levels
    view.first_drawer = event.first_drawer
    if event.HasField("declarer"):
        view.declarer = event.declarer
    view.next_seed_commitment = b""


def _declared(draft: _Draft, event: events.Declared) -> None:
    for seat in draft.view.seats:
        seat.passed = seat.passed and seat.seat == event.seat
    if event.cards:
        if draft.rules.sealed:  # others' showings are not known, so nothing can be judged
            draft.declarations = Declarations(standing=_known(draft.rules, event))
            draft.show_standing()
        else:
            deal = Game(draft.view, draft.rules, draft.declarations).deal
            draft.accept(event, deal)
    else:
        draft.declarations = Declarations()
        draft.view.standing.CopyFrom(events.Declared(seat=event.seat, count=event.count))


def _passed(draft: _Draft, event: events.Passed) -> None:
    view = draft.view
    view.seats[event.seat].passed = True
    if view.phase == PHASE_DECLARING:
        draft.declarations = replace(draft.declarations, passes=draft.declarations.passes | 1 << event.seat)
    elif view.phase == PHASE_MUTINY:
        if all(view.seats[seat].passed for seat in mutiny.asked(draft.rules, view.declarer)):
            draft.after_window(view.declarer)
    elif sum(seat.passed for seat in view.seats) == SEATS - 1:
        draft.enter(PHASE_TRICKS)


def _declaring_closed(draft: _Draft, event: events.DeclaringClosed) -> None:
    view = draft.view
    if event.opened:
        deal = Game(view, draft.rules, draft.declarations).deal
        draft.declarations = Declarations()
        for opened in event.opened:
            draft.accept(opened, deal)
    view.trump, view.declarer = event.trump, event.declarer
    view.hand[:] = sorted(view.hand)
    if mutiny.is_possible(draft.rules) and view.pace.mutiny_ms:
        draft.enter(PHASE_MUTINY)
    else:
        draft.after_window(event.declarer)


def _kitty_taken(draft: _Draft, event: events.KittyTaken) -> None:
    draft.view.kitty[:] = sorted(event.cards)
    draft.view.hand[:] = sorted([*draft.view.hand, *event.cards])


def _buried(draft: _Draft, event: events.Buried) -> None:
    draft.take_out(event.cards)
    draft.view.kitty[:] = event.cards
    draft.enter(PHASE_COUNTER if _counter_follows(draft, event.seat) else PHASE_TRICKS)


def _counter_follows(draft: _Draft, buried_by: int) -> bool:
    """Whether a bury may be countered: by rules with counters, on a deal that began with a declarer (D27)."""
    view = draft.view
    if draft.rules.declaring is not Declaring.JOKER_BACKED:
        return False
    if buried_by != view.declarer:
        return True
    return draft.to_act != [view.declarer] if draft.to_act else view.deal > 1


def _countered(draft: _Draft, event: events.Countered) -> None:
    draft.view.trump = event.trump
    standing = joker_backed.standing_of(event.seat, cards_from_wire(event.cards))
    draft.declarations = Declarations(standing=standing)
    draft.show_standing()
    draft.to_bury(event.seat)


def _mutiny_called(draft: _Draft, event: events.MutinyCalled) -> None:
    draft.clear_deal()
    draft.view.phase = PHASE_SCORED
    draft.view.next_seed_commitment = event.next_seed.commitment


def _cards_played(draft: _Draft, event: events.CardsPlayed) -> None:
    draft.view.trick.append(PlayView(seat=event.seat, cards=event.cards))
    draft.view.seats[event.seat].hand_size -= len(event.cards)
    if draft.view.HasField("my_seat") and event.seat == draft.view.my_seat:
        draft.take_out(event.cards)


def _trick_taken(draft: _Draft, event: events.TrickTaken) -> None:
    view = draft.view
    trick = list(view.trick)
    del view.trick[:], view.last_trick[:]
    view.last_trick.extend(trick)
    view.last_winner, view.attackers_points = event.seat, event.attackers_points


def _deal_scored(draft: _Draft, event: events.DealScored) -> None:
    view = draft.view
    draft.clear_deal()
    view.phase = PHASE_SCORED
    view.last_score.CopyFrom(event)
    view.last_score.ClearField("reveal")
    view.last_score.ClearField("next_seed")
    view.levels[:] = event.levels
    view.next_seed_commitment = event.next_seed.commitment


def _match_ended(draft: _Draft, event: events.MatchEnded) -> None:
    draft.view.phase = PHASE_OVER
    draft.view.result.CopyFrom(event)
    draft.view.next_seed_commitment = b""


def _table_closed(draft: _Draft, _: events.TableClosed) -> None:
    draft.clear_deal()
    draft.view.phase = PHASE_CLOSED
    draft.view.next_seed_commitment = b""


def _auto_play_set(draft: _Draft, event: events.AutoPlaySet) -> None:
    draft.view.seats[event.seat].auto_play = event.on


def _deal_voided(draft: _Draft, event: events.DealVoided) -> None:
    if draft.view.phase != PHASE_SEATING:
        draft.view.phase = PHASE_SCORED
    draft.clear_deal()
    draft.nobody_ready()
    draft.view.next_seed_commitment = event.next_seed.commitment


def _nothing(_: _Draft, __: Any) -> None:
    """It changes only what comes with the update itself."""


_HANDLERS: Final[dict[str, Callable[[_Draft, Any], None]]] = {
    "seat_taken": _seat_taken,
    "seat_left": _seat_left,
    "seed_committed": _seed_committed,
    "seat_ready": _seat_ready,
    "deal_started": _deal_started,
    "declared": _declared,
    "passed": _passed,
    "declaring_closed": _declaring_closed,
    "kitty_taken": _kitty_taken,
    "buried": _buried,
    "cards_played": _cards_played,
    "trick_taken": _trick_taken,
    "deal_scored": _deal_scored,
    "match_ended": _match_ended,
    "table_closed": _table_closed,
    "auto_play_set": _auto_play_set,
    "time_given": _nothing,
    "deal_voided": _deal_voided,
    "turn_expired": _nothing,
    "throw_refused": _nothing,
    "mutiny_called": _mutiny_called,
    "countered": _countered,
}
