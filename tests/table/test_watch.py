"""Watching: the same steps live, resumed, replayed from the log, and at every replica."""

import asyncio
import time

import grpc
import pytest
from support.broker import until
from support.clocks import Ahead
from support.serving import AT_ONCE, Caller, Game, Refused, Watching, context, founding, replica, token

from services.pb.event.v1.event_pb2 import SPECTATORS_LINK, SPECTATORS_PUBLIC, Pace
from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1 import view_pb2
from services.table.watch import EXPIRY_GRACE_S


def drawing(draw_ms):
    """A pace at which cards are drawn one by one."""
    pace = Pace()
    pace.CopyFrom(AT_ONCE)
    pace.draw_ms = draw_ms
    return pace


def raw(messages):
    return [message.SerializeToString() for message in messages]


def places(messages):
    return [(m.update.version or m.snapshot.version, m.update.drawn or m.snapshot.drawn) for m in messages]


async def drawn(game, count):
    async with asyncio.timeout(60):
        while (await game.view(0)).drawn < count:  # noqa: ASYNC110 - a view is asked for, none is sent
            await asyncio.sleep(0.05)


async def drawn_game(replicas):
    """A deal with its draw, a declaration in the middle if there can be one, up to the first tricks."""
    game = Game(replicas)
    await game.found(founding(pace=drawing(20)))
    watches = [game.callers[2].watch(at, game.table_id) for at in replicas]
    for watch in watches:
        await watch.next()
    await game.deal()
    await asyncio.sleep(0.15)
    for seat in range(4):
        for card in (await game.view(seat)).hand:
            if card % 13 == 1 and card < 53:
                await game.do(seat, "Declare", cards=[card])
                break
        else:
            continue
        break
    await drawn(game, 25)
    await game.pass_all()
    leader = await game.bury()
    for step in range(8):
        view = await game.view(leader)
        if step and view.phase != view_pb2.PHASE_TRICKS:
            break
        await game.play_one(view.to_act[0])
    return game, watches


async def test_every_place_is_resumed_exactly_and_alike_everywhere(two):
    game, watches = await drawn_game(two)
    live = [await watch.until(game.version) for watch in watches]
    for watch in watches:
        watch.stop()
    assert raw(live[0]) == raw(live[1])
    told = live[0]
    assert places(told) == sorted(set(places(told)))
    rounds = [m.update for m in told if not m.update.events]
    assert [update.drawn for update in rounds] == list(range(1, 26))
    drawn = [card for update in rounds for card in update.drawn_cards]
    assert len(drawn) == 25

    founder = game.callers[2].watch(two[0], game.table_id, after=game.founded.resume)
    whole = await founder.until(game.version)
    founder.stop()
    assert raw(whole) == raw(told)
    for at in range(0, len(whole), 5):
        resumed = game.callers[2].watch(two[at % 2], game.table_id, after=whole[at].resume)
        assert raw(await resumed.until(game.version)) == raw(whole[at + 1 :])
        resumed.stop()


async def test_the_log_alone_tells_the_same(two, nats_server, data):
    game, watches = await drawn_game(two)
    told = await watches[0].until(game.version)
    async with replica(nats_server.url, data) as fresh:
        for at in (0, 3, 10, len(told) - 2):
            watch = game.callers[2].watch(fresh, game.table_id, after=told[at].resume)
            assert raw(await watch.until(game.version)) == raw(told[at + 1 :])
            watch.stop()
    for watch in watches:
        watch.stop()


async def test_a_snapshot_and_the_updates_make_the_view(game):
    leader = await game.to_tricks()
    watch = game.callers[leader].watch(game.at, game.table_id)
    first = await watch.next()
    assert first.HasField("snapshot")
    assert first.snapshot.hand == (await game.view(leader)).hand
    await game.play_one(leader)
    (update,) = await watch.until(game.version)
    view = await game.view(leader)
    assert update.update.version == view.version
    assert list(update.update.to_act) == list(view.to_act)
    assert update.update.turn_version == view.turn_version
    assert update.update.deadline_ms == view.deadline_ms
    watch.stop()


async def test_a_late_watcher_sees_the_draw_go_on(one):
    for draw_ms in (20, 50, 200, 1000):  # the slower the machine, the slower the draw
        game = Game([one])
        await game.found(founding(pace=drawing(draw_ms)))
        await game.deal()
        await drawn(game, 1)
        await asyncio.sleep(0.2)  # rounds are told a little after their time
        watch = game.callers[1].watch(one, game.table_id)
        first = (await watch.next()).snapshot
        if 0 < first.drawn < 25:
            break
        watch.stop()
    assert 0 < first.drawn < 25
    assert len(first.hand) == first.drawn
    rest = [(await watch.next()).update for _ in range(25 - first.drawn)]
    assert [update.drawn for update in rest] == list(range(first.drawn + 1, 26))
    hand = [*first.hand, *(card for update in rest for card in update.drawn_cards)]
    assert hand == list((await game.view(1)).hand)
    watch.stop()


