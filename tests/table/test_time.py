"""What the service does when time passes: act for a seat, give time back, deal on, close."""

import asyncio

import pytest
from support.broker import until
from support.clocks import Ahead
from support.house import patience
from support.serving import AT_ONCE, PATIENCE_S, Game, Refused, context, founding, replica

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


async def until_kind(watch, kind, within_s=PATIENCE_S):
    messages = []
    async with asyncio.timeout(within_s):
        while True:
            messages.append(await watch.next(within_s))
            if any(event.WhichOneof("kind") == kind for event in messages[-1].update.events):
                return messages


def never_acts(at):
    """Have a replica leave to others what is due: it may be in its last moments for long."""

    async def nothing(_):
        pass

    at.service._deadlines.expire = nothing


async def test_what_is_missing_at_the_limit_is_done_by_the_server(one):
    """At the limit itself: the durable timers, which come later, are put off."""
    one.service._timers._backup_us = 3_600_000_000
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
        assert -1 <= late_ms < patience(2) * 1000  # the deadline is rounded up
    assert one.value("shengji_timers_total", outcome="expired") == 3
    watch.stop()


async def test_a_seat_under_the_servers_hand_plays_soon(game):
    leader = await game.to_tricks()
    watch = game.callers[0].watch(game.at, game.table_id)
    await watch.next()
    await game.do(leader, "SetAutoPlay", on=True)
    told, played = await until_kind(watch, "cards_played")
    assert told.update.deadline_ms - told.update.recorded_at_ms <= 500
    assert -1 <= played.update.recorded_at_ms - told.update.deadline_ms < patience(2) * 1000
    watch.stop()


async def test_another_replica_keeps_the_time_of_one_that_is_gone(nats_server, data, one):
    async with replica(nats_server.url, data) as first:
        game = Game([first])
        await game.found(founding(pace=pace(bury_ms=1000)))
        await game.deal()
        never_acts(first)
        declarer = await game.pass_all()
    await until(lambda: one.value("shengji_timers_total", outcome="expired") == 1)
    watch = game.callers[0].watch(one, game.table_id, after=game.founded.resume)
    before, buried = (await until_kind(watch, "buried"))[-2:]
    assert -1 <= buried.update.recorded_at_ms - before.update.deadline_ms < patience(4) * 1000
    assert (await game.callers[declarer].view(one, game.table_id)).phase == view_pb2.PHASE_TRICKS
    watch.stop()


async def test_time_that_ran_out_while_nobody_served_is_given_back(nats_server, data, monkeypatch):
    clock = Ahead()
    monkeypatch.setattr("services.table.app.clock_us", clock.us)
    async with replica(nats_server.url, data) as first:
        game = Game([first])
        await game.found(founding(pace=pace(bury_ms=300_000)))
        await game.deal()
        declarer = await game.pass_all()
    clock.by_s = 301
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
    await game.play_deal(await game.to_tricks())
    watch = game.callers[0].watch(one, game.table_id, after=game.founded.resume)
    for _ in range(2):
        started = (await until_kind(watch, "deal_started"))[-1].update
    game.version = started.version
    await game.pass_all()
    await game.play_deal(await game.bury())
    closed = (await until_kind(watch, "table_closed"))[-1].update
    game.version = closed.version
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
    watch = game.callers[0].watch(one, game.table_id, after=game.founded.resume)
    await until_kind(watch, "table_closed")
    refused = pb.ReadyRequest(context=context(game.table_id))
    with pytest.raises(Refused, match="TABLE_CLOSED"):
        await game.callers[0].call(one, "Ready", refused)
    watch.stop()
