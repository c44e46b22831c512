"""Invite codes: six characters that nobody mistakes for each other, and that cannot be guessed.

The alphabet leaves out what looks alike: 0 O, 1 I L, 2 Z, 5 S, 8 B, U V, and G beside 6. 22 characters
remain, so there are 113 million codes. Case does not matter.
"""

import time
from collections.abc import Callable
from typing import Final

from services.lobby.records import Change, code_key
from services.pb.lobby.v1.stored_pb2 import CodeRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.limits import Buckets, network_of

ALPHABET: Final = "34679ACDEFHJKMNPQRTWXY"
LENGTH: Final = 6
_FAIR: Final = 256 - 256 % len(ALPHABET)
"""Bytes below it give every character equally often."""
_TRIES: Final = 16

PLAYER_TRIES: Final = 10
"""Wrong codes that a player may try at once,"""
PLAYER_RATE: Final = 1 / 6
"""and so many a second after that."""
ADDRESS_TRIES: Final = 60
"""The same of all who come from one address: a house of players, or a gateway's."""
ADDRESS_RATE: Final = 1.0


def read_code(text: str) -> str | None:
    """The code that somebody typed, in the form that is stored; None when it can be none."""
    code = text.strip().upper()
    return code if len(code) == LENGTH and all(letter in ALPHABET for letter in code) else None


def make_code(random: Callable[[int], bytes]) -> str:
    """A new code.

    Args:
        random: so many random bytes.
    """
    code = ""
    while len(code) < LENGTH:
        code += "".join(ALPHABET[byte % len(ALPHABET)] for byte in random(LENGTH) if byte < _FAIR)
    return code[:LENGTH]


async def free_code(change: Change, random: Callable[[int], bytes]) -> str:
    """A code that no room has; it is taken when the change that read it puts it.

    Raises:
        RefusedError: BUSY, when chance finds none.
        Unavailable: the store cannot be read.
    """
    for _ in range(_TRIES):
        code = make_code(random)
        if await change.get(code_key(code), CodeRecord) is None:
            return code
    raise RefusedError(Reason.BUSY)


class WrongCodes:
    """How many wrong codes somebody has tried, by player and by address.

    A code counts as wrong until it turns out to be right, so that trying many at once is of no use.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Nobody has tried any yet.

        Args:
            clock: seconds.
        """
        self._players = Buckets(PLAYER_RATE, PLAYER_TRIES, clock=clock)
        self._addresses = Buckets(ADDRESS_RATE, ADDRESS_TRIES, clock=clock)

    def take(self, player_id: str, address: str) -> None:
        """Count a code that somebody tries now, and refuse who has tried too many.

        Raises:
            RefusedError: RATE_LIMITED.
        """
        wait = self._players.wait(player_id)
        if address:
            wait = max(wait, self._addresses.wait(network_of(address)))
        if wait:
            raise RefusedError(Reason.RATE_LIMITED, retry_after_s=wait)
        self._players.take(player_id)
        if address:
            self._addresses.take(network_of(address))

    def give_back(self, player_id: str, address: str) -> None:
        """The code was not wrong after all."""
        self._players.give_back(player_id)
        if address:
            self._addresses.give_back(network_of(address))