async def test_forged_resume_tokens_are_refused(game):
    other = Game(game.replicas)
    await other.found()
    good = game.founded.resume
    for forged in (
        "x",
        "ü",
        good[:-2],
        good[:-1] + ("A" if good[-1] != "A" else "B"),
        "B" + good[1:],
        other.founded.resume,
    ):
        with pytest.raises(Refused, match="BAD_INPUT"):
            await game.callers[0].watch(game.at, game.table_id, after=forged).next()
    assert game.at.value("shengji_watchers") == 0


async def test_spectators_off_link_and_public(one):
    eve = Caller(one.data, "eve")
    for spectators, works in ((0, False), (1, False), (SPECTATORS_LINK, True), (SPECTATORS_PUBLIC, True)):
        game = Game([one])
        await game.found(founding(spectators=spectators))
        code = game.founded.spectator_code
        assert bool(code) == (spectators == SPECTATORS_LINK)
        watch = eve.watch(one, game.table_id, code=code)
        if works:
            snapshot = (await watch.next()).snapshot
            assert not snapshot.HasField("my_seat")
            watch.stop()
        else:
            with pytest.raises(Refused, match="NOT_YOURS") as caught:
                await watch.next()
            assert caught.value.code is grpc.StatusCode.PERMISSION_DENIED
    with pytest.raises(Refused, match="NOT_YOURS"):
        await eve.watch(one, (await _linked(one)).table_id, code="aaaaaaaaaaaaa").next()


async def _linked(one):
    game = Game([one])
    await game.found(founding(spectators=SPECTATORS_LINK))
    return game


async def test_a_spectator_is_told_later(nats_server, data, monkeypatch):
    """So much later by the table's clock, which jumps: founded at 0, dealt at 200, passed at 400 seconds."""
    clock = Ahead()
    monkeypatch.setattr("services.table.app.clock_us", clock.us)
    async with replica(nats_server.url, data) as at:

        def jump_to(seconds):
            clock.by_s = seconds
            for watcher in list(at.service.watches._watchers):
                watcher.wake()

        game = Game([at])
        await game.found(founding(spectators=SPECTATORS_PUBLIC, spectator_delay_ms=500_000))
        eve = Caller(data, "eve")
        with pytest.raises(Refused, match="UNAVAILABLE"):
            await eve.view(at, game.table_id)
        watch = eve.watch(at, game.table_id)
        first = asyncio.create_task(watch.next())
        jump_to(200)
        await game.deal()
        await asyncio.sleep(0.05)
        assert not first.done()
        jump_to(600)
        assert (await first).snapshot.version == 1
        await game.pass_all()
        second = asyncio.create_task(watch.next())
        await asyncio.sleep(0.05)
        assert not second.done()
        jump_to(900)
        told = [await second, *await watch.until(5)]
        assert [message.update.version for message in told] == [2, 3, 4, 5]
        assert (await eve.view(at, game.table_id)).version == 5
        again = eve.watch(at, game.table_id)
        assert (await again.next()).snapshot.version == 5
        resumed = eve.watch(at, game.table_id, after=game.founded.resume)
        assert raw(await resumed.until(5)) == raw(told)
        third = asyncio.create_task(resumed.next())
        await asyncio.sleep(0.05)
        assert not third.done()
        jump_to(1300)
        rest = [await third, *await resumed.until(9)]
        assert raw(await watch.until(9)) == raw(rest) == raw(await again.until(9))
        for done_with in (watch, again, resumed):
            done_with.stop()


async def test_who_takes_a_seat_sees_as_that_seat_and_who_leaves_does_not(one):
    game = Game([one])
    await game.found(founding(["ann", "bob", "cid"], spectators=SPECTATORS_PUBLIC))
    dan, eve = Caller(one.data, "dan"), Caller(one.data, "eve")
    watch = dan.watch(one, game.table_id)
    await watch.next()
    sit = pb.SitRequest(context=context(game.table_id), seat=3)
    await dan.call(one, "Sit", sit)
    leave = pb.LeaveRequest(context=context(game.table_id))
    left = game.callers[2].watch(one, game.table_id)
    await left.next()
    await game.callers[2].call(one, "Leave", leave)
    await eve.call(one, "Sit", pb.SitRequest(context=context(game.table_id), seat=2))
    game.callers[2] = eve
    await game.deal()
    version = (await game.view(0)).version
    hand = (await watch.until(version))[-1].update.drawn_cards
    assert list(hand) == list((await dan.view(one, game.table_id)).hand)
    assert not (await left.until(version))[-1].update.drawn_cards
    watch.stop()
    left.stop()


