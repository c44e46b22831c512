"""How many whole deals the core plays by itself."""

import time
from typing import Final

from engine_ext import playouts
from services.bench.figures import Bar, Figure
from services.bench.scale import Scale
from services.rules.presets import preset

LINE: Final = "deals"
PASSES: Final = 5
_DEALS: Final = 20_000
_CAP: Final = 64


def deals(scale: Scale) -> list[Figure]:
    """Full deals of classic-2d a second on one core: dealt, buried by the fixed rule, played, scored.

    Every play is uniform over the legal list, of which at most ``_CAP`` are looked at. The deals of a pass
    are spread over all levels and trumps.
    """
    rules = preset("classic-2d").engine()
    orders = [(level, trump) for level in range(13) for trump in range(5)]
    each = max(1, scale.of(_DEALS) // len(orders))
    rates, plays = [], 0
    for number in range(PASSES):
        started = time.process_time()
        results = [playouts(rules, level, trump, each, number, cap=_CAP) for level, trump in orders]
        rates.append(each * len(orders) / (time.process_time() - started))
        plays = sum(result[2] for result in results)
    note = f"{each * len(orders):,} deals a pass, {plays / each / len(orders):.1f} plays a deal, cap {_CAP}"
    return [
        Figure(
            LINE,
            "full classic-2d deals inside the core",
            "deals/s",
            tuple(rates),
            Bar(">=", 30_000),
            note=note,
        )
    ]
