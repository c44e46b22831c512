"""The state of a table: what folding its commits gives, and nothing else.

A ``Table`` holds what every phase needs and one ``Phase``, a type of its own for each place where a table
can stand:

    Seating → Declaring → [Mutiny] → Bury → [Counter → …] → Tricks → Scored → Declaring → … → Over → Closed

A counter leads back to ``Bury``, a mutiny at once to ``Scored``: between two deals.

Everything is immutable. Cards are ``bytes`` of indices 0..53, a hand ascending; levels are 0..12, trumps
0..4, as ``engine_ext.codes`` numbers them. What a fold without keys cannot know is ``None`` (cards) or empty
(seeds). ``Table``, ``SeatState`` and ``Tricks`` are named tuples because the fold makes one of each for
every play, and they are made three times as fast as frozen dataclasses.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from services.rules import declarations
from services.rules.declarations import Declarations, Standing
from services.rules.levels import Match
from services.rules.options import RuleSet

SEATS: Final = 4
NOBODY: Final = 4
"""The slot of ``Table.recent`` for the founder's command and for those who left."""

UNKNOWN_CARD: Final = 255
"""Stands for each card of a sealed declaration in a fold without keys, where only their number is known."""

Hands = tuple[bytes | None, bytes | None, bytes | None, bytes | None]
"""The cards of seats 0..3, each ascending; ``None`` where they are sealed."""
UNKNOWN_HANDS: Final[Hands] = (None, None, None, None)


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a table plays, in milliseconds (the defaults: ARCHITECTURE §4).

    Attributes:
        draw_ms: between two cards drawn by one seat; 0 = all at once.
        declare_ms: the declaring window after the last card; 0 = it closes by passes only.
        mutiny_ms: to call a mutiny, under rules with it; 0 = nobody can.
        bury_ms: to bury.
        turn_ms: for a turn.
        next_deal_ms: from a deal's end to the next deal.
        away_turns: turns in a row played by the server before a seat counts as away.
    """

    draw_ms: int = 300
    declare_ms: int = 8_000
    mutiny_ms: int = 10_000
    bury_ms: int = 60_000
    turn_ms: int = 20_000
    next_deal_ms: int = 10_000
    away_turns: int = 3


@dataclass(frozen=True, slots=True)
class Founding:
    """What was settled when the table was founded and never changes."""

    table_id: str
    creator_id: str
    rules: RuleSet
    pace: Pace
    stake: int = 0
    spectators: int = 1
    """``event.v1.Spectators``; OFF = 1."""
    spectator_delay_ms: int = 0
    previous_table_id: str = ""
    insecure_entropy: str = ""
    operator: str = ""
    """Whose players these are; empty for the house."""
    rake_permille: int = 0
    """The operator's or the house's share of each deal's winnings, in thousandths."""
    prize: int = 0
    """Chips for the winners of the match."""


class SeatState(NamedTuple):
    """One seat."""

    player_id: str = ""
    """Empty while the seat is free."""
    difficulty: int = 0
    """``event.v1.Difficulty``; 0 = no bot."""
    ready: bool = False
    client_seed: bytes = b""
    """0..32 bytes, given with ``Ready`` for the next deal."""
    auto_play: bool = False
    """The server plays this seat."""
    away: bool = False
    """``auto_play`` was set by the server, because the player let too many turns run out."""
    escaped: bool = False
    """The player left for good in mid-match."""
    missed: int = 0
    """Turns in a row that ran out."""


FREE_SEAT: Final = SeatState()


@dataclass(frozen=True, slots=True)
class Seed:
    """The server's part of one deal's shuffle, committed to before the players' parts exist."""

    deal: int
    commitment: bytes
    """SHA-256 of the server seed."""
    salt: bytes
    key_id: str
    server_seed: bytes = b""
    """32 bytes; empty where it is sealed."""


@dataclass(frozen=True, slots=True)
class Deal:
    """What is fixed when a deal starts."""

    seed: Seed
    client_seeds: tuple[bytes, bytes, bytes, bytes]
    """32 bytes each, as mixed."""
    first_drawer: int
    declarer: int | None
    """Who holds the declarer's place; ``None`` on a first deal."""
    level: int
    started_at_us: int

    @property
    def number(self) -> int:
        """The deal, from 1."""
        return self.seed.deal

    def as_declared(self) -> declarations.Deal:
        """The deal as the rules of declaring see it."""
        return declarations.Deal(level=self.level, declarer=self.declarer, first_drawer=self.first_drawer)


@dataclass(frozen=True, slots=True)
class Settled:
    """What the declaring window settled."""

    trump: int
    declarer: int
    standing: Standing | None = None
    """The declaration or counter that stands; ``None`` when nobody has declared."""
    turned_card: int | None = None
    """The kitty card that was turned, because nobody declared."""


# ----------------------------------------------------------------------------------------------------- phases


@dataclass(frozen=True, slots=True)
class Seating:
    """Seats are taken; the first deal starts when all four are ready."""


@dataclass(frozen=True, slots=True)
class Declaring:
    """Cards are drawn and declared; the window may outlast the draw."""

    deal: Deal
    hands: Hands
    kitty: bytes | None
    """The cards left over, in deck order."""
    declarations: Declarations
    """What was shown, what stands, and who has passed since; sealed cards are ``UNKNOWN_CARD``."""
    reopened_at_us: int
    """When the last declaration was accepted, or the attackers' turn to declare came (``joker_backed``); when
    the deal started before that."""


