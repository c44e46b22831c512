"""Folding a deal's beginning: the draw, declarations, a mutiny, the kitty, burys and counters."""

from dataclasses import replace
from typing import Final, cast

from services.game.errors import CorruptLog
from services.game.folding.draft import Draft, hand_without
from services.game.folding.seating import seed_of
from services.game.state import (
    SEATS,
    UNKNOWN_CARD,
    UNKNOWN_HANDS,
    Bury,
    Counter,
    Deal,
    Declaring,
    Hands,
    Mutiny,
    Scored,
    Settled,
    Tricks,
)
from services.game.wire import level_from_wire, stored_cards, trump_from_wire
from services.pb.event.v1 import event_pb2 as pb
from services.rules import declaring, joker_backed, mutiny
from services.rules.declarations import Declarations, Standing
from services.rules.options import RuleSet

_NO_DECLARATIONS: Final = Declarations()


def deal_started(draft: Draft, event: pb.DealStarted) -> None:
    """Everybody's readiness is used up, and cards are drawn."""
    if draft.next_seed is None:
        raise CorruptLog(draft.version, "a deal without a seed committed to")
    deal = Deal(
        seed=draft.next_seed,
        client_seeds=cast("tuple[bytes, bytes, bytes, bytes]", tuple(event.client_seeds)),
        first_drawer=event.first_drawer,
        declarer=event.declarer if event.HasField("declarer") else None,
        level=level_from_wire(event.level),
        started_at_us=draft.recorded_at_us,
    )
    hands = UNKNOWN_HANDS
    if len(event.hands) == SEATS:
        hands = cast("Hands", tuple(stored_cards(hand.cards) or None for hand in event.hands))
    draft.phase = Declaring(
        deal=deal,
        hands=hands,
        kitty=_kitty(draft.founding.rules, event.kitty),
        declarations=_NO_DECLARATIONS,
        reopened_at_us=draft.recorded_at_us,
    )
    draft.next_seed = None
    draft.nobody_ready()
    draft.begin_wait()


def _kitty(rules: RuleSet, kitty: pb.Cards) -> bytes | None:
    return stored_cards(kitty.cards) or None if rules.kitty else b""


def declared(draft: Draft, event: pb.Declared) -> None:
    """A showing was accepted; the window's limit counts from it."""
    phase = draft.phase
    shown = _accepted(draft, phase.deal, phase.declarations, event)
    draft.phase = replace(phase, declarations=shown, reopened_at_us=draft.recorded_at_us)
    draft.given_us = 0


def _accepted(draft: Draft, deal: Deal, so_far: Declarations, event: pb.Declared) -> Declarations:
    """The declarations with one more. What it comes to is for the rules to say, unless it is sealed."""
    cards = stored_cards(event.cards)
    if not cards:
        unknown = bytes((UNKNOWN_CARD,)) * event.count
        return so_far.accept(Standing(event.seat, unknown, trump=0), event.seat, unknown)
    answer = declaring.judge_showing(draft.founding.rules, deal.as_declared(), so_far, event.seat, cards)
    if not isinstance(answer, Declarations):
        raise CorruptLog(draft.version, "a declaration that the rules refuse")
    return answer


def passed(draft: Draft, event: pb.Passed) -> None:
    """A seat passed: in the window, on a mutiny, or on a counter."""
    match draft.phase:
        case Declaring() as phase:
            _passed_in_window(draft, phase, event.seat)
        case Mutiny() as phase:
            _passed_on_mutiny(draft, phase, event.seat)
        case Counter() as phase:
            _passed_on_counter(draft, phase, event.seat)


def _passed_in_window(draft: Draft, phase: Declaring, seat: int) -> None:
    answer = declaring.judge_pass(phase.declarations, seat)
    if not isinstance(answer, Declarations):
        return
    draft.phase = replace(phase, declarations=answer)
    rules, deal = draft.founding.rules, phase.deal.as_declared()
    if set(declaring.asked(rules, deal, answer)) - set(declaring.asked(rules, deal, phase.declarations)):
        # The declaring side has passed, and the attackers get the whole time of the window (joker_backed).
        draft.phase = replace(phase, declarations=answer, reopened_at_us=draft.recorded_at_us)
        draft.given_us = 0


def _passed_on_mutiny(draft: Draft, phase: Mutiny, seat: int) -> None:
    draft.phase = replace(phase, passes=phase.passes | 1 << seat)
    seats = mutiny.asked(draft.founding.rules, phase.settled.declarer)
    if all(draft.phase.has_passed(each) for each in seats):
        _settle(draft, phase.deal, phase.settled, phase.hands, phase.kitty)


