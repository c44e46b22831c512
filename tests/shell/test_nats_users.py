"""What each NATS user may do, tried on a real server."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from nats.aio.msg import Msg
from nats.js import api
from nats.js.errors import APIError
from support.broker import PATIENCE_S, new_table, until

from services.game.ids import every_subject, stream_name, subject
from services.lobby.store import NOTHING, Write
from services.lobby.store_jetstream import JetStreamStore
from services.shell.broker import Broker, BrokerError, ensure_lobby_streams, ensure_streams, lobby_stream
from services.shell.bus import NatsBus
from services.shell.js_api import ask, create_consumer, get_message
from services.shell.keys import keys_folder
from services.shell.log_jetstream import JetStreamLog
from services.shell.log_store import Appended, Unavailable
from services.shell.nats_server import NatsServer
from services.shell.nats_users import USERS, passwords, url_as

REFUSED_S = 0.3
"""How long an answer is waited for that never comes, since what is forbidden is not answered."""
patient = pytest.mark.usefixtures("patient")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NatsServer, dict[str, str]]]:
    folder: Path = tmp_path_factory.mktemp("guarded")
    known = passwords(folder)
    server = NatsServer(folder / "nats", passwords=known)
    asyncio.run(_start(server, known))
    yield server, known
    server.kill()


async def _start(server: NatsServer, known: dict[str, str]) -> None:
    await server.start(within_s=PATIENCE_S)
    broker = await Broker.connect(url_as(server.url, "table", known), "table", within_s=PATIENCE_S)
    await ensure_streams(broker)
    await broker.close()


@patient
async def test_a_table_service_writes_and_everybody_reads(guarded: tuple[NatsServer, dict[str, str]]) -> None:
    server, known = guarded
    table_id = new_table()
    for user in USERS:
        broker = await Broker.connect(url_as(server.url, user.name, known), user.name)
        log = JetStreamLog(broker)
        if user.name == "table":
            assert isinstance(await log.append(table_id, 0, b"first", "d"), Appended)
        assert [stored.payload for stored in await log.read(table_id)] == [b"first"]
        await broker.close()


@patient
@pytest.mark.parametrize("name", ["bot", "reader", "lobby", "ledger", "archiver"])
async def test_only_tables_write_to_the_log(guarded: tuple[NatsServer, dict[str, str]], name: str) -> None:
    server, known = guarded
    table_id = new_table()
    broker = await Broker.connect(url_as(server.url, name, known), name)
    with pytest.raises(Unavailable):
        await JetStreamLog(broker).append(table_id, 0, b"forged", "d", timeout_s=REFUSED_S)
    for forbidden in (
        *(() if name == "archiver" else ("$JS.API.STREAM.PURGE.SJ_TABLES_0",)),
        "$JS.API.STREAM.DELETE.SJ_TABLES_0",
        "$JS.API.STREAM.PURGE.KV_SJ_LOBBY",
        "$JS.API.STREAM.DELETE.KV_SJ_LOBBY",
        "$JS.API.STREAM.DELETE.SJ_REPORTS",
        "$JS.API.STREAM.PURGE.SJ_REPORTS",
        "sj.v1.live.x",
    ):
        await broker.client.publish(forbidden, b"")
    await broker.client.flush()
    await broker.close()
    owner = await Broker.connect(url_as(server.url, "table", known), "table")
    assert await JetStreamLog(owner).read(table_id) == []
    for stream in ("SJ_TABLES_0", "KV_SJ_LOBBY", "SJ_REPORTS"):
        assert await owner.js.stream_info(stream)
    await owner.close()


@pytest.mark.parametrize("name", [user.name for user in USERS])
async def test_nobody_listens_where_commits_are_published(
    guarded: tuple[NatsServer, dict[str, str]], name: str
) -> None:
    server, known = guarded
    table_id = new_table()
    broker = await Broker.connect(url_as(server.url, name, known), name)
    heard: list[bytes] = []

    async def hear(message: object) -> None:
        heard.append(b"something")

    await broker.client.subscribe(every_subject(table_id), cb=hear)
    await broker.client.flush()
    owner = await Broker.connect(url_as(server.url, "table", known), "table")
    await owner.client.publish(subject(table_id, "m"), b"x")
    await owner.client.flush()
    await asyncio.sleep(0.1)
    assert not heard
    await owner.close()
    await broker.close()


@pytest.mark.parametrize("name", ["reader", "lobby"])
async def test_who_may_listen_hears_what_was_recorded(
    guarded: tuple[NatsServer, dict[str, str]], name: str
) -> None:
    server, known = guarded
    table_id = new_table()
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def hear(message: Msg) -> None:
        await heard.put(message.data)

    reader = await Broker.connect(url_as(server.url, name, known), name)
    await reader.client.subscribe("sj.v1.live.>", cb=hear)
    await reader.client.flush()
    owner = await Broker.connect(url_as(server.url, "table", known), "table")
    assert isinstance(await JetStreamLog(owner).append(table_id, 0, b"first", "d"), Appended)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == b"first"
    await owner.close()
    await reader.close()


@patient
@pytest.mark.parametrize(("name", "durable"), [("bot", "bots"), ("lobby", "lobby"), ("ledger", "ledger")])
async def test_each_keeps_its_own_place_in_the_log(
    guarded: tuple[NatsServer, dict[str, str]], name: str, durable: str
) -> None:
    server, known = guarded
    table_id = new_table()
    owner = await Broker.connect(url_as(server.url, "table", known), "table")
    await JetStreamLog(owner).append(table_id, 0, b"first", "d")
    await owner.close()
    broker = await Broker.connect(url_as(server.url, name, known), name)
    stream = stream_name(table_id)
    config = api.ConsumerConfig(
        durable_name=durable, filter_subject=every_subject(table_id), ack_policy=api.AckPolicy.EXPLICIT
    )
    await broker.js.add_consumer(stream, config)
    pull = await broker.js.pull_subscribe_bind(durable, stream)
    [message] = await pull.fetch(1, timeout=PATIENCE_S)
    assert message.data == b"first"
    await message.ack_sync(timeout=PATIENCE_S)
    info = await broker.js.consumer_info(stream, durable)
    assert (info.num_ack_pending, info.num_pending) == (0, 0)
    config.durable_name = "somebody"
    with pytest.raises(TimeoutError):
        await broker.client.jetstream(timeout=REFUSED_S).add_consumer(stream, config)
    await broker.close()


@patient
async def test_the_lobby_uses_its_records_reports_and_bus(guarded: tuple[NatsServer, dict[str, str]]) -> None:
    server, known = guarded
    broker = await Broker.connect(url_as(server.url, "lobby", known), "lobby")
    await ensure_lobby_streams(broker)
    store, told, heard = JetStreamStore(broker, timeout_s=PATIENCE_S), [], []
    following = await store.follow("users", lambda key, entry: told.append(entry.value))
    await store.commit([Write("users.a", b"1", 0), Write("users.b", b"2", 0)])
    [revision] = await store.commit([Write("users.c", b"x" * 60_000, 0)])
    assert (await store.get("users.c")).revision == revision
    bus = NatsBus(broker)
    await bus.hear("users", heard.append)
    await bus.tell("users", b"news")
    await until(lambda: heard == [b"news"] and len(told) == 3)
    answer = await ask(broker.inbox, "sj.v1.reports.house", b"report", PATIENCE_S)
    assert answer["stream"] == "SJ_REPORTS"
    report = await get_message(
        broker.inbox, "SJ_REPORTS", {"last_by_subj": "sj.v1.reports.house"}, PATIENCE_S
    )
    assert report is not None
    for count in range(300):  # more than the server sends before it asks whether that was too fast
        await store.commit([Write(f"users.many{count}", b"x" * 30_000, 0)])
    again: list[bytes] = []
    second = await store.follow("users", lambda key, entry: again.append(entry.value))
    assert len(again) == 303
    await second.stop()
    await following.stop()
    await broker.close()


@patient
@pytest.mark.parametrize("name", ["bot", "reader", "ledger"])
async def test_nobody_else_sees_or_changes_the_lobbys_records(
    guarded: tuple[NatsServer, dict[str, str]], name: str
) -> None:
    server, known = guarded
    broker = await Broker.connect(url_as(server.url, name, known), name)
    store, heard = JetStreamStore(broker, timeout_s=REFUSED_S), []
    with pytest.raises(Unavailable):
        await store.commit([Write("others.a", b"x", 0)])
    await NatsBus(broker).hear("others", heard.append)
    await broker.client.publish("sj.v1.bus.others", b"x")
    await broker.client.publish("sj.v1.reports.others", b"x")
    with pytest.raises(Unavailable):
        await ask(broker.inbox, "$JS.API.STREAM.MSG.GET.KV_SJ_LOBBY", b'{"seq":1}', REFUSED_S)
    await broker.client.flush()
    lobby = await Broker.connect(url_as(server.url, "lobby", known), "lobby")
    await NatsBus(lobby).tell("others", b"x")
    assert await JetStreamStore(lobby).get("others.a") == NOTHING
    request = {"last_by_subj": "sj.v1.reports.others"}
    assert await get_message(lobby.inbox, "SJ_REPORTS", request, PATIENCE_S) is None
    assert heard == []
    await lobby.close()
    await broker.close()


@patient
async def test_no_stream_or_consumer_of_the_lobbys_writes_to_the_log_for_it(
    guarded: tuple[NatsServer, dict[str, str]],
) -> None:
    server, known = guarded
    table_id = new_table()
    broker = await Broker.connect(url_as(server.url, "lobby", known), "lobby")
    config = lobby_stream(1)
    config.republish = api.RePublish(
        src="$KV.SJ_LOBBY.>", dest=subject(table_id, "d").rsplit(".", 2)[0] + ".>"
    )
    with pytest.raises(TimeoutError):
        await broker.client.jetstream(timeout=REFUSED_S).update_stream(config)
    with pytest.raises(APIError):
        await broker.js.add_stream(config)
    await JetStreamStore(broker).commit([Write("forged.a", b"forged", 0)])
    consumer = {"deliver_subject": subject(table_id, "d"), "ack_policy": "none"}
    with contextlib.suppress(Unavailable):
        await create_consumer(broker.inbox, "KV_SJ_LOBBY", consumer, REFUSED_S)
    await broker.client.publish(f"$KV.SJ_LOBBY.{table_id}.d", b"forged")
    await asyncio.sleep(0.3)
    await broker.close()
    owner = await Broker.connect(url_as(server.url, "table", known), "table")
    assert await JetStreamLog(owner).read(table_id) == []
    await owner.close()


@patient
async def test_a_lobby_leaves_streams_as_the_tables_made_them(
    guarded: tuple[NatsServer, dict[str, str]],
) -> None:
    server, known = guarded
    owner = await Broker.connect(url_as(server.url, "table", known), "table")
    config = lobby_stream(1)
    config.description = "as a later version has it"
    await owner.js.update_stream(config)
    broker = await Broker.connect(url_as(server.url, "lobby", known), "lobby")
    await ensure_lobby_streams(broker)
    await broker.close()
    assert (await owner.js.stream_info("KV_SJ_LOBBY")).config.description == config.description
    await ensure_streams(owner)
    assert (await owner.js.stream_info("KV_SJ_LOBBY")).config.description == lobby_stream(1).description
    await owner.close()


async def test_the_lobby_may_come_before_everybody_else(tmp_path: Path) -> None:
    known = passwords(tmp_path)
    server = NatsServer(tmp_path / "nats", passwords=known)
    await server.start(within_s=PATIENCE_S)
    broker = await Broker.connect(url_as(server.url, "lobby", known), "lobby", within_s=PATIENCE_S)
    try:
        await ensure_lobby_streams(broker)
        await JetStreamStore(broker).commit([Write("first.a", b"x", 0), Write("first.b", b"x", 0)])
        with pytest.raises(BrokerError):
            await ensure_streams(broker, within_s=0.5)
    finally:
        await broker.close()
        server.kill()


def test_a_folder_from_before_gains_the_users_that_came_later(tmp_path: Path) -> None:
    path = keys_folder(tmp_path) / "nats.json"
    path.write_text(json.dumps({"table": "old", "bot": "older", "gone": "kept"}))
    # Not forked, since other tests' threads may hold locks.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(passwords, [tmp_path] * 12))
    assert all(result == results[0] for result in results), "processes that race agree"
    assert set(results[0]) == {user.name for user in USERS} | {"gone"}
    assert (results[0]["table"], results[0]["bot"], results[0]["gone"]) == ("old", "older", "kept")
    assert len(set(results[0].values())) == len(results[0])
    assert json.loads(path.read_text()) == results[0] == passwords(tmp_path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in path.parent.iterdir()) == ["nats.json"]


# The library leaves a refused connection to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_strangers_are_not_let_in(guarded: tuple[NatsServer, dict[str, str]]) -> None:
    server, _ = guarded
    with pytest.raises(Exception, match=r"refuses|answers"):
        await Broker.connect(url_as(server.url, "table", {"table": "guess"}), "table", within_s=1.0)
    with pytest.raises(Exception, match=r"refuses|answers"):
        await Broker.connect(server.url, "table", within_s=1.0)
