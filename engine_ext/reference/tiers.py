"""The order of cards (RULES §2): effective suits, tiers, and the runs of adjacent tiers.

Two notions carry everything else. A *kind* is what "identical" means: one card, or in the two-colour rule the
two cards of one colour and rank. A *run* is a place where a component can stand: one kind for a group,
several kinds in adjacent tiers for a tractor.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from engine_ext.codes import BIG_JOKER, LITTLE_JOKER, NO_TRUMP, TRUMP, Adjacency

if TYPE_CHECKING:
    from engine_ext.reference.rules import Rules

TWO = 0
"""The rank of a two."""
ACE = 12
"""The rank of an ace."""
RANKS = range(13)

Rank = tuple[int, int]
"""What a run is compared by; of two components of one size the one with the higher rank is higher."""


class Kind(NamedTuple):
    """Identical cards."""

    tier: int
    """The place in the effective suit, from 0 upwards; equal tiers are equal in play."""
    cards: tuple[int, ...]
    """The card indices that count as this kind, ascending."""


class Run(NamedTuple):
    """Where a component can stand."""

    rank: Rank
    kinds: tuple[int, ...]
    """Positions in ``SuitOrder.kinds``, the top of the run first."""


@dataclass(frozen=True)
class SuitOrder:
    """One effective suit."""

    kinds: tuple[Kind, ...]
    """Higher tiers first, inside a tier by suit."""
    runs: dict[int, tuple[Run, ...]] = field(default_factory=dict)
    """All runs of each length, higher first, equal ones by suit."""


def printed_suits(rules: "Rules") -> dict[int, tuple[int, ...]]:
    """The suits of the game, each with the printed suits that it consists of: S, H, C, D, or two colours."""
    return {0: (0, 2), 1: (1, 3)} if rules.two_colour else {suit: (suit,) for suit in range(4)}


def effective_suit(rules: "Rules", level: int, trump: int, card: int) -> int:
    """The effective suit of a card (RULES §2, item 1)."""
    if card in (LITTLE_JOKER, BIG_JOKER):
        return TRUMP
    printed, rank = divmod(card, 13)
    suit = next(suit for suit, members in printed_suits(rules).items() if printed in members)
    if rank == level or suit == trump or (rank == TWO and rules.permanent_twos):
        return TRUMP
    return suit


def suit_order(rules: "Rules", level: int, trump: int, suit: int) -> SuitOrder:
    """The kinds and runs of one effective suit."""
    if suit == TRUMP:
        tiers = _trump_tiers(rules, level, trump)
    else:
        tiers = [[_cards(rules, suit, rank)] for rank in _ordinary_ranks(rules, level)]
    kinds = tuple(Kind(tier, cards) for tier, members in enumerate(tiers) for cards in members)
    kinds = tuple(sorted(kinds, key=lambda kind: (-kind.tier, kind.cards)))
    runs = [Run((kind.tier, 0), (place,)) for place, kind in enumerate(kinds)]
    if rules.tractors and suit == TRUMP and rules.adjacency == Adjacency.PRINTED_RANK:
        runs += _printed_runs(rules, trump, kinds)
    elif rules.tractors:
        runs += _tier_runs(rules, level, kinds)
    runs.sort(key=lambda run: (-run.rank[0], -run.rank[1], run.kinds))
    lengths = {len(run.kinds) for run in runs}
    return SuitOrder(kinds, {length: tuple(r for r in runs if len(r.kinds) == length) for length in lengths})


def _cards(rules: "Rules", suit: int, rank: int) -> tuple[int, ...]:
    """The identical cards of one suit and rank."""
    return tuple(printed * 13 + rank for printed in printed_suits(rules)[suit])


def _ordinary_ranks(rules: "Rules", level: int) -> list[int]:
    """The ranks that stand at their own place in a suit, low to high (RULES §2, item 3)."""
    return [rank for rank in RANKS if rank != level and not (rank == TWO and rules.permanent_twos)]


def _trump_tiers(rules: "Rules", level: int, trump: int) -> list[list[tuple[int, ...]]]:
    """The tiers of trump, low to high (RULES §2, item 2)."""
    others = [suit for suit in printed_suits(rules) if suit != trump]

    def off_and_main(rank: int) -> list[list[tuple[int, ...]]]:
        main = [] if trump == NO_TRUMP else [[_cards(rules, trump, rank)]]
        return [[_cards(rules, suit, rank) for suit in others], *main]

    tiers = []
    if trump != NO_TRUMP:
        tiers += [[_cards(rules, trump, rank)] for rank in _ordinary_ranks(rules, level)]
    if rules.permanent_twos and level != TWO:
        tiers += off_and_main(TWO)
    tiers += off_and_main(level)
    return [*tiers, [(LITTLE_JOKER,)], [(BIG_JOKER,)]]


def _tier_runs(rules: "Rules", level: int, kinds: tuple[Kind, ...]) -> Iterator[Run]:
    """Runs of neighbouring tiers, one kind of each tier (RULES §2, "Adjacency"; D1, D2)."""
    top = max((kind.tier for kind in kinds), default=0)
    tiers = [[place for place, kind in enumerate(kinds) if kind.tier == tier] for tier in range(top, -1, -1)]
    for start in range(len(tiers)):
        for stop in range(start + 2, len(tiers) + 1):
            stretch = tiers[start:stop]
            if not all(_adjacent_below(rules, level, kinds, above) for above in stretch[:-1]):
                break
            for places in product(*stretch):
                yield Run((kinds[places[0]].tier, 0), places)


def _adjacent_below(rules: "Rules", level: int, kinds: tuple[Kind, ...], above: list[int]) -> bool:
    """Whether a tier may stand in one tractor with the tier below it (D2, ``level_gap``)."""
    cards = {card for place in above for card in kinds[place].cards}
    if LITTLE_JOKER in cards:
        return rules.level_joker_adjacent
    over_level = any(card < LITTLE_JOKER and card % 13 == level + 1 for card in cards)
    return not (rules.level_gap and over_level)


def _printed_runs(rules: "Rules", trump: int, kinds: tuple[Kind, ...]) -> Iterator[Run]:
    """Runs in trump by printed rank inside one printed suit (D3): the ace above the king or below the two."""
    by_card = {card: place for place, kind in enumerate(kinds) for card in kind.cards}
    yield Run((ACE + 2, 0), (by_card[BIG_JOKER], by_card[LITTLE_JOKER]))
    for suit in printed_suits(rules):
        ladder = [by_card.get(_cards(rules, suit, rank)[0]) for rank in (ACE, *RANKS)]
        for low in range(len(ladder)):
            for high in range(low + 1, len(ladder)):
                places = ladder[low : high + 1]
                if None in places or len(places) > len(RANKS):
                    break
                # The ladder starts with the ace as one, so ``high`` compares like the printed rank.
                yield Run((high, int(suit == trump)), tuple(p for p in reversed(places) if p is not None))
