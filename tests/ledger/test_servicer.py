"""LedgerService: who may see what, pages that go with their question, refusals with their reasons."""

import pytest
from support.databases import new_database
from support.ledger_tables import START_US, Table
from support.ledgers import feed
from support.recorded import short_match

from services.game.ids import TableId
from services.ledger.archive import Archive
from services.ledger.archiver import note_closed
from services.ledger.holding import Holding
from services.ledger.ratings import project
from services.ledger.schema import archives
from services.ledger.servicer import CHUNK, LedgerServicer
from services.pb.ledger.v1 import ledger_service_pb2 as pb
from services.pb.log.v1.log_pb2 import Commit
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.rpc import Call

GRANT = 1000
NOW_S = 1_800_000_100.0
ACME = ("a0", "a1", "a2", "a3")

NO_TABLE = TableId.new(5, bytes(10))


def call(player, operator="", scope="ledger"):
    return Call(player, 0, 0.0, operator=operator, scope=scope)


ADMIN = call("boss", scope="ledger admin")
ACME_ADMIN = call("acme-boss", "acme", "ledger admin")
LOBBY = call("svc:lobby")
P0 = call("p0")
STRANGER = call("zed")


@pytest.fixture
def archive(tmp_path):
    return Archive(tmp_path / "archive")


@pytest.fixture
def tables():
    """Two tables of the house's players and one of acme's, played to their ends; and one that is open."""
    made = []
    for number, players, operator in [(1, ("p0", "p1", "p2", "p3"), ""), (2, ACME, "acme")]:
        table = Table(10, grant=GRANT, number=number, players=players, operator=operator)
        table.score(0, 2)
        table.score(1)
        table.end(0)
        table.close()
        made.append(table)
    again = Table(0, number=3, fold=made[0].fold, at_us=START_US + 10_000_000)
    again.score(1)
    again.end(1)
    opened = Table(20, number=4, fold=made[0].fold, at_us=START_US + 20_000_000)
    opened.score(0)
    return [*made, again, opened]


@pytest.fixture
async def database(kind, tmp_path, tables):
    """A ledger that has read the tables' logs."""
    entries = [table.message(stored, n) for table in tables for n, stored in enumerate(table.log, 1)]

    async def fill(new):
        await feed(new, [entries], GRANT, projections=[project, note_closed])

    made = await new_database(kind, tmp_path, "four tables", fill)
    yield made
    await made.close()


@pytest.fixture
def service(database, archive):
    return LedgerServicer(database, archive, Holding(database, GRANT), lambda: NOW_S)


async def refusal(asking):
    with pytest.raises(RefusedError) as raised:
        await asking
    return raised.value.reason


# Chips


async def test_a_player_sees_its_own_balance(service):
    told = await service.get_balance(pb.GetBalanceRequest(), P0)
    assert (told.player_id, told.held) == ("p0", 160)
    # A grant of 1000; 20 and −10 at the first table, 20 at the open one, which holds eight stakes.
    assert told.available == 1000 + 20 - 10 + 20 - 160
    assert told.holds[0].amount == 160
    before = await service.get_balance(pb.GetBalanceRequest(player_id="p0", at_ms=1_800_000_002_000), P0)
    assert (before.available, before.held) == (1000 + 20 - 80, 80)


async def test_a_new_player_gets_the_grant_by_looking_once(service):
    for _ in range(2):
        assert (await service.get_balance(pb.GetBalanceRequest(), STRANGER)).available == GRANT
    page = await service.list_statement(pb.ListStatementRequest(), STRANGER)
    assert [line.purpose for line in page.entries] == [pb.PURPOSE_GRANT]


@pytest.mark.parametrize("caller", [call("bot:x"), LOBBY])
async def test_bots_and_services_get_no_grant(service, caller):
    assert (await service.get_balance(pb.GetBalanceRequest(), caller)).available == 0


PRIVATE = [
    ("get_balance", pb.GetBalanceRequest),
    ("list_statement", pb.ListStatementRequest),
    ("list_matches", pb.ListMatchesRequest),
]


