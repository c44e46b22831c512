"""Cut off at every statement, killed for good, raced by others: the same balances to the chip in the end."""

import asyncio
import gc
import os
import signal
import sqlite3
import subprocess
import sys
import warnings
from random import Random

import pytest
from sqlalchemy import event
from support.databases import new_database, postgresql
from support.ledger_oracle import expected, totals
from support.ledgers import GRANT, balances, check, entries_of, feed, merged, rows, whole

from services.bench.ledger_logs import Mix, World
from services.ledger import database as module
from services.ledger.applying import apply_batch
from services.ledger.database import Database, DatabaseAway
from services.ledger.holding import Holding
from services.ledger.schema import applied
from services.shell.errors import RefusedError

MIX = Mix(people=12, stakes=(0, 7, 50), parallel=3, options=0.5, escapes=0.1, bots=0.2)
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
"""Connections that were cut off are forgotten by their libraries as well; nobody need be warned."""


@pytest.fixture(autouse=True)
def leftovers():
    """Forget them here, so that no other test is warned."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


class Cut(Exception):
    """The process ends here."""


class Cuts:
    """Ends the work before statement number ``at``, counted over the whole run."""

    def __init__(self, database, kind):
        self.left = -1
        self.kind = kind
        engine = database._engine.sync_engine
        event.listen(engine, "before_cursor_execute", self._count)
        event.listen(engine, "commit", self._committing)

    def _count(self, *_):
        if self.left == 0:
            self.left = -1
            raise self.kind
        self.left -= self.left > 0

    def _committing(self, *_):
        self._count()


async def until_through(database, cuts, batches, rng):
    """Apply batches, cut off anywhere again and again, each until it is through."""
    done = 0
    for batch in batches:
        while True:
            cuts.left = rng.randrange(1, 30) if done < 400 else -1
            done += 1
            try:
                await feed(database, [batch])
            except (Cut, asyncio.CancelledError):
                continue
            break
    cuts.left = -1


@pytest.mark.parametrize("how", [Cut, asyncio.CancelledError])
async def test_cut_off_between_any_two_statements(database, kind, tmp_path, how):
    rng = Random(how.__name__)
    messages = World(rng, MIX).messages(20)
    plain = await new_database(kind, tmp_path)
    await feed(plain, [entries_of(messages)])
    await until_through(database, Cuts(database, how), merged(messages, rng), rng)
    assert await whole(database) == await whole(plain)
    await check(database)
    await plain.close()


async def test_every_statement_of_one_batch(database, kind, tmp_path):
    messages = entries_of(World(Random(4), MIX).messages(8))
    half = len(messages) // 2
    cuts, at = Cuts(database, Cut), 0
    await feed(database, [messages[:half]])
    before = await whole(database)
    while True:
        at += 1
        cuts.left = at
        try:
            await feed(database, [messages[half:]])
        except Cut:
            cuts.left = -1
            assert await whole(database) == before, f"statement {at} left something behind"
            continue
        break
    assert at > 8
    cuts.left = -1
    await check(database)


async def test_two_writers_at_once(database, kind, tmp_path):
    rng = Random(6)
    messages = World(rng, MIX).messages(20)
    url = database._engine.url.render_as_string(hide_password=False)
    other = Database(url)
    await asyncio.gather(
        feed(database, list(merged(messages, Random(1)))), feed(other, list(merged(messages, Random(2))))
    )
    plain = await new_database(kind, tmp_path)
    await feed(plain, [entries_of(messages)])
    assert await whole(database) == await whole(plain)
    await check(database)
    await other.close()
    await plain.close()


async def test_holds_race_with_settlement_and_each_other(database):
    rng = Random(7)
    messages = World(rng, MIX).messages(30)
    people = [f"ply_{number:04d}" for number in range(12)]
    holding = Holding(database, GRANT)
    answers = []
    done = asyncio.Event()

    async def ask(number):
        mine = Random(number)
        asked = 0
        while not done.is_set() or "held" not in answers:
            asked += 1
            table_id = f"tbl_ask{number}_{asked}"
            try:
                await holding.hold(table_id, mine.choice([1, 30]), mine.sample(people, mine.randint(1, 4)))
            except RefusedError as error:
                answers.append(error.reason)
                await asyncio.sleep(0.005)
                continue
            answers.append("held")
            await asyncio.sleep(mine.random() * 0.01)
            await holding.release(table_id)

    async def apply():
        await feed(database, list(merged(messages, rng)))
        done.set()

    await asyncio.gather(apply(), *(ask(number) for number in range(3)))
    for table_id in {row[1] for row in (await whole(database))["holds"]}:
        if table_id.startswith("tbl_ask"):
            await holding.release(table_id)

    # Tables that had to wait for a hold go on.
    parked = [row[0] for row in (await whole(database))["parked"]]
    for _ in range(3):
        for table_id in parked:
            await database.write(
                lambda connection, table_id=table_id: apply_batch(
                    connection, (), grant=GRANT, now_us=7, retry=(table_id,)
                )
            )
    everything = await whole(database)
    assert everything["parked"] == everything["unapplied"] == everything["holds"] == []
    assert "held" in answers
    assert len(everything["applied"]) == len(messages)
    await check(database)


CHILD = """
import asyncio, sys
from random import Random
from support.ledgers import feed, merged
from services.bench.ledger_logs import Mix, World
from services.ledger.database import Database

