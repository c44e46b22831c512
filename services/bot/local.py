"""Bots at a table in memory: the same choices as over the network, for duels and for tests."""

from collections.abc import Callable, Sequence

from services.bot.actions import (
    Action,
    Bury,
    CallMutiny,
    Counter,
    Declare,
    Pass,
    Play,
    Ready,
    TakeBack,
)
from services.bot.choose import choose
from services.bot.memory import Memory
from services.bot.rounds import Rounds
from services.game import commands
from services.game.commands import PlayerCommand, Refusal
from services.game.local import LocalTable
from services.game.state import Closed, Declaring, Over
from services.game.views import SPECTATOR, redact, view
from services.game.waits import drawn, round_at_us, to_act
from services.pb.table.v1.view_pb2 import TableView
from services.rules.cards import SEATS
from services.rules.options import RuleSet

Policy = Callable[[TableView, RuleSet, Memory, int, int | None], Action | None]
"""Has the form of ``choose``."""


class LocalBots:
    """Plays all four seats of a table in memory."""

    def __init__(
        self, table: LocalTable, difficulties: Sequence[int], policy: Policy = choose, look_every: int = 1
    ) -> None:
        """Sit down.

        Args:
            table: a founded table, its seats taken.
            difficulties: ``event.v1.Difficulty`` of seats 0..3.
            policy: decides for all of them.
            look_every: they look at the table only every so many rounds of the draw; it changes no choice.
        """
        self.table = table
        self._difficulties = difficulties
        self._policy = policy
        self._look_every = look_every
        self._memory = Memory(table.table.rules)
        self._rounds = Rounds()
        self._seen = 0

    def play(self, max_deals: int = 0) -> None:
        """Play to the end of the match, or until so many deals are scored.

        Raises:
            ValueError: a choice was refused.
        """
        table = self.table
        while not isinstance(table.table.phase, Over | Closed):
            if max_deals and table.table.match.deals >= max_deals:
                return
            self._look_back()
            if not self._one_acts():
                self._let_time_pass()

    def _look_back(self) -> None:
        for commit in self.table.commits[self._seen :]:
            for event in commit.events:
                self._memory.observe(redact(event, SPECTATOR, self._memory.rules))
        self._seen = len(self.table.commits)

    def _one_acts(self) -> bool:
        state, now_us = self.table.table, self.table.now_us
        if not isinstance(state.phase, Declaring):
            return any(self._acts(seat, None) for seat in to_act(state, now_us))
        asks = self._rounds.asks(self._memory, drawn(state, now_us))
        return any(self._acts(seat, number) for seat, number in asks)

    def _let_time_pass(self) -> None:
        table, state = self.table, self.table.table
        told = drawn(state, table.now_us)
        if isinstance(state.phase, Declaring) and told < state.rules.hand_size:
            table.now_us = round_at_us(state, min(told + self._look_every, state.rules.hand_size))
        else:
            table.wait()

    def _acts(self, seat: int, number: int | None) -> bool:
        state, memory = self.table.table, self._memory
        shown = view(state, seat, self.table.now_us)
        action = self._policy(shown, memory.rules, memory, self._difficulties[seat], number)
        if action is None:
            return False
        command = command_of(action, state.seats[seat].player_id, shown.version)
        answer = self.table.execute(command)
        if isinstance(answer, Refusal):
            raise ValueError(f"{command} was refused: {answer.reason} {dict(answer.detail)}")
        return True


def command_of(action: Action, player_id: str, version: int) -> PlayerCommand:
    """An action as the command that a table decides."""
    match action:
        case Ready():
            return commands.Ready(player_id)
        case TakeBack():
            return commands.SetAutoPlay(player_id, on=False)
        case Declare(cards):
            return commands.Declare(player_id, cards)
        case Pass():
            return commands.Pass(player_id)
        case CallMutiny():
            return commands.CallMutiny(player_id, version)
        case Counter(cards):
            return commands.TakeCounter(player_id, version, cards)
        case Bury(cards):
            return commands.BuryCards(player_id, version, cards)
        case Play(cards):
            return commands.Play(player_id, version, cards)


def sides(difficulty: int, other: int) -> tuple[int, ...]:
    """Seats 0 and 2 against seats 1 and 3."""
    return tuple(difficulty if seat % 2 == 0 else other for seat in range(SEATS))
