"""Positions to follow from: seeded hands of 25 cards, shaped so that half of them owe a group."""

from dataclasses import dataclass
from random import Random
from typing import Final

import engine_ext
from services.rules.cards import LEVEL_INDEX, counts_of, parse_cards
from services.rules.presets import preset

HAND: Final = 25
_PLAYS: Final = 4
"""Plays tried from one hand."""
_LEVEL: Final = LEVEL_INDEX["T"]
_TRUMP: Final = 0

KINDS: Final[dict[str, tuple[str, ...]]] = {
    "single leads": ("H9", "SQ"),
    "pair leads": ("HQ HQ", "S8 S8"),
    "tractor leads": ("HK HK HQ HQ", "H7 H7 H6 H6 H5 H5", "S6 S6 S5 S5"),
    "throws (tractor + pair + single)": ("H9 H9 H8 H8 HQ HQ HA", "S4 S4 S3 S3 SA SA BJ"),
}
"""Leads of each kind, in a side suit and in trumps, at level T with spades as trumps."""


@dataclass(frozen=True, slots=True)
class Positions:
    """A lead and follows to be checked against it."""

    lead: engine_ext.Lead
    owing: int
    """How many of the positions owe a group; of a single lead, how many are bound to its suit."""
    pairs: list[tuple[bytes, bytes]]
    """(hand, play) as counts, all different."""


def positions(lead: str, count: int, rng: Random) -> Positions:
    """Different positions for a lead, half of them owing.

    Args:
        lead: the lead's cards as text.
        count: how many.
        rng: makes the hands and plays.
    """
    order = preset("classic-2d").engine().order(_LEVEL, _TRUMP)
    cards = parse_cards(lead.split())
    compiled = order.lead(cards)
    rest = list(range(54)) * 2
    for card in cards:
        rest.remove(card)
    suited = [card for card in rest if order.suit(card) == compiled.suit]
    others = [card for card in rest if order.suit(card) != compiled.suit]
    found: dict[tuple[bytes, bytes], bool] = {}
    wanted = {True: count // 2, False: count - count // 2}
    while wanted[True] or wanted[False]:
        hand = _hand(rng, suited, others, compiled.size)
        owes = _owes(compiled, hand, suited)
        if not wanted[owes]:
            continue
        for play in _plays(rng, compiled, hand, suited):
            if wanted[owes] and (hand, play) not in found:
                found[hand, play] = owes
                wanted[owes] -= 1
    mixed = list(found)
    rng.shuffle(mixed)
    # New copies, so that they lie in memory as the loop comes to them: a call is to be timed, not a cache.
    pairs = [(bytes(bytearray(hand)), bytes(bytearray(play))) for hand, play in mixed]
    return Positions(compiled, sum(found.values()), pairs)


def _hand(rng: Random, suited: list[int], others: list[int], size: int) -> bytes:
    """Some hands as dealt, some short of the suit, most with more of it than the lead, often in pairs."""
    dice = rng.random()
    if dice < 0.25:
        return counts_of(rng.sample(suited + others, HAND))
    if dice < 0.5:
        short = rng.sample(suited, rng.randrange(size))
        return counts_of(short + rng.sample(others, HAND - len(short)))
    held = rng.sample(suited, min(len(suited), HAND, size + rng.randint(0, 8)))
    if rng.random() < 0.5:
        twins = [card for card in held if held.count(card) < suited.count(card)]
        for index, card in enumerate(twins[: len(held) // 2]):
            alone = [other for other in held if held.count(other) == 1 and other != card]
            if index % 2 == 0 and alone:
                held[held.index(rng.choice(alone))] = card
    return counts_of(held + rng.sample(others, HAND - len(held)))


def _owes(lead: engine_ext.Lead, hand: bytes, suited: list[int]) -> bool:
    if len(lead.components) == 1 and lead.size == 1:
        return any(hand[card] for card in suited)
    return any(lead.owed(hand))


def _plays(rng: Random, lead: engine_ext.Lead, hand: bytes, suited: list[int]) -> list[bytes]:
    """Plays of the right count: legal ones, ones of the suit, and any."""
    cards = [card for card in range(54) for _ in range(hand[card])]
    own = [card for card in cards if card in suited]
    listed = lead.follows(hand, 16).plays
    plays = [counts_of(rng.choice(listed)) for _ in range(_PLAYS // 2)]
    if len(own) >= lead.size:
        plays.append(counts_of(rng.sample(own, lead.size)))
    plays.append(counts_of(rng.sample(cards, lead.size)))
    return plays
