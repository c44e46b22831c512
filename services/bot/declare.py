"""Declaring: judge a trump by how long the hand will be in it, and show no more than is needed.

A hand's *reach* in a trump is the weight of trumps it may expect to hold when all cards are dealt, divided
by an average hand's: 1.0 is average. It can be judged at any moment of the deal from the cards drawn so far,
so a bot decides on "my first k cards and the declaration that stands", never on how fast it was asked.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from engine_ext.codes import CARDS, LITTLE_JOKER, NO_TRUMP, TRUMP
from services.bot.memory import Memory
from services.rules.cards import colour_of, contains, identity, is_joker, joker_of_colour, rank_of, trump_of
from services.rules.declaring import Declarations, Standing, judge_showing, must_hold
from services.rules.options import Declaring, RuleSet

OPENING: Final = 1.0
"""The reach that opens while cards are drawn."""
EARLY: Final = 0.15
"""How much farther an opening must reach before anything is drawn, falling to nothing with the last card."""
OPENING_FOR_KITTY: Final = 0.95
"""The same on a first deal, where who declares may become declarer."""
OPENING_LATE: Final = 0.9
"""The reach that opens after the last card, when else the kitty decides."""
COUNTERING: Final = 0.12
"""By how much a counter to an opponent must reach farther."""
COUNTERING_OWN: Final = 0.35
"""By how much a change of one's own side's declaration must reach farther."""
REINFORCING: Final = 1.1
"""The reach from which a declaration is made harder to counter."""
NO_TRUMP_REACH: Final = 1.6
"""The reach that no-trump needs: it is short, so averages say little."""
NO_TRUMP_SCALE: Final = 0.65
"""A reach in no-trump counts so much of one in a suit."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a seat has when it may declare.

    Attributes:
        seat: the seat.
        cards: the cards drawn so far.
        complete: these are all of them.
    """

    seat: int
    cards: bytes
    complete: bool


def declare(memory: Memory, rules: RuleSet, drawn: Drawn, own: bytes = b"") -> bytes | None:
    """What to show now; ``None`` to show nothing.

    Args:
        memory: the public memory; its declarations are those that stand.
        rules: the table's rules.
        drawn: the seat and its cards.
        own: the cards of this seat's standing declaration where it is sealed for others.
    """
    state = known_declarations(memory, rules, drawn.seat, own)
    best: tuple[float, bytes] | None = None
    for cards in showings(rules, memory, drawn, state):
        gain = _gain(memory, rules, drawn, state, cards)
        if gain is not None and (best is None or gain > best[0]):
            best = gain, cards
    return best[1] if best else None


def known_declarations(memory: Memory, rules: RuleSet, seat: int, own: bytes) -> Declarations:
    """The declarations as this seat knows them: its own sealed one opened."""
    state = memory.declarations
    if own and state.standing is not None and state.standing.seat == seat and memory.sealed_standing:
        trump = trump_of(own[0], two_colour=rules.two_colour)
        return replace(state, standing=Standing(seat, bytes(sorted(own)), trump))
    return state


def showings(rules: RuleSet, memory: Memory, drawn: Drawn, state: Declarations) -> Iterator[bytes]:
    """Everything that the seat may show now, smaller showings first."""
    for cards in possible(rules, memory.level, drawn.cards):
        if not contains(drawn.cards, must_hold(state, drawn.seat, cards)):
            continue
        if isinstance(judge_showing(rules, memory.dealt, state, drawn.seat, cards), Declarations):
            yield cards


def possible(rules: RuleSet, level: int, hand: bytes) -> Iterator[bytes]:
    """Every set of cards of a hand that could declare something under the rules' policy."""
    same: dict[int, list[int]] = {}
    for card in sorted(hand):
        if is_joker(card) or rank_of(card) == level:
            same.setdefault(identity(card, two_colour=rules.two_colour), []).append(card)
    if rules.declaring is Declaring.JOKER_BACKED:
        yield from _backed(same)
        return
    for cards in same.values():
        for count in range(1, len(cards) + 1):
            yield bytes(cards[:count])


def _backed(same: dict[int, list[int]]) -> Iterator[bytes]:
    """Level cards with a joker of their colour, and pairs of jokers (``joker_backed``)."""
    for cards in same.values():
        if is_joker(cards[0]):
            if len(cards) > 1:
                yield bytes(cards[:2])
            continue
        joker = joker_of_colour(colour_of(cards[0]))
        if joker in same:
            for count in range(1, min(2, len(cards)) + 1):
                yield bytes([*cards[:count], joker])


def _gain(memory: Memory, rules: RuleSet, drawn: Drawn, state: Declarations, cards: bytes) -> float | None:
    """How good a showing is, above 0 for better than nothing; ``None`` for none that should be made."""
    trump = trump_of(min(cards), two_colour=rules.two_colour)
    new = reach(rules, memory.level, trump, drawn.cards)
    if trump == NO_TRUMP:
        if new < NO_TRUMP_REACH:
            return None
        new *= NO_TRUMP_SCALE
    standing = state.standing
    if standing is None:
        return _opening(rules, memory, drawn, new, len(cards))
    mine = (standing.seat - drawn.seat) % 2 == 0
    if mine and standing.trump == trump:
        return new - REINFORCING if new >= REINFORCING else None
    margin = COUNTERING_OWN if mine else COUNTERING
    now = 1.0
    if not (memory.sealed_standing and standing.seat != drawn.seat):
        now = reach(rules, memory.level, standing.trump, drawn.cards)
        now *= NO_TRUMP_SCALE if standing.trump == NO_TRUMP else 1.0
    return new - now if new - now >= margin else None


def _opening(rules: RuleSet, memory: Memory, drawn: Drawn, new: float, count: int) -> float | None:
    """Open with what is needed; a hand that reaches far shows all at once, so that fewer can counter."""
    if drawn.complete:
        least = OPENING_LATE
    elif memory.holder is None:
        least = OPENING_FOR_KITTY
    else:
        least = OPENING + EARLY * (1.0 - len(drawn.cards) / rules.hand_size)
    if new < least:
        return None
    return new + (0.01 * count if new >= REINFORCING else -0.01 * count)


def reach(rules: RuleSet, level: int, trump: int, cards: bytes) -> float:
    """The trumps, by weight, that a hand may expect in the end, relative to an average hand.

    Args:
        rules: the table's rules.
        level: the deal's level.
        trump: the trump to judge.
        cards: the cards drawn so far.
    """
    weights, total = _weights(rules, level, trump)
    whole = rules.decks * CARDS
    held = sum(weights[card] for card in cards)
    to_come = rules.hand_size - len(cards)
    expected = held + to_come * (total - held) / (whole - len(cards))
    pairs = sum(cards.count(card) - 1 for card in set(cards) if weights[card])
    average = rules.hand_size * total / whole
    return float((expected + 0.4 * pairs * (rules.decks == 2)) / average)


@lru_cache(maxsize=1024)
def _weights(rules: RuleSet, level: int, trump: int) -> tuple[tuple[float, ...], float]:
    """The weight of every card as a trump, 0 outside trump, and the sum over all decks."""
    order = rules.engine().order(level, trump)
    weights = []
    for card in range(CARDS):
        if order.suit(card) != TRUMP:
            weights.append(0.0)
        elif card >= LITTLE_JOKER:
            weights.append(1.8)
        else:
            weights.append(1.5 if rank_of(card) == level else 1.0)
    return tuple(weights), rules.decks * sum(weights)
