"""Token buckets in bounded memory: how often one caller may do one thing; and who a caller is by address."""

import ipaddress
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

CALLERS: Final = 20_000
"""Buckets kept at most."""


class Buckets:
    """One bucket a caller: ``rate`` tokens a second, at most ``burst`` saved up; rate 0 limits nothing."""

    def __init__(
        self,
        rate: float,
        burst: float,
        *,
        callers: int = CALLERS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._callers = callers
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: str) -> float:
        """Take one token: 0 when there was one, else the seconds until there will be."""
        if not self._rate:
            return 0.0
        now = self._clock()
        left = self._left(caller, now)
        wait = self._missing(left)
        self._buckets[caller] = (left if wait else max(0.0, left - 1), now)
        if len(self._buckets) > self._callers:
            self._forget(now)
        return wait

    def give_back(self, caller: str) -> None:
        """Give back a token that was taken, since it was not used."""
        if caller in self._buckets:
            now = self._clock()
            self._buckets[caller] = (min(self._burst, self._left(caller, now) + 1), now)

    def _forget(self, now: float) -> None:
        """Make room: full buckets need not be kept, and of the others the oldest half goes."""
        full_since = now - self._burst / self._rate
        kept = {caller: bucket for caller, bucket in self._buckets.items() if bucket[1] > full_since}
        self._buckets = dict(list(kept.items())[-(self._callers // 2) :])

    def wait(self, caller: str) -> float:
        """What :meth:`take` would answer, without taking."""
        return self._missing(self._left(caller, self._clock())) if self._rate else 0.0

    def _missing(self, left: float) -> float:
        # A little less than a whole token counts as one, or rounding would make a caller wait for nothing.
        return 0.0 if left >= 1 - 1e-9 else (1 - left) / self._rate

    def _left(self, caller: str, now: float) -> float:
        left, since = self._buckets.get(caller, (self._burst, now))
        return min(self._burst, left + (now - since) * self._rate)

    def __len__(self) -> int:
        return len(self._buckets)


@lru_cache(maxsize=4096)
def address_of(peer: str) -> str:
    """The address in gRPC's name of a peer, without kind, port and brackets; of a socket file its name."""
    kind, _, place = peer.partition(":")
    if kind not in {"ipv4", "ipv6"}:
        return peer
    return unquote(place).rpartition(":")[0].removeprefix("[").removesuffix("]")


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """Whom to limit for an address: itself, but of IPv6 the /64, all of which one household has."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return address
    mapped = ip.ipv4_mapped
    return str(mapped) if mapped else str(ipaddress.IPv6Network((ip, 64), strict=False))