@pytest.mark.parametrize(("method", "request_of"), PRIVATE)
@pytest.mark.parametrize(
    ("caller", "whose", "reason"),
    [
        (P0, "p1", Reason.NOT_YOURS),
        (P0, "a1", Reason.UNKNOWN_PLAYER),
        (P0, "nobody", Reason.UNKNOWN_PLAYER),
        (call("a0", "acme"), "a1", Reason.NOT_YOURS),
        (call("a0", "acme"), "p1", Reason.UNKNOWN_PLAYER),
        (ACME_ADMIN, "p1", Reason.UNKNOWN_PLAYER),
        (ADMIN, "nobody", Reason.UNKNOWN_PLAYER),
        (ADMIN, "no body", Reason.BAD_ID),
        (P0, "p0", None),
        (ADMIN, "p1", None),
        (ADMIN, "a1", None),
        (ACME_ADMIN, "a1", None),
        (LOBBY, "a1", None),
    ],
)
async def test_who_may_see_whose(service, method, request_of, caller, whose, reason):
    asking = getattr(service, method)(request_of(player_id=whose), caller)
    if reason is None:
        await asking
    else:
        assert await refusal(asking) is reason


async def all_pages(asking, request, rows, caller):
    found = []
    while True:
        page = await asking(request, caller)
        found += getattr(page, rows)
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


async def test_pages_are_the_whole(service):
    whole = await service.list_statement(pb.ListStatementRequest(page_size=100), P0)
    assert len(whole.entries) > 5
    assert await all_pages(
        service.list_statement, pb.ListStatementRequest(page_size=2), "entries", P0
    ) == list(whole.entries)
    whole = await service.list_matches(pb.ListMatchesRequest(), P0)
    assert len(whole.matches) == 3
    assert await all_pages(service.list_matches, pb.ListMatchesRequest(page_size=1), "matches", P0) == list(
        whole.matches
    )


async def test_a_page_token_goes_with_its_question_alone(service):
    mine = (await service.list_statement(pb.ListStatementRequest(page_size=1), P0)).next_page_token
    matches = (await service.list_matches(pb.ListMatchesRequest(page_size=1), P0)).next_page_token
    for token in (matches, mine[:-1], mine + "AAAA", "garbage", "ü", "A" * 2000, "AAAAAAAAAAAA"):
        asking = service.list_statement(pb.ListStatementRequest(page_token=token), P0)
        assert await refusal(asking) is Reason.BAD_INPUT
    other = service.list_statement(pb.ListStatementRequest(page_token=mine), call("p1"))
    assert await refusal(other) is Reason.BAD_INPUT
    long = service.list_statement(pb.ListStatementRequest(page_size=101), P0)
    assert await refusal(long) is Reason.BAD_INPUT


@pytest.mark.parametrize("at_ms", [-1, 2**60])
async def test_times_are_times(service, at_ms):
    assert await refusal(service.get_balance(pb.GetBalanceRequest(at_ms=at_ms), P0)) is Reason.BAD_INPUT
    assert await refusal(service.get_ratings(pb.GetRatingsRequest(at_ms=at_ms), P0)) is Reason.BAD_INPUT


def holding(stake=10, players=("new",), hold=True, table_id=NO_TABLE):
    return pb.HoldStakesRequest(table_id=table_id, stake=stake, player_ids=players, hold=hold)


async def test_stakes_are_held_and_released_for_services(service):
    await service.hold_stakes(holding(hold=False), LOBBY)
    await service.hold_stakes(holding(hold=False, table_id=""), LOBBY)
    await service.hold_stakes(holding(), LOBBY)
    await service.hold_stakes(holding(), LOBBY)
    balance = await service.get_balance(pb.GetBalanceRequest(), call("new"))
    assert (balance.available, balance.held) == (GRANT - 80, 80)
    await service.release_stakes(pb.ReleaseStakesRequest(table_id=NO_TABLE), LOBBY)
    assert (await service.get_balance(pb.GetBalanceRequest(), call("new"))).available == GRANT


