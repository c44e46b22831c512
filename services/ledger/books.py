"""The ledger's vocabulary: accounts, transfers between them, and a table's book."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from services.pb.ledger.v1.ledger_service_pb2 import MATCH_STATE_OPEN, PURPOSE_RELEASE

SEATS: Final = 4
BOT_PREFIX: Final = "bot:"

GRANTS: Final = "house:grants"
"""Where opening grants come from; it may be negative, as may all accounts but players'."""
FEES: Final = "house:fees"
"""Rake and fees of tables without an operator; prizes come from here too."""
BOTS: Final = "house:bots"
"""Pays and wins for every bot."""

_NAMESPACE: Final = UUID("5d0c3c1e-9d0e-5c5e-8f0a-7a5c1b9e6d42").bytes


def available(player_id: str) -> str:
    """The account of a player's free chips."""
    return f"available:{player_id}"


def held(player_id: str) -> str:
    """The account of a player's chips that a table holds; which one is in ``holds``."""
    return f"held:{player_id}"


@lru_cache(maxsize=65_536)
def player_of(account: str) -> str | None:
    """Whose an account is; None for the house's and operators'."""
    kind, _, player_id = account.partition(":")
    return player_id if kind in {"available", "held"} else None


def transfer_id(name: str) -> bytes:
    """The id of a transfer: the UUIDv5 of a name such as ``<table>/<deal>/<purpose>``."""
    digest = bytearray(hashlib.sha1(_NAMESPACE + name.encode()).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    return bytes(digest)


Posting = tuple[str, int]
"""What a transfer adds to one account: never 0, negative when taken."""


class Purse(NamedTuple):
    """The accounts of the person on a seat."""

    free: str
    kept: str


@lru_cache(maxsize=65_536)
def purses(players: tuple[str, ...], difficulties: tuple[int, ...]) -> tuple[Purse | None, ...]:
    """The accounts behind four seats; None for a bot or a free seat."""
    return tuple(
        None
        if not player or difficulty or player.startswith(BOT_PREFIX)
        else Purse(available(player), held(player))
        for player, difficulty in zip(players, difficulties, strict=True)
    )


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


def release(
    name: str, table_id: str, version: int, at_us: int, amounts: Mapping[str, int]
) -> Transfer | None:
    """The transfer that gives held chips back; None when nothing is held.

    Args:
        name: what its id is made of.
        table_id: the table that held them.
        version: the commit that it follows from, 0 for none.
        at_us: when.
        amounts: how much is held of each player.
    """
    postings = tuple(
        posting
        for player, amount in amounts.items()
        if amount
        for posting in ((held(player), -amount), (available(player), amount))
    )
    if not postings:
        return None
    return Transfer(transfer_id(name), PURPOSE_RELEASE, table_id, 0, version, at_us, postings)


@dataclass(frozen=True)
class TableBook:
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
    state: int = MATCH_STATE_OPEN
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

    def replace(self, **changes: Any) -> "TableBook":
        """The book with some fields changed; every commit makes several, so it must cost little."""
        made = object.__new__(TableBook)
        made.__dict__.update(self.__dict__)
        made.__dict__.update(changes)
        return made

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


_FIELDS: Final = [field.name for field in fields(TableBook)]
_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode(book: TableBook) -> str:
    """A book as the database keeps it."""
    return _JSON([getattr(book, name) for name in _FIELDS])


def decode(stored: str) -> TableBook:
    """The book that ``encode`` wrote, also one of an older version with fewer fields."""
    fields: list[Any] = [tuple(field) if isinstance(field, list) else field for field in json.loads(stored)]
    return TableBook(*fields)
