"""What can be asked of a table, and the two answers: events (from ``decide``) or a ``Refusal``.

Cards are ``bytes`` of indices 0..53 in any order; ``wire.cards_from_wire`` makes them from a request. A
player's command names the player as the caller's token proves it; the seat is found in the table's own
history. ``version`` is the version of the table that the client decided on, for the commands of a turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.game.state import Pace
from services.rules.options import RuleSet
from services.rules.reasons import Reason


@dataclass(frozen=True, slots=True)
class SeatPlan:
    """Who is to sit somewhere when a table is founded; no player_id = free."""

    player_id: str = ""
    difficulty: int = 0
    """``event.v1.Difficulty``; set for bots."""


@dataclass(frozen=True, slots=True)
class OpenTable:
    """Found a table: the first command of every history."""

    table_id: str
    player_id: str
    """The founder."""
    rules: RuleSet
    pace: Pace = field(default_factory=Pace)
    stake: int = 0
    spectators: int = 1
    """``event.v1.Spectators``; 0 is read as OFF = 1."""
    spectator_delay_ms: int = 0
    seats: tuple[SeatPlan, SeatPlan, SeatPlan, SeatPlan] = (SeatPlan(), SeatPlan(), SeatPlan(), SeatPlan())
    previous_table_id: str = ""
    insecure_entropy: str = ""
    operator: str = ""
    """Whose players these are; empty for the house."""
    rake_permille: int = 0
    """The operator's or the house's share of each deal's winnings, in thousandths."""
    prize: int = 0
    """Chips for the winners of the match."""


@dataclass(frozen=True, slots=True)
class Sit:
    """Take a free seat before the match."""

    player_id: str
    seat: int
    difficulty: int = 0


@dataclass(frozen=True, slots=True)
class Leave:
    """Free a seat before the match; escape for good in mid-match."""

    player_id: str


@dataclass(frozen=True, slots=True)
class Ready:
    """Be ready for the next deal."""

    player_id: str
    client_seed: bytes = b""
    """0..32 bytes for the shuffle."""


@dataclass(frozen=True, slots=True)
class Declare:
    """Show cards to set or override trump: the whole showing; a partner shows only what it adds."""

    player_id: str
    cards: bytes


@dataclass(frozen=True, slots=True)
class Pass:
    """Pass in the declaring window, on a mutiny, or on a counter."""

    player_id: str


@dataclass(frozen=True, slots=True)
class CallMutiny:
    """Claim a redeal for a hand poor in points."""

    player_id: str
    version: int


@dataclass(frozen=True, slots=True)
class BuryCards:
    """Bury as many cards as the kitty has."""

    player_id: str
    version: int
    cards: bytes


@dataclass(frozen=True, slots=True)
class TakeCounter:
    """Counter after a bury and take the kitty."""

    player_id: str
    version: int
    cards: bytes


@dataclass(frozen=True, slots=True)
class Play:
    """Lead or follow."""

    player_id: str
    version: int
    cards: bytes


@dataclass(frozen=True, slots=True)
class SetAutoPlay:
    """Let the server play the seat, or take it back."""

    player_id: str
    on: bool


@dataclass(frozen=True, slots=True)
class EndUnfunded:
    """A service's: end the match between two deals, because a seat cannot cover its stake (RULES §9)."""

    player_id: str
    """The service."""


@dataclass(frozen=True, slots=True)
class Expire:
    """The server's: what is due (``waits.due_us``) is done: play for a seat, deal, close."""


@dataclass(frozen=True, slots=True)
class GiveTime:
    """The server's: a player's limit passed while nobody could act, so it is given again (RULES §7)."""


@dataclass(frozen=True, slots=True)
class VoidDeal:
    """The server's: a deal whose secrets cannot be opened any more is given up."""


@dataclass(frozen=True, slots=True)
class Close:
    """The server's: close the table."""

    reason: int
    """``event.v1.CloseReason``."""


PlayerCommand = (
    OpenTable
    | Sit
    | Leave
    | Ready
    | Declare
    | Pass
    | CallMutiny
    | BuryCards
    | TakeCounter
    | Play
    | SetAutoPlay
    | EndUnfunded
)
ServerCommand = Expire | GiveTime | VoidDeal | Close
Command = PlayerCommand | ServerCommand


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a command changes nothing. It tells nothing that the caller may not know.

    Attributes:
        reason: one of the closed list.
        detail: named values for the reason's text (``reasons.message``); for a follow that the rules refuse
            also ``shapes``, the (width, length) groups owed for each component of the lead.
    """

    reason: Reason
    detail: Mapping[str, object] = field(default_factory=dict)
