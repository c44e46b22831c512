"""Which players an operator has, in the order of their founding.

A player of an operator has a record ``member.<operator>.<player id>``, written together with the player, so
founding many at once never touches a record that others write, and nobody leaves an operator. The store lists
only by prefix: a replica that is asked for an operator's players follows that prefix from then on and keeps
the ids in order, some 100 bytes a player. So 100,000 players are 10 MB and some seconds at the first question
(measured: 19,200 in 3 s on a busy machine of two cores), and every page after it is a cut out of a list. The
operators asked about last are kept.
"""

import asyncio
from bisect import bisect_right, insort
from collections import OrderedDict
from typing import Final

from services.lobby.records import member_key
from services.lobby.store import Entry, Following, Store

OPERATORS_MOST: Final = 32
"""Operators followed at once."""


class _Roll:
    """The players of one operator."""

    def __init__(self, store: Store, operator: str) -> None:
        self.players: list[str] = []
        self._prefix = member_key(operator, "")
        # A task of its own: a caller who gives up waiting must not make the next one begin anew.
        self.following = asyncio.create_task(store.follow(self._prefix.removesuffix("."), self._hear))

    def _hear(self, key: str, entry: Entry) -> None:
        player_id = key.removeprefix(self._prefix)
        place = bisect_right(self.players, player_id)
        if entry.value and self.players[place - 1 : place] != [player_id]:
            insort(self.players, player_id)

    async def stop(self) -> None:
        """Follow no more."""
        self.following.cancel()
        (outcome,) = await asyncio.gather(self.following, return_exceptions=True)
        if not isinstance(outcome, BaseException):
            await outcome.stop()


class Members:
    """The players of operators."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rolls: OrderedDict[str, _Roll] = OrderedDict()

    async def after(self, operator: str, player_id: str, most: int) -> tuple[list[str], bool]:
        """Players of an operator after one (empty: from the first), at most so many; and whether more follow.

        Raises:
            Unavailable: the store cannot be read.
        """
        roll = self._rolls.get(operator)
        if roll is None or _has_failed(roll.following):
            roll = self._rolls[operator] = _Roll(self._store, operator)
        self._rolls.move_to_end(operator)
        await asyncio.shield(roll.following)
        await self._make_room(operator)
        first = bisect_right(roll.players, player_id)
        return roll.players[first : first + most], first + most < len(roll.players)

    async def _make_room(self, operator: str) -> None:
        """Follow those no more who were asked about longest ago; not one whose caller still waits for it."""
        told = [name for name, roll in self._rolls.items() if name != operator and roll.following.done()]
        given_up = [self._rolls.pop(name) for name in told[: max(0, len(self._rolls) - OPERATORS_MOST)]]
        for roll in given_up:
            await roll.stop()

    async def stop(self) -> None:
        """Follow nobody any more."""
        while self._rolls:
            await self._rolls.popitem()[1].stop()


def _has_failed(following: "asyncio.Task[Following]") -> bool:
    return following.done() and (following.cancelled() or following.exception() is not None)
