"""What the service does when time passes: act for a seat, give time back, deal on, close."""

import asyncio
import time

import pytest
from support.serving import AT_ONCE, Caller, Game, Refused, context, founding, replica

from services.pb.event.v1.event_pb2 import Pace
from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1 import view_pb2


def pace(**changes):
    chosen = Pace()
    chosen.CopyFrom(AT_ONCE)
    for name, value in changes.items():
        setattr(chosen, name, value)
    return chosen


def kinds(messages):
    return [[event.WhichOneof("kind") for event in message.update.events] for message in messages]


async def until_kind(watch, kind, within_s=6.0):
    messages = []
    async with asyncio.timeout(within_s):
        while True:
            messages.append(await watch.next(within_s))
            if any(event.WhichOneof("kind") == kind for event in messages[-1].update.events):
                return messages


async def test_what_is_missing_at_the_limit_is_done_by_the_server(one):
    game = Game([one])
    await game.found(founding(pace=pace(declare_ms=300, bury_ms=1000, turn_ms=1000)))
    watch = game.callers[0].watch(one, game.table_id)
    await watch.next()
    await game.deal()
    messages = await until_kind(watch, "cards_played")
    done = kinds(messages)[-3:]
    assert done[0][-2:] == ["declaring_closed", "kitty_taken"]
    assert done[1] == ["turn_expired", "buried"]
    assert done[2] == ["turn_expired", "cards_played"]
    for before, after in zip(messages[-3:], messages[-2:], strict=False):
        late_ms = after.update.recorded_at_ms - before.update.deadline_ms
        assert -1 <= late_ms < 500  # the deadline is rounded up
    assert one.value("shengji_timers_total", outcome="expired") == 3
    watch.stop()


async def test_a_seat_under_the_servers_hand_plays_soon(game):
    leader = await game.to_tricks()
    await game.do(leader, "SetAutoPlay", on=True)
    watch = game.callers[0].watch(game.at, game.table_id)
    await watch.next()
    began = time.monotonic()
    await until_kind(watch, "cards_played", 3)
    assert time.monotonic() - began < 1.5
    watch.stop()


async def test_another_replica_keeps_the_time_of_one_that_is_gone(nats_server, data, one):
    async with replica(nats_server.url, data) as first:
        game = Game([first])
        await game.found(founding(pace=pace(bury_ms=1000)))
        await game.deal()
        declarer = await game.pass_all()
        ended = time.monotonic()
    watch = Caller(data, "ann").watch(one, game.table_id)
    await until_kind(watch, "buried", 4)
    assert 0.8 < time.monotonic() - ended < 4
    assert (await game.callers[declarer].view(one, game.table_id)).phase == view_pb2.PHASE_TRICKS
    watch.stop()


async def test_time_that_ran_out_while_nobody_served_is_given_back(nats_server, data):
    async with replica(nats_server.url, data) as first:
        game = Game([first])
        await game.found(founding(pace=pace(bury_ms=1000)))
        await game.deal()
        declarer = await game.pass_all()
    await asyncio.sleep(1.2)
    async with replica(nats_server.url, data) as second:
        game.replicas = [second]
        watch = game.callers[0].watch(second, game.table_id, after=game.founded.resume)
        messages = await until_kind(watch, "time_given")
        assert not any("buried" in step for step in kinds(messages))
        assert messages[-1].update.deadline_ms > messages[-1].update.recorded_at_ms
        assert second.value("shengji_late_timers_total") >= 1
        view = await game.view(declarer)
        assert view.phase == view_pb2.PHASE_BURY
        await game.do(declarer, "Bury", view.version, cards=list(view.hand)[:8])
        watch.stop()


async def test_the_next_deal_starts_by_itself_and_a_finished_table_closes(one, monkeypatch):
    monkeypatch.setattr("services.game.waits.CLOSING_US", 300_000)
    game = Game([one])
    await game.found(founding(preset="classic-1d", overrides={"deals": "2"}, pace=pace(next_deal_ms=200)))
    view = await game.play_deal(await game.to_tricks())
    watch = game.callers[0].watch(one, game.table_id)
    assert (await watch.next()).snapshot.phase == view.phase == view_pb2.PHASE_SCORED
    await until_kind(watch, "deal_started", 3)
    await game.pass_all()
    await game.play_deal(await game.bury())
    closed = (await until_kind(watch, "table_closed", 3))[-1].update
    assert closed.deadline_ms == 0
    view = await game.view(1)
    assert (view.phase, view.result.deals) == (view_pb2.PHASE_CLOSED, 2)
    with pytest.raises(Refused, match="TABLE_CLOSED"):
        await game.do(0, "Ready")
    late = game.callers[0].watch(one, game.table_id, after=game.founded.resume)
    assert (await late.until(view.version))[-1].update.version == view.version
    late.stop()
    watch.stop()


async def test_a_table_that_nobody_touches_is_closed(one, monkeypatch):
    monkeypatch.setattr("services.game.waits.IDLE_US", 500_000)
    game = Game([one])
    await game.found()
    watch = game.callers[0].watch(one, game.table_id)
    await until_kind(watch, "table_closed", 4)
    refused = pb.ReadyRequest(context=context(game.table_id))
    with pytest.raises(Refused, match="TABLE_CLOSED"):
        await game.callers[0].call(one, "Ready", refused)
    watch.stop()
