"""Throws: which stand, and what a failed one plays (RULES §4)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from engine_ext.codes import ForcedComponent, ThrowPolicy, Verdict
from engine_ext.reference.shapes import Held, Placed, cut, held_of, take
from engine_ext.reference.tiers import SuitOrder

if TYPE_CHECKING:
    from engine_ext.reference.order import Order


class Throw(NamedTuple):
    """What becomes of an attempted lead (RULES §4)."""

    verdict: int
    """OK, MIXED_SUITS or THROW_NOT_ALLOWED."""
    played: bytes
    """The cards that stand, ascending; empty when refused."""
    blockers: int
    """Bits 0..2: which of the other hands beats the forced component, or, where nobody does, another one."""


def judge_throw(order: "Order", cards: bytes, others: Sequence[bytes]) -> Throw:
    """Judge a lead against the three other hands, given in turn order."""
    suits = {order.suit(card) for card in cards}
    if len(suits) > 1:
        return Throw(Verdict.MIXED_SUITS, b"", 0)
    (suit,) = suits
    suit_order = order.suits[suit]
    components = cut(suit_order, cards)
    stands = Throw(Verdict.OK, bytes(sorted(cards)), 0)
    if len(components) == 1:
        return stands
    hands = [held_of(suit_order, hand) for hand in others]
    if not _allowed(order.rules.throws, others_void=not any(any(hand) for hand in hands)):
        return Throw(Verdict.THROW_NOT_ALLOWED, b"", 0)
    beaten = [c for c in components if any(_beats(order, suit_order, hand, c) for hand in hands)]
    if not beaten:
        return stands
    forced = _forced(order, suit_order, components, beaten)
    # D4 may force a component that nobody beats; then those who beat any other blocked the throw.
    blocked = [forced] if forced in beaten else beaten
    blocking = [any(_beats(order, suit_order, hand, c) for c in blocked) for hand in hands]
    blockers = sum(1 << seat for seat, blocks in enumerate(blocking) if blocks)
    return Throw(Verdict.OK, forced.component.cards, blockers)


def _allowed(policy: int, *, others_void: bool) -> bool:
    """Whether several components may be led at all (D5)."""
    return {
        ThrowPolicy.STANDARD: True,
        ThrowPolicy.ONLY_WHEN_OTHERS_VOID: others_void,
        ThrowPolicy.NOT_WHEN_OTHERS_VOID: not others_void,
        ThrowPolicy.NONE: False,
    }[ThrowPolicy(policy)]


def _beats(order: "Order", suit_order: SuitOrder, hand: Held, led: Placed) -> bool:
    """Whether a hand holds, in the suit, something that beats a component led alone."""
    width, length = led.size
    if any(run.rank > led.rank and take(hand, width, run) for run in suit_order.runs[length]):
        return True
    return any(
        take(hand, wider, run)
        for wider, shorter in order.wider_sizes(led.size)
        for run in suit_order.runs.get(shorter, ())
    )


def _forced(order: "Order", suit_order: SuitOrder, components: list[Placed], beaten: list[Placed]) -> Placed:
    """The component that a failed throw plays: by top card; equal tops: fewer cards, then suit order (D4)."""

    def lowest(placed: Placed) -> tuple[int, int, int]:
        top = placed.run.kinds[0]
        return suit_order.kinds[top].tier, len(placed.component.cards), placed.firsts[0]

    def smallest(placed: Placed) -> tuple[int, tuple[int, int, int]]:
        return len(placed.component.cards), lowest(placed)

    policy = order.rules.forced_component
    if policy == ForcedComponent.LOWEST:
        return min(components, key=lowest)
    if policy == ForcedComponent.SMALLEST:
        return min(beaten, key=smallest)
    return min(beaten, key=lowest)