@pytest.mark.parametrize(
    ("request_", "caller", "reason"),
    [
        (holding(), P0, Reason.NOT_YOURS),
        (holding(), ADMIN, Reason.NOT_YOURS),
        (holding(stake=0), LOBBY, Reason.BAD_INPUT),
        (holding(stake=10**9 + 1), LOBBY, Reason.BAD_INPUT),
        (holding(players=()), LOBBY, Reason.BAD_INPUT),
        (holding(players=("x", "x")), LOBBY, Reason.BAD_INPUT),
        (holding(players=tuple("vwxyz")), LOBBY, Reason.BAD_INPUT),
        (holding(players=("bot:x",)), LOBBY, Reason.BAD_INPUT),
        (holding(players=("a b",)), LOBBY, Reason.BAD_ID),
        (holding(table_id="x"), LOBBY, Reason.BAD_ID),
        (holding(stake=1000), LOBBY, Reason.INSUFFICIENT_FUNDS),
        (holding(stake=1000, hold=False), LOBBY, Reason.INSUFFICIENT_FUNDS),
        (holding(players=("p0",)), LOBBY, Reason.ELSEWHERE),
    ],
)
async def test_stakes_that_cannot_be_held(service, request_, caller, reason):
    assert await refusal(service.hold_stakes(request_, caller)) is reason


async def test_only_services_release(service):
    asking = service.release_stakes(pb.ReleaseStakesRequest(table_id=NO_TABLE), P0)
    assert await refusal(asking) is Reason.NOT_YOURS


# Matches


async def test_a_match_is_told_to_those_who_sat_there(service, tables):
    request = pb.GetMatchRequest(table_id=tables[1].table_id)
    told = await service.get_match(request, call("a2", "acme"))
    assert told.match.state == pb.MATCH_STATE_FINISHED
    assert (told.match.winning_side, told.match.deals, told.match.rated) == (0, 2, True)
    assert list(told.match.won) == [10, -10, 10, -10]
    assert [list(deal.won) for deal in told.deals] == [[20, -20, 20, -20], [-10, 10, -10, 10]]
    assert [seat.player_id for seat in told.match.seats] == list(ACME)
    for caller in (ADMIN, ACME_ADMIN, LOBBY):
        assert await service.get_match(request, caller) == told
    assert await refusal(service.get_match(request, call("a9", "acme"))) is Reason.NOT_SEATED
    assert await refusal(service.get_match(request, P0)) is Reason.UNKNOWN_TABLE
    assert await refusal(service.get_match(pb.GetMatchRequest(table_id="x"), P0)) is Reason.BAD_ID
    asking = service.get_match(pb.GetMatchRequest(table_id=NO_TABLE), ADMIN)
    assert await refusal(asking) is Reason.UNKNOWN_TABLE


async def test_an_open_match_has_no_end_and_no_log(service, tables):
    table_id = tables[3].table_id
    told = (await service.get_match(pb.GetMatchRequest(table_id=table_id), P0)).match
    assert (told.state, told.ended_at_ms, told.HasField("winning_side")) == (pb.MATCH_STATE_OPEN, 0, False)
    asking = service.get_log(pb.GetLogRequest(table_id=table_id), P0, None)
    assert await refusal(asking) is Reason.NOT_ARCHIVED


async def keep(database, archive, table_id, log):
    kept = archive.write(Commit.FromString(log[0]).table_id, log)
    await database.write(
        lambda connection: connection.execute(
            archives.update()
            .where(archives.c.table_id == table_id)
            .values(place=kept.place, head=kept.head, archived_at_us=1)
        )
    )
    return kept


async def log_of(service, table_id, caller):
    sent = []

    async def write(data):
        sent.append(pb.GetLogResponse.FromString(data))

    await service.get_log(pb.GetLogRequest(table_id=table_id), caller, write)
    return sent


async def test_a_log_comes_in_chunks_to_those_who_sat_there(service, database, archive, tables, monkeypatch):
    table_id, log = tables[1].table_id, short_match().stored
    kept = await keep(database, archive, table_id, log)
    monkeypatch.setattr("services.ledger.servicer.CHUNK", 5000)
    sent = await log_of(service, table_id, call("a0", "acme"))
    assert [stored for message in sent for stored in message.commits] == log
    assert len(sent) > 1
    assert all(sum(map(len, message.commits)) <= 5000 < CHUNK for message in sent)
    assert await log_of(service, table_id, ACME_ADMIN) == sent
    assert await refusal(log_of(service, table_id, call("a9", "acme"))) is Reason.NOT_SEATED
    assert await refusal(log_of(service, table_id, P0)) is Reason.UNKNOWN_TABLE
    assert (await service.get_match(pb.GetMatchRequest(table_id=table_id), ADMIN)).match.head == kept.head
    path = archive.folder / kept.place
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert await refusal(log_of(service, table_id, ADMIN)) is Reason.ARCHIVE_DAMAGED


