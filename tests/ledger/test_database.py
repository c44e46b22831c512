"""The database itself: its tables are the models', money cannot be changed, writers take turns."""

import asyncio

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import insert, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from services.ledger.bulk import insert_rows
from services.ledger.database import Database
from services.ledger.schema import accounts, metadata, postings, transfers
from services.shell.config import ConfigError


def differences(connection):
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return compare_metadata(context, metadata)


async def test_the_migrations_make_the_models_tables(database):
    async def compare(connection):
        return await connection.run_sync(differences)

    assert await database.read(compare) == []


async def test_migrating_again_and_at_once_changes_nothing(database_url):
    several = [Database(database_url) for _ in range(4)]
    await asyncio.gather(*(one.migrate() for one in several))
    await several[0].migrate()
    for one in several:
        await one.close()


async def seed(connection):
    await insert_rows(
        connection, accounts, [("available:ann", "chips", "ann", 5), ("house:grants", "chips", None, -5)]
    )
    await insert_rows(connection, transfers, [(b"i" * 16, 1, "", 0, 0, 7, None)])
    await insert_rows(
        connection,
        postings,
        [
            (b"i" * 16, "available:ann", 5, 5, "ann", 7),
            (b"i" * 16, "house:grants", -5, -5, None, 7),
        ],
    )


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE transfers SET deal = 9",
        "DELETE FROM transfers",
        "UPDATE postings SET amount = 9",
        "DELETE FROM postings WHERE amount > 0",
    ],
)
async def test_transfers_and_postings_are_never_changed(database, statement):
    await database.write(seed)
    with pytest.raises(DBAPIError, match="never changed"):
        await database.write(lambda connection: connection.execute(text(statement)))


async def test_a_player_never_falls_below_zero_and_the_house_may(database):
    await database.write(seed)
    below = update(accounts).values(balance=-1)
    with pytest.raises(IntegrityError):
        await database.write(
            lambda connection: connection.execute(below.where(accounts.c.player_id == "ann"))
        )
    await database.write(lambda connection: connection.execute(below.where(accounts.c.player_id.is_(None))))


async def test_an_error_in_the_work_changes_nothing(database):
    async def work(connection):
        await seed(connection)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await database.write(work)
    assert await database.read(lambda connection: connection.scalar(select(accounts.c.name))) is None


async def test_writers_that_meet_are_repeated_until_all_succeed(database):
    await database.write(
        lambda connection: connection.execute(insert(accounts).values(name="house:fees", balance=0))
    )
    one = accounts.c.name == "house:fees"

    async def add(connection):
        balance = await connection.scalar(select(accounts.c.balance).where(one).with_for_update())
        await asyncio.sleep(0)
        await connection.execute(update(accounts).where(one).values(balance=balance + 1))

    async def add_some():
        for _ in range(4):
            await database.write(add)

    await asyncio.gather(*(add_some() for _ in range(5)))
    assert await database.read(lambda connection: connection.scalar(select(accounts.c.balance))) == 20


async def test_one_of_several_processes_is_the_writer(database, database_url, kind):
    url = database._engine.url.render_as_string(hide_password=False)
    other = Database(url)
    async with database.writer() as first, other.writer() as second:
        assert first is not None
        assert second is None
        await first.check()
    async with other.writer() as second:
        assert second is not None
    await other.close()


@pytest.mark.parametrize("url", ["", "mysql://x", "sqlite+aiosqlite://", "sqlite:///x", "postgresql://x/y"])
def test_other_urls_are_refused(url):
    with pytest.raises(ConfigError):
        Database(url)
