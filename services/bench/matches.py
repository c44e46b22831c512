"""Matches played in memory, seeded: the commands that clients would send, and the commits that they come to.

The table service with the same `insecure_entropy` deals the same cards to a table of the same id, so a match
played here can be played there command by command, and nobody has to ask for legal plays on the way.
"""

from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple

from services.game.commands import BuryCards, OpenTable, Pass, Play, PlayerCommand, Ready, Refusal, SeatPlan
from services.game.decide import kind_of
from services.game.entropy import SeededEntropy
from services.game.ids import Kind, TableId
from services.game.keys import Keyring
from services.game.local import LocalTable
from services.game.state import SEATS, Bury, Counter, Declaring, Mutiny, Pace, Scored, Seating, Table, Tricks
from services.game.waits import asked
from services.pb.log.v1.log_pb2 import Commit
from services.rules.bury import fixed_bury
from services.rules.cards import counts_of
from services.rules.options import RuleSet

PLAYERS: Final = tuple(f"ply_bench{seat}" for seat in range(SEATS))
"""Who sits at every table of the benchmarks."""
PACE: Final = Pace(
    draw_ms=0, declare_ms=0, bury_ms=600_000, turn_ms=600_000, next_deal_ms=600_000, away_turns=100
)
"""All cards at once, and no limit that could run out while something is measured."""
_LEADS: Final = 12
_FOLLOWS: Final = 8


class Move(NamedTuple):
    """One command of a player and what it came to."""

    command: PlayerCommand
    seat: int
    command_id: bytes
    stored: bytes
    """The commit as a log stores it."""
    kind: Kind


class Match:
    """A table in memory, its seats taken by ``PLAYERS``; ``deal`` plays on.

    Attributes:
        local: the table.
        founding: the commit that founded it, as a log stores it.
    """

    def __init__(
        self,
        table_id: str,
        rules: RuleSet,
        seed: str,
        keyring: Keyring | None = None,
        now_us: int | None = None,
    ) -> None:
        """Found it.

        Args:
            table_id: its id.
            rules: its rules.
            seed: the text that cards and choices follow from.
            keyring: seals the commits; by default one of its own.
            now_us: the clock, which stands still; by default that of local tables.
        """
        entropy = SeededEntropy(seed)
        self.local = LocalTable(entropy, keyring) if now_us is None else LocalTable(entropy, keyring, now_us)
        self._rng = Random(f"{seed} {table_id}")
        north, east, south, west = (SeatPlan(player) for player in PLAYERS)
        self._execute(
            OpenTable(
                table_id=TableId(table_id),
                player_id=PLAYERS[0],
                rules=rules,
                pace=PACE,
                seats=(north, east, south, west),
                insecure_entropy=seed,
            )
        )
        self.founding = self.local.stored[0]

    @property
    def state(self) -> Table:
        """The table as it is."""
        return self.local.table

    def deal(self) -> Iterator[Move]:
        """Play from here to the end of a deal, a command at a time."""
        deals = self.state.match.deals
        while self.state.match.deals == deals:
            seat, command = self._next()
            yield self._move(seat, command)

    def _next(self) -> tuple[int, PlayerCommand]:
        """The first seat that may act, and what it does."""
        state, phase = self.state, self.state.phase
        match phase:
            case Seating() | Scored():
                seat = next(seat for seat in range(SEATS) if not state.seats[seat].ready)
                return seat, Ready(PLAYERS[seat])
            case Declaring() | Mutiny():
                seat = asked(state, phase)[0]
                return seat, Pass(PLAYERS[seat])
            case Counter():
                return phase.to_act, Pass(PLAYERS[phase.to_act])
            case Bury():
                seat = phase.seat
                order = state.rules.engine().order(phase.deal.level, phase.settled.trump)
                cards = fixed_bury(state.rules, order, phase.hands[seat] or b"")
                return seat, BuryCards(PLAYERS[seat], state.version, cards)
            case Tricks():
                return phase.to_move, Play(PLAYERS[phase.to_move], state.version, self._cards(phase))
            case _:
                raise ValueError("the match is over")

    def _cards(self, phase: Tricks) -> bytes:
        """Any of the best legal plays."""
        order = self.state.rules.engine().order(phase.deal.level, phase.settled.trump)
        hand = counts_of(phase.hands[phase.to_move] or b"")
        listing = (
            order.lead(phase.trick[0]).follows(hand, _FOLLOWS) if phase.trick else order.leads(hand, _LEADS)
        )
        return self._rng.choice(listing.plays)

    def _move(self, seat: int, command: PlayerCommand) -> Move:
        command_id = self._rng.randbytes(16)
        commit = self._execute(command, command_id)
        return Move(command, seat, command_id, self.local.stored[-1], kind_of(tuple(commit.events)))

    def _execute(self, command: PlayerCommand, command_id: bytes = b"") -> Commit:
        done = self.local.execute(command, command_id, self._rng.randbytes(8) if command_id else b"")
        if isinstance(done, Refusal):
            raise ValueError(f"{command} was refused: {done.reason}")
        return done


def new_table_id(rng: Random, now_ms: int = 1_800_000_000_000) -> TableId:
    """A table id that follows from a seed."""
    return TableId.new(now_ms, rng.randbytes(10))
