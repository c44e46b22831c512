"""Tables and their log: loaded, cached, put away, broken, and out of reach."""

import asyncio
import io
import json
import uuid

import grpc
import pytest
from support.broker import PATIENCE_S, until
from support.serving import Game, Refused, founding, replica

from services.pb.table.v1 import view_pb2
from services.shell.log_jetstream import JetStreamLog
from services.shell.logs import Log
from services.shell.snapshots import JetStreamSnapshots

OTHER_KEY = "k9:" + "ab" * 32


@pytest.fixture
async def saved(nats_server, data, broker, monkeypatch):
    """A game in its tricks whose snapshot is written, with a tail behind it."""
    monkeypatch.setattr("services.table.keeper.REST_S", 0.0)
    monkeypatch.setattr("services.table.keeper.EVERY_S", 0.05)
    async with replica(nats_server.url, data) as at:
        game = Game([at])
        await game.found()
        leader = await game.to_tricks()
        for _ in range(4):
            (leader,) = (await game.view(leader)).to_act
            await game.play_one(leader)
        await until(lambda: at.value("shengji_snapshots_written_total") >= 1)
        await game.play_one((await game.view(0)).to_act[0])
    return game


async def test_a_table_is_loaded_from_its_snapshot_and_the_tail(saved, nats_server, data, broker):
    kept = await JetStreamSnapshots(broker).get(saved.table_id)
    assert kept.version >= 12
    async with replica(nats_server.url, data) as fresh:
        saved.replicas = [fresh]
        seat = (await saved.view(0)).to_act[0]
        assert (await saved.play_one(seat)).version == saved.version
        assert fresh.value("shengji_cold_loads_total", source="snapshot") == 1
        assert fresh.value("shengji_cold_loads_total", source="log") == 0


@pytest.mark.parametrize("how", ["garbage", "other table", "changed", "gone"])
async def test_a_snapshot_that_does_not_hold_is_ignored(saved, nats_server, data, broker, how):
    snapshots = JetStreamSnapshots(broker)
    kept = await snapshots.get(saved.table_id)
    if how == "garbage":
        await snapshots.put(saved.table_id, 10_000, b"garbage")
    elif how == "changed":
        await snapshots.put(saved.table_id, 10_000, kept.payload[:-1] + bytes([kept.payload[-1] ^ 1]))
    elif how == "other table":
        other = Game([*saved.replicas])
        async with replica(nats_server.url, data) as at:
            other.replicas = [at]
            await other.found()
        await snapshots.put(other.table_id, 10_000, kept.payload)
        saved = other
    else:
        await broker.js.purge_stream("KV_SJ_SNAPSHOTS")
    async with replica(nats_server.url, data) as fresh:
        saved.replicas = [fresh]
        assert (await saved.view(0)).version == saved.version
        assert fresh.value("shengji_cold_loads_total", source="log") == 1


async def test_memory_is_bounded(nats_server, data):
    async with replica(nats_server.url, data, open_tables=2) as at:
        games = [Game([at]) for _ in range(5)]
        for game in games:
            await game.found()
            assert at.value("shengji_open_tables") <= 2
        assert at.value("shengji_seated_players") == 8
        for game in games:
            await game.do(0, "Ready")


async def test_idle_tables_leave_memory(nats_server, data, monkeypatch):
    monkeypatch.setattr("services.table.keeper.EVERY_S", 0.05)
    async with replica(nats_server.url, data, idle_s=1.0) as at:
        games = [Game([at]) for _ in range(3)]
        for game in games:
            await game.found()
        watch = games[0].callers[0].watch(at, games[0].table_id)
        await watch.next()
        await until(lambda: (at.value("shengji_open_tables"), at.value("shengji_seated_players")) == (1, 4))
        await games[0].do(0, "Ready")
        assert (await watch.next()).update.version == 2
        watch.stop()