def mutiny_called(draft: Draft, event: pb.MutinyCalled) -> None:
    """The deal is over, and the next one is a later deal of the same declarer (D10)."""
    draft.match = replace(draft.match, declarer=event.declarer)
    draft.phase = Scored()
    draft.next_seed = seed_of(event.next_seed)
    draft.begin_wait()


def declaring_closed(draft: Draft, event: pb.DeclaringClosed) -> None:
    """Trump is settled; a mutiny may be called, the kitty is to be taken, or the first trick led."""
    phase: Declaring = draft.phase
    shown = phase.declarations
    if event.opened:
        shown = _NO_DECLARATIONS
        for opened in event.opened:
            shown = _accepted(draft, phase.deal, shown, opened)
    settled = Settled(
        trump=trump_from_wire(event.trump),
        declarer=event.declarer,
        standing=shown.standing,
        turned_card=event.turned_card - 1 if event.turned_card else None,
    )
    if mutiny.is_possible(draft.founding.rules) and draft.founding.pace.mutiny_ms:
        draft.phase = Mutiny(phase.deal, settled, phase.hands, phase.kitty, passes=0)
        draft.begin_wait()
    else:
        _settle(draft, phase.deal, settled, phase.hands, phase.kitty)


def _settle(draft: Draft, deal: Deal, settled: Settled, hands: Hands, kitty: bytes | None) -> None:
    """The declarer is to take the kitty, where there is one, or to lead."""
    if draft.founding.rules.kitty:
        draft.phase = Bury(deal, settled, hands, kitty, settled.declarer)
    else:
        draft.phase = _first_trick(draft, deal, settled, hands, b"", None)
    draft.begin_wait()


def kitty_taken(draft: Draft, event: pb.KittyTaken) -> None:
    """The kitty is in the hand of who buries."""
    phase: Bury = draft.phase
    taken = stored_cards(event.cards) or phase.kitty
    hand = phase.hands[event.seat]
    held = bytes(sorted(hand + taken)) if hand is not None and taken is not None else None
    draft.phase = replace(phase, kitty=taken, hands=_with_hand(phase.hands, event.seat, held))


def buried(draft: Draft, event: pb.Buried) -> None:
    """The buried cards are out of the hand; a counter may follow, else the first trick is to be led."""
    phase: Bury = draft.phase
    buried = stored_cards(event.cards) or None
    hand = phase.hands[event.seat]
    held = hand_without(hand, buried) if hand is not None and buried is not None else None
    hands = _with_hand(phase.hands, event.seat, held)
    if joker_backed.counters_follow(draft.founding.rules, phase.deal.as_declared()):
        following = (event.seat + 1) % SEATS
        draft.phase = Counter(phase.deal, phase.settled, hands, buried, event.seat, following)
    else:
        draft.phase = _first_trick(draft, phase.deal, phase.settled, hands, buried, event.seat)
    draft.begin_wait()


def _passed_on_counter(draft: Draft, phase: Counter, seat: int) -> None:
    following = joker_backed.next_to_counter(phase.buried_by, seat)
    if following is None:
        draft.phase = _first_trick(
            draft, phase.deal, phase.settled, phase.hands, phase.buried, phase.buried_by
        )
    else:
        draft.phase = replace(phase, to_act=following)
    draft.begin_wait()


def countered(draft: Draft, event: pb.Countered) -> None:
    """Trump changes, and who countered is to take the kitty as it was buried; the declarer stays."""
    phase: Counter = draft.phase
    trump = trump_from_wire(event.trump)
    standing = Standing(event.seat, stored_cards(event.cards), trump)
    settled = replace(phase.settled, trump=trump, standing=standing)
    draft.phase = Bury(phase.deal, settled, phase.hands, phase.buried, event.seat)
    draft.begin_wait()


def _first_trick(
    draft: Draft, deal: Deal, settled: Settled, hands: Hands, buried: bytes | None, buried_by: int | None
) -> Tricks:
    return Tricks(
        deal=deal,
        settled=settled,
        hands=hands,
        left=draft.founding.rules.hand_size,
        leader=settled.declarer,
        trick=(),
        attackers_points=0,
        last_trick=(),
        last_leader=settled.declarer,
        buried=buried,
        buried_by=buried_by,
        fines=0,
        failed_throws=(0, 0, 0, 0),
        throw_refused=False,
    )


def _with_hand(hands: Hands, seat: int, hand: bytes | None) -> Hands:
    return cast("Hands", (*hands[:seat], hand, *hands[seat + 1 :]))
