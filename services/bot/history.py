"""What the log says of one table as far as anybody may read it: its bots, and the memory of the open deal.

It is fed commits in order, from the doorbells themselves or, where some are missing, from the log. Nothing
in it is more than a cache of the log.
"""

from collections.abc import Sequence
from typing import Final

from services.bot.memory import Memory
from services.game import chain
from services.game.errors import CorruptLog
from services.game.wire import rules_from_wire
from services.pb.event.v1 import event_pb2 as pb
from services.pb.log.v1.log_pb2 import Commit
from services.rules import mutiny
from services.rules.cards import SEATS
from services.rules.joker_backed import counters_follow, next_to_counter
from services.shell.log_store import Stored

_SEAT_KINDS: Final = ("table_opened", "seat_taken", "seat_left")
_IDLE: Final = frozenset({"match_ended", "table_closed"})


class History:
    """One table's public past.

    Attributes:
        version: of the last commit taken in, 0 for none.
        sequence: of that commit in its stream, 0 for none.
        recorded_at_us: when it was recorded.
        bots: the bots by seat, as (player id, difficulty).
        draw_ms: the table's pace of drawing.
        memory: the open deal; ``None`` before the first commit.
        over: no bot has anything to do any more.
        to_move: the seat whose turn it is to bury, to counter or to play; ``None`` in all other phases.
        declaring: cards are being drawn or declared.
    """

    def __init__(self) -> None:
        self.version = 0
        self.sequence = 0
        self.recorded_at_us = 0
        self.bots: dict[int, tuple[str, int]] = {}
        self.draw_ms = 0
        self.memory: Memory | None = None
        self.over = False
        self.to_move: int | None = None
        self.declaring = False
        self._automatic: set[int] = set()
        self._buried_by: int | None = None

    def next_is(self, commit: Commit) -> bool:
        """Whether a commit is the one that comes next."""
        return commit.version == self.version + 1

    def take(self, sequence: int, commit: Commit) -> None:
        """Take in the next commit."""
        for event in commit.events:
            self._observe(event)
        self._reached(sequence, commit)

    def catch_up(self, stored: Sequence[Stored]) -> None:
        """Take in commits read from the log after ``sequence``; of deals that are over only the seats count.

        Raises:
            CorruptLog: a commit is malformed, or one is missing between two.
        """
        commits = [
            (item.sequence, chain.decode(item.payload, self.version + 1 + place))
            for place, item in enumerate(stored)
        ]
        opening = max(
            (place for place, (_, commit) in enumerate(commits) if _deals(commit)),
            default=0,
        )
        for place, (sequence, commit) in enumerate(commits):
            if not self.next_is(commit):
                raise CorruptLog(self.version + 1, f"version {commit.version} stands in its place")
            if place >= opening:
                self.take(sequence, commit)
                continue
            for event in commit.events:
                if event.WhichOneof("kind") in _SEAT_KINDS:
                    self._observe(event)
            self._reached(sequence, commit)

    def _reached(self, sequence: int, commit: Commit) -> None:
        self.version, self.sequence = commit.version, sequence
        self.recorded_at_us = commit.recorded_at_us

    def actors(self) -> tuple[int, ...]:
        """The bots' seats that may have something to do now, in the order in which they are asked."""
        if self.over:
            return ()
        if self.to_move is not None:
            return tuple(seat for seat in sorted({self.to_move, *self._automatic}) if seat in self.bots)
        first = self.memory.first_drawer if self.memory else 0
        turn = [(first + step) % SEATS for step in range(SEATS)]
        return tuple(seat for seat in turn if seat in self.bots)

    def _observe(self, event: pb.Event) -> None:
        kind = event.WhichOneof("kind")
        if kind == "table_opened":
            self._opened(event.table_opened)
        elif kind == "seat_taken":
            self._seated(event.seat_taken.seat)
        elif kind == "seat_left":
            self.bots.pop(event.seat_left.seat, None)
        elif kind == "auto_play_set":
            change = self._automatic.add if event.auto_play_set.on else self._automatic.discard
            change(event.auto_play_set.seat)
        elif kind in _IDLE:
            self.over = True
        if self.memory is not None:
            self.memory.observe(event)
        self._turn(kind, event)

    def _opened(self, opened: pb.TableOpened) -> None:
        self.memory = Memory(rules_from_wire(opened.rules))
        self.draw_ms = opened.pace.draw_ms
        for seat in opened.seats:
            self._seated(seat)

    def _seated(self, seat: pb.Seat) -> None:
        self.bots.pop(seat.seat, None)
        if seat.difficulty and seat.player_id:
            self.bots[seat.seat] = (seat.player_id, seat.difficulty)

    def _turn(self, kind: str | None, event: pb.Event) -> None:
        if kind == "deal_started":
            self.declaring, self.to_move, self._buried_by = True, None, None
        elif kind == "declaring_closed":
            self.declaring = False
            # Under rules with it a mutiny may be called first, by any of several seats.
            may_end = self.memory is not None and mutiny.is_possible(self.memory.rules)
            self.to_move = None if may_end else event.declaring_closed.declarer
        elif kind == "kitty_taken":
            self.to_move = event.kitty_taken.seat
        elif kind == "buried":
            self._buried_by = event.buried.seat
            self.to_move = self._after_bury(event.buried.seat)
        elif kind == "passed" and self._buried_by is not None:
            self.to_move = self._after_bury(event.passed.seat)
        elif kind == "cards_played":
            self.to_move = (event.cards_played.seat + 1) % SEATS
        elif kind == "trick_taken":
            self.to_move = event.trick_taken.seat
        elif kind in ("deal_scored", "deal_voided", "mutiny_called"):
            self.declaring, self.to_move = False, None

    def _after_bury(self, seat: int) -> int | None:
        """Whose turn it is when a seat has buried, or has passed on the counter that may follow a bury."""
        memory = self.memory
        if memory is None or self._buried_by is None:
            return None
        if counters_follow(memory.rules, memory.dealt):
            following = next_to_counter(self._buried_by, seat)
            if following is not None:
                return following
        return memory.declarer


def _deals(commit: Commit) -> bool:
    return any(event.WhichOneof("kind") == "deal_started" for event in commit.events)
