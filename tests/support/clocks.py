"""Clocks that tests turn, in place of those that the services ask."""

import time

import pytest

from services.shell.limits import Buckets


class Ahead:
    """The time of day, which a test can have jump ahead; stands in for the module ``time``.

    Attributes:
        by_s: how far it has jumped.
    """

    monotonic = staticmethod(time.monotonic)
    perf_counter = staticmethod(time.perf_counter)

    def __init__(self) -> None:
        self.by_s = 0.0

    def time(self) -> float:
        """Seconds of Unix time."""
        return time.time() + self.by_s

    def us(self) -> int:
        """Microseconds of Unix time."""
        return round(self.time() * 1e6)


def stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no token come back to a bucket, however long a test takes."""
    defaults = Buckets.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "clock", lambda: 0.0)
