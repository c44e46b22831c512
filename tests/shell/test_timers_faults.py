"""Durable timers on a real server that is killed."""

import asyncio

import pytest
from support.broker import PATIENCE_S, new_table, now_us, until

from services.shell.broker import Broker
from services.shell.nats_server import NatsServer
from services.shell.timers import Done, Due, Verdict
from services.shell.timers_jetstream import JetStreamTimers

MS = 1000
BACKUP_MS = 200


async def test_timers_survive_a_killed_server(nats_server: NatsServer, broker: Broker) -> None:
    timers = JetStreamTimers(broker, now_us, backup_s=BACKUP_MS / 1000)
    fired: dict[str, list[int]] = {}

    async def handle(due: Due) -> Verdict:
        fired.setdefault(due.table_id, []).append(now_us() - due.deadline_us)
        return Done()

    await timers.start(handle)
    # One is due while the server is away, one after it is back: again with more time if that was too slow.
    for ahead_ms in (200, 3_000, 30_000):
        past, future = new_table(), new_table()
        due_us = now_us() + ahead_ms * MS
        await timers.arm(past, 1, due_us)
        await timers.arm(future, 1, due_us + 1_300 * MS)
        nats_server.kill()
        if now_us() < due_us:
            break
        await nats_server.start(within_s=PATIENCE_S)
    await asyncio.sleep((due_us - now_us()) / 1e6 + 2 * BACKUP_MS / 1000)
    assert past not in fired
    assert future not in fired
    await nats_server.start(within_s=PATIENCE_S)
    await until(lambda: past in fired and future in fired)
    await asyncio.sleep(0.5)
    assert (len(fired[past]), len(fired[future])) == (1, 1)
    assert fired[future][0] >= BACKUP_MS * MS
    await timers.stop()


async def test_one_taken_and_not_acknowledged_goes_to_another_replica(
    nats_server: NatsServer, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.shell.timers_jetstream.ACK_WAIT_S", 1.0)
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
    async with asyncio.timeout(PATIENCE_S):
        await again.wait()
    await other.stop()
    await connection.close()


@pytest.mark.usefixtures("patient")
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
    async with asyncio.timeout(PATIENCE_S):
        await fired.wait()
    await timers.stop()
