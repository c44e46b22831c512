"""How large a run is."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """The sizes of a run, and where it tells how far it is."""

    quick: bool = False
    """A tenth of every size, for a first look."""
    say: Callable[[str], None] = lambda _: None
    """Takes a line about the progress."""

    def of(self, size: int) -> int:
        """A size at this scale, at least 1."""
        return max(1, size // 10) if self.quick else size
