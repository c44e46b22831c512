"""What the lobby asks of others: how good players are, and whether they can pay. The ledger answers both."""

from collections.abc import Sequence
from typing import Final, Protocol

NEW_RATING: Final = 1500.0
"""The rating of a player whom nobody has rated."""


class Ratings(Protocol):
    """How good players are."""

    async def of(self, player_ids: Sequence[str]) -> list[float]:
        """Their ratings, in that order; ``NEW_RATING`` for whom nothing is known, or nobody can say now."""


class Funds(Protocol):
    """Whether players can pay. Stakes of 0 are never asked about."""

    async def check(self, player_ids: Sequence[str], stake: int) -> None:
        """Nothing, when each of them could sit at such a stake now.

        Raises:
            RefusedError: INSUFFICIENT_FUNDS or ELSEWHERE for one of them; UNAVAILABLE when nobody can say.
        """

    async def hold(self, table_id: str, player_ids: Sequence[str], stake: int) -> None:
        """Hold eight base stakes of each for a table that is about to be founded; all or none, once a table.

        Raises:
            RefusedError: as ``check``.
        """

    async def release(self, table_id: str) -> None:
        """Give back what is held for a table that was never founded.

        Raises:
            RefusedError: UNAVAILABLE; try again.
        """


class EqualRatings:
    """``Ratings`` for a house without a ledger: everybody is as good as a new player."""

    async def of(self, player_ids: Sequence[str]) -> list[float]:
        """See ``Ratings.of``."""
        return [NEW_RATING] * len(player_ids)


class NoFunds:
    """``Funds`` for a house without a ledger: whoever wants to may play for anything, nothing is paid."""

    async def check(self, player_ids: Sequence[str], stake: int) -> None:
        """See ``Funds.check``."""

    async def hold(self, table_id: str, player_ids: Sequence[str], stake: int) -> None:
        """See ``Funds.hold``."""

    async def release(self, table_id: str) -> None:
        """See ``Funds.release``."""
