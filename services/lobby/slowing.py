"""Wrong tries at secrets are counted in the store, so that all replicas slow down whoever makes them.

Two counts, because one alone would be a weapon:

- of a *thing* (a device, an API key, a sign-in) **as tried from one network**: after 5 wrong tries the wait
  doubles from 1 s to 15 min, and a right try clears the count. A stranger who knows a victim's device name
  thus cannot lock the victim out, who comes from elsewhere. Tries spread over many networks get 5 each, which
  is nothing against secrets of 128 bits and more; shorter ones are not taken.
- of a *network* (an IPv4 address, an IPv6 /64), whatever was tried: here many people may sit behind one
  address, so 50 are free and no wait is longer than 30 s; and no right try clears it, or whoever has one good
  secret could go on guessing others. It fades ten minutes after the last wrong one.

During a wait nothing is looked at, right or wrong, and nothing is counted, so waiting is always the way out.
Wrong tries that come at once are decided one after another, since each changes the same record.
"""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeVar

from services.lobby.deps import Deps
from services.lobby.records import Change, atomically, slow_key
from services.pb.lobby.v1.stored_pb2 import SlowRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.limits import network_of

T = TypeVar("T")


class Slope(NamedTuple):
    """How waits grow."""

    free: int
    """Wrong tries before the first wait."""
    longest_ms: int
    kept_s: float
    """After so long without a wrong try all is forgotten."""


THING: Final = Slope(5, 15 * 60_000, 3600)
NETWORK: Final = Slope(50, 30_000, 600)
_FIRST_MS: Final = 1000


class WrongError(Exception):
    """What was tried is not right; raised by the work given to :func:`tried`, before it has put anything."""

    def __init__(self, reason: Reason = Reason.SIGN_IN_FAILED) -> None:
        super().__init__(reason)
        self.reason = reason


def wait_ms(slope: Slope, failures: int) -> int:
    """How long nothing is looked at after so many wrong tries in a row."""
    over = failures - slope.free
    return min(slope.longest_ms, _FIRST_MS << min(over, 20)) if over >= 0 else 0


async def tried(deps: Deps, kind: str, thing: str, address: str, work: Callable[[Change], Awaitable[T]]) -> T:
    """Do one operation on the records that hangs on a secret, slowed by wrong tries.

    Args:
        deps: the lobby's.
        kind: of the thing, such as "device".
        thing: whose secret it is; empty when what was shown names nothing: then only the network counts.
        address: where the try comes from.
        work: the operation, as for ``atomically``; raises ``WrongError`` when the secret is not right.

    Raises:
        RefusedError: RATE_LIMITED, with the time to wait; else what the work raised, or its error's reason.
        Unavailable: the store cannot be used.
    """
    network = network_of(address)
    counts = [(slow_key(f"network {network}"), NETWORK)]
    if thing:
        counts.append((slow_key(f"{kind} {thing} from {network}"), THING))

    async def counted(change: Change) -> T | WrongError:
        now = deps.now_ms()
        records = [await change.get(key, SlowRecord) or SlowRecord() for key, _ in counts]
        wait = max(record.until_ms for record in records) - now
        if wait > 0:
            raise RefusedError(Reason.RATE_LIMITED, retry_after_s=wait / 1000)
        try:
            done = await work(change)
        except WrongError as wrong:
            for (key, slope), record in zip(counts, records, strict=True):
                record.failures += 1
                record.until_ms = now + wait_ms(slope, record.failures)
                await change.put(key, record, slope.kept_s)
            return wrong
        for key, slope in counts:
            if slope is THING:
                await change.drop(key)
        return done

    outcome = await atomically(deps.store, counted)
    if isinstance(outcome, WrongError):
        deps.metrics.wrong_secrets.inc()
        raise RefusedError(outcome.reason)
    return outcome