async def main():
    batches = list(merged(World(Random(8), {mix!r}).messages(60), Random(9)))
    url, end = sys.argv[1], int(sys.argv[2])
    await feed(Database(url), batches[:end])
    if end < len(batches):
        await asyncio.Event().wait()  # to be killed, if that did not come before

asyncio.run(main())
"""


async def test_killed_for_good_and_started_again(database, kind, tmp_path):
    messages = World(Random(8), MIX).messages(60)
    batches = list(merged(messages, Random(9)))
    path = tmp_path / "child.py"
    path.write_text(CHILD.format(mix=MIX))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), os.path.join(os.getcwd(), "tests")])}
    url = database._engine.url.render_as_string(hide_password=False)
    for end in (len(batches) // 3, len(batches) * 2 // 3, len(batches)):
        child = await asyncio.create_subprocess_exec(
            sys.executable, path, url, str(end), env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        if end < len(batches):
            near = sum(map(len, batches[:end])) - 15
            while child.returncode is None and len(await rows(database, applied, "version")) < near:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            child.kill()
        _, errors = await child.communicate()
        status = 0 if end == len(batches) else -signal.SIGKILL
        assert child.returncode == status, errors.decode()[-2000:]
    assert totals(await balances(database)) == expected(messages, GRANT)[0]
    await check(database)


class TestDatabaseAway:
    @pytest.fixture
    def kind(self):
        return "postgresql"

    async def test_postgresql_stops_in_the_middle_and_comes_back(self, database, tmp_path):
        messages = World(Random(11), MIX).messages(12)
        batches = list(merged(messages, Random(12)))
        half = len(batches) // 2
        await feed(database, batches[:half])
        server = postgresql()
        server.run("CHECKPOINT")  # so that it need not recover what other tests wrote
        await feed(database, batches[half : half + 1])
        server.stop("immediate")
        try:
            with pytest.raises(DatabaseAway):
                await feed(database, batches[half:])
        finally:
            server.start()
        async with asyncio.timeout(120):
            while True:
                try:
                    await feed(database, batches[half:])
                except DatabaseAway:  # it recovers
                    await asyncio.sleep(0.1)
                else:
                    break
        assert totals(await balances(database)) == expected(messages, GRANT)[0]
        await check(database)


async def test_an_sqlite_file_that_another_one_locks_is_away(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ATTEMPTS", 1)
    monkeypatch.setattr(module, "_BUSY_S", 0.2)
    made = await new_database("sqlite", tmp_path)
    messages = entries_of(World(Random(11), MIX).messages(3))
    file = next(tmp_path.glob("*.db"))
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseAway):
        await feed(made, [messages])
    other.execute("ROLLBACK")
    other.close()
    await feed(made, [messages])
    await check(made)
    await made.close()
