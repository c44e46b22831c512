"""Who plays with whom: groups made of the tickets that wait. Pure; their order makes no difference.

The rule, for each pool (tickets of one operator, preset and stake) by itself:

1. Tickets are looked at from the oldest on. The oldest that is in no group is the *seed*.
2. Of all sets of four people that contain the seed, whose tickets are all younger and in no group yet, and in
   which any two are within each other's window, it gets the first: the one with the oldest second ticket, of
   those the one with the oldest third, and so on. So nobody is passed over for a younger one who would fit
   the same place. A seed without any such set waits on, and can be in no later set either.
3. Then the same again with what is left, for tickets that take bots at all; only those whose own wait for
   them is over are seeds. A seed gets the set with the most people, of those the first, and bots fill the
   seats. So who comes last may begin with bots sooner than they said, rather than later and alone.

Windows widen with age and two tickets are within each other's window when the younger one's reaches. So a set
chosen from the oldest to the youngest needs no more to be known of it than its lowest and highest rating, and
tickets are found by rating: in bands of ``_BAND`` points, each sorted by age.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import chain
from typing import Final, NamedTuple

NARROW: Final = 50.0
"""How far another's rating may be at first,"""
WIDE: Final = 400.0
"""how far later,"""
WIDE_AFTER_S: Final = 40.0
"""seconds after which it may be so far, growing evenly until then;"""
ANY_AFTER_S: Final = 120.0
"""after so long anybody's will do who waits as long, so that nobody waits for ever."""
SEATS: Final = 4
_FULL: Final = (SEATS,)
_WITH_BOTS: Final = (3, 2, 1)
"""Sizes of groups, best first."""
_BAND: Final = 100.0
"""Width of a band of ratings."""
_FEW: Final = 64
"""So many numbers are sorted at once sooner than merged one by one."""


class Waiting(NamedTuple):
    """A ticket as matching sees it."""

    ticket_id: str
    size: int
    """Its people: 1, or 2 who are partners."""
    operator: str
    preset: str
    stake: int
    rating: float
    created_at_ms: int
    bots_after_s: int
    """0: never."""
    bots: int
    """Difficulty of the bots that it takes."""
    present: bool
    """Whether its people are there; otherwise it takes no part."""


class Sitter(NamedTuple):
    """Who sits on a seat."""

    ticket_id: str
    number: int
    """Which of the ticket's people, 0 or 1."""


class Group(NamedTuple):
    """People who play together."""

    ticket_ids: tuple[str, ...]
    """From the oldest to the youngest."""
    seats: tuple[Sitter | None, Sitter | None, Sitter | None, Sitter | None]
    """Seats 0 to 3, None for a bot; the oldest ticket's first player sits on 0."""
    bots: int
    """Difficulty of the bots: what the oldest ticket takes."""


def window(age_s: float) -> float:
    """How far another's rating may be for a ticket that has waited so long; infinite in the end."""
    if age_s >= ANY_AFTER_S:
        return math.inf
    return NARROW + (WIDE - NARROW) * min(max(age_s, 0.0) / WIDE_AFTER_S, 1.0)


def match(waiting: Sequence[Waiting], now_ms: int) -> list[Group]:
    """The groups that can be made now, see the module; nobody is in two.

    Args:
        waiting: all tickets, in any order, each once.
        now_ms: milliseconds of Unix time.
    """
    pools: defaultdict[tuple[str, str, int], list[Waiting]] = defaultdict(list)
    for ticket in waiting:
        if ticket.present:
            pools[ticket.operator, ticket.preset, ticket.stake].append(ticket)
    groups: list[Group] = []
    for _, pool in sorted(pools.items()):
        pool.sort(key=_age_order, reverse=True)
        left = pool
        if sum(ticket.size for ticket in pool) >= SEATS:
            people = _Pool(pool, now_ms)
            groups += people.groups(_FULL)
            left = people.left
        if any(_bots_are_due(ticket, now_ms) for ticket in left):
            takers = [ticket for ticket in left if ticket.bots_after_s]
            groups += _Pool(takers, now_ms).groups(_WITH_BOTS, lambda seed: _bots_are_due(seed, now_ms))
    return groups


def _age_order(ticket: Waiting) -> tuple[int, str]:
    return ticket.created_at_ms, ticket.ticket_id


def _bots_are_due(ticket: Waiting, now_ms: int) -> bool:
    return 0 < ticket.bots_after_s * 1000 <= now_ms - ticket.created_at_ms


_Bands = defaultdict[float, list[int]]


