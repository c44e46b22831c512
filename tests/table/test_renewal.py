"""A watch is renewed in band, through any replica, by its own player alone."""

import asyncio
import time

import pytest
from support.serving import Caller, Game, Refused, Watching, founding, token

from services.pb.event.v1.event_pb2 import SPECTATORS_PUBLIC
from services.pb.table.v1 import table_service_pb2 as pb

SHORT_S = 3


@pytest.fixture(autouse=True)
def short_grace(monkeypatch):
    monkeypatch.setattr("services.table.watch.EXPIRY_GRACE_S", 0.5)


def watch(at, table_id, player, lifetime_s=SHORT_S):
    """A watch under a token that ends soon."""
    sent = (("authorization", f"Bearer {token(at.data, player, lifetime_s=lifetime_s)}"),)
    return Watching(at.stub.Watch(pb.WatchRequest(table_id=table_id), metadata=sent))


async def heartbeat(watching, until_ms):
    """Read on until a heartbeat names an expiry."""
    async with asyncio.timeout(5):
        while True:
            message = await watching.next()
            if message.heartbeat.token_expires_at_ms == until_ms:
                return message


async def renew(at, player, lifetime_s=900):
    sent = (("authorization", f"Bearer {token(at.data, player, lifetime_s=lifetime_s)}"),)
    return (await at.stub.RenewWatch(pb.RenewWatchRequest(), metadata=sent, timeout=5)).expires_at_ms


async def end_of(watching, within_s=8):
    """How a watch ended, and when."""
    async with asyncio.timeout(within_s):
        while True:
            try:
                await watching.next(within_s)
            except Refused as error:
                return error.reason, time.time()


async def test_a_watch_lives_on_when_its_player_shows_a_fresh_token_anywhere(two):
    here, there = two
    game = Game([here])
    await game.found(founding(spectators=SPECTATORS_PUBLIC))
    began = time.time()
    renewed = [
        watch(there, game.table_id, "ann"),
        watch(here, game.table_id, "ann"),
        watch(there, game.table_id, "eve"),
    ]
    unrenewed = [watch(there, game.table_id, "bob"), watch(here, game.table_id, "fay")]
    for each in (*renewed, *unrenewed):
        assert (await each.next()).HasField("snapshot")
    until = await renew(here, "ann")
    assert abs(until / 1000 - began - 900) < 3
    await heartbeat(renewed[0], until)
    await heartbeat(renewed[1], until)
    await heartbeat(renewed[2], await renew(here, "eve"))
    await renew(here, "gus")
    await renew(there, "cid")
    for reason, ended in await asyncio.gather(*map(end_of, unrenewed)):
        assert reason == "UNAUTHENTICATED"
        assert began + SHORT_S - 1 < ended < began + SHORT_S + 3
    await asyncio.sleep(max(0, began + SHORT_S + 2.5 - time.time()))
    await game.do(0, "Ready")
    for each in renewed:
        messages = await each.until(2)
        assert [m.update.version for m in messages if m.HasField("update")] == [2]
        each.stop()


async def test_a_token_that_ends_is_announced_once_whatever_else_happens(one):
    game = Game([one])
    await game.found()
    quiet = watch(one, game.table_id, "ann", lifetime_s=30)
    assert (await quiet.next()).HasField("snapshot")
    beat = await quiet.next(3)
    assert 27_000 < beat.heartbeat.token_expires_at_ms - beat.heartbeat.server_now_ms <= 30_000
    with pytest.raises(TimeoutError):
        await quiet.next(2.5)
    long = game.callers[1].watch(one, game.table_id)
    assert (await long.next()).HasField("snapshot")
    with pytest.raises(TimeoutError):
        await long.next(2.5)


async def test_an_older_token_shortens_nothing(two):
    here, there = two
    game = Game([here])
    await game.found()
    long = game.callers[0].watch(there, game.table_id)
    await long.next()
    await renew(here, "ann", lifetime_s=1)
    await asyncio.sleep(3.5)
    await game.do(0, "Ready")
    assert [m.update.version for m in await long.until(2)] == [2]
    long.stop()


async def test_a_renewal_needs_a_token_that_holds(one):
    stale = (("authorization", f"Bearer {token(one.data, 'ann', now=time.time() - 2000)}"),)
    caller = Caller(one.data, "ann")
    caller.metadata = stale
    with pytest.raises(Refused, match="UNAUTHENTICATED"):
        await caller.call(one, "RenewWatch", pb.RenewWatchRequest())