# Players


async def test_ratings_and_statistics_are_public_among_an_operators_players(service):
    told = await service.get_ratings(pb.GetRatingsRequest(player_ids=["p1", "p0", "p1"]), call("p3"))
    assert [rating.player_id for rating in told.ratings] == ["p1", "p0", "p1"]
    # p1 lost the first match and won the second, p0 the other way round; the second was the upset.
    assert [rating.matches for rating in told.ratings] == [2, 2, 2]
    assert told.ratings[0].rating > told.ratings[1].rating
    stats = await service.get_stats(pb.GetStatsRequest(player_id="p1"), P0)
    assert (stats.matches, stats.matches_won, stats.deals, stats.deals_won) == (2, 1, 4, 2)
    for player in ("a1", "nobody"):
        asking = service.get_ratings(pb.GetRatingsRequest(player_ids=["p1", player]), P0)
        assert await refusal(asking) is Reason.UNKNOWN_PLAYER
        asking = service.get_stats(pb.GetStatsRequest(player_id=player), P0)
        assert await refusal(asking) is Reason.UNKNOWN_PLAYER
    many = service.get_ratings(pb.GetRatingsRequest(player_ids=["p1"] * 101), P0)
    assert await refusal(many) is Reason.BAD_INPUT


async def test_services_learn_a_new_players_rating(service):
    told = await service.get_ratings(pb.GetRatingsRequest(player_ids=["brand-new", "a1"]), LOBBY)
    new = told.ratings[0]
    assert (new.rating, round(new.deviation), new.matches) == (1500, 333, 0)
    assert told.ratings[1].matches == 1


async def test_ratings_at_a_time(service, tables):
    ended_ms = tables[0].book.ended_at_us // 1000
    for at_ms, matches in [(ended_ms - 1, 0), (ended_ms, 1), (2**42, 2)]:
        told = await service.get_ratings(pb.GetRatingsRequest(player_ids=["p0"], at_ms=at_ms), P0)
        assert told.ratings[0].matches == matches


async def test_a_leaderboard_has_an_operators_players_alone(service):
    board = await service.get_leaderboard(pb.GetLeaderboardRequest(), P0)
    assert (board.season, board.next_page_token) == ("2027-01", "")
    assert [rank.rank for rank in board.ranks] == [1, 2, 3, 4]
    assert [rank.rating.player_id for rank in board.ranks] == ["p1", "p3", "p0", "p2"]
    assert [rank.season_matches for rank in board.ranks] == [2] * 4
    board = await service.get_leaderboard(pb.GetLeaderboardRequest(), call("a0", "acme"))
    assert [rank.rating.player_id for rank in board.ranks] == ["a0", "a2", "a1", "a3"]


async def test_a_leaderboard_in_pages_and_around_a_player(service):
    whole = list((await service.get_leaderboard(pb.GetLeaderboardRequest(), P0)).ranks)
    request = pb.GetLeaderboardRequest(page_size=1)
    assert await all_pages(service.get_leaderboard, request, "ranks", P0) == whole
    for place, rank in enumerate(whole):
        request = pb.GetLeaderboardRequest(around_player_id=rank.rating.player_id, page_size=3)
        around = await service.get_leaderboard(request, P0)
        first = max(0, place - 1)
        assert list(around.ranks) == whole[first : first + 3]
        assert bool(around.next_page_token) == (first + 3 < len(whole))
    for asked, reason in [
        (pb.GetLeaderboardRequest(around_player_id="a0"), Reason.UNKNOWN_PLAYER),
        (pb.GetLeaderboardRequest(around_player_id="p0", page_token="x"), Reason.BAD_INPUT),
        (pb.GetLeaderboardRequest(season="2027-1"), Reason.BAD_INPUT),
        (pb.GetLeaderboardRequest(season="2027-13"), Reason.BAD_INPUT),
        (pb.GetLeaderboardRequest(season="2026-12"), Reason.UNKNOWN_SEASON),
    ]:
        assert await refusal(service.get_leaderboard(asked, P0)) is reason
