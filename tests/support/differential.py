"""Holding the compiled core against its twin, position by position, and counting what was met."""

import random
from collections import Counter
from dataclasses import dataclass, field
from math import prod

from engine_ext.codes import CARDS, Verdict
from support import shaped
from support.cards import RANKS, counts, names
from support.engines import core, twin
from support.mixes import MIXED, OPTIONS, plain_sizes, throw_sizes

MANY, SOME = 20, 6
"""Hands that must have owed each step of a printed ladder or a common lead, and of any other plain lead."""
COMMON = {(2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1)}
"""Leads of which each step of the generic ladder must be met as often as of a printed one."""


@dataclass
class Mix:
    """What a run of follows has met."""

    steps: Counter = field(default_factory=Counter)
    """(component sizes of the lead, step owed to each) -> hands."""
    verdicts: Counter = field(default_factory=Counter)
    """Verdict -> positions."""
    corners: Counter = field(default_factory=Counter)
    """Where the cards of the leads stood -> cards."""

    @property
    def positions(self):
        return sum(self.verdicts.values())

    def report(self, pair):
        """The mix as text."""
        lines = [f"{pair.name}: {self.positions} positions"]
        lines.append("  verdicts: " + listed({Verdict(v).name: count for v, count in self.verdicts.items()}))
        lines.append("  cards led: " + listed(self.corners))
        by_lead = {}
        for (sizes, steps), count in sorted(self.steps.items()):
            owed = [pair.twin.ladder(size)[step][0] for size, step in zip(sizes, steps, strict=True)]
            by_lead.setdefault(sizes, []).append(f"{' | '.join(map(text_of, owed))}: {count}")
        lines += [f"  {text_of(sizes)} led: {' · '.join(owed)}" for sizes, owed in by_lead.items()]
        return "\n".join(lines)


def listed(counted):
    """Counts in words, the most first."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counted.items(), key=lambda item: -item[1]))


def text_of(groups):
    """Groups as RULES §5 prints them."""
    return ",".join(f"{w}x{length}" if length > 1 else f"{w}" for w, length in groups) or "1"


class Pair:
    """The rules of one variant in both engines."""

    def __init__(self, name):
        self.name = name
        self.core = core.Rules(**OPTIONS[name])
        self.twin = twin.Rules(**OPTIONS[name])

    def in_core(self, order):
        """The core's order that goes with one of the twin."""
        return self.core.order(order.level, order.trump)

    def enough(self, size):
        """How many hands must have owed each step of a plain lead."""
        printed = size in self.twin.ladders or size in COMMON
        return MANY if printed and self.name not in MIXED else SOME

    def unmet(self, mix):
        """The steps of plain leads that too few hands have owed."""
        return [
            f"{text_of([size])} led, {text_of(step[0])} owed: {mix.steps[(size,), (index,)]}"
            for size in plain_sizes(self.twin)
            for index, step in enumerate(self.twin.ladder(size))
            if mix.steps[(size,), (index,)] < self.enough(size)
        ]


def told(order, **cards):
    """A position in words, for a failure."""
    trump = ["S/B", "H/R", "C", "D", "NT"][order.trump]
    shown = {
        what: list(map(names, some)) if isinstance(some, list) else names(some)
        for what, some in cards.items()
    }
    return f"level {RANKS[order.level]} trump {trump} {shown}"


def run_follows(pair, *, seed, plays=10, throws=12, attempts=8, times=1):
    """Judge follows for every step of every plain lead, and for throws, by both engines.

    Args:
        pair: the rules.
        seed: what the positions are drawn from.
        plays: plays judged a hand.
        throws: hands a throw shape.
        attempts: hands tried for a step before it is given up, for each hand that must owe it.
        times: how many times the hands that must owe a step are met.

    Returns:
        The mix, and the positions that the engines answer differently, smallest first.
    """
    rng = random.Random(f"follows {pair.name} {seed}")
    mix, wrong = Mix(), []
    for size in plain_sizes(pair.twin):
        for step in range(len(pair.twin.ladder(size))):
            for _ in range(pair.enough(size) * attempts * times):
                if mix.steps[(size,), (step,)] >= pair.enough(size) * times:
                    break
                wrong += compare_follow(pair, rng, (size,), step, plays, mix)
    for sizes in throw_sizes(pair.twin):
        for _ in range(throws):
            step = rng.randrange(len(pair.twin.ladder(sizes[0])))
            wrong += compare_follow(pair, rng, sizes, step, plays, mix)
    return mix, sorted(wrong, key=len)


