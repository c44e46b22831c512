"""Stakes held before a table is founded: all or none, once, one table at a time, given back."""

import pytest
from support.ledger_tables import Table
from support.ledgers import GRANT, balances, check, feed, rows

from services.ledger.holding import Holding, clock_us
from services.ledger.schema import holds, parked, transfers
from services.rules.reasons import Reason
from services.shell.errors import RefusedError

PEOPLE = ["p0", "p1", "p2", "p3"]


@pytest.fixture
def holding(database):
    return Holding(database, GRANT)


def log_of(table):
    return [table.message(stored, number) for number, stored in enumerate(table.log, 1)]


async def refusal(work):
    with pytest.raises(RefusedError) as caught:
        await work
    return caught.value.reason, dict(caught.value.detail)


async def test_eight_stakes_are_held_of_everybody_once(database, holding):
    for _ in range(2):
        await holding.hold("tbl_a", 10, PEOPLE)
    assert await balances(database) == {
        "house:grants": -4 * GRANT,
        **{f"available:{player}": GRANT - 80 for player in PEOPLE},
        **{f"held:{player}": 80 for player in PEOPLE},
    }
    await check(database)


async def test_of_all_or_of_none(database, holding):
    await holding.hold("tbl_a", 100, ["p3"])
    assert await refusal(holding.hold("tbl_b", 10, PEOPLE)) == (Reason.ELSEWHERE, {"player_id": "p3"})
    assert await rows(database, holds, "player_id") == [("p3",)]
    short = (Reason.INSUFFICIENT_FUNDS, {"player_id": "p0", "amount": 8000})
    assert await refusal(holding.hold("tbl_c", 1000, ["p0", "p1"])) == short
    assert await refusal(holding.check("tbl_c", 1000, ["p0", "p1"])) == short
    assert "held:p0" not in await balances(database)


async def test_a_check_changes_nothing(database, holding):
    await holding.check("", 125, PEOPLE)
    assert await balances(database) == {}
    await holding.hold("tbl_a", 1, ["p0"])
    assert (await refusal(holding.check("", 1, PEOPLE)))[0] is Reason.ELSEWHERE
    await holding.check("tbl_a", 1, PEOPLE)


async def test_what_is_released_can_be_held_again(database, holding):
    for _ in range(3):
        await holding.hold("tbl_a", 10, PEOPLE)
        await holding.release("tbl_a")
        await holding.release("tbl_a")
    assert await balances(database) == {
        "house:grants": -4 * GRANT,
        **{f"available:{player}": GRANT for player in PEOPLE},
        **{f"held:{player}": 0 for player in PEOPLE},
    }
    assert len(await rows(database, transfers, "id")) == 4 + 3 * 5
    await check(database)


async def test_the_log_takes_over_what_was_held(database, holding):
    table = Table(stake=10)
    table.score(1, levels=2)
    await holding.hold(table.table_id, 10, PEOPLE)
    await feed(database, [log_of(table)])
    assert (await refusal(holding.release(table.table_id)))[0] is Reason.WRONG_PHASE
    await holding.hold(table.table_id, 10, PEOPLE)
    assert (await balances(database))["held:p0"] == 80
    table.close()
    await feed(database, [log_of(table)[2:]])
    assert await rows(database, holds) == []
    assert (await refusal(holding.hold(table.table_id, 10, PEOPLE)))[0] is Reason.TABLE_CLOSED
    ours = {name: balance for name, balance in (await balances(database)).items() if balance}
    assert ours == {name: balance for name, balance in table.fold.journal.balances.items() if balance}


async def test_who_was_held_and_never_sat_down_is_released_at_the_end(database, holding):
    table = Table(stake=10)
    await holding.hold(table.table_id, 10, [*PEOPLE, "p4"][1:])
    table.close()
    await feed(database, [log_of(table)])
    assert await rows(database, holds) == []
    assert (await balances(database))["available:p4"] == GRANT


async def test_a_table_waits_for_chips_that_are_held_for_another_and_goes_on(database, holding):
    table = Table(stake=10)
    table.score(1)
    await holding.hold("tbl_other", 10, ["p2"])
    await feed(database, [log_of(table)])
    assert await rows(database, parked, "why", "waits_for") == [("waits", "tbl_other")]
    await holding.release("tbl_other")
    table.score(1)
    await feed(database, [log_of(table)[2:]])
    from services.ledger.applying import apply_batch

    await database.write(
        lambda connection: apply_batch(connection, (), grant=GRANT, now_us=7, retry=(table.table_id,))
    )
    assert await rows(database, parked) == []
    assert (await balances(database))["available:p1"] == GRANT - 80 + 20
    await check(database)


async def test_holds_of_tables_that_never_came_expire(database, holding):
    table = Table(stake=10, number=2, players=("p4", "p5", "p6", "p7"))
    await holding.hold("tbl_a", 10, PEOPLE)
    await feed(database, [log_of(table)])
    assert await holding.expire(clock_us() - 3_600_000_000) == 0
    assert await holding.expire(clock_us() + 1_000_000) == 1
    assert {player for (player,) in await rows(database, holds, "player_id")} == {"p4", "p5", "p6", "p7"}


async def test_everybody_is_granted_once(database, holding):
    for _ in range(2):
        await holding.meet("p0")
    assert await balances(database) == {"available:p0": GRANT, "house:grants": -GRANT}
    nothing = Holding(database, 0)
    await nothing.meet("p1")
    assert (await balances(database))["available:p1"] == 0
    await check(database)
