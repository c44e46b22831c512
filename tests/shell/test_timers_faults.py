"""Durable timers on a real server that is killed."""

import asyncio

from support.broker import new_table, now_us, until

from services.shell.broker import Broker
from services.shell.nats_server import NatsServer
from services.shell.timers import Done, Due, Verdict
from services.shell.timers_jetstream import JetStreamTimers

MS = 1000


async def test_timers_survive_a_killed_server(nats_server: NatsServer, broker: Broker) -> None:
    timers = JetStreamTimers(broker, now_us, backup_s=0.2)
    fired: dict[str, list[int]] = {}

    async def handle(due: Due) -> Verdict:
        fired.setdefault(due.table_id, []).append(now_us() - due.deadline_us)
        return Done()

    await timers.start(handle)
    past, future = new_table(), new_table()
    # One is due while the server is away, one after it is back.
    await timers.arm(past, 1, now_us() + 100 * MS)
    await timers.arm(future, 1, now_us() + 1_500 * MS)
    nats_server.kill()
    await asyncio.sleep(0.6)
    assert fired == {}
    await nats_server.start()
    await until(lambda: len(fired) == 2, within_s=5)
    await asyncio.sleep(0.5)
    assert {table: len(times) for table, times in fired.items()} == {past: 1, future: 1}
    assert 200 * MS <= fired[future][0] < 700 * MS
    await timers.stop()


async def test_one_taken_and_not_acknowledged_goes_to_another_replica(
    nats_server: NatsServer, broker: Broker
) -> None:
    timers, taken, again = JetStreamTimers(broker, now_us, backup_s=0), asyncio.Event(), asyncio.Event()

    async def never(due: Due) -> Verdict:
        taken.set()
        await asyncio.Event().wait()
        return Done()

    async def handle(due: Due) -> Verdict:
        again.set()
        return Done()

    await timers.start(never)
    await timers.arm(new_table(), 1, now_us())
    await taken.wait()
    await timers.stop()
    connection = await Broker.connect(nats_server.url, "other")
    other = JetStreamTimers(connection, now_us, backup_s=0)
    await other.start(handle)
    async with asyncio.timeout(7):
        await again.wait()
    await other.stop()
    await connection.close()


async def test_arming_is_repeated_when_the_server_was_away(nats_server: NatsServer, broker: Broker) -> None:
    timers, fired = JetStreamTimers(broker, now_us, backup_s=0), asyncio.Event()

    async def handle(due: Due) -> Verdict:
        fired.set()
        return Done()

    await timers.start(handle)
    nats_server.freeze()
    arming = asyncio.create_task(timers.arm(new_table(), 1, now_us()))
    await asyncio.sleep(0.3)
    assert not arming.done()
    nats_server.thaw()
    await arming
    async with asyncio.timeout(3):
        await fired.wait()
    await timers.stop()
