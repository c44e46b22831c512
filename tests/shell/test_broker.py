"""The shared streams as the server has them, and the connection."""

import asyncio
import io
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import APIError
from support.broker import new_table, until
from support.proxy import Proxy

from services.game.ids import PARTITIONS, STREAMS, every_subject, subject
from services.shell.broker import Broker, _Client, ensure_streams
from services.shell.log_jetstream import JetStreamLog
from services.shell.log_store import Appended
from services.shell.logs import Log
from services.shell.nats_server import NatsServer

pytestmark = pytest.mark.usefixtures("patient")


async def test_every_partition_is_kept_by_one_stream(broker: Broker) -> None:
    kept = []
    for number in range(STREAMS):
        config = (await broker.js.stream_info(f"SJ_TABLES_{number}")).config
        assert config.subjects is not None
        kept += [int(subject.split(".")[3], 16) for subject in config.subjects]
    assert sorted(kept) == list(range(PARTITIONS))


async def test_nothing_leaves_a_log_stream_by_itself(broker: Broker) -> None:
    config = (await broker.js.stream_info("SJ_TABLES_0")).config
    assert (config.retention, config.storage, config.discard) == ("limits", "file", "new")
    assert (config.max_age, config.max_msgs, config.max_bytes, config.max_msgs_per_subject) == (0, -1, -1, -1)
    assert config.deny_delete
    assert config.allow_direct
    assert not config.allow_rollup_hdrs


async def test_no_writer_can_delete_or_roll_up(broker: Broker) -> None:
    log, table = JetStreamLog(broker), new_table()
    first = await log.append(table, 0, b"first", "m")
    assert isinstance(first, Appended)
    stream = f"SJ_TABLES_{int(every_subject(table).split('.')[3], 16) % STREAMS}"
    with pytest.raises(APIError):
        await broker.js.delete_msg(stream, first.sequence)
    for rollup in ("sub", "all"):
        with pytest.raises(APIError):
            await broker.js.publish(subject(table, "m"), b"x", headers={"Nats-Rollup": rollup})
    assert [commit.payload for commit in await log.read(table)] == [b"first"]


async def test_a_stream_with_another_configuration_is_changed_to_ours(broker: Broker) -> None:
    config = (await broker.js.stream_info("SJ_TABLES_1")).config
    config.republish = None
    config.allow_direct = False
    await broker.js.update_stream(config)
    await ensure_streams(broker)
    config = (await broker.js.stream_info("SJ_TABLES_1")).config
    assert config.allow_direct
    assert config.republish is not None


async def test_a_table_listened_to_while_the_connection_is_away_is_heard_once(
    nats_server: NatsServer,
) -> None:
    async with Proxy(nats_server.port) as proxy:
        connection = await Broker.connect(proxy.url, "proxied")
        log, table, heard, epochs = JetStreamLog(connection), new_table(), [], []
        connection.on_reconnect(lambda: epochs.append(connection.epoch))
        proxy.refuse = True
        proxy.cut()
        await until(lambda: not connection.connected)
        await log.listen(table, heard.append)
        proxy.refuse = False
        await until(lambda: bool(epochs))
        await log.append(table, 0, b"first", "m")
        await until(lambda: bool(heard))
        await asyncio.sleep(0.05)
        assert [commit.payload for commit in heard] == [b"first"]
        assert epochs == [1]
        await connection.close()
        assert connection.closed


def test_the_shells_own_lines_keep_their_event_and_their_known_fields() -> None:
    file, root = io.StringIO(), logging.getLogger()
    kept = root.handlers[:]
    try:
        Log("table", file=file).adopt_libraries()
        logging.getLogger("services.shell.log_append").critical(
            "log_frozen", extra={"detail": "x", "cards": "SA"}
        )
    finally:
        root.handlers[:] = kept
    line = json.loads(file.getvalue())
    assert (line["level"], line["event"], line["detail"]) == ("error", "log_frozen", "x")
    assert "SA" not in file.getvalue()


@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,40}", fullmatch=True),
        st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=60),
        max_size=12,
    ),
    st.sampled_from([": ", ":", ":\t"]),
)
def test_headers_are_those_that_the_library_reads(headers: dict[str, str], colon: str) -> None:
    raw = "".join(f"{name}{colon}{value}\r\n" for name, value in headers.items()).encode() + b"\r\n"
    assert _Client._parse_header_lines(raw) == Client._parse_header_lines(raw)


async def test_a_connection_reads_headers_so(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library still asks for them where ours stands."""
    read: list[bytes] = []
    ours = _Client._parse_header_lines

    def noted(raw: bytes) -> dict[str, str]:
        read.append(raw)
        return ours(raw)

    monkeypatch.setattr(_Client, "_parse_header_lines", staticmethod(noted))
    broker = await Broker.connect(nats_server.url, "test")
    heard: asyncio.Queue[Msg] = asyncio.Queue()
    await broker.subscribe("test.headers", heard.put)
    await broker.client.publish("test.headers", b"x", headers={"Nats-Sequence": "7"})
    assert (await heard.get()).headers == {"Nats-Sequence": "7"}
    assert read == [b"Nats-Sequence: 7\r\n\r\n"]
    await broker.close()