class _Pool:
    """The tickets of a pool, numbered from the youngest to the oldest, and those that are still to be had.

    Every list of numbers rises, so the oldest stands at its end, where it is cheap to take.
    """

    def __init__(self, tickets: list[Waiting], now_ms: int) -> None:
        """Begin with all of them.

        Args:
            tickets: from the youngest to the oldest.
            now_ms: milliseconds of Unix time.
        """
        self.left: list[Waiting] = []
        """After ``groups``: tickets without one, from the youngest to the oldest."""
        self._tickets = tickets
        self._windows = [window((now_ms - ticket.created_at_ms) / 1000) for ticket in tickets]
        self._bands: tuple[_Bands, _Bands] = defaultdict(list), defaultdict(list)
        """Numbers of singles and of pairs by rating; endless windows are in a band of their own."""
        self._home: list[list[int]] = []
        """The band of each."""
        for number, (ticket, reach) in enumerate(zip(tickets, self._windows, strict=True)):
            key = math.inf if reach == math.inf else math.floor(ticket.rating / _BAND)
            band = self._bands[ticket.size - 1][key]
            band.append(number)
            self._home.append(band)

    def groups(
        self, sizes: Sequence[int], may_be_seed: Callable[[Waiting], bool] = lambda _: True
    ) -> list[Group]:
        """The groups of so many people, the first size sooner than the second."""
        tickets, free = self._tickets, bytearray(b"\1") * len(self._tickets)
        made: list[Group] = []
        for seed in range(len(tickets) - 1, -1, -1):
            if not free[seed]:
                continue
            if not may_be_seed(tickets[seed]):
                self._take(seed)
                self.left.append(tickets[seed])
                continue
            found = self._set_of(seed, sizes)
            if found is None:
                self.left.append(tickets[seed])
                continue
            for number in found:
                free[number] = 0
                self._take(number)
            made.append(_seated([tickets[seed], *(tickets[number] for number in found)]))
        self.left.reverse()
        return made

    def _set_of(self, seed: int, sizes: Sequence[int]) -> list[int] | None:
        """The seed's companions, oldest first; None when it gets no set. The seed is to be had no more."""
        self._take(seed)
        ticket = self._tickets[seed]
        near = _Near(self._near(seed, self._bands[0]), self._near(seed, self._bands[1]))
        most = ticket.size + near.singles.total + 2 * near.pairs.total
        for people in sizes:
            if ticket.size <= people <= most:
                found = self._first(near, 0, 0, people - ticket.size, ticket.rating, ticket.rating)
                if found is not None:
                    return found
        return None

    def _take(self, number: int) -> None:
        band = self._home[number]
        del band[bisect_left(band, number)]

    def _near(self, seed: int, among: "_Bands") -> "_Known":
        """Whoever may be within reach of the seed and is younger, from the oldest on."""
        if not among:
            return _NOBODY
        rating, reach = self._tickets[seed].rating, self._windows[seed]
        far = min(reach, WIDE)
        within = range(math.floor((rating - far) / _BAND), math.floor((rating + far) / _BAND) + 1)
        bands = [band for key in within if (band := among.get(key))]
        if reach == math.inf:
            bands.append(among[math.inf])
        total = sum(map(len, bands))
        if total <= _FEW:
            return _Known(total, sorted(chain.from_iterable(bands), reverse=True), iter(()))
        return _Known(total, [], merge(*map(reversed, bands), reverse=True))

    def _first(
        self, near: "_Near", single: int, pair: int, missing: int, low: float, high: float
    ) -> list[int] | None:
        """The first set of so many people that go with those chosen, who are rated ``low`` to ``high``.

        ``single`` and ``pair`` say which of those nearby are the next to be looked at.
        """
        if not missing:
            return []
        while True:
            number = next_single = near.singles.at(single)
            if missing > 1:
                number = max(number, near.pairs.at(pair))
            if number < 0:
                return None
            size = 1 if number == next_single else 2
            single, pair = (single + 1, pair) if size == 1 else (single, pair + 1)
            rating, reach = self._tickets[number].rating, self._windows[number]
            if high - reach <= rating <= low + reach:
                rest = self._first(near, single, pair, missing - size, min(low, rating), max(high, rating))
                if rest is not None:
                    return [number, *rest]


class _Known(NamedTuple):
    """Numbers by index; they are found only when they are wanted."""

    total: int
    """How many there are, found or not."""
    known: list[int]
    more: Iterator[int]

    def at(self, index: int) -> int:
        """The number there; -1 behind the last."""
        if index < len(self.known):
            return self.known[index]
        for number in self.more:
            self.known.append(number)
            return number
        return -1


_NOBODY: Final = _Known(0, [], iter(()))


class _Near(NamedTuple):
    """Those near a seed, from the oldest to the youngest."""

    singles: _Known
    pairs: _Known


def _seated(tickets: list[Waiting]) -> Group:
    """Partners opposite; four for themselves so that best and worst play the two between them.

    A bot counts as worse than anybody, so who plays with one is the best of three.
    """
    oldest = tickets[0]
    sides: list[list[Sitter | None]] = [
        [Sitter(ticket.ticket_id, 0), Sitter(ticket.ticket_id, 1)] for ticket in tickets if ticket.size == 2
    ]
    ranked = sorted((ticket.rating, ticket.ticket_id) for ticket in tickets if ticket.size == 1)
    bots = SEATS - 2 * len(sides) - len(ranked)
    single = [*[None] * bots, *(Sitter(ticket_id, 0) for _, ticket_id in ranked)]
    if single:
        sides.append([single[-1], single[0]])
    if len(single) == SEATS:
        sides.append([single[2], single[1]])
    first = Sitter(oldest.ticket_id, 0)
    if first not in sides[0]:
        sides.reverse()
    if sides[0][0] != first:
        sides[0].reverse()
    (zero, two), (one, three) = sides
    return Group(tuple(ticket.ticket_id for ticket in tickets), (zero, one, two, three), oldest.bots)
