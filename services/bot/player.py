"""One look at a table: find the first bot that has something to do, decide, and send one command.

One commit leads to at most one command, and that command's commit rings again. Seats are asked in a fixed
order and rounds of the draw one after another, so with one bot process the sequence of commits does not
depend on timing.
"""

import time
from typing import Final

from services.bot.actions import Action, CallMutiny, Counter, Declare, Pass, Play, kind
from services.bot.choose import STRONGER_THAN_RULES, choose
from services.bot.client import Refusal, TableClient, Unreachable
from services.bot.history import History
from services.bot.metrics import BotMetrics
from services.bot.rounds import Rounds
from services.pb.table.v1.view_pb2 import TableView
from services.rules.declaring import asked
from services.shell.logs import Log

LOOK_S: Final = 0.5
"""Least time between two looks while cards are drawn; rounds that came in between are decided one by one."""
_RACES: Final = frozenset({"ABORTED", "ALREADY_EXISTS"})
"""Statuses which say that the table has moved on, so that another doorbell rings."""


class Moved(Exception):
    """The table is past the version that was to be looked at."""


class Player:
    """Plays all bots of a table."""

    def __init__(self, client: TableClient, metrics: BotMetrics, log: Log) -> None:
        self._client = client
        self._metrics = metrics
        self._log = log

    async def step(self, table_id: str, history: History, rounds: Rounds) -> float | None:
        """Do what the bots of a table have to do at the version that the history has reached.

        Returns:
            Seconds after which to look again though nothing happened; ``None`` to wait for the next commit.

        Raises:
            Unreachable: look again soon.
        """
        try:
            if history.declaring:
                return await self._draw(table_id, history, rounds)
            for seat in history.actors():
                view = await self._view(table_id, history, seat)
                if await self._act(history, view):
                    break
        except Moved:
            pass
        return None

    async def _draw(self, table_id: str, history: History, rounds: Rounds) -> float | None:
        """Ask about the rounds of the draw in order, then in the window after the last card."""
        memory = history.memory
        assert memory is not None, "a deal is open"
        views: dict[int, TableView] = {}
        for seat in history.actors():
            views[seat] = await self._view(table_id, history, seat)
        drawn = min((view.drawn for view in views.values()), default=0)
        for seat, number in rounds.asks(memory, drawn):
            if seat in views and await self._act(history, views[seat], number):
                return None
        may_show = asked(memory.rules, memory.dealt, memory.declarations)
        waiting = any(seat in views for seat in may_show)
        return max(LOOK_S, history.draw_ms / 1000) if waiting else None

    async def _view(self, table_id: str, history: History, seat: int) -> TableView:
        """The table as a seat sees it, at exactly the version of the history."""
        player_id, _ = history.bots[seat]
        view = await self._client.view(table_id, player_id, history.version)
        if view.version > history.version:
            raise Moved
        if view.version < history.version or not view.HasField("my_seat"):
            raise Unreachable("the view is older than the log")
        return view

    async def _act(self, history: History, view: TableView, drawn: int | None = None) -> bool:
        """Decide for the seat of a view and send it; True when the table moves on by it."""
        memory = history.memory
        assert memory is not None, "the table is founded"
        difficulty = view.seats[view.my_seat].difficulty
        started = time.perf_counter()
        action = choose(view, memory.rules, memory, difficulty, drawn)
        name = kind(action) if action else "nothing"
        self._metrics.decision[name].observe(time.perf_counter() - started)
        if action is None:
            return False
        if difficulty in STRONGER_THAN_RULES:
            self._metrics.fallbacks["difficulty"].inc()
        return await self._send(view, action) or await self._instead(view, action, memory.rules.hand_size)

    async def _send(self, view: TableView, action: Action, attempt: str = "") -> bool:
        """Send an action; False when it was refused as such."""
        name = kind(action)
        try:
            await self._client.act(view, action, attempt)
        except Unreachable as error:
            self._metrics.commands[name, str(error)].inc()
            raise
        except Refusal as error:
            refused = error.refused
            self._metrics.commands[name, refused.code].inc()
            if refused.code in _RACES:
                return True
            self._log.warning(
                "refused",
                table_id=view.table_id,
                version=view.version,
                player_id=view.seats[view.my_seat].player_id,
                rpc=name,
                reason=refused.reason,
                code=refused.code,
            )
            return False
        self._metrics.commands[name, "OK"].inc()
        return True

    async def _instead(self, view: TableView, refused: Action, hand_size: int) -> bool:
        """After a refusal: a play from the service's own list, or a pass; else the server's clock decides."""
        if isinstance(refused, Play):
            self._metrics.fallbacks["legal_plays"].inc()
            player_id = view.seats[view.my_seat].player_id
            for cards in await self._client.legal_plays(view.table_id, player_id):
                return await self._send(view, Play(cards), "/listed")
        elif isinstance(refused, CallMutiny | Counter):
            return await self._send(view, Pass())
        elif isinstance(refused, Declare):
            return view.drawn >= hand_size and await self._send(view, Pass())
        self._metrics.fallbacks["server"].inc()
        return False
