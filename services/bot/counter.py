"""After the window: whether to claim a redeal, and whether to change trump after a bury (RULES §7)."""

from collections.abc import Iterator
from typing import Final

from engine_ext.codes import NO_TRUMP, TRUMP
from services.bot.declare import (
    COUNTERING,
    COUNTERING_OWN,
    NO_TRUMP_REACH,
    NO_TRUMP_SCALE,
    Drawn,
    possible,
    reach,
)
from services.bot.memory import Memory
from services.rules.cards import ACE, contains, rank_of
from services.rules.declaring import Declarations
from services.rules.joker_backed import judge_counter, standing_of
from services.rules.options import RuleSet

CONTENT: Final = 1.25
"""A seat whose reach in trump and side winners come to this plays on, however few points it holds."""
TAKING: Final = 0.1
"""What the choice among the kitty's cards adds to the reach of who takes it."""
_WINNER: Final = 0.08
"""What an ace of a side suit adds to a reach."""


def wants_redeal(memory: Memory, rules: RuleSet, hand: bytes) -> bool:
    """Whether a seat that may call a mutiny had better do it: a strong hand wins what others hold.

    Args:
        memory: the public memory; trump is settled.
        rules: the table's rules.
        hand: the dealt cards.
    """
    assert memory.order is not None, "trump is settled before a mutiny"
    order = memory.order
    aces = sum(order.suit(card) != TRUMP and rank_of(card) == ACE for card in hand)
    return _scaled(rules, memory.level, order.trump, hand) + _WINNER * aces < CONTENT


def counters(rules: RuleSet, memory: Memory, drawn: Drawn) -> Iterator[bytes]:
    """Everything that a seat may counter with now."""
    for cards in possible(rules, memory.level, drawn.cards):
        answer = judge_counter(rules, memory.dealt, memory.declarations, drawn.seat, cards)
        if contains(drawn.cards, cards) and isinstance(answer, Declarations):
            yield cards


def counter(memory: Memory, rules: RuleSet, drawn: Drawn) -> bytes | None:
    """What to counter with: the trump that the hand reaches farthest in, if that is worth it; else ``None``.

    Args:
        memory: the public memory; trump is settled.
        rules: the table's rules.
        drawn: the seat and its hand.
    """
    assert memory.order is not None, "trump is settled before a bury"
    now = _scaled(rules, memory.level, memory.order.trump, drawn.cards)
    standing = memory.declarations.standing
    theirs = standing is None or (standing.seat - drawn.seat) % 2 == 1
    least = now + (COUNTERING if theirs else COUNTERING_OWN)
    best: tuple[float, bytes] | None = None
    for cards in counters(rules, memory, drawn):
        trump = standing_of(drawn.seat, cards).trump
        if trump == NO_TRUMP and reach(rules, memory.level, trump, drawn.cards) < NO_TRUMP_REACH:
            continue
        new = _scaled(rules, memory.level, trump, drawn.cards) + TAKING
        if new >= least and (best is None or new > best[0]):
            best = new, cards
    return best[1] if best else None


def _scaled(rules: RuleSet, level: int, trump: int, cards: bytes) -> float:
    """A reach that can be compared between suits and no-trump."""
    return reach(rules, level, trump, cards) * (NO_TRUMP_SCALE if trump == NO_TRUMP else 1.0)