async def test_a_log_that_this_code_cannot_read_freezes_that_table_alone(
    one, nats_server, data, broker, monkeypatch
):
    monkeypatch.setattr("services.table.cache.FROZEN_S", 3600.0)
    file = io.StringIO()
    async with replica(nats_server.url, data, Log("table", "warning", file)) as at:
        sick, well = Game([at]), Game([at])
        await sick.found()
        await well.found()
        log = JetStreamLog(broker)
        last = (await log.last([sick.table_id]))[sick.table_id]
        await log.append(sick.table_id, last, b"\x0a\x03abc", "m")
        for _ in range(2):
            with pytest.raises(Refused, match="CANNOT_RECORD") as caught:
                await sick.do(0, "Ready")
            assert caught.value.code is grpc.StatusCode.UNAVAILABLE
        assert at.value("shengji_frozen_tables") == 1
        await well.do(0, "Ready")
        lines = [json.loads(line) for line in file.getvalue().splitlines()]
        (line,) = [line for line in lines if line["event"] == "table_frozen"]
        assert (line["level"], line["table_id"], line["version"]) == ("error", sick.table_id, 2)


async def test_a_deal_whose_key_is_lost_is_given_up_and_the_table_goes_on(nats_server, data, one):
    game = Game([one])
    await game.found()
    leader = await game.to_tricks()
    plays = await game.legal(leader)
    async with replica(nats_server.url, data, master_keys=OTHER_KEY) as other:
        game.replicas = [other]
        with pytest.raises(Refused, match="UNAVAILABLE"):
            await game.do(leader, "Play", game.version, cards=plays.plays[0].cards)
        view = await game.callers[0].view(other, game.table_id, game.version + 1)
        assert view.phase == view_pb2.PHASE_SCORED
        game.version = view.version
        await game.deal()
        assert (await game.view(0)).deal == 2


async def test_what_cannot_be_recorded_is_unavailable_and_then_done_once(nats_server, data):
    async with replica(nats_server.url, data) as at:
        game = Game([at])
        await game.found()
        watch = game.callers[1].watch(at, game.table_id)
        await watch.next()
        command_id = str(uuid.uuid4())
        nats_server.kill()
        with pytest.raises(Refused) as caught:
            await game.do(0, "Ready", command_id=command_id)
        assert caught.value.code is grpc.StatusCode.UNAVAILABLE
        assert caught.value.retry is not None
        await nats_server.start(within_s=PATIENCE_S)
        receipt, codes = None, set()
        while receipt is None and len(codes) < 2:
            try:
                receipt = await game.do(0, "Ready", command_id=command_id)
            except Refused as refused:
                codes.add(refused.code)
                await asyncio.sleep(0.05)
        assert receipt.version == 2
        assert codes <= {grpc.StatusCode.UNAVAILABLE}
        assert (await game.do(0, "Ready", command_id=command_id)).repeated
        assert [message.update.version for message in await watch.until(2)] == [2]
        watch.stop()


async def test_a_call_that_is_cancelled_leaves_nothing_undecided(game, monkeypatch):
    real, appended, go_on = JetStreamLog.append, asyncio.Event(), asyncio.Event()

    async def slow(self, *args, **kwargs):
        answer = await real(self, *args, **kwargs)
        appended.set()
        await go_on.wait()
        return answer

    monkeypatch.setattr(JetStreamLog, "append", slow)
    command_id = str(uuid.uuid4())
    task = asyncio.create_task(game.do(0, "Ready", command_id=command_id))
    await appended.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(0.1)  # until the service has heard of it
    go_on.set()
    monkeypatch.setattr(JetStreamLog, "append", real)
    again = await game.do(0, "Ready", command_id=command_id)
    assert (again.version, again.repeated) == (2, True)
    assert (await game.do(1, "Ready")).version == 3


async def test_the_service_founds_only_what_its_rules_can_serve(one):
    game = Game([one])
    with pytest.raises(Refused, match="BAD_OPTION"):
        await game.found(founding(preset="tournament-2d", overrides={"sealed": "true"}))
