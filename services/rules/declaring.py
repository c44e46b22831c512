"""Declaring trump (RULES §7): the state of a deal's declarations, passing, and what they settle.

The policies themselves are modules of their own: ``level_cards.py`` and ``joker_backed.py``. Each has one
function ``judge(rules, deal, state, seat, cards)`` that accepts a showing or refuses it; ``judge_showing``
here picks the one that the rule set names. Everything is pure, and every showing is a set of cards that the
seat must have drawn (``must_hold``); who may see it is a matter of views (``sealed``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine_ext.codes import NO_TRUMP
from services.rules import joker_backed, level_cards
from services.rules.cards import SEATS, identity, trump_of
from services.rules.declarations import Deal, Declarations, Refusal, Standing
from services.rules.options import Declaring, Fallback, FirstDeclarer, MatchDeclares, RuleSet
from services.rules.reasons import Reason

__all__ = [
    "Deal",
    "Declarations",
    "Refusal",
    "Settled",
    "Standing",
    "asked",
    "judge_pass",
    "judge_showing",
    "must_hold",
    "settle",
]


@dataclass(frozen=True, slots=True)
class Settled:
    """What the declarations of a deal came to.

    Attributes:
        trump: the trump, 0..3 or ``NO_TRUMP``; with two colours 0, 1 or ``NO_TRUMP``.
        declarer: the seat that takes the kitty and leads.
        turned: the kitty card that was turned for all to see; ``None`` when none was.
    """

    trump: int
    declarer: int
    turned: int | None = None


def judge_showing(
    rules: RuleSet, deal: Deal, state: Declarations, seat: int, cards: bytes
) -> Declarations | Refusal:
    """Accept a showing or refuse it by the rule set's policy.

    Args:
        rules: the declaring options.
        deal: level, first deal or not, and the seats that matter.
        state: the declarations so far.
        seat: who shows.
        cards: what is shown: the seat's whole count; a partner who adds shows only what is added.

    Returns:
        The new state, or why not. Whether the cards are held is for the caller (``must_hold``).
    """
    if state.has_passed(seat):
        return Refusal(Reason.ALREADY_PASSED)
    if rules.declaring is Declaring.JOKER_BACKED:
        return joker_backed.judge(rules, deal, state, seat, cards)
    return level_cards.judge(rules, deal, state, seat, cards)


def judge_pass(state: Declarations, seat: int) -> Declarations | Refusal:
    """Accept a seat's pass; it stands until somebody else's declaration is accepted.

    Passes count after the last card. Who passes before being ``asked`` declines in advance.
    """
    if state.has_passed(seat):
        return Refusal(Reason.ALREADY_PASSED)
    return replace(state, passes=state.passes | 1 << seat)


def asked(rules: RuleSet, deal: Deal, state: Declarations) -> tuple[int, ...]:
    """The seats that may still show something, whatever they hold.

    After the last card the window waits for them, and closes when there are none: by most rules when all four
    have passed.
    """
    may_show: Sequence[int] = range(SEATS)
    if rules.declaring is Declaring.JOKER_BACKED:
        may_show = joker_backed.may_show(deal, state)
    return tuple(seat for seat in may_show if not state.has_passed(seat))


def must_hold(state: Declarations, seat: int, cards: bytes) -> bytes:
    """The cards that a seat must have drawn to show these, a partner's earlier additions included."""
    standing = state.standing
    if standing is None or not standing.added or standing.adder != seat:
        return cards
    return bytes(sorted(standing.added + cards)) if set(cards) <= set(standing.added) else cards


def settle(
    rules: RuleSet,
    deal: Deal,
    state: Declarations,
    kitty: bytes,
    hands: Sequence[bytes] | None = None,
) -> Settled:
    """Trump and declarer when the window has closed.

    Args:
        rules: first declarer, fallback and ``match_declares``.
        deal: the deal.
        state: its declarations.
        kitty: the undealt cards in deck order, for the fallback.
        hands: the dealt cards of the four seats, needed only for ``match_declares``; ``None`` = nobody holds
            any.
    """
    if state.standing is None:
        return _fallback(rules, deal, kitty, hands)
    return Settled(state.standing.trump, _declarer(rules, deal, state, state.standing))


def _declarer(rules: RuleSet, deal: Deal, state: Declarations, standing: Standing) -> int:
    if deal.declarer is not None:
        return deal.declarer if state.new_declarer is None else state.new_declarer
    if state.first is None or rules.first_declarer is FirstDeclarer.LAST:
        return standing.seat
    if rules.declaring is Declaring.JOKER_BACKED:  # 反主反打, whatever first_declarer says
        return standing.seat
    return state.first


def _fallback(rules: RuleSet, deal: Deal, kitty: bytes, hands: Sequence[bytes] | None) -> Settled:
    """Nobody declared (D11, D17, D18, D34)."""
    declarer = deal.first_drawer if deal.declarer is None else deal.declarer
    if rules.fallback is Fallback.SPADES:
        return Settled(0, declarer)
    if rules.fallback is Fallback.NO_TRUMP or rules.kitty_card > len(kitty):
        return Settled(NO_TRUMP, declarer)
    turned = kitty[rules.kitty_card - 1]
    trump = trump_of(turned, two_colour=rules.two_colour)
    matched = rules.match_declares is MatchDeclares.ALWAYS or (
        rules.match_declares is MatchDeclares.FIRST_DEAL and deal.declarer is None
    )
    if matched and hands is not None:
        declarer = _twin_holder(rules, deal, turned, hands, otherwise=declarer)
    return Settled(trump, declarer, turned)


def _twin_holder(rules: RuleSet, deal: Deal, turned: int, hands: Sequence[bytes], *, otherwise: int) -> int:
    """The first seat from who drew first on that holds a card identical to the turned one (D11)."""
    wanted = identity(turned, two_colour=rules.two_colour)
    for step in range(SEATS):
        seat = (deal.first_drawer + step) % SEATS
        if any(identity(card, two_colour=rules.two_colour) == wanted for card in hands[seat]):
            return seat
    return otherwise
