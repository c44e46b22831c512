"""Ratings: OpenSkill over rated matches in the order (ended_at_us, table_id), however they come.

Rated is a match that was played to its end by four people of whom none escaped. The fold is pure; ``project``
is the consumer's projection of it. A match that arrives late has all later ones rated again, so the ratings,
their history and the leaderboards of a rebuilt ledger are those of one that lived.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Self

from openskill.models import PlackettLuce
from sqlalchemy import bindparam, delete, exists, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from services.ledger import books
from services.ledger.books import TableBook, available
from services.ledger.bulk import chunks, insert_rows, run_many
from services.ledger.folding import Fold
from services.ledger.schema import matches, rating_history

NEW_MU: Final = 25.0
NEW_SIGMA: Final = 25.0 / 3.0
_MODEL: Final = PlackettLuce(mu=NEW_MU, sigma=NEW_SIGMA)
_NEW_POINTS: Final = 1500.0
_POINTS: Final = 40.0
_DEVIATIONS: Final = 2.0
"""Of which a leaderboard is sure: it goes by the rating less these."""
_PAGE: Final = 500
"""Matches that are rated again at once."""

_SET_STANDING: Final = (
    "INSERT INTO standings (season, operator, player_id, score, mu, sigma, matches, season_matches)"
    " VALUES (:1, :2, :3, :4, :5, :6, :7, :8) ON CONFLICT (season, operator, player_id) DO UPDATE SET"
    " score = excluded.score, mu = excluded.mu, sigma = excluded.sigma, matches = excluded.matches,"
    " season_matches = excluded.season_matches"
)


_BEFORE: Final = text(
    "SELECT h.player_id, h.mu, h.sigma, h.matches, h.season, h.season_matches"
    " FROM accounts a JOIN rating_history h ON h.player_id = a.player_id"
    " AND (h.ended_at_us, h.table_id) = (SELECT b.ended_at_us, b.table_id FROM rating_history b"
    " WHERE b.player_id = a.player_id AND (b.ended_at_us, b.table_id) < (:at, :table)"
    " ORDER BY b.ended_at_us DESC, b.table_id DESC LIMIT 1) WHERE a.name IN :names"
).bindparams(bindparam("names", expanding=True))
"""One seek in the index for each player; everybody who was ever seen has an account."""


class RatedMatch(NamedTuple):
    """A match that counts, in the order in which matches count."""

    ended_at_us: int
    table_id: str
    players: tuple[str, ...]
    """On seats 0 to 3."""
    winning_side: int
    """0, 1, or -1 for a draw."""
    operator: str

    @classmethod
    def of(cls, book: TableBook) -> Self:
        """The match of a rated table's book."""
        return cls(book.ended_at_us, book.table_id, book.players, book.winning_side, book.operator)

    @property
    def season(self) -> str:
        """The season that it counts for."""
        return season_of(self.ended_at_us)


class Standing(NamedTuple):
    """How good a player is known to be after some matches."""

    mu: float = NEW_MU
    sigma: float = NEW_SIGMA
    matches: int = 0
    season: str = ""
    """Of the last of them."""
    season_matches: int = 0
    """Of that season."""

    @property
    def score(self) -> float:
        """What leaderboards go by: rating less two deviations."""
        return points(self.mu) - _DEVIATIONS * deviation(self.sigma)


class Rated(NamedTuple):
    """One player's standing after one match."""

    player_id: str
    match: RatedMatch
    standing: Standing

    def row(self) -> tuple[Any, ...]:
        """As ``rating_history`` keeps it."""
        mu, sigma, number, season, season_matches = self.standing
        match = self.match
        return (
            self.player_id,
            match.ended_at_us,
            match.table_id,
            mu,
            sigma,
            number,
            season,
            season_matches,
        )


def points(mu: float) -> float:
    """An estimate on the scale that players see: a new player has 1500."""
    return _NEW_POINTS + _POINTS * (mu - NEW_MU)


def deviation(sigma: float) -> float:
    """How sure it is, on the same scale."""
    return _POINTS * sigma


