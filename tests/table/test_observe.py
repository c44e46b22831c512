"""What operators see: names of metrics and log lines are a promise, and neither holds a card or a token."""

import io
import json

import grpc
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from support.broker import until
from support.serving import Game, Refused, founding, metadata, replica

from services.pb.event.v1.event_pb2 import SPECTATORS_PUBLIC
from services.pb.table.v1 import table_service_pb2 as pb
from services.shell.log_jetstream import JetStreamLog
from services.shell.logs import Log
from services.shell.metrics import BUCKETS, Histogram, export

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
LABELS = {
    "shengji_build_info": {"version", "rules_version", "engine", "python"},
    "shengji_rpc_seconds": {"method"},
    "shengji_rpc_calls": {"method", "code"},
    "shengji_command_seconds": {"stage"},
    "shengji_conflicts": {"outcome"},
    "shengji_refusals": {"reason"},
    "shengji_cold_loads": {"source"},
    "shengji_cold_load_seconds": set(),
    "shengji_timers": {"outcome"},
    "shengji_late_timers": set(),
    "shengji_snapshots_written": set(),
    "shengji_repeated_commands": set(),
    "shengji_watch_lag_seconds": set(),
    "shengji_slow_readers": set(),
    "shengji_watchers": set(),
    "shengji_open_tables": set(),
    "shengji_seated_players": set(),
    "shengji_frozen_tables": set(),
}


async def test_the_metrics_are_pinned_and_count_what_happened(nats_server, data):
    async with replica(nats_server.url, data) as at:
        game = Game([at])
        await game.found()
        watch = game.callers[0].watch(at, game.table_id)
        await watch.next()
        await game.deal()
        await watch.until(game.version)
        await until(lambda: at.value("shengji_watch_lag_seconds_count") == 4)
        with pytest.raises(Refused):
            await game.do(0, "Ready")
        await until(lambda: at.value("shengji_rpc_seconds_count", method="Ready") == 5)
        watch.stop()
        families = list(text_string_to_metric_families(generate_latest(at.service.registry).decode()))
        found = {}
        for family in families:
            labels = {name for sample in family.samples for name in sample.labels}
            found[family.name] = labels - {"le"}
        assert found == LABELS
        assert at.value("shengji_rpc_calls_total", method="Ready", code="OK") == 4
        assert at.value("shengji_rpc_calls_total", method="Ready", code="FAILED_PRECONDITION") == 1
        assert at.value("shengji_rpc_seconds_count", method="Ready") == 5
        assert at.value("shengji_refusals_total", reason="wrong_phase") == 1
        for stage, count in (("receive", 5), ("decide", 5), ("append", 4), ("fan_out", 4)):
            assert at.value("shengji_command_seconds_count", stage=stage) >= count
        assert at.value("shengji_seated_players") == 4
        text = generate_latest(at.service.registry).decode()
        assert game.table_id not in text
        assert '"ann"' not in text


def test_buckets_reach_from_a_tenth_of_a_millisecond_to_ten_seconds():
    assert (BUCKETS[0], BUCKETS[-1]) == (0.0001, 10.0)
    registry = CollectorRegistry()
    histogram = Histogram(registry, "x_seconds", "x", "kind", ("a", "b"))
    for seconds in (0.00005, 0.0001, 0.3, 99):
        histogram.series["a"].observe(seconds)
    assert registry.get_sample_value("x_seconds_bucket", {"kind": "a", "le": "0.0001"}) == 2
    assert registry.get_sample_value("x_seconds_bucket", {"kind": "a", "le": "0.5"}) == 3
    assert registry.get_sample_value("x_seconds_bucket", {"kind": "a", "le": "+Inf"}) == 4
    assert registry.get_sample_value("x_seconds_count", {"kind": "b"}) == 0
    assert round(registry.get_sample_value("x_seconds_sum", {"kind": "a"})) == 99


def test_the_exporter_has_a_port_of_its_own():
    assert export(CollectorRegistry(), "") is None
    port = export(CollectorRegistry(), "127.0.0.1:0")
    assert port > 0


async def test_a_line_names_the_call_and_never_a_card_or_a_token(nats_server, data):
    file = io.StringIO()
    async with replica(nats_server.url, data, Log("table", "debug", file)) as at:
        game = Game([at])
        await game.found(founding(spectators=SPECTATORS_PUBLIC))
        leader = await game.to_tricks()
        view = await game.view(leader)
        request = pb.PlayRequest(
            context=pb.CommandContext(
                table_id=game.table_id,
                command_id="0b7f2c5e-6f0c-5d39-9a52-2c1f3c0f7a11",
                version=view.version,
            ),
            cards=[card for card in range(1, 55) if card not in view.hand][:1],
        )
        with pytest.raises(grpc.aio.AioRpcError):
            await at.stub.Play(
                request, metadata=metadata(data, game.callers[leader].player, ("traceparent", PARENT))
            )
        with pytest.raises(grpc.aio.AioRpcError):
            await at.stub.Play(request, metadata=(("authorization", "Bearer secret-token"),))
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    (line,) = [line for line in lines if line.get("reason") == "not_in_hand"]
    assert (line["rpc"], line["code"], line["table_id"]) == ("Play", "FAILED_PRECONDITION", game.table_id)
    assert line["trace_id"] == TRACE
    assert line["service"] == "table"
    assert "secret-token" not in file.getvalue()
    allowed = {"ts", "level", "service", "event", "rpc", "reason", "code", "table_id", "trace_id", "seconds"}
    assert set(line) <= allowed


async def test_a_fault_is_logged_by_its_place_and_answered_without_it(nats_server, data, monkeypatch):
    file = io.StringIO()

    def broken(*_):
        raise ValueError("the hand is SA HA")

    async with replica(nats_server.url, data, Log("table", "info", file)) as at:
        game = Game([at])
        await game.found()
        monkeypatch.setattr("services.table.tables.compose", broken)
        with pytest.raises(Refused) as caught:
            await game.do(0, "Ready")
        assert (caught.value.code, caught.value.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
        assert "SA" not in str(caught.value)
    (line,) = [json.loads(line) for line in file.getvalue().splitlines() if "fault" in line]
    assert line["fault"].startswith("ValueError at test_observe.py:")
    assert "SA" not in file.getvalue()


async def test_trace_context_travels_into_the_log(one, data, broker):
    game = Game([one])
    await game.found()
    request = pb.ReadyRequest(
        context=pb.CommandContext(table_id=game.table_id, command_id="0b7f2c5e-6f0c-5d39-9a52-2c1f3c0f7a11")
    )
    for player, parent in (("ann", PARENT), ("bob", "nonsense")):
        await one.stub.Ready(request, metadata=metadata(data, player, ("traceparent", parent)))
    stored = await JetStreamLog(broker).read(game.table_id)
    headers = []
    for commit in stored:
        stream = f"SJ_TABLES_{_partition(game.table_id) % 4}"
        headers.append((await broker.js.get_msg(stream, seq=commit.sequence)).headers.get("traceparent"))
    assert headers == [None, PARENT, None]


def _partition(table_id):
    from services.game.ids import partition

    return partition(table_id)
