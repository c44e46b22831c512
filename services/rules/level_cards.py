"""Declaring by level cards, or jokers for no-trump (RULES §7 ``level_cards``, D12, D16, D20, D23, D24)."""

from dataclasses import dataclass, replace

from engine_ext.codes import BIG_JOKER, NO_TRUMP
from services.rules.cards import identity, is_joker, rank_of, trump_of
from services.rules.declarations import Deal, Declarations, Refusal, Standing
from services.rules.options import RuleSet
from services.rules.reasons import Reason


@dataclass(frozen=True, slots=True)
class Showing:
    """Identical cards that can declare.

    Attributes:
        seat: who shows them.
        cards: ascending.
        trump: the trump that they make.
        card: what they are, by ``cards.identity``.
    """

    seat: int
    cards: bytes
    trump: int
    card: int


def judge(rules: RuleSet, deal: Deal, state: Declarations, seat: int, cards: bytes) -> Declarations | Refusal:
    """Accept a showing or refuse it (see ``declaring.judge_showing``)."""
    showing = _read(rules, deal.level, seat, bytes(sorted(cards)))
    if showing is None:
        return Refusal(Reason.NOT_A_DECLARATION)
    standing = state.standing
    if standing is not None and seat == standing.seat:
        answer = _by_standing_seat(rules, standing, showing)
    elif standing is not None and _adds(rules, standing, showing):
        answer = _add(rules, standing, showing)
    else:
        answer = _by_another(rules, state, showing)
    if isinstance(answer, Refusal):
        return answer
    return state.accept(answer, seat, showing.cards)


def strength(rules: RuleSet, card: int, count: int) -> tuple[int, int]:
    """How strong a declaration of ``count`` such cards is: count first, then jokers over level cards.

    BJ stands over LJ where ``jokers_ranked``.
    """
    kind = 0
    if is_joker(card):
        kind = 2 if rules.jokers_ranked and card == BIG_JOKER else 1
    return count, kind


def _read(rules: RuleSet, level: int, seat: int, cards: bytes) -> Showing | None:
    """Cards as a showing; ``None`` when they are not identical level cards or jokers, or more than exist."""
    if not cards or len({identity(card, two_colour=rules.two_colour) for card in cards}) != 1:
        return None
    card = cards[0]
    if is_joker(card):
        if not rules.minimum_jokers or len(cards) > rules.decks:
            return None
        return Showing(seat, cards, NO_TRUMP, card)
    if rank_of(card) != level or len(cards) > rules.copies:
        return None
    trump = trump_of(card, two_colour=rules.two_colour)
    return Showing(seat, cards, trump, identity(card, two_colour=rules.two_colour))


def _meets_minimum(rules: RuleSet, showing: Showing) -> bool:
    least = rules.minimum_jokers if is_joker(showing.card) else rules.minimum_cards
    return len(showing.cards) >= least


def _card_of(rules: RuleSet, standing: Standing) -> int:
    return identity(standing.cards[0], two_colour=rules.two_colour)


def _by_standing_seat(rules: RuleSet, standing: Standing, showing: Showing) -> Standing | Refusal:
    """The standing declarer reinforces (自保) or counters itself (自反)."""
    card = _card_of(rules, standing)
    if showing.card == card:
        if not rules.reinforce:
            return Refusal(Reason.MUST_NOT_COUNTER_OWN)
        total = len(showing.cards) + len(standing.added)
        most = rules.decks if is_joker(card) else rules.copies
        if len(showing.cards) <= len(standing.cards) or total > most:
            return Refusal(Reason.NOT_STRONG_ENOUGH)
        return replace(standing, cards=showing.cards)
    if not rules.self_counter:
        return Refusal(Reason.MUST_NOT_COUNTER_OWN)
    if not _meets_minimum(rules, showing):
        return Refusal(Reason.NOT_A_DECLARATION)
    if not _stronger(rules, showing, standing):
        return Refusal(Reason.NOT_STRONG_ENOUGH)
    return Standing(showing.seat, showing.cards, showing.trump)


def _adds(rules: RuleSet, standing: Standing, showing: Showing) -> bool:
    """Whether a showing is the partner's addition to the standing declaration (对家保)."""
    return (
        rules.partner_reinforce
        and showing.seat == standing.adder
        and showing.card == _card_of(rules, standing)
    )


def _add(rules: RuleSet, standing: Standing, showing: Showing) -> Standing | Refusal:
    most = rules.decks if is_joker(showing.card) else rules.copies
    if standing.count + len(showing.cards) > most:
        return Refusal(Reason.NOT_A_DECLARATION)
    return replace(standing, added=bytes(sorted(standing.added + showing.cards)))


def _by_another(rules: RuleSet, state: Declarations, showing: Showing) -> Standing | Refusal:
    """A seat opens or counters."""
    if not _meets_minimum(rules, showing):
        return Refusal(Reason.NOT_A_DECLARATION)
    if rules.equal_overrides and (showing.seat, showing.cards) in state.shown:
        return Refusal(Reason.ALREADY_SHOWN)
    standing = state.standing
    if (
        standing is not None
        and not _stronger(rules, showing, standing)
        and not _equals(rules, showing, standing)
    ):
        return Refusal(Reason.NOT_STRONG_ENOUGH)
    return Standing(showing.seat, showing.cards, showing.trump)


def _stronger(rules: RuleSet, showing: Showing, standing: Standing) -> bool:
    shown = strength(rules, showing.card, len(showing.cards))
    return shown > strength(rules, standing.cards[0], standing.count)


def _equals(rules: RuleSet, showing: Showing, standing: Standing) -> bool:
    """Equal count and kind override where the last flip wins (D20)."""
    return (
        rules.equal_overrides
        and len(showing.cards) == standing.count
        and is_joker(showing.card) == is_joker(standing.cards[0])
    )
