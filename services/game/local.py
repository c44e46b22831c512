"""A table in memory, without services: decide, seal, fold, and the bytes that a log would store.

For benchmarks, bots, tests and anybody who wants a match without a network. Time is simulated: it stands
still until nobody wants to act, then jumps to what is due next.
"""

from collections.abc import Callable
from typing import Final

from services.game import chain
from services.game.commands import Command, Expire, OpenTable, PlayerCommand, Ready, Refusal, SeatPlan
from services.game.decide import decide
from services.game.entropy import Entropy
from services.game.evolve import evolve
from services.game.facts import Facts
from services.game.ids import TableId
from services.game.keys import Keyring, seal_of
from services.game.seal import seal_events
from services.game.state import Closed, Over, Pace, Seating, Table
from services.game.waits import drawn, due_us, round_at_us, to_act
from services.pb.log.v1.log_pb2 import Actor, Commit
from services.rules.options import RULES_VERSION, RuleSet

START_US: Final = 1_800_000_000_000_000
"""When local tables are founded, microseconds of Unix time."""
PLAYERS: Final = ("north", "east", "south", "west")
KEY_ID: Final = "local"
QUICK: Final = Pace(draw_ms=0, declare_ms=1000, bury_ms=1000, turn_ms=1000, next_deal_ms=0)

Chooser = Callable[[Table, int, int], PlayerCommand | None]
"""What a seat does: (table, seat, now in microseconds) → a command, or ``None`` to let the time run out."""


class LocalTable:
    """One table.

    Attributes:
        state: the table; ``None`` before it is founded.
        commits: every commit with its secrets in the clear.
        stored: the same as a log stores them, sealed.
        now_us: the simulated clock.
    """

    def __init__(self, entropy: Entropy, keyring: Keyring | None = None, now_us: int = START_US) -> None:
        self.entropy = entropy
        self.keyring = keyring or Keyring({KEY_ID: entropy.bytes(32)}, KEY_ID)
        self.now_us = now_us
        self.state: Table | None = None
        self.commits: list[Commit] = []
        self.stored: list[bytes] = []

    @property
    def table(self) -> Table:
        """The state of a table that was founded."""
        if self.state is None:
            raise ValueError("the table is not founded")
        return self.state

    def execute(self, command: Command, command_id: bytes = b"", check: bytes = b"") -> Commit | Refusal:
        """Decide a command and record what it comes to.

        Args:
            command: any command; a player's own is recorded with its player.
            command_id: 16 bytes to be remembered, or none.
            check: 8 bytes with it.
        """
        state = self.state
        table_id = command.table_id if isinstance(command, OpenTable) else self.table.table_id
        version = 1 if state is None else state.version + 1
        entropy = self.entropy.for_commit(table_id, version)
        decision = decide(state, command, Facts(self.now_us, entropy, self.keyring.current))
        if isinstance(decision, Refusal):
            return decision
        commit = Commit(
            table_id=table_id,
            version=version,
            prev_hash=chain.commit_hash(self.stored[-1]) if self.stored else b"",
            command_id=command_id,
            command_check=check,
            actor=actor_of(state, command),
            recorded_at_us=self.now_us,
            schema=chain.SCHEMA,
            rules_version=RULES_VERSION,
            events=decision,
            previous_d=0 if state is None else state.newest_d,
        )
        after = evolve(state, commit)
        sealed = Commit()
        sealed.CopyFrom(commit)
        del sealed.events[:]
        sealed.events.extend(
            seal_events(
                decision,
                table_id=table_id,
                current=seal_of(state),
                keyring=self.keyring,
                entropy=entropy,
                sealed_declarations=after.rules.sealed,
            )
        )
        self.state = after
        self.commits.append(commit)
        self.stored.append(chain.encode(sealed))
        return commit

    def wait(self) -> Commit | Refusal:
        """Let time pass until something is due, and do it."""
        due = due_us(self.table)
        if due is not None:
            self.now_us = max(self.now_us, due)
        return self.execute(Expire())


def actor_of(state: Table | None, command: Command) -> Actor | None:
    """Who acts, as a commit records it; ``None`` for the server."""
    if not isinstance(command, PlayerCommand):
        return None
    seat = None if state is None else state.seat_of(command.player_id)
    return Actor(player_id=command.player_id, seat=seat)


def open_local(
    rules: RuleSet, entropy: Entropy, pace: Pace = QUICK, keyring: Keyring | None = None
) -> LocalTable:
    """A founded table with its four seats taken."""
    table = LocalTable(entropy, keyring)
    north, east, south, west = (SeatPlan(player) for player in PLAYERS)
    opened = table.execute(
        OpenTable(
            table_id=TableId.new(table.now_us // 1000, entropy.bytes(10)),
            player_id=PLAYERS[0],
            rules=rules,
            pace=pace,
            seats=(north, east, south, west),
        )
    )
    if isinstance(opened, Refusal):
        raise ValueError(f"{opened.reason}: {dict(opened.detail)}")
    return table


def play_match(
    rules: RuleSet, entropy: Entropy, chooser: Chooser, max_deals: int = 0, pace: Pace = QUICK
) -> LocalTable:
    """Play a match to its end, or to the end of so many deals.

    Args:
        rules: the rules.
        entropy: where the seeds come from.
        chooser: plays all four seats. A command that is refused counts as none.
        max_deals: stop when so many deals have been scored; 0 = play to the end.
        pace: the table's; by default all cards are drawn at once and waits are a second.

    Returns:
        The table, with its commits and stored bytes.
    """
    table = open_local(rules, entropy, pace)
    while not isinstance(table.table.phase, Over | Closed):
        if max_deals and table.table.match.deals >= max_deals:
            break
        if not _somebody_acts(table, chooser):
            _let_time_pass(table)
    return table


def _somebody_acts(table: LocalTable, chooser: Chooser) -> bool:
    """One seat acts, the first in turn order that wants to."""
    state = table.table
    for seat in to_act(state, table.now_us):
        if isinstance(state.phase, Seating):
            command: PlayerCommand | None = Ready(state.seats[seat].player_id)
        else:
            command = chooser(state, seat, table.now_us)
        if command is not None and isinstance(table.execute(command), Commit):
            return True
    return False


def _let_time_pass(table: LocalTable) -> None:
    """To the next round drawn, where that may change what a seat wants; else to what is due."""
    state = table.table
    told = drawn(state, table.now_us)
    next_round = round_at_us(state, told + 1)
    if next_round > table.now_us and told < state.rules.hand_size:
        table.now_us = next_round
    else:
        table.wait()