def season_of(at_us: int) -> str:
    """The calendar month (UTC) of a time in microseconds, such as "2026-11"."""
    return datetime.fromtimestamp(at_us // 1_000_000, UTC).strftime("%Y-%m")


def rate(match: RatedMatch, standings: Mapping[str, Standing]) -> list[Rated]:
    """What a match makes of its four players' standings; who has none yet is new."""
    before = [standings.get(player, Standing()) for player in match.players]
    ratings = [_MODEL.create_rating([standing.mu, standing.sigma]) for standing in before]
    ranks = [0.0, 0.0] if match.winning_side < 0 else [float(match.winning_side), 1.0 - match.winning_side]
    # Sides are seats 0 and 2, and seats 1 and 3.
    even, odd = _MODEL.rate([[ratings[0], ratings[2]], [ratings[1], ratings[3]]], ranks=ranks)
    season = match.season
    return [
        Rated(
            player,
            match,
            Standing(
                after.mu,
                after.sigma,
                old.matches + 1,
                season,
                old.season_matches + 1 if old.season == season else 1,
            ),
        )
        for player, old, after in zip(match.players, before, (even[0], odd[0], even[1], odd[1]), strict=True)
    ]


def rate_all(rated: Iterable[RatedMatch], standings: dict[str, Standing]) -> list[Rated]:
    """Rate matches one after another.

    Args:
        rated: matches in their order.
        standings: the players' before the first; changed to those after the last.
    """
    history: list[Rated] = []
    for match in rated:
        for made in rate(match, standings):
            standings[made.player_id] = made.standing
            history.append(made)
    return history


async def project(connection: AsyncConnection, fold: Fold) -> None:
    """Rate the matches that ended with a batch, and again those that ended after them; see ``Projection``."""
    new = sorted(RatedMatch.of(fold.books[ended]) for ended in fold.ended if fold.books[ended].rated)
    if not new:
        return
    first = new[0]
    if not await _has_later(connection, first):
        await _save(connection, rate_all(new, await _before(connection, first, _people(new))))
        return
    standings: dict[str, Standing] = {}
    page = await _load_rated(connection, first.ended_at_us, first.table_id, inclusive=True)
    while page:
        unknown = [player for player in _people(page) if player not in standings]
        standings |= await _before(connection, first, unknown)
        place = (page[-1].ended_at_us, page[-1].table_id)
        await connection.execute(
            delete(rating_history).where(
                tuple_(page[0].ended_at_us, page[0].table_id) <= _KEY, tuple_(*place) >= _KEY
            )
        )
        await _save(connection, rate_all(page, standings))
        page = await _load_rated(connection, *place)


_KEY: Final = tuple_(rating_history.c.ended_at_us, rating_history.c.table_id)


def _people(rated: Iterable[RatedMatch]) -> list[str]:
    return sorted({player for match in rated for player in match.players})


async def _has_later(connection: AsyncConnection, first: RatedMatch) -> bool:
    later = exists().where(tuple_(first.ended_at_us, first.table_id) < _KEY)
    return bool(await connection.scalar(select(later)))


async def _load_rated(
    connection: AsyncConnection, ended_at_us: int, table_id: str, *, inclusive: bool = False
) -> list[RatedMatch]:
    """The next rated matches after a place in their order."""
    key, place = tuple_(matches.c.ended_at_us, matches.c.table_id), tuple_(ended_at_us, table_id)
    rows = await connection.execute(
        select(matches.c.book)
        .where(matches.c.rated, key >= place if inclusive else key > place)
        .order_by(matches.c.ended_at_us, matches.c.table_id)
        .limit(_PAGE)
    )
    return [RatedMatch.of(books.decode(book)) for book in rows.scalars()]


async def _before(
    connection: AsyncConnection, first: RatedMatch, players: Sequence[str]
) -> dict[str, Standing]:
    """The standings of players before a match; who has none is left out."""
    return await standings_before(connection, players, first.ended_at_us, first.table_id)


async def standings_before(
    connection: AsyncConnection, players: Sequence[str], ended_at_us: int, table_id: str = ""
) -> dict[str, Standing]:
    """The standings of players before a place in the order of matches; who has none is left out."""
    found: dict[str, Standing] = {}
    for some in chunks(players):
        place = {"names": [available(player) for player in some], "at": ended_at_us, "table": table_id}
        for row in await connection.execute(_BEFORE, place):
            found[row.player_id] = Standing(row.mu, row.sigma, row.matches, row.season, row.season_matches)
    return found


async def _save(connection: AsyncConnection, history: Sequence[Rated]) -> None:
    """Write standings after matches; the last of each season is the player's place in the leaderboard."""
    await insert_rows(connection, rating_history, [made.row() for made in history])
    last = {(made.match.season, made.match.operator, made.player_id): made.standing for made in history}
    await run_many(connection, _SET_STANDING, [standing_row(*key, last[key]) for key in sorted(last)])


def standing_row(season: str, operator: str, player_id: str, standing: Standing) -> tuple[Any, ...]:
    """As ``standings`` keeps it."""
    return (
        season,
        operator,
        player_id,
        standing.score,
        standing.mu,
        standing.sigma,
        standing.matches,
        standing.season_matches,
    )
