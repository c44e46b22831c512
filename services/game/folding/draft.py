"""A table while a commit is folded into it: the only thing that changes in place, and nobody else sees it."""

from typing import Any, Final, cast

from services.game.state import Founding, SeatState, Seed, Table
from services.rules import levels

_CARD: Final = tuple(bytes((card,)) for card in range(256))


def hand_without(hand: bytes, cards: bytes) -> bytes:
    """An ascending hand less cards that it is known to hold."""
    for card in cards:
        hand = hand.replace(_CARD[card], b"", 1)
    return hand


class Draft:
    """The fields of ``Table``; ``version`` and ``recorded_at_us`` are the commit's."""

    __slots__ = (*Table._fields,)

    version: int
    recorded_at_us: int
    turn_version: int
    waiting_since_us: int
    given_us: int
    seats: tuple[SeatState, SeatState, SeatState, SeatState]
    recent: tuple[bytes, bytes, bytes, bytes, bytes]
    phase: Any
    match: levels.Match
    next_seed: Seed | None
    last_score: bytes
    newest_d: int
    founding: Founding

    def __init__(self, state: Table, version: int, recorded_at_us: int) -> None:
        self.version = version
        self.recorded_at_us = recorded_at_us
        (
            _,
            _,
            self.turn_version,
            self.waiting_since_us,
            self.given_us,
            self.seats,
            self.recent,
            self.phase,
            self.match,
            self.next_seed,
            self.last_score,
            self.newest_d,
            self.founding,
        ) = state

    def freeze(self) -> Table:
        """The table after the commit."""
        return Table(
            self.version,
            self.recorded_at_us,
            self.turn_version,
            self.waiting_since_us,
            self.given_us,
            self.seats,
            self.recent,
            self.phase,
            self.match,
            self.next_seed,
            self.last_score,
            self.newest_d,
            self.founding,
        )

    def begin_wait(self) -> None:
        """A new turn, and its time, begin with this commit."""
        self.turn_version = self.version
        self.waiting_since_us = self.recorded_at_us
        self.given_us = 0

    def set_seat(self, seat: int, held: SeatState) -> None:
        """Change one seat."""
        seats = list(self.seats)
        seats[seat] = held
        self.seats = cast("tuple[SeatState, SeatState, SeatState, SeatState]", tuple(seats))

    def nobody_ready(self) -> None:
        """Every seat's readiness and seed for the next deal are void."""
        self.seats = cast(
            "tuple[SeatState, SeatState, SeatState, SeatState]",
            tuple(held._replace(ready=False, client_seed=b"") for held in self.seats),
        )
