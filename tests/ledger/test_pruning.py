"""Archives in use: replay, verify and audit without a house, and pruning that takes out what nobody needs."""

import asyncio
import shutil
from dataclasses import fields
from functools import cache

import pytest
from click.testing import CliRunner
from nats.js import api
from prometheus_client import CollectorRegistry
from sqlalchemy import text
from support.ledgers import feed
from support.recorded import Recorder, short_match

from services.cli.data import Running, announce
from services.cli.main import main
from services.game.decide import kind_of
from services.game.ids import TableId, partition, stream_name
from services.ledger.archive import Archive
from services.ledger.archiver import Archiver, ArchiverMetrics, note_closed
from services.ledger.database import opened
from services.ledger.folding import entry
from services.ledger.ratings import project
from services.ledger.schema import archives
from services.pb.log.v1.log_pb2 import Commit
from services.shell.broker import Broker, ensure_streams
from services.shell.log_jetstream import JetStreamLog
from services.shell.log_store import Lost
from services.shell.logs import Log
from services.shell.nats_server import NatsServer
from services.shell.nats_users import passwords, url_as


@cache
def closed_log():
    return tuple(short_match().stored)


@cache
def open_log():
    other = Recorder("other", "classic-2d")
    other.found()
    return tuple(other.stored)


def table_of(log):
    return TableId(Commit.FromString(log[0]).table_id)


class House:
    """A data folder whose services are stopped: a log of two tables, and a ledger that has read it."""

    def __init__(self, data):
        self.data = data
        self.known = passwords(data)
        self.server = NatsServer(data / "nats", passwords=self.known)
        self.archive = Archive(data / "archive")
        self.database_url = f"sqlite+aiosqlite:///{data}/ledger.db"
        self.table_id = table_of(closed_log())

    def run(self, *arguments):
        """A command on the folder: exit status and what it printed."""
        done = CliRunner().invoke(main, [*arguments, "--data", str(self.data)])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    def during(self, work, user="table"):
        """Do something while the server runs."""

        # On other ports each time: what it had before may be another's by now.
        self.server = NatsServer(self.data / "nats", passwords=self.known)

        async def run():
            await self.server.start(60)
            broker = await Broker.connect(url_as(self.server.url, user, self.known), user)
            try:
                return await work(broker)
            finally:
                await broker.close()
                await self.server.stop()

        return asyncio.run(run())

    async def fill(self, broker):
        await ensure_streams(broker)
        store, entries = JetStreamLog(broker), []
        for log in (closed_log(), open_log()):
            sequence, table_id = 0, table_of(log)
            for stored in log:
                kind = kind_of(tuple(Commit.FromString(stored).events))
                sequence = (await store.append(table_id, sequence, stored, kind)).sequence
                if kind == "d":
                    entries.append(entry(partition(table_id) % 4, sequence, table_id, stored))
        created = [str((await broker.js.stream_info(f"SJ_TABLES_{n}")).created) for n in range(4)]
        async with opened(self.database_url) as database:
            for number, text_ in enumerate(created):
                statement = text("UPDATE positions SET created = :created WHERE stream = :stream")
                await database.write(
                    lambda connection, s=statement, t=text_, n=number: connection.execute(
                        s, {"created": t, "stream": n}
                    )
                )
            await feed(database, [entries], projections=[project, note_closed])
            metrics = ArchiverMetrics(CollectorRegistry())
            archiver = Archiver(database, store, self.archive, metrics, Log("test", "error"))
            await archiver.archive_all()
            await archiver.stop()

    def execute(self, statement):
        async def run():
            async with opened(self.database_url) as database:
                await database.write(lambda connection: connection.execute(statement))

        asyncio.run(run())

    async def stored(self, broker):
        store = JetStreamLog(broker)
        last = (await store.last([self.table_id]))[self.table_id]
        return await store.read(self.table_id, min_sequence=last)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A house's folder, to be copied."""
    made = House(tmp_path_factory.mktemp("filled") / "data")
    made.during(made.fill)
    assert made.archive.tables() == [made.table_id]
    return made.data


@pytest.fixture
def house(filled, tmp_path):
    return House(shutil.copytree(filled, tmp_path / "data"))


