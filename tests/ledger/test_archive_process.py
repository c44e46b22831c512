"""The ledger's process archives what has ended, is audited meanwhile, killed, pruned and made anew."""

import asyncio

import psutil
import pytest
from support.databases import new_url
from support.house import Service
from support.ledgers import rows, whole
from support.recorded import short_match

from services.cli.reading import LogReader
from services.game.decide import kind_of
from services.ledger.archive import Archive
from services.ledger.audit import audit
from services.ledger.database import Database
from services.ledger.pruning import Outcome, Pruner
from services.ledger.schema import archives
from services.ledger.snapshot import load
from services.pb.log.v1.log_pb2 import Commit
from services.shell.log_jetstream import JetStreamLog

MATCHES = 6
AUDITS = 5


@pytest.fixture
def kind():
    return "sqlite"


@pytest.fixture
async def ledger(nats_server, tmp_path, kind):
    url = new_url(kind, tmp_path)
    environment = {"SHENGJI_NATS": nats_server.url, "SHENGJI_DATABASE": url, "SHENGJI_METRICS": ""}
    service = Service("ledger", tmp_path, environment)
    service.url = url
    service.start()
    await service.ready()
    yield service
    service.kill()


class Turns:
    """Each match is played on only after an audit, so that there are audits in between."""

    def __init__(self):
        self.audits = 0
        self.audited = asyncio.Condition()

    async def count(self):
        async with self.audited:
            self.audits += 1
            self.audited.notify_all()

    async def after(self, number):
        async with self.audited:
            await self.audited.wait_for(lambda: self.audits >= number)


async def play(store, seed, turns):
    """Write a match's log as it would be played, a part of it before each of some audits."""
    log, sequence = short_match(seed).stored, 0
    for number, stored in enumerate(log):
        await turns.after(number * AUDITS // len(log))
        commit = Commit.FromString(stored)
        sequence = (
            await store.append(commit.table_id, sequence, stored, kind_of(tuple(commit.events)))
        ).sequence
    return Commit.FromString(log[0]).table_id


async def nothing_differs(database, broker, archive):
    found = await database.read(load)
    report = await audit(found, LogReader(broker, archive), archive)
    assert report.differences == []
    return report


async def archived(database, number):
    """Wait until so many logs are archived; the rows."""
    async with asyncio.timeout(120):
        while True:
            done = [row for row in await rows(database, archives) if row[5]]
            if len(done) >= number:
                return done
            await asyncio.sleep(0.2)


async def test_archived_audited_killed_pruned_and_made_anew(ledger, broker, tmp_path):
    archive, store, database = Archive(tmp_path / "archive"), JetStreamLog(broker), Database(ledger.url)
    turns = Turns()
    playing = asyncio.gather(*(play(store, f"live {number}", turns) for number in range(MATCHES)))
    while not playing.done():
        await nothing_differs(database, broker, archive)
        await turns.count()
        await asyncio.sleep(0.02)
    tables = await playing
    await archived(database, 1)
    children = psutil.Process(ledger.pid).children(recursive=True)
    ledger.kill()
    ledger.start()
    done = await archived(database, MATCHES)
    assert {row[6] for row in done} == {""}
    assert sorted(archive.tables()) == sorted(tables)
    report = await nothing_differs(database, broker, archive)
    assert (report.matches, report.unreached) == (MATCHES, 0)
    expected = await whole(database)
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not alive, "what verified for a process that was killed has ended too"

    async with asyncio.timeout(120):
        pruned = set()
        while pruned != set(tables):
            async for one in Pruner(database, broker, archive).prune(-1):
                assert one.outcome is not Outcome.DAMAGED
                pruned |= {one.table_id} if one.outcome is Outcome.PRUNED else set()
            await asyncio.sleep(0.2)
    assert (await nothing_differs(database, broker, archive)).commits == report.commits
    await database.close()
    assert await ledger.stop() == 0

    ledger.env["SHENGJI_DATABASE"] = new_url("sqlite", tmp_path)
    ledger.start()
    await ledger.ready()
    database = Database(ledger.env["SHENGJI_DATABASE"])
    await archived(database, MATCHES)
    rebuilt = await whole(database)
    for name in rebuilt:
        assert sorted(map(repr, rebuilt[name])) == sorted(map(repr, expected[name])), name
    assert (await nothing_differs(database, broker, archive)).matches == MATCHES
    await database.close()