def compare_follow(pair, rng, sizes, step, plays, mix):
    """One hand against one lead with some plays; the differences in words."""
    made = shaped.make_follow(rng, pair.twin, sizes, step)
    if made is None:
        return []
    deal, cards, hand = made
    held = counts(hand)
    mine, other = deal.lead, pair.in_core(deal.order).lead(cards)
    owed = mine.owed(held)
    if sum(deal.order.suit(card) == deal.suit for card in hand) > len(cards):
        mix.steps[sizes, tuple(map(pair_step, map(pair.twin.ladder, sizes), owed))] += 1
    mix.corners.update(shaped.corner(deal.order, card) for card in cards)
    laid = shaped.make_plays(rng, deal, cards, hand, owed, plays)
    vectors = [counts(play) for play in laid]
    verdicts = [mine.check(held, vector) for vector in vectors]
    mix.verdicts.update(verdicts)
    wrong = []
    if other.owed(held) != owed:
        wrong.append(f"owed {other.owed(held)} not {owed}: {told(deal.order, lead=cards, hand=hand)}")
    batch = other.check_batch(held * len(vectors), b"".join(vectors))
    for play, vector, verdict, in_batch in zip(laid, vectors, verdicts, batch, strict=True):
        answers = {other.check(held, vector), other.check_cards(hand, play), in_batch}
        if answers != {verdict}:
            position = told(deal.order, lead=cards, hand=hand, play=play)
            wrong.append(f"{answers} not {Verdict(verdict).name}: {position}")
    return wrong


def pair_step(ladder, groups):
    """The step of a ladder that groups satisfy."""
    return next(index for index, step in enumerate(ladder) if groups in step)


def run_tricks(pair, *, seed, rounds):
    """Winners and multipliers of shaped tricks; the number met and the differences in words."""
    rng = random.Random(f"tricks {pair.name} {seed}")
    met, wrong = Counter(), []
    sizes = [(size,) for size in plain_sizes(pair.twin)] + throw_sizes(pair.twin)
    for lead_sizes in sizes:
        for _ in range(rounds):
            made = shaped.make_trick(rng, pair.twin, lead_sizes)
            if made is None:
                continue
            deal, plays = made
            other = pair.in_core(deal.order)
            expected = deal.order.winner(plays), deal.order.multiplier(plays)
            met[lead_sizes, expected[0]] += 1
            if (other.winner(plays), other.multiplier(plays)) != expected:
                answer = other.winner(plays), other.multiplier(plays)
                wrong.append(f"{answer} not {expected}: {told(deal.order, plays=plays)}")
    return met, sorted(wrong, key=len)


def run_throws(pair, *, seed, rounds):
    """Shaped throws; what became of them and the differences in words."""
    rng = random.Random(f"throws {pair.name} {seed}")
    met, wrong = Counter(), []
    for sizes in [*throw_sizes(pair.twin), *((size,) for size in plain_sizes(pair.twin))]:
        for _ in range(rounds):
            made = shaped.make_throw(rng, pair.twin, sizes)
            if made is None:
                continue
            deal, lead, others = made
            expected = deal.order.throw(lead, others)
            met["failed" if expected.blockers else Verdict(expected.verdict).name] += 1
            got = pair.in_core(deal.order).throw(lead, others)
            if tuple(got) != tuple(expected):
                wrong.append(f"{got} not {expected}: {told(deal.order, lead=lead, others=others)}")
    return met, sorted(wrong, key=len)


def run_shapes(pair, *, seed, rounds):
    """Cards of one suit cut into components; how many had each number of tractors, and the differences."""
    rng = random.Random(f"shapes {pair.name} {seed}")
    met, wrong = Counter(), []
    sizes = [(size,) for size in plain_sizes(pair.twin)] + throw_sizes(pair.twin)
    for _ in range(rounds):
        deal = shaped.random_deal(rng, pair.twin)
        lead_sizes = rng.choice(sizes)
        cards = shaped.make_answer(rng, deal, lead_sizes, sum(map(prod, lead_sizes)) + rng.randint(0, 12))
        cards = bytes(card for card in cards if deal.order.suit(card) == deal.order.suit(cards[0]))
        if max(counts(cards)) > pair.twin.decks:
            continue
        shape = deal.order.shape(cards)
        met[sum(part.length > 1 for part in shape)] += 1
        other = pair.in_core(deal.order)
        lead = other.lead(cards)
        if other.shape(cards) != shape or lead.components != shape:
            wrong.append(f"{other.shape(cards)} not {shape}: {told(deal.order, cards=cards)}")
        expected = deal.order.lead(cards)
        assert (lead.suit, lead.size, lead.cards) == (expected.suit, expected.size, expected.cards)
    return met, sorted(wrong, key=len)


def run_orders(pair):
    """Suits, tiers and points of every card at every level and trump; the differences in words."""
    wrong = []
    for level in range(13):
        for trump in (0, 1, 4) if pair.twin.two_colour else range(5):
            mine, other = pair.twin.order(level, trump), pair.core.order(level, trump)
            if [mine.suit(card) for card in range(CARDS)] != [other.suit(card) for card in range(CARDS)]:
                wrong.append(f"suits at {level}, {trump}")
            for suit in mine.suits:
                cards = [card for card in range(CARDS) if mine.suit(card) == suit]
                if ranking(mine, cards) != ranking(other, cards):
                    wrong.append(f"tiers of {suit} at {level}, {trump}")
            if any(mine.points(bytes([card])) != other.points(bytes([card])) for card in range(CARDS)):
                wrong.append(f"points at {level}, {trump}")
    return wrong


def ranking(order, cards):
    """Cards by tier, equal ones together, so that only the comparison counts."""
    tiers = sorted({order.tier(card) for card in cards})
    return [[card for card in cards if order.tier(card) == tier] for tier in tiers]
