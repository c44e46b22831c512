"""The most expensive follow check that a search finds: four decks, all their presets and mixes of options.

The search breeds positions. Fresh ones are shaped (many groups side by side, long throws); the dearest so
far are changed a little, again and again. A position that looks dear is timed twice more before it counts,
and again from time to time, so that an interrupted call does not win.
"""

import itertools
import time
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

import engine_ext
from engine_ext.codes import CARDS, NO_TRUMP, TRUMP, Adjacency, Preference
from services.bench.figures import Bar, Figure
from services.bench.scale import Scale
from services.rules.ladders import LADDERS, engine_ladders
from services.rules.presets import PRESETS

LINE: Final = "worst"
POSITIONS: Final = 1_000_000
_SEED: Final = 4_054
_COPIES: Final = 4
_HAND_MOST: Final = 60
_LEAD_MOST: Final = 32
_CHILDREN: Final = 24
"""Positions tried for one lead before another is chosen."""
_ELITE: Final = 48
"""Dear positions that are bred from."""
_FAMILY: Final = 3
"""At most so many of them with one lead, or all would soon be of one."""
_AGAIN: Final = 5_000
"""How often the dearest are timed anew, in positions."""
_MIXES: Final = 24
_MEASURED: Final = 3
"""The final time is the best of so many."""


class Case(NamedTuple):
    """A position: a lead under an order, and counts of a hand and of a play from it."""

    order: engine_ext.Order
    lead: engine_ext.Lead
    hand: bytes
    play: bytes


class Dear(NamedTuple):
    """A position and what its check took, in nanoseconds."""

    nanoseconds: int
    case: Case


def worst(scale: Scale) -> list[Figure]:
    """The dearest check of the search; what is owed and listed at the dearest positions, for information."""
    search = Search(Random(_SEED))
    search.run(scale.of(POSITIONS))
    checks = [_cpu_us(case.lead.check, case.hand, case.play) for _, case in search.elite]
    owed = [_cpu_us(case.lead.owed, case.hand) for _, case in search.elite]
    listed = [_cpu_us(case.lead.follows, case.hand) for _, case in search.elite]
    dearest = search.elite[checks.index(max(checks))].case
    parts = len(dearest.lead.components)
    note = (
        f"{search.tried:,} positions, {search.sum_ns / search.tried / 1000:.1f} µs on average; the dearest "
        f"has a lead of {dearest.lead.size} in {parts} components and a hand of {sum(dearest.hand)}"
    )
    return [
        Figure(LINE, "worst check at 4 decks", "µs", (max(checks),), Bar("<=", 1000), note=note),
        Figure(LINE, "dearest owed() at those positions", "µs", (max(owed),)),
        Figure(LINE, "dearest follows(cap 64) at those positions", "µs", (max(listed),)),
    ]


def _cpu_us(call: Callable[..., object], *arguments: bytes) -> float:
    """CPU microseconds of a call, the best of ``_MEASURED``."""
    times = []
    for _ in range(_MEASURED):
        started = time.process_time_ns()
        call(*arguments)
        times.append(time.process_time_ns() - started)
    return min(times) / 1000


