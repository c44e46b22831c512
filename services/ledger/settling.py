"""What a table's commits mean in chips: pure, and the one place of every rule of RULES §9.

A *book* is what the commits of kind `d` of one table have said so far. ``settle`` takes the book, the next
commit and what the players have, and gives the next book and the transfers between accounts. Nothing here
knows of databases: the consumer, the audit and whoever rebuilds a ledger fold the same commits with it.

Money moves at a table with a stake or a prize. There, all chips are held at once when the four seats are
filled, and each person is bound to that table until the match is over or the seat is left before it began.
Since nobody is bound to two tables, balances follow from the logs alone.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from services.pb.event.v1 import event_pb2 as events_pb
from services.pb.ledger.v1.ledger_service_pb2 import MatchState, Purpose

SEATS: Final = 4
HOLD_STAKES: Final = 8
"""Base stakes that are held of each person at a table."""
ESCAPE_STAKES: Final = 8
"""Base stakes that an escape costs (RULES §9); each of the three others gets one."""
BOT_PREFIX: Final = "bot:"

GRANTS: Final = "house:grants"
FEES: Final = "house:fees"
BOTS: Final = "house:bots"

_NAMESPACE: Final = UUID("5d0c3c1e-9d0e-5c5e-8f0a-7a5c1b9e6d42").bytes


class Posting(NamedTuple):
    """What a transfer adds to one account."""

    account: str
    amount: int
    """Never 0; negative when taken."""


class Transfer(NamedTuple):
    """Chips that move, for one reason; the postings sum to zero."""

    id: bytes
    """16 bytes: a UUIDv5 of table, deal and purpose."""
    purpose: int
    """Purpose of ledger.v1."""
    table_id: str
    """Empty for what happens at no table."""
    deal: int
    version: int
    """The commit that it follows from; 0 for none."""
    at_us: int
    postings: tuple[Posting, ...]


class TableBook(NamedTuple):
    """What the commits of one table have said so far, as far as money, results and ratings go."""

    table_id: str
    version: int
    """The newest commit of kind `d` in it."""
    opened_at_us: int
    preset: str
    stake: int
    operator: str
    rake_permille: int
    prize: int
    fine_quarters: int
    """Rule option failed_throw_quarters."""
    escape_fee: bool
    players: tuple[str, ...]
    """Who sits on seats 0 to 3; empty for a free one."""
    difficulties: tuple[int, ...]
    """Difficulty of the bots there, 0 for people."""
    escaped: tuple[bool, ...] = (False,) * SEATS
    state: int = MatchState.MATCH_STATE_OPEN
    closed: bool = False
    """The table is closed; nothing follows."""
    ended_at_us: int = 0
    winning_side: int = -1
    """-1 while there is none, and for a draw."""
    advanced: tuple[int, ...] = (0, 0)
    ended: int = 0
    """Deals that are over, scored or not."""
    scored: int = 0
    """Deals that were scored."""
    won: tuple[int, ...] = (0,) * SEATS
    """Chips that the seats won in the match."""
    deal_won: tuple[int, ...] = (0,) * SEATS
    """Of those, since the last scored deal: escapes in mid-deal count with the deal."""
    held: bool = False
    """The stakes are held: the match may be played."""
    unfunded: tuple[int, ...] = ()
    """Seats of people who could not be topped up to eight base stakes after the last deal, or at first."""
    rated: bool = False

    @property
    def moves_money(self) -> bool:
        """Whether chips can move at the table."""
        return self.stake > 0 or self.prize > 0

    @property
    def house(self) -> str:
        """The account that gets rake and fees and pays prizes."""
        return f"operator:{self.operator}" if self.operator else FEES

    def is_bot(self, seat: int) -> bool:
        """Whether a bot sits there."""
        return self.difficulties[seat] != 0 or self.players[seat].startswith(BOT_PREFIX)

    def people(self) -> list[str]:
        """The people on the seats."""
        return [player for seat, player in enumerate(self.players) if player and not self.is_bot(seat)]


class DealResult(NamedTuple):
    """A scored deal."""

    deal: int
    attackers_points: int
    winning_side: int
    nominal_levels: int
    won: tuple[int, ...]
    """Chips of seats 0 to 3, fines and escapes included."""
    scored_at_us: int
    version: int


class Funds(NamedTuple):
    """What players have, as far as one commit can need it."""

    balances: Mapping[str, int]
    """By account; the available account of everybody who was ever seen is there."""
    bound: Mapping[str, str]
    """The table that a player's chips are held for."""
    grant: int
    """The opening grant."""


class Settled(NamedTuple):
    """What a commit comes to."""

    book: TableBook
    transfers: tuple[Transfer, ...] = ()
    seen: tuple[str, ...] = ()
    """People who have no account yet."""
    binds: tuple[str, ...] = ()
    """People who are bound to the table from now on."""
    frees: tuple[str, ...] = ()
    """People who may be bound elsewhere from now on."""
    deal: DealResult | None = None


def transfer_id(name: str) -> bytes:
    """The id of a transfer: UUIDv5 of a name such as ``<table>/<deal>/<purpose>``."""
    digest = bytearray(hashlib.sha1(_NAMESPACE + name.encode(), usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    return bytes(digest)


def available(player_id: str) -> str:
    """The account of a player's free chips."""
    return f"available:{player_id}"


def held(player_id: str) -> str:
    """The account of a player's chips that a table holds."""
    return f"held:{player_id}"
