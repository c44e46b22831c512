"""Folding plays: the one part of the fold that is in a hurry, a hundred times a deal."""

from services.game.folding.draft import Draft, hand_without
from services.game.state import Tricks, side_of
from services.game.wire import stored_cards
from services.pb.event.v1 import event_pb2 as pb
from services.rules import scoring


def cards_played(draft: Draft, event: pb.CardsPlayed) -> None:
    """Cards leave a hand for the table; the next turn begins."""
    phase = draft.phase
    (deal, settled, hands, left, leader, trick, points, last, led_by, buried, by, fines, failed, _) = phase
    seat = event.seat
    cards = stored_cards(event.cards)
    hand = hands[seat]
    if hand is not None:
        hands = (*hands[:seat], hand_without(hand, cards), *hands[seat + 1 :])
    if event.attempted:
        attacks = side_of(seat) != side_of(settled.declarer)
        returned = len(event.attempted) - len(cards)
        fines += scoring.throw_fine(draft.founding.rules, returned, by_attacker=attacks)
        failed = (*failed[:seat], failed[seat] + 1, *failed[seat + 1 :])
    draft.phase = Tricks(
        deal,
        settled,
        hands,
        left,
        leader,
        (*trick, cards),
        points,
        last,
        led_by,
        buried,
        by,
        fines,
        failed,
        False,
    )
    draft.turn_version = draft.version
    draft.waiting_since_us = draft.recorded_at_us
    draft.given_us = 0


def trick_taken(draft: Draft, event: pb.TrickTaken) -> None:
    """The trick lies face down; its winner leads."""
    (deal, settled, hands, left, leader, trick, _, _, _, buried, by, fines, failed, _) = draft.phase
    left -= len(trick[0])
    points = event.attackers_points
    draft.phase = Tricks(
        deal, settled, hands, left, event.seat, (), points, trick, leader, buried, by, fines, failed, False
    )


def throw_refused(draft: Draft, event: pb.ThrowRefused) -> None:
    """No second throw is looked at in this turn."""
    draft.phase = draft.phase._replace(throw_refused=True)
