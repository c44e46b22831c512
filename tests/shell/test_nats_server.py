"""A nats-server as a child process."""

import asyncio
import socket
import time
from itertools import chain
from pathlib import Path

import psutil
import pytest
from support.broker import PATIENCE_S, new_table

from services.shell.broker import Broker, BrokerError, ensure_streams
from services.shell.log_jetstream import JetStreamLog
from services.shell.nats_server import NatsServer, NatsServerError, find_nats_server, free_port, store_limit


async def test_starts_serves_stops_and_starts_again_on_the_same_ports(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats")
    await server.start(within_s=PATIENCE_S)
    url = server.url
    broker = await Broker.connect(url, "test")
    await ensure_streams(broker)
    await ensure_streams(broker)
    table = new_table()
    await JetStreamLog(broker).append(table, 0, b"kept", "m")
    await broker.close()
    await server.stop()
    assert not server.running
    assert not await server.healthy()
    await server.start(within_s=PATIENCE_S)
    assert server.url == url
    broker = await Broker.connect(url, "test")
    assert [commit.payload for commit in await JetStreamLog(broker).read(table)] == [b"kept"]
    await broker.close()
    await server.stop()


async def test_a_server_that_outlived_its_parent_is_stopped_first(tmp_path: Path) -> None:
    orphaned = NatsServer(tmp_path)
    await orphaned.start(within_s=PATIENCE_S)
    orphan = psutil.Process(orphaned.pid)
    server = NatsServer(tmp_path)
    await server.start(within_s=PATIENCE_S)
    assert not orphaned.running
    assert not orphan.is_running()
    await server.stop()


async def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    one = NatsServer(tmp_path / "one")
    await one.start(within_s=PATIENCE_S)
    two = NatsServer(tmp_path / "two", port=one.port, http_port=free_port())
    with pytest.raises(NatsServerError, match="address already in use"):
        await two.start(within_s=PATIENCE_S)
    assert not two.running
    await one.stop()


async def test_a_taken_port_that_nobody_asked_for_is_chosen_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = NatsServer(tmp_path / "one")
    await one.start(within_s=PATIENCE_S)
    ports = chain([one.port], iter(free_port, None))
    monkeypatch.setattr("services.shell.nats_server.free_port", lambda: next(ports))
    two = NatsServer(tmp_path / "two")
    await two.start(within_s=PATIENCE_S)
    assert two.port != one.port
    await one.stop()
    await two.stop()


async def test_syncs_always_and_stays_below_the_disk(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    await server.start(within_s=PATIENCE_S)
    config = (tmp_path / "nats.conf").read_text()
    await server.stop()
    assert "sync_interval: always" in config
    limit = int(config.split("max_file_store: ")[1].split()[0])
    disk = psutil.disk_usage(str(tmp_path))
    assert 0 < limit < disk.total
    assert abs(limit - store_limit(tmp_path)) < disk.total // 20


def test_a_disk_without_room_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": 1_000_000})
    monkeypatch.setattr("services.shell.nats_server.shutil.disk_usage", lambda path: usage)
    with pytest.raises(NatsServerError, match="no room"):
        store_limit(tmp_path)


def test_the_server_of_the_environment_is_found() -> None:
    assert find_nats_server().is_file()


async def test_no_server_is_an_error_in_time() -> None:
    began = time.monotonic()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen, nor can anybody else
        with pytest.raises(BrokerError, match="no NATS server answers"):
            await Broker.connect(f"nats://127.0.0.1:{taken.getsockname()[1]}", "test", within_s=0.3)
    assert time.monotonic() - began < 8, "the ten seconds that it tries unasked"


async def test_an_old_server_is_refused() -> None:
    async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"version":"2.9.10","max_payload":1048576,"headers":true}\r\n')
        while line := await reader.readline():
            if line == b"PING\r\n":
                writer.write(b"PONG\r\n")
        writer.close()

    fake = await asyncio.start_server(old, "127.0.0.1", 0)
    port = fake.sockets[0].getsockname()[1]
    with pytest.raises(BrokerError, match=r"2\.9 is too old; 2\.15 is needed"):
        await Broker.connect(f"nats://127.0.0.1:{port}", "test")
    fake.close()
