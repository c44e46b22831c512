"""Ratings: the same whatever the order in which matches come, and the library's numbers on our scale."""

import math
from random import Random

import pytest
from openskill.models import PlackettLuce
from support.ledgers import feed, rows, shuffled

from services.bench.ledger_logs import Mix, World
from services.ledger import books, ratings
from services.ledger.bulk import insert_rows
from services.ledger.ratings import RatedMatch, Standing, rate, rate_all, season_of
from services.ledger.schema import accounts, matches, rating_history, standings

DAY_US = 86_400 * 1_000_000
MIX = Mix(people=11, bots=0.03, escapes=0.03, broken=0.1, deals=1, stakes=(0, 0, 7), parallel=4)
NOBODY = {}


def match(number, side=0, players=("a", "b", "c", "d"), at_us=1_800_000_000_000_000, operator=""):
    return RatedMatch(at_us + number, f"tbl_{number}", players, side, operator)


def by_player(history):
    return {made.player_id: made.standing for made in history}


def test_a_new_player_has_1500_and_333():
    assert ratings.points(Standing().mu) == 1500
    assert round(ratings.deviation(Standing().sigma)) == 333
    assert Standing().score == pytest.approx(1500 - 2 * 333.33, abs=0.1)


@pytest.mark.parametrize("side", [0, 1])
def test_winners_rise_as_the_library_says(side):
    model = PlackettLuce()
    teams = [[model.rating(), model.rating()], [model.rating(), model.rating()]]
    expected = model.rate(teams, ranks=[side, 1 - side])
    after = by_player(rate(match(1, side), NOBODY))
    for seat, player in enumerate("abcd"):
        assert after[player].mu == expected[seat % 2][seat // 2].mu
        assert after[player].sigma == expected[seat % 2][seat // 2].sigma
        assert (after[player].mu > 25) == (seat % 2 == side)


def test_a_draw_of_equals_moves_nobody_and_makes_everybody_surer():
    for standing in by_player(rate(match(1, -1), NOBODY)).values():
        assert math.isclose(standing.mu, 25)
        assert standing.sigma < 25 / 3


def test_partners_of_unequal_strength_stay_apart():
    after = by_player(rate(match(1, 0), {"a": Standing(35, 3, 40), "c": Standing(20, 8, 2)}))
    assert after["a"].mu - 35 < after["c"].mu - 20
    assert after["a"].matches == 41


def test_seasons_are_calendar_months_in_utc_and_counted_apart():
    assert season_of(1_800_000_000_000_000) == "2027-01"
    assert season_of(1_801_439_999_999_999) == "2027-01"
    assert season_of(1_801_440_000_000_000) == "2027-02"
    history = rate_all([match(1), match(2), match(3, at_us=1_801_440_000_000_000)], {})
    mine = [made.standing for made in history if made.player_id == "a"]
    assert [(one.matches, one.season, one.season_matches) for one in mine] == [
        (1, "2027-01", 1),
        (2, "2027-01", 2),
        (3, "2027-02", 1),
    ]


async def rated(database):
    """The rated matches, from the books."""

    return [
        RatedMatch.of(books.decode(book))
        for book, counts in await rows(database, matches, "book", "rated")
        if counts
    ]


async def as_folded(database):
    """What the history and the leaderboards are to be: one fold over all matches in their order."""
    history = rate_all(sorted(await rated(database)), {})
    last = {(made.match.season, made.match.operator, made.player_id): made.standing for made in history}
    return (
        sorted(made.row() for made in history),
        sorted(ratings.standing_row(*key, standing) for key, standing in last.items()),
    )


async def test_ratings_are_the_same_in_any_order_of_arrival(database, monkeypatch):
    monkeypatch.setattr(ratings, "_PAGE", 3)
    messages = World(Random(8), MIX).messages(60)
    late = 0

    async def project(connection, fold):
        nonlocal late
        new = sorted(RatedMatch.of(fold.books[one]) for one in fold.ended if fold.books[one].rated)
        late += bool(new) and await ratings._has_later(connection, new[0])
        await ratings.project(connection, fold)

    await feed(database, shuffled(messages, Random(9)), projections=[project])
    assert late > 5, "the order of arrival should not be that of the matches' ends"
    history, board = await as_folded(database)
    assert len(history) > 100
    assert await rows(database, rating_history) == history
    assert await rows(database, standings) == board


async def insert_match(connection, book):
    stored = (book.table_id, books.encode(book), 2, False, 1, book.ended_at_us, True)
    await insert_rows(connection, matches, [stored])


class FoldOf:
    """As much of a fold as the projection looks at."""

    def __init__(self, books):
        self.books = {book.table_id: book for book in books}
        self.ended = list(self.books)


async def test_every_order_of_single_matches_over_two_months(database):
    rng = Random(4)
    people = [f"p{number}" for number in range(7)]
    template = books.TableBook("", 1, 1, "x", 0, "", 0, 0, 0, False, (), (0,) * 4)
    played = [
        template.replace(
            # Some end in the same microsecond.
            ended_at_us=1_801_000_000_000_000 + number // 2 * DAY_US,
            table_id=f"tbl_{number:02}",
            players=tuple(rng.sample(people, 4)),
            winning_side=rng.choice([-1, 0, 1]),
            operator=rng.choice(["", "acme"]),
            rated=True,
        )
        for number in range(14)
    ]
    names = [(f"available:{player}", "chips", player, 0) for player in people]
    await database.write(lambda connection: insert_rows(connection, accounts, names))
    rng.shuffle(played)
    for book in played:

        async def work(connection, book=book):
            await insert_match(connection, book)
            await ratings.project(connection, FoldOf([book]))

        await database.write(work)
    history, board = await as_folded(database)
    assert {row[0] for row in board} == {"2027-01", "2027-02"}
    assert await rows(database, rating_history) == history
    assert await rows(database, standings) == board


async def test_standings_before_a_place(database):
    await feed(
        database, shuffled(World(Random(8), MIX).messages(30), Random(1)), projections=[ratings.project]
    )
    history, _ = await as_folded(database)
    player = history[0][0]
    mine = [row for row in history if row[0] == player]
    assert len(mine) > 2

    async def at(at_us, table_id=""):
        return (
            await database.read(
                lambda connection: ratings.standings_before(connection, [player, "nobody"], at_us, table_id)
            )
        ).get(player)

    assert await at(mine[0][1]) is None
    assert (await at(mine[1][1])).mu == mine[0][3]
    assert (await at(mine[1][1], mine[1][2] + "x")).mu == mine[1][3]
    assert (await at(2**62)).mu == mine[-1][3]
