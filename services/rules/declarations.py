"""The values that declaring works with: a deal as it sees it, what has been shown, and a refusal."""

from dataclasses import dataclass, replace

from services.rules.cards import SEATS
from services.rules.reasons import Reason


@dataclass(frozen=True, slots=True)
class Deal:
    """A deal as declaring sees it.

    Attributes:
        level: the level 0..12 that is played.
        declarer: the seat that holds the declarer's place; ``None`` on a first deal.
        first_drawer: the seat that drew first (D18).
    """

    level: int
    declarer: int | None
    first_drawer: int


@dataclass(frozen=True, slots=True)
class Standing:
    """The declaration that stands.

    Attributes:
        seat: whose it is.
        cards: what that seat shows, ascending.
        trump: the trump that it makes.
        added: what the partner has added (对家保), ascending.
        locked: only no-trump counters it (定主, joker_backed).
    """

    seat: int
    cards: bytes
    trump: int
    added: bytes = b""
    locked: bool = False

    @property
    def count(self) -> int:
        """Cards that it counts, the partner's included."""
        return len(self.cards) + len(self.added)

    @property
    def adder(self) -> int:
        """The seat that may add to it: the partner."""
        return (self.seat + 2) % SEATS


@dataclass(frozen=True, slots=True)
class Declarations:
    """The declarations of a deal so far.

    Attributes:
        standing: the one that stands; ``None`` when nobody has declared.
        first: the first seat whose declaration was accepted (D12).
        shown: every accepted showing as (seat, cards ascending), in order.
        passes: bit s is set when seat s has passed since the last declaration of another.
        new_declarer: who takes over the declarer's place on a later deal (D27); ``None`` = nobody.
    """

    standing: Standing | None = None
    first: int | None = None
    shown: tuple[tuple[int, bytes], ...] = ()
    passes: int = 0
    new_declarer: int | None = None

    def has_passed(self, seat: int) -> bool:
        """Whether a seat has passed since the last declaration of another."""
        return bool(self.passes >> seat & 1)

    def accept(self, standing: Standing, seat: int, cards: bytes) -> "Declarations":
        """These declarations with one more accepted; it reopens the three others' passes."""
        return replace(
            self,
            standing=standing,
            first=seat if self.first is None else self.first,
            shown=(*self.shown, (seat, cards)),
            passes=self.passes & 1 << seat,
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a showing or a pass is refused."""

    reason: Reason
