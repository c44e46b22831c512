"""What operators see of a ledger: names of metrics and lines are a promise, and neither names a player."""

import asyncio
import io
import json

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from support.databases import new_url
from support.ledger_tables import Table
from support.ledgers import GRANT

from services.game.ids import STREAMS, subject
from services.ledger.app import LedgerService
from services.ledger.config import LedgerConfig
from services.ledger.database import opened
from services.ledger.moving import Why
from services.shell.config import load
from services.shell.logs import Log

LABELS = {
    "shengji_build_info": {"version", "rules_version", "database", "python"},
    "shengji_rpc_seconds": {"method"},
    "shengji_rpc_calls": {"method", "code"},
    "shengji_ledger_posting_lag_seconds": set(),
    "shengji_ledger_batch_seconds": set(),
    "shengji_ledger_batch_commits": set(),
    "shengji_ledger_lag_messages": {"stream"},
    "shengji_ledger_writer": set(),
    "shengji_ledger_parked_tables": {"why"},
    "shengji_ledger_alarms": {"why"},
    "shengji_ledger_log_behind": set(),
    "shengji_ledger_commits": set(),
    "shengji_ledger_repeated": set(),
    "shengji_ledger_settled_deals": set(),
    "shengji_ledger_transfers": {"purpose"},
    "shengji_ledger_database_away": set(),
    "shengji_ledger_unfunded_calls": {"code"},
    "shengji_ledger_archived_tables": set(),
    "shengji_ledger_archived_commits": set(),
    "shengji_ledger_refused_logs": set(),
    "shengji_ledger_unarchived_tables": set(),
}
WHY = {"gap", "poison", "conflict", "waits"}
FIELDS = {"ts", "level", "service", "event", "table_id", "reason", "fault", "count", "detail", "code"}


async def done(value):
    """Wait until the deal is settled and the other table parked."""
    while True:
        parked = value("shengji_ledger_parked_tables", why="poison")
        if value("shengji_ledger_settled_deals_total") and parked:
            return
        await asyncio.sleep(0.05)


@pytest.fixture
async def seen(nats_server, broker, tmp_path):
    """A ledger that has settled a deal and met a commit that is none: its registry, and its log's lines."""
    file = io.StringIO()
    flags = {"data": tmp_path, "nats": nats_server.url, "listen": "127.0.0.1:0", "opening_grant": GRANT}
    config = load(LedgerConfig, flags, {"SHENGJI_DATABASE": new_url("sqlite", tmp_path)})
    good, bad = (
        Table(stake=1, number=number, players=(f"{name}0", f"{name}1", f"{name}2", f"{name}3"))
        for number, name in ((71, "zoe"), (72, "yan"))
    )
    good.score(1, levels=3)
    for stored in good.log:
        await broker.js.publish(subject(good.table_id, "d"), stored)
    await broker.js.publish(subject(bad.table_id, "d"), b"\xff no commit")
    async with opened(config.database_url) as database:
        service = LedgerService(config, database, broker, Log("ledger", "debug", file))
        await service.start()

        def value(name, **labels):
            return service.registry.get_sample_value(name, labels) or 0.0

        try:
            async with asyncio.timeout(120):
                await done(value)
            yield service, value, lambda: [json.loads(line) for line in file.getvalue().splitlines()]
        finally:
            await service.stop(wait_s=0, grace_s=0.5)


async def test_the_metrics_are_pinned_and_count_what_happened(seen):
    service, value, _ = seen
    text = generate_latest(service.registry).decode()
    families = list(text_string_to_metric_families(text))
    found, values = {}, {}
    for family in families:
        labels = {name for sample in family.samples for name in sample.labels}
        found[family.name] = labels - {"le"}
        values[family.name] = {label for sample in family.samples for label in sample.labels.values()}
    assert found == LABELS
    assert WHY == {why.value for why in Why} == values["shengji_ledger_parked_tables"]
    assert values["shengji_ledger_lag_messages"] == {str(number) for number in range(STREAMS)}
    assert "settlement" in values["shengji_ledger_transfers"]
    assert value("shengji_ledger_writer") == 1
    assert value("shengji_ledger_settled_deals_total") == 1
    assert value("shengji_ledger_transfers_total", purpose="settlement") == 1
    assert value("shengji_ledger_alarms_total", why="poison") == 1
    assert value("shengji_ledger_posting_lag_seconds_count") == 2
    assert "zoe" not in text
    assert "tbl_" not in text


async def test_lines_say_what_happened_and_name_no_player(seen):
    _, _, lines = seen
    said = {line["event"]: line for line in lines()}
    assert said["writing"]["level"] == "info"
    assert (said["parked"]["level"], said["parked"]["reason"]) == ("error", "poison")
    assert said["parked"]["table_id"].startswith("tbl_")
    for line in lines():
        assert line["service"] == "ledger"
        assert set(line) <= FIELDS
        assert "zoe" not in json.dumps(line)
        assert "yan" not in json.dumps(line)