@dataclass(frozen=True, slots=True)
class Mutiny:
    """A redeal may be claimed, before the kitty is taken (rules with ``mutiny`` or other redeals)."""

    deal: Deal
    settled: Settled
    hands: Hands
    kitty: bytes | None
    """The cards left over, in deck order."""
    passes: int
    """Bit s is set when seat s has declined."""

    def has_passed(self, seat: int) -> bool:
        """Whether a seat has declined."""
        return bool(self.passes >> seat & 1)


@dataclass(frozen=True, slots=True)
class Bury:
    """The declarer buries, or who countered buries again."""

    deal: Deal
    settled: Settled
    hands: Hands
    """The kitty is in the hand of who buries."""
    kitty: bytes | None
    """The cards that were taken, ascending."""
    seat: int
    """Who buries."""


@dataclass(frozen=True, slots=True)
class Counter:
    """After a bury a seat may counter and take the kitty again (``joker_backed``)."""

    deal: Deal
    settled: Settled
    """As the last counter left it."""
    hands: Hands
    buried: bytes | None
    """The buried cards, ascending."""
    buried_by: int
    to_act: int
    """Who may counter; all seats from the one after ``buried_by`` to here have passed."""

    def has_passed(self, seat: int) -> bool:
        """Whether a seat has passed since the last bury."""
        return (seat - self.buried_by - 1) % SEATS < (self.to_act - self.buried_by - 1) % SEATS


class Tricks(NamedTuple):
    """Tricks are played."""

    deal: Deal
    settled: Settled
    hands: Hands
    left: int
    """Cards in each hand when the present trick began."""
    leader: int
    trick: tuple[bytes, ...]
    """The plays of the present trick, from the leader on; each ascending."""
    attackers_points: int
    """In tricks won so far."""
    last_trick: tuple[bytes, ...]
    """The plays of the trick before, from ``last_leader`` on; empty in the first trick."""
    last_leader: int
    buried: bytes | None
    """The buried cards, ascending."""
    buried_by: int | None
    """``None`` when there is no kitty."""
    fines: int
    """What failed throws have moved (``throw_fine_points``), for the attackers when positive."""
    failed_throws: tuple[int, int, int, int]
    """Throws of seats 0..3 that failed in this deal."""
    throw_refused: bool
    """The leader has tried a throw in this turn that the other hands do not allow."""

    @property
    def to_move(self) -> int:
        """The seat whose turn it is."""
        return (self.leader + len(self.trick)) % SEATS


@dataclass(frozen=True, slots=True)
class Scored:
    """Between two deals."""


@dataclass(frozen=True, slots=True)
class Over:
    """The match is over."""

    result: bytes
    """A serialised ``event.v1.MatchEnded``."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The table is closed; nothing follows."""

    reason: int
    """``event.v1.CloseReason``."""
    result: bytes = b""
    """As in ``Over``; empty when the match had no end."""


Phase = Seating | Declaring | Mutiny | Bury | Counter | Tricks | Scored | Over | Closed
Dealt = Declaring | Mutiny | Bury | Counter | Tricks
"""The phases in which a deal is open."""


class Table(NamedTuple):
    """A table after its commit ``version``."""

    version: int
    recorded_at_us: int
    """Of that commit."""
    turn_version: int
    """The version after which the present turn began: a turn command must be based on it or a later one."""
    waiting_since_us: int
    """When the present wait began."""
    given_us: int
    """By how much the present wait was lengthened."""
    seats: tuple[SeatState, SeatState, SeatState, SeatState]
    recent: tuple[bytes, bytes, bytes, bytes, bytes]
    """The last 16 commands of seats 0..3 and of ``NOBODY``, packed (``recent.py``)."""
    phase: Phase
    match: Match
    """Levels, who holds the declarer's place, deals scored."""
    next_seed: Seed | None
    """For the next deal; ``None`` while a deal is open and after the match."""
    last_score: bytes
    """The last deal's ``event.v1.DealScored``, without its reveal and next seed; empty before the first."""
    newest_d: int
    """The version of the newest commit of kind ``d``."""
    founding: Founding

    @property
    def table_id(self) -> str:
        """The table's id."""
        return self.founding.table_id

    @property
    def rules(self) -> RuleSet:
        """The rules that it plays by."""
        return self.founding.rules

    @property
    def pace(self) -> Pace:
        """How fast it plays."""
        return self.founding.pace

    @property
    def deal_number(self) -> int:
        """The open deal, or the last one that was dealt; 0 before the first."""
        if isinstance(self.phase, Dealt):
            return self.phase.deal.number
        return self.next_seed.deal - 1 if self.next_seed else self.match.deals

    def seat_of(self, player_id: str) -> int | None:
        """The seat 0..3 of a player, an escaped one's too; ``None`` when the player has none."""
        for seat, state in enumerate(self.seats):
            if state.player_id == player_id:
                return seat
        return None


def side_of(seat: int) -> int:
    """The side 0 or 1 of a seat."""
    return seat & 1
