"""Declaring by a level card backed by a joker (RULES §7 policy ``joker_backed``, 003, D27).

An opening is one level card with one joker of its colour; with two identical level cards it is locked (定主).
A counter (反主) is two identical level cards with one matching joker, or two identical jokers for no-trump,
and must rise: pair < LJ pair < BJ pair. On a first deal counters belong to the window (反主反打), on later
deals they follow each bury (反主炒底) and go through ``judge_counter``.
"""

from dataclasses import replace

from engine_ext.codes import BIG_JOKER, NO_TRUMP
from services.rules.cards import SEATS, colour_of, is_joker, joker_of_colour, rank_of, suit_of
from services.rules.declarations import Deal, Declarations, Refusal, Standing
from services.rules.options import Declaring, RuleSet
from services.rules.reasons import Reason

_SINGLE = 1
_PAIR = 2
_LITTLE_PAIR = 3
_BIG_PAIR = 4


def judge(rules: RuleSet, deal: Deal, state: Declarations, seat: int, cards: bytes) -> Declarations | Refusal:
    """Accept a showing within the window or refuse it (see ``declaring.judge_showing``).

    On a later deal only one opening is taken: from the declaring side, or once both of it have passed from
    the first attacker to show, who becomes declarer (D27).
    """
    standing = state.standing
    if standing is not None:
        if deal.declarer is not None:
            return Refusal(Reason.NOT_ALLOWED_TO_DECLARE)
        return judge_counter(rules, deal, state, seat, cards)
    rank = _rank(deal.level, cards)
    if rank not in {_SINGLE, _PAIR}:
        return Refusal(Reason.NOT_A_DECLARATION)
    opened = state.accept(standing_of(seat, cards, locked=rank == _PAIR), seat, bytes(sorted(cards)))
    if deal.declarer is None or seat % 2 == deal.declarer % 2:
        return opened
    if seat not in may_show(deal, state):
        return Refusal(Reason.NOT_ALLOWED_TO_DECLARE)
    return replace(opened, new_declarer=seat)


def may_show(deal: Deal, state: Declarations) -> tuple[int, ...]:
    """The seats that the window is open to: on a later deal one side after the other, until one has shown."""
    if deal.declarer is None:
        return tuple(range(SEATS))
    if state.standing is not None:
        return ()
    declaring_side = (deal.declarer % 2, deal.declarer % 2 + 2)
    if all(state.has_passed(seat) for seat in declaring_side):
        return tuple(seat for seat in range(SEATS) if seat not in declaring_side)
    return declaring_side


def counters_follow(rules: RuleSet, deal: Deal) -> bool:
    """Whether seats may counter after a bury: on later deals; on a first deal the window was for that."""
    return rules.declaring is Declaring.JOKER_BACKED and deal.declarer is not None


def next_to_counter(buried_by: int, seat: int) -> int | None:
    """Who is asked after a seat that has buried or passed; ``None`` when three others passed in a row."""
    following = (seat + 1) % SEATS
    return None if following == buried_by else following


def judge_counter(
    rules: RuleSet, deal: Deal, state: Declarations, seat: int, cards: bytes
) -> Declarations | Refusal:
    """Accept a counter or refuse it; whose turn it is after a bury is for the caller.

    Without a standing declaration, after a fallback, every seat may counter.
    """
    rank = _rank(deal.level, cards)
    if rank < _PAIR:
        return Refusal(Reason.NOT_A_DECLARATION)
    standing = state.standing
    if standing is not None:
        if standing.seat == seat:
            return Refusal(Reason.MUST_NOT_COUNTER_OWN)
        if rank <= _rank(deal.level, standing.cards):
            return Refusal(Reason.LOCKED if standing.locked else Reason.NOT_STRONG_ENOUGH)
    return state.accept(standing_of(seat, cards, locked=False), seat, bytes(sorted(cards)))


def _rank(level: int, cards: bytes) -> int:
    """Where a showing stands in the rising order; 0 when it is none."""
    jokers = [card for card in cards if is_joker(card)]
    shown = [card for card in cards if not is_joker(card)]
    if not shown:
        if len(jokers) != 2 or jokers[0] != jokers[1]:
            return 0
        return _BIG_PAIR if jokers[0] == BIG_JOKER else _LITTLE_PAIR
    if len(jokers) != 1 or len(set(shown)) != 1 or len(shown) > 2:
        return 0
    if rank_of(shown[0]) != level or jokers[0] != joker_of_colour(colour_of(shown[0])):
        return 0
    return len(shown)


def standing_of(seat: int, cards: bytes, *, locked: bool = False) -> Standing:
    """The declaration that an accepted showing makes."""
    ordered = bytes(sorted(cards))
    trump = NO_TRUMP if is_joker(ordered[0]) else suit_of(ordered[0])
    return Standing(seat, ordered, trump, locked=locked)