def test_archived_tables_are_pruned_replayed_verified_and_audited(house):
    before = {command: house.run(command, house.table_id) for command in ("replay", "verify")}
    assert house.run("audit")[0] == 0
    assert house.run("prune") == (0, "0 tables pruned\n"), "it is not old enough"
    assert house.run("prune", "--older-than", "0s") == (0, "1 tables pruned\n")
    left = house.during(house.stored)
    assert [Commit.FromString(one.payload).version for one in left] == [len(closed_log())]
    for command, (status, output) in before.items():
        assert status == 0
        assert house.run(command, house.table_id) == (0, output)
    status, output = house.run("audit")
    assert (status, "Nothing differs" in output) == (0, True), output
    assert "3 tables" not in output
    assert house.run("verify")[0] == 0
    assert house.run("prune", "--older-than", "0s") == (0, "0 tables pruned\n")

    async def found_again(broker):
        return await JetStreamLog(broker).append(house.table_id, 0, closed_log()[0], "d")

    assert isinstance(house.during(found_again), Lost), "a pruned table is never founded again"


def test_everything_works_while_a_house_runs(house):
    asyncio.run(house.server.start(60))
    try:
        values = {field.name: "" for field in fields(Running)}
        values |= {"pid": 1, "command": "up", "nats": url_as(house.server.url, "reader", house.known)}
        announce(house.data, Running(**values))
        for command in (("audit",), ("verify", house.table_id), ("prune", "--older-than", "0s"), ("audit",)):
            status, output = house.run(*command)
            assert status == 0, output
        at = ["--nats", url_as(house.server.url, "reader", house.known)]
        verify = ["verify", house.table_id, *at]
        assert CliRunner().invoke(main, verify).exit_code == 1, "the log alone has dropped it"
        verify += ["--archive", str(house.archive.folder)]
        assert CliRunner().invoke(main, verify).exit_code == 0
        assert house.run("audit", *at)[0] == 0
    finally:
        house.server.kill()


def test_a_damaged_archive_is_refused_everywhere(house):
    assert house.run("prune", "--older-than", "0s")[0] == 0
    path = house.archive.folder / house.archive.find(house.table_id)
    whole = path.read_bytes()
    path.write_bytes(whole[:900] + bytes([whole[900] ^ 1]) + whole[901:])
    for command in ("verify", "replay"):
        assert house.run(command, house.table_id)[0] == 1
    status, output = house.run("audit")
    assert status == 1
    assert f"First difference: archive, table {house.table_id}" in output


def test_a_damaged_archive_is_not_pruned_over(house):
    path = house.archive.folder / house.archive.find(house.table_id)
    path.write_bytes(path.read_bytes()[:-1])
    status, output = house.run("prune", "--older-than", "0s")
    assert status == 1
    assert "its archive does not verify" in output
    assert len(house.during(house.stored)) == len(closed_log())


@pytest.mark.parametrize("filtered", ["sj.v1.table.*.*.d", "sj.v1.table.>"])
def test_nothing_is_pruned_that_a_reader_still_needs(house, filtered):
    stream = stream_name(house.table_id)

    async def subscribe(broker):
        config = api.ConsumerConfig(durable_name="slow", filter_subject=filtered, ack_policy="explicit")
        await broker.js.add_consumer(stream, config)

    house.during(subscribe)
    status, output = house.run("prune", "--older-than", "0s")
    assert (status, "consumer slow" in output) == (0, True)
    assert len(house.during(house.stored)) == len(closed_log())

    async def take(acknowledged, broker):
        slow = await broker.js.pull_subscribe_bind("slow", stream)
        messages = await slow.fetch(100, timeout=60)
        for message in messages if acknowledged else messages[:-1]:
            await message.ack_sync()

    house.during(lambda broker: take(False, broker))
    assert "consumer slow" in house.run("prune", "--older-than", "0s")[1]
    house.execute(archives.update().values(archived_at_us=1))

    async def forget(broker):
        await broker.js.delete_consumer(stream, "slow")

    house.during(forget)
    assert house.run("prune")[1] == "1 tables pruned\n"


def test_nothing_is_pruned_that_the_ledger_has_not_read(house):
    house.execute(text("UPDATE positions SET sequence = 5"))
    assert "the ledger's database" in house.run("prune", "--older-than", "0s")[1]


def test_an_audit_names_a_balance_that_was_changed(house):
    house.execute(text("UPDATE stats SET deals = deals + 1 WHERE player_id = 'north'"))
    status, output = house.run("audit")
    assert status == 1
    assert "First difference: statistics of north classic-1d" in output


def test_what_cannot_be_read_is_said(tmp_path):
    for command in ("audit", "prune"):
        done = CliRunner().invoke(main, [command, "--data", str(tmp_path)])
        assert done.exit_code == 1
        assert "there is no ledger" in done.output
        done = CliRunner().invoke(main, [command, "--data", str(tmp_path), "--database", "mysql://x"])
        assert (done.exit_code, "--database" in done.output) == (1, True)
    done = CliRunner().invoke(main, ["prune", "--older-than", "soon"])
    assert done.exit_code == 2