async def test_who_leaves_a_table_without_spectators_is_told_nothing_more(one):
    game = Game([one])
    await game.found()
    watch = game.callers[2].watch(one, game.table_id)
    await watch.next()
    await game.do(2, "Leave")
    with pytest.raises(Refused, match="NOT_YOURS"):
        await watch.next()


async def test_a_reader_that_does_not_read_is_cut_off_and_may_resume(one, monkeypatch):
    monkeypatch.setattr("services.table.watch.SLOW_S", 0.2)
    monkeypatch.setattr("services.table.watch.LAG", 20)
    game = Game([one])
    await game.found()
    options = (
        ("grpc.http2.lookahead_bytes", 1024),
        ("grpc.http2.bdp_probe", 0),
        ("grpc.use_local_subchannel_pool", 1),
    )
    async with grpc.aio.insecure_channel(one.address, options=options) as channel:
        request = pb.WatchRequest(table_id=game.table_id)
        call = channel.unary_stream(
            "/shengji.table.v1.TableService/Watch",
            request_serializer=pb.WatchRequest.SerializeToString,
            response_deserializer=pb.WatchResponse.FromString,
        )(request, metadata=game.callers[0].metadata)
        slow = Watching(call)
        first = await slow.next()
        quick = game.callers[1].watch(one, game.table_id)
        leader = await game.to_tricks()
        for _ in range(4):
            await game.play_deal(leader)
            leader = await game.to_tricks()
            if one.value("shengji_slow_readers_total"):
                break
        assert one.value("shengji_slow_readers_total") == 1
        told, refused = [first], None
        while refused is None:
            try:
                told.append(await slow.next())
            except Refused as error:
                refused = error
        assert (refused.code, refused.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "SLOW_READER")
        assert await quick.until(game.version)
        resumed = game.callers[0].watch(one, game.table_id, after=told[-1].resume)
        rest = await resumed.until(game.version)
        assert places(told + rest) == sorted(set(places(told + rest)))
        resumed.stop()
        quick.stop()


async def test_a_heartbeat_says_that_nothing_happened(one, monkeypatch):
    monkeypatch.setattr("services.table.watch.HEARTBEAT_S", 0.2)
    game = Game([one])
    await game.found()
    watch = game.callers[0].watch(one, game.table_id)
    before = time.time()
    first = await watch.next()
    beat = await watch.next()
    assert beat.HasField("heartbeat")
    assert before - 1 < beat.heartbeat.server_now_ms / 1000 < time.time() + 1
    assert beat.resume == first.resume
    await game.do(0, "Ready")
    while not (message := await watch.next()).HasField("update"):
        pass
    assert message.update.version == 2
    watch.stop()


async def test_a_watch_ends_a_while_after_its_token(one, monkeypatch):
    clock = Ahead()
    monkeypatch.setattr("services.table.watch.time", clock)
    monkeypatch.setattr("services.table.keeper.EVERY_S", 0.1)
    game = Game([one])
    await game.found()
    sent = (("authorization", f"Bearer {token(one.data, 'ann', lifetime_s=600)}"),)
    watch = Watching(one.stub.Watch(pb.WatchRequest(table_id=game.table_id), metadata=sent))
    await watch.next()
    clock.by_s = 600 + EXPIRY_GRACE_S - 40
    assert (await watch.next()).HasField("heartbeat"), "announced, and not ended yet"
    clock.by_s = 600 + EXPIRY_GRACE_S + 1
    with pytest.raises(Refused, match="UNAUTHENTICATED"):
        await watch.next()


async def test_the_number_of_watchers_is_bounded_and_leavers_are_forgotten(nats_server, data):
    async with replica(nats_server.url, data, watchers=3) as at:
        game = Game([at])
        await game.found()
        watches = [game.callers[0].watch(at, game.table_id) for _ in range(3)]
        for watch in watches:
            await watch.next()
        with pytest.raises(Refused, match="BUSY"):
            await game.callers[1].watch(at, game.table_id).next()
        watches[0].stop()
        await until(lambda: at.value("shengji_watchers") == 2)
        fourth = game.callers[1].watch(at, game.table_id)
        assert (await fourth.next()).HasField("snapshot")
        for watch in (*watches, fourth):
            watch.stop()
        await until(lambda: not at.value("shengji_watchers"))
        assert len(at.service.watches) == 0


async def test_two_hundred_watchers_are_told_the_same(one):
    game = Game([one])
    await game.found(founding(spectators=SPECTATORS_PUBLIC, pace=AT_ONCE))
    callers = [Caller(one.data, f"eve{number}") for number in range(200)]
    watches = [caller.watch(one, game.table_id) for caller in callers]
    for watch in watches:
        await watch.next()
    await game.deal()
    told = await asyncio.gather(*(watch.until(game.version) for watch in watches))
    assert len({tuple(raw(messages)) for messages in told}) == 1
    for watch in watches:
        watch.stop()
