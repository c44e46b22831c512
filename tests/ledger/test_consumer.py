"""The whole ledger on a real log: standby, kills, a database that goes away, redelivery."""

import asyncio
from random import Random

import pytest
from prometheus_client import CollectorRegistry
from support.broker import until
from support.databases import new_database, new_url
from support.ledger_oracle import expected, totals
from support.ledgers import GRANT, balances, check, feed, merged, rows, whole

from services.bench.ledger_logs import Mix, World
from services.game.ids import subject
from services.ledger.consumer import Applier, Consumer
from services.ledger.database import Database, DatabaseAway
from services.ledger.holding import Holding
from services.ledger.metrics import LedgerMetrics
from services.ledger.schema import applied, positions
from services.shell.broker import Broker
from services.shell.logs import Log

MIX = Mix(people=12, stakes=(0, 7, 20), parallel=3, options=0.5, escapes=0.1, bots=0.2)
"""Nobody runs out of chips, so it does not matter which stream's message comes a little earlier."""


class Node:
    """One ledger process' working parts."""

    def __init__(self, url, broker):
        self.database = Database(url)
        self.registry = CollectorRegistry()
        self.metrics = LedgerMetrics(self.registry)
        log = Log("test", "error")
        applier = Applier(self.database, GRANT, self.metrics, log)
        self.consumer = Consumer(
            self.database, broker, applier, Holding(self.database, GRANT), self.metrics, log
        )

    async def stop(self):
        await self.consumer.stop()
        await self.database.close()

    def sample(self, name, **labels):
        return self.registry.get_sample_value(f"shengji_ledger_{name}", labels)


async def publish(broker, messages):
    for message in messages:
        await broker.js.publish(subject(message.table_id, "d"), message.stored)


async def until_applied(database, count, within_s=120.0):
    async with asyncio.timeout(within_s):
        while True:
            try:
                if len(await rows(database, applied, "version")) >= count:
                    return
            except DatabaseAway:
                pass
            await asyncio.sleep(0.05)


@pytest.fixture
async def log(tmp_path):
    """A nats-server of the test's own."""
    from support.broker import running_server

    def enter():
        made = running_server(tmp_path / "nats")
        return made, made.__enter__()

    context, server = await asyncio.to_thread(enter)
    broker = await Broker.connect(server.url, "ledger")
    yield broker
    await broker.close()
    await asyncio.to_thread(context.__exit__, None, None, None)


async def test_a_log_is_applied_as_it_grows_by_one_of_two_processes(log, database_url, kind, tmp_path):
    messages = World(Random(1), MIX).messages(40)
    half = len(messages) // 2
    await publish(log, messages[:half])
    first, second = Node(database_url, log), Node(database_url, log)
    await first.database.migrate()
    first.consumer.start()
    await until(lambda: first.consumer.leading, 60)
    second.consumer.start()
    await until_applied(first.database, half)
    assert not second.consumer.leading
    await first.stop()
    await until(lambda: second.consumer.leading, 60)
    await publish(log, messages[half:])
    await until_applied(second.database, len(messages))
    assert totals(await balances(second.database)) == expected(messages, GRANT)[0]
    await check(second.database)
    assert second.sample("alarms_total", why="gap") == 0
    assert second.sample("settled_deals_total") > 0
    plain = await new_database(kind, tmp_path)
    await feed(plain, merged(messages, Random(3)))
    ours, others = await whole(second.database), await whole(plain)
    assert ours == others
    await plain.close()
    await second.stop()


async def test_a_database_that_is_empty_again_is_filled_from_the_log_alone(log, kind, tmp_path):
    messages = World(Random(2), MIX).messages(20)
    await publish(log, messages)
    told = []
    for _ in range(2):
        node = Node(new_url(kind, tmp_path), log)
        await node.database.migrate()
        node.consumer.start()
        await until_applied(node.database, len(messages))
        told.append(await whole(node.database))
        last = {message.stream for message in messages}
        reached = await rows(node.database, positions, "stream", "sequence")
        assert {stream for stream, sequence in reached if sequence} == last
        await node.stop()
    assert told[0] == told[1]
    for number in range(4):
        info = await log.js.consumer_info(f"SJ_TABLES_{number}", "ledger")
        assert info.num_pending == 0
