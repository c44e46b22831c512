"""What a benchmark found: values, the bar they are held against, and the floor measured beside them."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Bar:
    """What a figure should reach."""

    sense: Literal[">=", "<="]
    value: float
    on: Literal["measured", "ratio"] = "measured"
    """Whether it is about the figure itself or about its ratio to the floor."""

    def met(self, value: float) -> bool:
        """Whether a value reaches the bar."""
        return value >= self.value if self.sense == ">=" else value <= self.value


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the report."""

    line: str
    """The benchmark that it belongs to."""
    what: str
    unit: str
    values: tuple[float, ...]
    """One a run, at least one."""
    bar: Bar | None = None
    """None for what is shown for information."""
    floor: tuple[float, ...] = ()
    """The floor's values, run beside each of ours; empty without a floor."""
    note: str = ""

    @property
    def measured(self) -> float:
        """The median of the values."""
        return statistics.median(self.values)

    @property
    def ratio(self) -> float | None:
        """Ours to the floor's: the median over the pairs of runs, so that a drift of the machine cancels."""
        if not self.floor:
            return None
        return statistics.median(ours / floor for ours, floor in zip(self.values, self.floor, strict=True))

    @property
    def met(self) -> bool | None:
        """Whether the bar is met; None without a bar."""
        if self.bar is None:
            return None
        value = self.measured if self.bar.on == "measured" else self.ratio
        if value is None:
            raise ValueError(f"{self.what}: a bar on the ratio needs a floor")
        return self.bar.met(value)

    def to_json(self) -> dict[str, object]:
        """All of it as plain JSON values."""
        bar = self.bar
        return {
            "line": self.line,
            "what": self.what,
            "unit": self.unit,
            "measured": self.measured,
            "values": list(self.values),
            "bar": None if bar is None else {"sense": bar.sense, "value": bar.value, "on": bar.on},
            "floor": list(self.floor),
            "ratio": self.ratio,
            "met": self.met,
            "note": self.note,
        }


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that at least ``share`` (0..1) of the values do not exceed.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no values, no percentile")
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


_MILLION: Final = 1e6
_MANY: Final = 10_000


def shown(value: float) -> str:
    """A number as people read it: three digits that count, thousands apart."""
    if value >= _MILLION:
        return f"{value / _MILLION:.2f} M"
    if value >= _MANY:
        return f"{value:,.0f}"
    return f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def spread(values: Sequence[float]) -> str:
    """The median, with the least and greatest where there are several."""
    median = shown(statistics.median(values))
    return median if len(values) == 1 else f"{median} [{shown(min(values))}–{shown(max(values))}]"
