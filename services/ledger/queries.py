"""What can be asked of the ledger's database: plain readings, whoever may see them."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, func, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from services.ledger import books
from services.ledger.books import TableBook, available, held
from services.ledger.folding import STATS
from services.ledger.ratings import Standing, deviation, points
from services.ledger.schema import (
    accounts,
    archives,
    deals,
    holds,
    match_players,
    matches,
    parked,
    postings,
    standings,
    stats,
    transfers,
)
from services.pb.event.v1.event_pb2 import Difficulty, Seat
from services.pb.ledger.v1 import ledger_service_pb2 as pb

_MS: Final = 1000
_NEWEST: Final = text(
    "SELECT a.player_id, m.book FROM accounts a"
    " LEFT JOIN match_players p ON p.player_id = a.player_id"
    " AND (p.opened_at_us, p.table_id) = (SELECT n.opened_at_us, n.table_id FROM match_players n"
    " WHERE n.player_id = a.player_id ORDER BY n.opened_at_us DESC, n.table_id DESC LIMIT 1)"
    " LEFT JOIN matches m ON m.table_id = p.table_id WHERE a.name IN :names"
).bindparams(bindparam("names", expanding=True))


def end_of(at_ms: int) -> int:
    """The microsecond after everything that happened at a time in milliseconds, or before it."""
    return (at_ms + 1) * _MS


async def operators(connection: AsyncConnection, players: Sequence[str]) -> dict[str, str | None]:
    """Whose players these are: the operator of their newest table, empty for the house.

    Who was never seen is left out; None stands for one who has sat at no table yet.
    """
    if not players:
        return {}
    rows = await connection.execute(_NEWEST, {"names": [available(player) for player in players]})
    return {row.player_id: row.book and books.decode(row.book).operator for row in rows}


async def balance(connection: AsyncConnection, player: str) -> pb.GetBalanceResponse:
    """What a player owns now."""
    rows = await connection.execute(
        select(accounts.c.name, accounts.c.balance).where(
            accounts.c.name.in_([available(player), held(player)])
        )
    )
    amounts = {row.name: row.balance for row in rows}
    kept = amounts.get(held(player), 0)
    table_id = await connection.scalar(select(holds.c.table_id).where(holds.c.player_id == player))
    return pb.GetBalanceResponse(
        player_id=player,
        available=amounts.get(available(player), 0),
        held=kept,
        holds=[pb.Hold(table_id=table_id, amount=kept)] if table_id is not None and kept else [],
    )


async def balance_at(connection: AsyncConnection, player: str, at_ms: int) -> pb.GetBalanceResponse:
    """What a player owned at a time, from the postings until then."""
    rows = await connection.execute(
        select(postings.c.account, transfers.c.table_id, func.sum(postings.c.amount))
        .join(transfers, transfers.c.id == postings.c.transfer_id)
        .where(postings.c.player_id == player, postings.c.at_us < end_of(at_ms))
        .group_by(postings.c.account, transfers.c.table_id)
        .order_by(transfers.c.table_id)
    )
    free, kept = 0, []
    for account, table_id, amount in rows:
        if account == available(player):
            free += int(amount)
        elif amount:
            kept.append(pb.Hold(table_id=table_id, amount=int(amount)))
    return pb.GetBalanceResponse(
        player_id=player, available=free, held=sum(hold.amount for hold in kept), holds=kept
    )


async def statement(
    connection: AsyncConnection, player: str, before: int | None, size: int
) -> tuple[list[pb.Entry], int | None]:
    """Changes of a player's chips, newest first, and where the next page begins.

    Args:
        connection: reading.
        player: whose.
        before: the number of the posting that the page before ended with; None for the newest page.
        size: entries at most.
    """
    query = (
        select(postings, transfers.c.purpose, transfers.c.table_id, transfers.c.deal)
        .join(transfers, transfers.c.id == postings.c.transfer_id)
        .where(postings.c.player_id == player)
        .order_by(postings.c.seq.desc())
        # A transfer has two postings of a player at most.
        .limit(2 * size + 1)
    )
    if before is not None:
        query = query.where(postings.c.seq < before)
    rows = (await connection.execute(query)).all()
    groups = [list(group) for _, group in groupby(rows, key=attrgetter("transfer_id"))]
    shown = groups[:size]
    after: list[int | None] = [
        next((row.balance_after for row in group if row.account == available(player)), None)
        for group in shown
    ]
    oldest: int | None = None
    entries = []
    for place in range(len(shown) - 1, -1, -1):
        if after[place] is None:
            # Nothing was moved to or from the available chips, so they are what they were.
            if oldest is None:
                oldest = await _available_before(connection, player, shown[place][-1].seq)
            after[place] = oldest
        oldest = after[place]
        entries.append(_entry(shown[place], player, oldest or 0))
    return entries[::-1], shown[-1][-1].seq if len(groups) > size else None


async def _available_before(connection: AsyncConnection, player: str, seq: int) -> int:
    newest = (
        select(postings.c.balance_after)
        .where(postings.c.player_id == player, postings.c.account == available(player), postings.c.seq < seq)
        .order_by(postings.c.seq.desc())
        .limit(1)
    )
    return int(await connection.scalar(newest) or 0)


def _entry(group: Sequence[Any], player: str, after: int) -> pb.Entry:
    first = group[0]
    return pb.Entry(
        transfer_id=str(UUID(bytes=first.transfer_id)),
        purpose=first.purpose,
        available=sum(row.amount for row in group if row.account == available(player)),
        held=sum(row.amount for row in group if row.account == held(player)),
        available_after=after,
        table_id=first.table_id,
        deal=first.deal,
        at_ms=first.at_us // _MS,
    )


class Known(NamedTuple):
    """A match, and what one must know to show it."""

    book: TableBook
    parked: bool
    """Something is wrong with its log."""
    head: bytes
    """The archive's last commit; empty without an archive."""
    place: str
    """The archive's file; empty without an archive."""
    fault: str
    """Why its log was refused; empty for a good one."""

    def message(self) -> pb.Match:
        """As it is told."""
        book = self.book
        finished = book.state == pb.MATCH_STATE_FINISHED
        return pb.Match(
            table_id=book.table_id,
            state=pb.MATCH_STATE_PARKED if self.parked else pb.MatchState.ValueType(book.state),
            preset=book.preset,
            stake=book.stake,
            seats=[
                Seat(
                    seat=seat,
                    player_id=player,
                    difficulty=Difficulty.ValueType(book.difficulties[seat]),
                )
                for seat, player in enumerate(book.players)
            ],
            escaped=[seat for seat, escaped in enumerate(book.escaped) if escaped],
            opened_at_ms=book.opened_at_us // _MS,
            ended_at_ms=book.ended_at_us // _MS,
            winning_side=book.winning_side if finished and book.winning_side >= 0 else None,
            advanced=book.advanced,
            deals=book.scored,
            won=book.won,
            rated=book.rated,
            head=self.head,
        )


