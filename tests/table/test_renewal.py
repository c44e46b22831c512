"""A watch is renewed in band, through any replica, by its own player alone."""

import asyncio
import time

import pytest
from support.clocks import Ahead
from support.serving import PATIENCE_S, Caller, Game, Refused, Watching, founding, token

from services.pb.event.v1.event_pb2 import SPECTATORS_PUBLIC
from services.pb.table.v1 import table_service_pb2 as pb
from services.table.watch import ANNOUNCED_S, EXPIRY_GRACE_S

LIFE_S = 600
MARGIN_S = 20
"""What a test may take: so far from the moment in question the clock jumps."""


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The watches' time of day."""
    ahead = Ahead()
    monkeypatch.setattr("services.table.watch.time", ahead)
    return ahead


def watch(at, table_id, player, lifetime_s=LIFE_S):
    """A watch under a token that lives so long."""
    sent = (("authorization", f"Bearer {token(at.data, player, lifetime_s=lifetime_s)}"),)
    return Watching(at.stub.Watch(pb.WatchRequest(table_id=table_id), metadata=sent))


async def heartbeat(watching, until_ms):
    """Read on until a heartbeat names an expiry."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            message = await watching.next()
            if message.heartbeat.token_expires_at_ms == until_ms:
                return message


async def renew(at, player, lifetime_s=900):
    sent = (("authorization", f"Bearer {token(at.data, player, lifetime_s=lifetime_s)}"),)
    return (await at.stub.RenewWatch(pb.RenewWatchRequest(), metadata=sent, timeout=PATIENCE_S)).expires_at_ms


async def end_of(watching):
    """How a watch ended."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await watching.next()
            except Refused as error:
                return error.reason


async def swept(*replicas):
    """Have replicas look at the time now, as they do once a second."""
    for at in replicas:
        await at.service.watches.sweep()


async def test_a_watch_lives_on_when_its_player_shows_a_fresh_token_anywhere(two, clock):
    here, there = two
    game = Game([here])
    await game.found(founding(spectators=SPECTATORS_PUBLIC))
    renewed = [
        watch(there, game.table_id, "ann"),
        watch(here, game.table_id, "ann"),
        watch(there, game.table_id, "eve"),
    ]
    unrenewed = [watch(there, game.table_id, "bob"), watch(here, game.table_id, "fay")]
    for each in (*renewed, *unrenewed):
        assert (await each.next()).HasField("snapshot")
    before = time.time()
    until = await renew(here, "ann", 900)
    assert before + 899 <= until / 1000 <= time.time() + 900
    await heartbeat(renewed[0], until)
    await heartbeat(renewed[1], until)
    await heartbeat(renewed[2], await renew(here, "eve", 900))
    await renew(here, "gus")
    await renew(there, "cid")

    clock.by_s = LIFE_S + EXPIRY_GRACE_S - 2 * MARGIN_S
    await swept(here, there)
    for each in unrenewed:
        assert (await each.next()).HasField("heartbeat"), "announced, and not ended yet"
    clock.by_s = LIFE_S + EXPIRY_GRACE_S + 1
    await swept(here, there)
    assert {await end_of(each) for each in unrenewed} == {"UNAUTHENTICATED"}
    await game.do(0, "Ready")
    for each in renewed:
        messages = await each.until(2)
        assert [m.update.version for m in messages if m.HasField("update")] == [2]
        each.stop()


async def test_a_token_that_ends_is_announced_once_whatever_else_happens(one, clock):
    game = Game([one])
    await game.found()
    quiet = watch(one, game.table_id, "ann", lifetime_s=LIFE_S)
    long = watch(one, game.table_id, "bob", lifetime_s=2 * LIFE_S)
    for each in (quiet, long):
        assert (await each.next()).HasField("snapshot")
    clock.by_s = LIFE_S - ANNOUNCED_S + 1
    await swept(one)
    beat = (await quiet.next()).heartbeat
    left_ms = beat.token_expires_at_ms - beat.server_now_ms
    assert LIFE_S * 1000 - MARGIN_S * 1000 <= left_ms <= LIFE_S * 1000  # the table's own clock did not jump
    for _ in range(3):
        await swept(one)
        await asyncio.sleep(0.01)
    await game.do(0, "Ready")
    for each in (quiet, long):
        assert (await each.next()).update.version == 2, "nothing was told twice, and no other too early"
        each.stop()


async def test_an_older_token_shortens_nothing(two, clock):
    here, there = two
    game = Game([here])
    await game.found()
    long, other = (watch(there, game.table_id, player, 2 * LIFE_S) for player in ("ann", "bob"))
    for each in (long, other):
        await each.next()
    await renew(here, "ann", lifetime_s=LIFE_S)
    await heartbeat(other, await renew(here, "bob", 3 * LIFE_S))  # what was told before has come as well
    clock.by_s = LIFE_S + EXPIRY_GRACE_S + 1
    await swept(there)
    await game.do(0, "Ready")
    assert [m.update.version for m in await long.until(2)] == [2]
    long.stop()
    other.stop()


async def test_a_renewal_needs_a_token_that_holds(one):
    stale = (("authorization", f"Bearer {token(one.data, 'ann', now=time.time() - 2000)}"),)
    caller = Caller(one.data, "ann")
    caller.metadata = stale
    with pytest.raises(Refused, match="UNAUTHENTICATED"):
        await caller.call(one, "RenewWatch", pb.RenewWatchRequest())
