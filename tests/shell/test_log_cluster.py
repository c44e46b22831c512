"""Three servers on this machine, and the fate of their leaders. Slow, since an election takes 4-9 s."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.broker import PATIENCE_S, Writer, check_chain, new_table, now_us, until
from support.house import patience

from services.game.ids import stream_name
from services.shell.broker import Broker, ensure_streams
from services.shell.live import LiveFeed
from services.shell.log_jetstream import JetStreamLog
from services.shell.nats_server import ClusterPlace, NatsServer, free_port
from services.shell.timers import Done, Due, Verdict
from services.shell.timers_jetstream import JetStreamTimers

pytestmark = pytest.mark.slow


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[dict[str, NatsServer]]:
    routes = [free_port() for _ in range(3)]
    servers = {
        f"n{number}": NatsServer(
            tmp_path / f"n{number}",
            name=f"n{number}",
            store_max=1_000_000_000,
            cluster=ClusterPlace(port, routes),
        )
        for number, port in enumerate(routes)
    }
    await asyncio.gather(*(server.start(within_s=PATIENCE_S) for server in servers.values()))
    yield servers
    for server in servers.values():
        server.thaw()
        server.kill()


async def leader(broker: Broker, stream: str) -> str:
    info = await broker.js.stream_info(stream)
    assert info.cluster is not None
    assert info.cluster.leader is not None
    return info.cluster.leader


@pytest.mark.parametrize("fault", ["kill", "freeze", "stop"])
async def test_a_leader_that_goes_away_loses_and_doubles_nothing(
    cluster: dict[str, NatsServer], fault: str
) -> None:
    urls = [server.url for server in cluster.values()]
    brokers = [await Broker.connect(urls, f"writer {number}") for number in range(2)]
    await ensure_streams(brokers[0], 3)
    logs = [JetStreamLog(broker) for broker in brokers]
    feed, heard = LiveFeed(logs[0]), {}
    brokers[0].on_reconnect(feed.poke)
    await feed.start()
    tables = [new_table() for _ in range(12)]
    for table in tables:
        heard[table] = []
        await feed.watch(table, 0, heard[table].append)
    timers, fired = JetStreamTimers(brokers[1], now_us), []

    async def handle(due: Due) -> Verdict:
        fired.append(due.table_id)
        return Done()

    await timers.start(handle)
    await asyncio.gather(*(timers.arm(table, 1, now_us() + 2_000_000) for table in tables))
    writers = {
        table: [Writer(name, log, table) for name, log in zip("ab", logs, strict=True)] for table in tables
    }
    over = asyncio.Event()
    tasks = [asyncio.create_task(w.write_until(over)) for pair in writers.values() for w in pair]
    await asyncio.sleep(1.5)
    victim = cluster[await leader(brokers[0], stream_name(tables[0]))]
    began = time.monotonic()
    if fault == "kill":
        victim.kill()
    elif fault == "freeze":
        victim.freeze()
    else:
        await victim.stop()
    # What was acknowledged before the fault may still be under way.
    await asyncio.sleep(0.3)
    before = {table: sum(len(w.acknowledged) for w in pair) for table, pair in writers.items()}
    while any(sum(len(w.acknowledged) for w in pair) == before[table] for table, pair in writers.items()):
        await asyncio.sleep(0.02)
        assert time.monotonic() - began < patience(12), "the tables did not come back"
    gap_s = time.monotonic() - began
    if fault == "freeze":
        victim.thaw()
    else:
        await victim.start(within_s=PATIENCE_S)
    over.set()
    await asyncio.gather(*tasks)
    for table, pair in writers.items():
        commits = await logs[1].read(table, min_sequence=max(w.last for w in pair))
        check_chain(commits, pair)
    for table in tables:
        commits = await logs[1].read(table, min_sequence=max(w.last for w in writers[table]))
        await until(lambda table=table, commits=commits: len(heard[table]) >= len(commits))
        assert heard[table] == commits
    await until(lambda: set(fired) == set(tables))
    print(f"{fault}: every table came back within {gap_s:.1f} s")
    await feed.stop()
    await timers.stop()
    for broker in brokers:
        await broker.close()
