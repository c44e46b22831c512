"""All of a ledger's database at one moment, for the audit."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.ledger import books
from services.ledger.books import TableBook, Transfer
from services.ledger.schema import (
    accounts,
    applied,
    archives,
    deals,
    holds,
    match_players,
    matches,
    parked,
    positions,
    postings,
    rating_history,
    standings,
    stats,
    transfers,
    unapplied,
)


class Posted(NamedTuple):
    """A posting as it stands there."""

    transfer_id: bytes
    account: str
    amount: int
    balance_after: int


class Moved(NamedTuple):
    """A transfer as it stands there."""

    seq: int
    """The place of its first posting; 0 without any."""
    reverses: bytes | None
    transfer: Transfer


class Archived(NamedTuple):
    """A table's row of ``archives``."""

    table_id: str
    head: bytes
    commits: int
    place: str
    fault: str


@dataclass(frozen=True)
class Snapshot:
    """Rows by their keys.

    Attributes:
        balances: by account.
        postings: in their order.
        transfers: by id.
        books: by table.
        columns: of ``matches`` that repeat what the book says, by table.
        deals: by table and deal.
        people: (opened_at_us, seat) by player and table.
        stats: by player and preset.
        ratings: by player, ended_at_us and table.
        standings: by season, operator and player.
        holds: tables by player.
        applied: hashes by version, by table.
        parked: why tables are, by table.
        unapplied: (table, version) of commits kept aside.
        positions: (created, sequence) by stream.
        archives: those that were made or refused.
    """

    balances: dict[str, int]
    postings: list[Posted]
    transfers: dict[bytes, Moved]
    books: dict[str, TableBook]
    columns: dict[str, tuple[Any, ...]]
    deals: dict[tuple[str, int], tuple[Any, ...]]
    people: dict[tuple[str, str], tuple[int, int]]
    stats: dict[tuple[str, str], tuple[int, ...]]
    ratings: dict[tuple[Any, ...], tuple[Any, ...]]
    standings: dict[tuple[Any, ...], tuple[Any, ...]]
    holds: dict[str, str]
    applied: dict[str, dict[int, bytes]]
    parked: dict[str, str]
    unapplied: set[tuple[str, int]]
    positions: dict[int, tuple[str, int]]
    archives: list[Archived]


async def load(connection: AsyncConnection) -> Snapshot:
    """The whole database, as one transaction sees it."""

    async def rows(table: Table) -> list[Any]:
        return list(await connection.execute(select(table).order_by(*table.primary_key)))

    posted, moved = await _money(connection)
    hashes: dict[str, dict[int, bytes]] = {}
    for row in await rows(applied):
        hashes.setdefault(row.table_id, {})[row.version] = bytes(row.hash)
    played = await rows(matches)
    return Snapshot(
        balances={row.name: row.balance for row in await rows(accounts)},
        postings=posted,
        transfers=moved,
        books={row.table_id: books.decode(row.book) for row in played},
        columns={
            row.table_id: (row.state, row.unfunded, row.opened_at_us, row.ended_at_us, row.rated)
            for row in played
        },
        deals={
            (row.table_id, row.deal): (
                row.deal,
                row.attackers_points,
                row.winning_side,
                row.nominal_levels,
                (row.won_0, row.won_1, row.won_2, row.won_3),
                row.scored_at_us,
                row.version,
            )
            for row in await rows(deals)
        },
        people={
            (row.player_id, row.table_id): (row.opened_at_us, row.seat) for row in await rows(match_players)
        },
        stats={(row.player_id, row.preset): tuple(row)[2:] for row in await rows(stats)},
        ratings={tuple(row)[:3]: tuple(row)[3:] for row in await rows(rating_history)},
        standings={tuple(row)[:3]: tuple(row)[3:] for row in await rows(standings)},
        holds={row.player_id: row.table_id for row in await rows(holds)},
        applied=hashes,
        parked={row.table_id: row.why for row in await rows(parked)},
        unapplied={(row.table_id, row.version) for row in await rows(unapplied)},
        positions={row.stream: (row.created, row.sequence) for row in await rows(positions)},
        archives=[
            Archived(row.table_id, bytes(row.head), row.commits, row.place, row.fault)
            for row in await rows(archives)
            if row.archived_at_us
        ],
    )


async def _money(connection: AsyncConnection) -> tuple[list[Posted], dict[bytes, Moved]]:
    posted: list[Posted] = []
    parts: dict[bytes, list[tuple[str, int]]] = {}
    first: dict[bytes, int] = {}
    for row in await connection.execute(select(postings).order_by(postings.c.seq)):
        identity = bytes(row.transfer_id)
        posted.append(Posted(identity, row.account, row.amount, row.balance_after))
        parts.setdefault(identity, []).append((row.account, row.amount))
        first.setdefault(identity, row.seq)
    moved: dict[bytes, Moved] = {}
    for row in await connection.execute(select(transfers)):
        identity = bytes(row.id)
        moved[identity] = Moved(
            first.get(identity, 0),
            row.reverses,
            Transfer(
                identity,
                row.purpose,
                row.table_id,
                row.deal,
                row.version,
                row.at_us,
                tuple(parts.get(identity, ())),
            ),
        )
    return posted, moved
