"""What can be asked: balances at any time, statements whose lines add up, matches, deals, statistics."""

from random import Random

import pytest
from support.databases import new_database
from support.ledgers import balances, feed, merged, rows

from services.bench.ledger_logs import Mix, World
from services.ledger import queries
from services.ledger.archiver import note_closed
from services.ledger.books import available, held
from services.ledger.bulk import insert_rows
from services.ledger.folding import STATS
from services.ledger.ratings import project
from services.ledger.schema import archives, deals, matches, parked, postings, stats, transfers
from services.pb.ledger.v1 import ledger_service_pb2 as pb

MIX = Mix(people=9, stakes=(0, 7, 50), parallel=2, options=0.4, escapes=0.1, deals=4)


async def sixty_deals(database):
    messages = World(Random(5), MIX).messages(60)[:-3]
    await feed(database, merged(messages, Random(6)), projections=[project, note_closed])


@pytest.fixture
async def world(kind, tmp_path):
    """A ledger that has seen sixty deals, the last table still open."""
    made = await new_database(kind, tmp_path, "sixty deals", sixty_deals)
    yield made
    await made.close()


async def people(database):
    return sorted({name.split(":")[1] for name in await balances(database) if name.startswith("available:")})


def ask(database, query, *args):
    return database.read(lambda connection: query(connection, *args))


async def pages(database, query, player, size):
    """All rows, page by page."""
    found, place = [], None
    while True:
        some, place = await ask(database, query, player, place, size)
        assert len(some) == size or place is None
        found += some
        if place is None:
            return found


async def test_balances_are_the_accounts(world):
    have = await balances(world)
    for player in await people(world):
        told = await ask(world, queries.balance, player)
        assert (told.available, told.held) == (have[available(player)], have.get(held(player), 0))
        assert sum(hold.amount for hold in told.holds) == told.held


async def test_a_balance_at_a_time_is_what_had_been_posted_by_then(world):
    moved = await rows(world, postings)
    times = sorted({row[6] for row in moved})
    player = (await people(world))[3]
    for at_us in [*times[:: len(times) // 9], times[-1]]:
        told = await ask(world, queries.balance_at, player, at_us // 1000)
        for account, amount in ((available(player), told.available), (held(player), told.held)):
            bound = queries.end_of(at_us // 1000)
            assert amount == sum(row[3] for row in moved if row[2] == account and row[6] < bound)
        assert sum(hold.amount for hold in told.holds) == told.held
        assert all(hold.amount > 0 for hold in told.holds)
    now, then = await ask(world, queries.balance, player), await ask(world, queries.balance_at, player, 2**42)
    assert now == then
    assert (await ask(world, queries.balance_at, player, 1)).available == 0


@pytest.mark.parametrize("size", [1, 3, 100])
async def test_the_lines_of_a_statement_add_up(world, size):
    have = await balances(world)
    for player in (await people(world))[:4]:
        lines = await pages(world, queries.statement, player, size)
        assert len({line.transfer_id for line in lines}) == len(lines)
        free, kept = have[available(player)], have.get(held(player), 0)
        for line in lines:
            assert line.available_after == free
            free, kept = free - line.available, kept - line.held
        assert (free, kept) == (0, 0)
        assert lines[-1].purpose == pb.PURPOSE_GRANT
        assert all(line.table_id for line in lines[:-1])


@pytest.mark.parametrize("size", [1, 2, 3])
async def test_a_line_that_moved_held_chips_alone_tells_the_available_ones(database, size):
    moved = [("available:ann", 9, 9), ("held:ann", 4, 4), ("held:ann", -3, 1)]
    ids = [bytes([number]) * 16 for number in range(3)]

    async def work(connection):
        await insert_rows(connection, transfers, [(one, 10, "", 0, 0, 5, None) for one in ids])
        rows = [(one, *posting, "ann", 5) for one, posting in zip(ids, moved, strict=True)]
        await insert_rows(connection, postings, rows)

    await database.write(work)
    lines = await pages(database, queries.statement, "ann", size)
    assert [(line.available, line.held, line.available_after) for line in lines] == [
        (0, -3, 9),
        (0, 4, 9),
        (9, 0, 9),
    ]


@pytest.mark.parametrize("size", [1, 2, 100])
async def test_matches_are_listed_newest_first(world, size):
    for player in (await people(world))[:4]:
        listed = await pages(world, queries.list_matches, player, size)
        keys = [(match.opened_at_ms, match.table_id) for match in listed]
        assert keys == sorted(keys, reverse=True)
        assert len(set(keys)) == len(keys) > 2
        assert all(player in {seat.player_id for seat in match.seats} for match in listed)


async def test_a_match_has_its_deals_and_what_they_moved(world):
    by_table = {}
    for row in await rows(world, deals):
        by_table.setdefault(row[0], []).append(row)
    assert by_table
    for table_id, scored in by_table.items():
        told = (await ask(world, queries.match, table_id)).message()
        listed = await ask(world, queries.deals_of, table_id)
        assert [deal.deal for deal in listed] == [row[1] for row in scored]
        assert [tuple(deal.won) for deal in listed] == [tuple(row[5:9]) for row in scored]
        assert told.deals == len(listed)
        if told.state == pb.MATCH_STATE_OPEN:
            assert told.ended_at_ms == 0
        assert told.HasField("winning_side") <= (told.state == pb.MATCH_STATE_FINISHED)


async def test_a_match_that_is_parked_or_refused_says_so(world):
    first, second = [row[0] for row in await rows(world, archives)][:2]
    await world.write(
        lambda connection: connection.execute(
            parked.insert().values(table_id=first, why="gap", waits_for="", since_us=1)
        )
    )
    await world.write(
        lambda connection: connection.execute(
            archives.update().where(archives.c.table_id == second).values(fault="version 3: wrong")
        )
    )
    for table_id in (first, second):
        known = await ask(world, queries.match, table_id)
        assert known.message().state == pb.MATCH_STATE_PARKED
    assert await ask(world, queries.match, "tbl_none") is None


async def test_every_closed_table_is_noted_for_the_archive(world):
    closed = {
        queries.books.decode(book).table_id for (book,) in await rows(world, matches, "book") if closes(book)
    }
    assert {row[0] for row in await rows(world, archives)} == closed


def closes(book):
    return queries.books.decode(book).closed


async def test_statistics_are_sums_over_presets(world):
    player = (await people(world))[0]
    mine = [row for row in await rows(world, stats) if row[0] == player]
    assert len(mine) == 2
    for preset, chosen in [("", mine), *((row[1], [row]) for row in mine), ("other", [])]:
        told = await ask(world, queries.stats_of, player, preset)
        sums = [sum(row[at] for row in chosen) for at in range(2, 2 + len(STATS))]
        assert [getattr(told, name) for name in STATS] == sums


async def test_whose_players_they_are(world):
    everybody = await people(world)
    whose = await ask(world, queries.operators, [*everybody, "nobody"])
    assert set(whose) == set(everybody)
    assert set(whose.values()) <= {"", "acme"}
    assert await ask(world, queries.operators, []) == {}
