"""Components: what cards of one suit consist of (RULES §3), and how groups are taken out of a hand."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from engine_ext.codes import CARDS, MAX_WIDTH
from engine_ext.reference.tiers import Rank, Run, SuitOrder

Size = tuple[int, int]
"""Width and length of a component."""
Held = tuple[int, ...]
"""How many cards of each kind of one effective suit, in the order of ``SuitOrder.kinds``."""


class Component(NamedTuple):
    """One component of a play (RULES §3)."""

    width: int
    """Identical cards in each of its groups."""
    length: int
    """Adjacent groups, 1 for a single, pair, triple or quad."""
    cards: bytes
    """Its cards as ascending indices."""


class Placed(NamedTuple):
    """A component together with where it stands."""

    component: Component
    run: Run
    firsts: tuple[int, ...]
    """The first card of each of its groups, top group first: suit order, where nothing else decides."""

    @property
    def size(self) -> Size:
        """Width and length."""
        return self.component.width, self.component.length

    @property
    def rank(self) -> Rank:
        """What it is compared by."""
        return self.run.rank


def largeness(size: Size) -> tuple[bool, int, int]:
    """The component order of RULES §3: tractors before groups, then the wider, then the longer."""
    width, length = size
    return length > 1, width, length


def held_of(suit_order: SuitOrder, cards: Collection[int]) -> Held:
    """Count the kinds of one suit among cards; cards of other suits are passed over."""
    return tuple(sum(1 for card in cards if card in kind.cards) for kind in suit_order.kinds)


def cut(suit_order: SuitOrder, cards: bytes) -> list[Placed]:
    """Cut cards of one suit into components, larger first, then higher, then by suit (RULES §3, D26).

    Identical cards stay together; groups of equal width in adjacent tiers form tractors, the longest first,
    then the wider, then the higher.
    """
    groups = [bytes(sorted(card for card in cards if card in kind.cards)) for kind in suit_order.kinds]
    placed = []
    for length in sorted(suit_order.runs, reverse=True):
        for width in range(MAX_WIDTH, 0 if length == 1 else 1, -1):
            while fitting := _runs_on(_places(map(len, groups), width, width), suit_order.runs[length]):
                highest = [run for run in fitting if run.rank == fitting[0].rank]
                run = min(highest, key=lambda run: [groups[place][0] for place in run.kinds])
                own = [groups[place] for place in run.kinds]
                component = Component(width, length, bytes(sorted(b"".join(own))))
                placed.append(Placed(component, run, tuple(group[0] for group in own)))
                for place in run.kinds:
                    groups[place] = b""
    placed.sort(key=lambda p: p.firsts)
    placed.sort(key=lambda p: (largeness(p.size), p.rank), reverse=True)
    return placed


def _places(counts: Iterable[int], least: int, most: int = CARDS) -> set[int]:
    """The places where at least and at most so many cards are."""
    return {place for place, count in enumerate(counts) if least <= count <= most}


def _runs_on(places: set[int], runs: Iterable[Run]) -> list[Run]:
    """The runs all of whose kinds are among the places."""
    return [run for run in runs if places.issuperset(run.kinds)] if places else []


def take(held: Held, width: int, run: Run) -> Held | None:
    """Take ``width`` cards of each kind of a run out of what is held; None if they are not there."""
    for place in run.kinds:
        if held[place] < width:
            return None
    return _without(held, width, run)


def _without(held: Held, width: int, run: Run) -> Held:
    left = list(held)
    for place in run.kinds:
        left[place] -= width
    return tuple(left)


def take_all(
    suit_order: SuitOrder, held: Iterable[Held], sizes: Iterable[Size], usable: Collection[int] | None = None
) -> set[Held]:
    """Take disjoint groups of the given sizes, in every way there is.

    Args:
        suit_order: the suit.
        held: what may be held to start with, any of them.
        sizes: width and length of each group to take.
        usable: the kinds that groups may be made of, all of them when None.

    Returns:
        All that can be left; empty when the groups are not to be had.
    """
    left = set(held)
    for width, length in sizes:
        runs = suit_order.runs.get(length, ())
        if usable is not None:
            runs = tuple(run for run in runs if all(place in usable for place in run.kinds))
        after = set()
        for some in left:
            after |= {_without(some, width, run) for run in _runs_on(_places(some, width), runs)}
        left = after
    return left
