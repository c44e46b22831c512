"""How fast follows are checked, beside the least that such a call can cost."""

import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

from engine_ext._floor import Floor
from engine_ext.codes import TRUMP, Verdict
from services.bench.figures import Bar, Figure
from services.bench.positions import KINDS, Positions, positions
from services.bench.scale import Scale
from services.rules.cards import cards_of

LINE: Final = "follow"
PASSES: Final = 5
BARS: Final = dict(zip(KINDS, (5e6, 5e6, 2.5e6, 1e6), strict=True))
_SEED: Final = 20_231

Pairs = list[tuple[bytes, bytes]]


def legality(scale: Scale) -> list[Figure]:
    """Checks a second on one core: by counts, by cards, in batches."""
    figures = []
    for kind, leads in KINDS.items():
        rng = Random(f"{_SEED} {kind}")
        share = scale.of(100_000) // len(leads)
        figures += _kind(kind, [positions(lead, share, rng) for lead in leads])
    return figures


def _kind(kind: str, made: list[Positions]) -> list[Figure]:
    """The figures of one kind of lead."""
    count = sum(len(one.pairs) for one in made)
    floors = [_floor_of(one) for one in made]
    by_cards = [[(cards_of(hand), cards_of(play)) for hand, play in one.pairs] for one in made]
    whole = [
        (b"".join(hand for hand, _ in one.pairs), b"".join(play for _, play in one.pairs)) for one in made
    ]
    ours, floor, empty, cards, batch = [], [], [], [], []
    for _ in range(PASSES):
        ours.append(count / sum(_loop(one.lead.check, one.pairs) for one in made))
        floor.append(count / sum(_loop(f.compare, one.pairs) for f, one in zip(floors, made, strict=True)))
        empty.append(sum(_empty_loop(one.pairs) for one in made) / count)
        cards.append(
            count / sum(_loop(one.lead.check_cards, own) for one, own in zip(made, by_cards, strict=True))
        )
        batch.append(count / sum(_batch(one, *both) for one, both in zip(made, whole, strict=True)))
    verdicts = Counter(one.lead.check(*pair) for one in made for pair in one.pairs)
    owing = sum(one.owing for one in made) / count
    note = (
        f"{count:,} positions, {owing:.0%} owing, {verdicts[Verdict.OK] / count:.0%} legal; "
        f"the loop itself takes {min(empty) * 1e9:.0f} ns of each"
    )
    return [
        Figure(LINE, kind, "checks/s", tuple(ours), Bar(">=", BARS[kind]), tuple(floor), note),
        Figure(LINE, f"{kind}, hand and play as cards", "checks/s", tuple(cards)),
        Figure(LINE, f"{kind}, all in one batch", "checks/s", tuple(batch)),
    ]


def _floor_of(one: Positions) -> Floor:
    pairs = sum(part.length for part in one.lead.components if part.width > 1)
    return Floor(0 if one.lead.suit == TRUMP else one.lead.suit, one.lead.size, pairs)


def _loop(check: Callable[[bytes, bytes], object], pairs: Pairs) -> float:
    """CPU seconds of one call a pair, the loop included."""
    started = time.process_time()
    for hand, play in pairs:
        check(hand, play)
    return time.process_time() - started


def _empty_loop(pairs: Pairs) -> float:
    started = time.process_time()
    for _hand, _play in pairs:
        pass
    return time.process_time() - started


def _batch(one: Positions, hands: bytes, plays: bytes) -> float:
    started = time.process_time()
    one.lead.check_batch(hands, plays)
    return time.process_time() - started