class Search:
    """A seeded search for dear positions, with hands of at most ``hand_most`` cards.

    Attributes:
        elite: the dearest positions found, dearest first.
        tried: positions checked so far, and ``sum_ns`` the time of their checks.
    """

    def __init__(self, rng: Random, hand_most: int = _HAND_MOST) -> None:
        self.elite: list[Dear] = []
        self.tried = 0
        self.sum_ns = 0
        self._rng = rng
        self._hand_most = hand_most
        self._rules = _rule_sets(rng)

    def run(self, positions: int) -> None:
        """Try so many more positions."""
        goal, again = self.tried + positions, self.tried + _AGAIN
        while self.tried < goal:
            if self.tried >= again:
                again += _AGAIN
                self._time_again()
            parent = self._parent()
            for _ in range(_CHILDREN):
                child = self._change(parent)
                if child is not None:
                    took = self._try(child)
                    if took is not None:
                        parent = child

    def _time_again(self) -> None:
        """Time the dearest anew: what only seemed dear, because the machine was busy, makes room."""
        timed = [Dear(min(dear.nanoseconds, _check_ns(dear.case)), dear.case) for dear in self.elite]
        self.elite = sorted(timed, key=lambda dear: -dear.nanoseconds)

    def _try(self, case: Case) -> int | None:
        """Time a position; its time if it is among the dearest."""
        took = _check_ns(case)
        self.tried += 1
        self.sum_ns += took
        if len(self.elite) >= _ELITE and took <= self.elite[-1].nanoseconds:
            return None
        took = min(took, _check_ns(case), _check_ns(case))
        if len(self.elite) >= _ELITE and took <= self.elite[-1].nanoseconds:
            return None
        self.elite.append(Dear(took, case))
        self.elite.sort(key=lambda dear: -dear.nanoseconds)
        alike = [dear for dear in self.elite if dear.case.lead is case.lead]
        if len(alike) > _FAMILY:
            self.elite.remove(alike[-1])
        elif len(self.elite) > _ELITE:
            self.elite.pop()
        return took

    def _parent(self) -> Case:
        """A dear position, sometimes with its lead changed, or a fresh one."""
        rng = self._rng
        while True:
            if not self.elite or rng.random() < 0.25:
                fresh = self._fresh()
            else:
                fresh = rng.choice(self.elite).case
                if rng.random() < 0.4:
                    fresh = self._change_lead(fresh) or fresh
            if fresh is not None:
                return fresh

    def _fresh(self) -> Case | None:
        """A position shaped by chance: a suit piled with groups, a long lead of it, a play of the hand."""
        rng = self._rng
        order = rng.choice(self._rules).order(rng.randrange(13), rng.randrange(NO_TRUMP + 1))
        kinds = _kinds(order, TRUMP if rng.random() < 0.6 else rng.randrange(4))
        if not kinds:
            return None
        wide = rng.randint(2, len(kinds))
        first = rng.randint(0, len(kinds) - wide)
        window = kinds[first : first + wide]
        lead, hand = bytearray(CARDS), bytearray(CARDS)
        weights = rng.choice(((1, 1, 4, 1, 1), (1, 2, 2, 2, 1), (0, 1, 3, 2, 1), (3, 1, 2, 1, 2)))
        for card in window:
            lead[card] = rng.choices(range(_COPIES + 1), weights)[0] if rng.random() < 0.6 else 0
        _trim(rng, lead, rng.randint(1, _LEAD_MOST))
        for card in kinds:
            hand[card] = min(_COPIES - lead[card], rng.choices(range(_COPIES + 1), weights)[0])
        _trim(rng, hand, self._hand_most)
        size = sum(lead)
        if not 0 < size <= sum(hand):
            return None
        compiled = order.lead(_cards(lead))
        listed = compiled.follows(bytes(hand), 4).plays
        play = bytearray(CARDS)
        for card in rng.choice(listed) if rng.random() < 0.5 else rng.sample(_cards(hand), size):
            play[card] += 1
        return Case(order, compiled, bytes(hand), bytes(play))

    def _change_lead(self, case: Case) -> Case | None:
        """One card of the lead exchanged for another one of its suit."""
        rng = self._rng
        lead = bytearray(CARDS)
        for card in case.lead.cards:
            lead[card] += 1
        kinds = _kinds(case.order, case.lead.suit)
        taken = rng.choice(case.lead.cards)
        room = [card for card in kinds if lead[card] + case.hand[card] < _COPIES]
        if not room:
            return None
        lead[taken] -= 1
        lead[rng.choice(room)] += 1
        return case._replace(lead=case.order.lead(_cards(lead)))

    def _change(self, case: Case) -> Case | None:
        """One or two cards of the hand or of the play exchanged."""
        rng = self._rng
        hand, play = bytearray(case.hand), bytearray(case.play)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            if rng.random() < 0.5:
                _swap_play(rng, hand, play)
            else:
                _swap_hand(rng, case, hand, play, self._hand_most)
        changed = case._replace(hand=bytes(hand), play=bytes(play))
        return None if changed == case else changed


def _check_ns(case: Case) -> int:
    started = time.perf_counter_ns()
    case.lead.check(case.hand, case.play)
    return time.perf_counter_ns() - started


def _swap_play(rng: Random, hand: bytearray, play: bytearray) -> None:
    """A card of the play exchanged for another one of the hand."""
    laid = [card for card in range(CARDS) if play[card]]
    spare = [card for card in range(CARDS) if hand[card] > play[card]]
    if laid and spare:
        play[rng.choice(laid)] -= 1
        play[rng.choice(spare)] += 1


def _swap_hand(rng: Random, case: Case, hand: bytearray, play: bytearray, most: int) -> None:
    """A card of the hand that is not played exchanged for one of the suit, or one of the suit added."""
    kinds = _kinds(case.order, case.lead.suit)
    spare = [card for card in range(CARDS) if hand[card] > play[card]]
    room = [card for card in kinds if hand[card] + case.lead.cards.count(card) < _COPIES]
    if not room:
        return
    if spare and (sum(hand) >= most or rng.random() < 0.7):
        hand[rng.choice(spare)] -= 1
    hand[rng.choice(room)] += 1


def _trim(rng: Random, counts: bytearray, most: int) -> None:
    """Take cards out at random until at most so many are left."""
    while sum(counts) > most:
        card = rng.choice([card for card in range(CARDS) if counts[card]])
        counts[card] -= 1


def _cards(counts: bytes | bytearray) -> bytes:
    return bytes(card for card in range(CARDS) for _ in range(counts[card]))


_KINDS: dict[tuple[engine_ext.Order, int], list[int]] = {}


def _kinds(order: engine_ext.Order, suit: int) -> list[int]:
    """The cards of an effective suit, lowest first."""
    known = _KINDS.get((order, suit))
    if known is None:
        cards = [card for card in range(CARDS) if order.suit(card) == suit]
        known = _KINDS[order, suit] = sorted(cards, key=order.tier)
    return known


def _rule_sets(rng: Random) -> list[engine_ext.Rules]:
    """The engines of all presets of four decks, and of mixes that no preset has."""
    presets = [rules.engine() for rules in PRESETS.values() if rules.decks == _COPIES]
    switches = (
        "permanent_twos",
        "level_joker_adjacent",
        "keep_groups_whole",
        "groups_stay_together",
        "wider_beats",
        "level_gap",
    )
    choices = list(itertools.product(Adjacency, Preference, LADDERS))
    mixes = []
    for _ in range(_MIXES):
        adjacency, preference, ladders = rng.choice(choices)
        mixes.append(
            engine_ext.Rules(
                decks=_COPIES,
                adjacency=int(adjacency),
                preference=int(preference),
                ladders=engine_ladders(ladders),
                **{name: rng.random() < 0.5 for name in switches},
            )
        )
    return presets * 4 + mixes