_MATCH: Final = (
    select(
        matches.c.table_id,
        matches.c.opened_at_us,
        matches.c.book,
        parked.c.table_id.label("parked"),
        archives.c.head,
        archives.c.place,
        archives.c.fault,
    )
    .outerjoin(parked, parked.c.table_id == matches.c.table_id)
    .outerjoin(archives, archives.c.table_id == matches.c.table_id)
)


def _known(row: Any) -> Known:
    return Known(
        books.decode(row.book),
        row.parked is not None or bool(row.fault),
        row.head or b"",
        row.place or "",
        row.fault or "",
    )


async def match(connection: AsyncConnection, table_id: str) -> Known | None:
    """One match, if there is one."""
    row = (await connection.execute(_MATCH.where(matches.c.table_id == table_id))).one_or_none()
    return None if row is None else _known(row)


async def list_matches(
    connection: AsyncConnection, player: str, before: tuple[int, str] | None, size: int
) -> tuple[list[pb.Match], tuple[int, str] | None]:
    """A player's matches, newest first, and where the next page begins."""
    key = tuple_(match_players.c.opened_at_us, match_players.c.table_id)
    query = (
        _MATCH.join(match_players, match_players.c.table_id == matches.c.table_id)
        .where(match_players.c.player_id == player)
        .order_by(match_players.c.opened_at_us.desc(), match_players.c.table_id.desc())
        .limit(size + 1)
    )
    if before is not None:
        query = query.where(key < tuple_(*before))
    rows = (await connection.execute(query)).all()
    shown = rows[:size]
    place = (shown[-1].opened_at_us, shown[-1].table_id) if len(rows) > size else None
    return [_known(row).message() for row in shown], place


async def deals_of(connection: AsyncConnection, table_id: str) -> list[pb.Deal]:
    """The scored deals of a match in their order."""
    rows = await connection.execute(select(deals).where(deals.c.table_id == table_id).order_by(deals.c.deal))
    return [
        pb.Deal(
            deal=row.deal,
            attackers_points=row.attackers_points,
            winning_side=row.winning_side,
            nominal_levels=row.nominal_levels,
            won=[row.won_0, row.won_1, row.won_2, row.won_3],
            scored_at_ms=row.scored_at_us // _MS,
            version=row.version,
        )
        for row in rows
    ]


async def stats_of(connection: AsyncConnection, player: str, preset: str) -> pb.GetStatsResponse:
    """What a player has done, with one preset or (empty) with all of them."""
    sums = [func.coalesce(func.sum(stats.c[name]), 0).label(name) for name in STATS]
    query = select(*sums).where(stats.c.player_id == player)
    if preset:
        query = query.where(stats.c.preset == preset)
    row = (await connection.execute(query)).one()
    return pb.GetStatsResponse(**{name: int(value) for name, value in row._mapping.items()})


def rating(player: str, standing: Standing) -> pb.Rating:
    """A rating as it is told."""
    return pb.Rating(
        player_id=player,
        rating=points(standing.mu),
        deviation=deviation(standing.sigma),
        matches=standing.matches,
    )


class Ranked(NamedTuple):
    """One row of a leaderboard."""

    score: float
    player: str
    rank: int
    message: pb.Rank


_board = standings.c


async def leaderboard(
    connection: AsyncConnection, season: str, operator: str, after: tuple[float, str, int] | None, size: int
) -> list[Ranked]:
    """The best of a season among an operator's players, from a place on; one row more shows that more follow.

    Args:
        connection: reading.
        season: such as "2026-11".
        operator: whose players; empty for the house.
        after: score, player and rank of the last row before; None for the top.
        size: rows at most.
    """
    query = (
        select(standings)
        .where(standings.c.season == season, standings.c.operator == operator)
        .order_by(_board.score.desc(), _board.player_id)
        .limit(size)
    )
    rank = 0
    if after is not None:
        score, player, rank = after
        query = query.where((_board.score < score) | ((_board.score == score) & (_board.player_id > player)))
    rows = (await connection.execute(query)).all()
    return [_ranked(row, rank + number) for number, row in enumerate(rows, 1)]


def _ranked(row: Any, rank: int) -> Ranked:
    standing = Standing(row.mu, row.sigma, row.matches, row.season, row.season_matches)
    told = pb.Rank(rank=rank, rating=rating(row.player_id, standing), season_matches=row.season_matches)
    return Ranked(row.score, row.player_id, rank, told)


async def place_before(
    connection: AsyncConnection, season: str, operator: str, player: str, above: int
) -> tuple[bool, tuple[float, str, int] | None]:
    """Whether a player is on a leaderboard, and the place so many rows and one above (None for the top)."""
    mine = (standings.c.season == season) & (standings.c.operator == operator)
    score = await connection.scalar(select(_board.score).where(mine, _board.player_id == player))
    if score is None:
        return False, None
    better = (_board.score > score) | ((_board.score == score) & (_board.player_id < player))
    number = int(
        await connection.scalar(select(func.count()).select_from(standings).where(mine, better)) or 0
    )
    if number <= above:
        return True, None
    row = (
        await connection.execute(
            select(_board.score, _board.player_id)
            .where(mine, better)
            .order_by(_board.score, _board.player_id.desc())
            .offset(above)
            .limit(1)
        )
    ).one()
    return True, (row.score, row.player_id, number - above)


async def has_season(connection: AsyncConnection, season: str) -> bool:
    """Whether anybody has a rated match in a season."""
    return (
        await connection.scalar(select(_board.player_id).where(standings.c.season == season).limit(1))
        is not None
    )
