"""What each NATS user may do, tried on a real server."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from nats.aio.msg import Msg
from support.broker import new_table

from services.game.ids import every_subject, subject
from services.shell.broker import Broker, ensure_streams
from services.shell.log_jetstream import JetStreamLog
from services.shell.log_store import Appended, Unavailable
from services.shell.nats_server import NatsServer
from services.shell.nats_users import USERS, passwords, url_as


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NatsServer, dict[str, str]]]:
    folder: Path = tmp_path_factory.mktemp("guarded")
    known = passwords(folder)
    server = NatsServer(folder / "nats", passwords=known)
    asyncio.run(_start(server, known))
    yield server, known
    server.kill()


async def _start(server: NatsServer, known: dict[str, str]) -> None:
    await server.start()
    broker = await Broker.connect(url_as(server.url, "table", known), "table")
    await ensure_streams(broker)
    await broker.close()


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


@pytest.mark.parametrize("name", ["bot", "reader"])
async def test_bots_and_readers_write_nothing(guarded: tuple[NatsServer, dict[str, str]], name: str) -> None:
    server, known = guarded
    table_id = new_table()
    broker = await Broker.connect(url_as(server.url, name, known), name)
    with pytest.raises(Unavailable):
        await JetStreamLog(broker).append(table_id, 0, b"forged", "d", timeout_s=1.0)
    for forbidden in (
        "$JS.API.STREAM.PURGE.SJ_TABLES_0",
        "$JS.API.STREAM.DELETE.SJ_TABLES_0",
        "sj.v1.live.x",
    ):
        await broker.client.publish(forbidden, b"")
    await broker.close()
    owner = await Broker.connect(url_as(server.url, "table", known), "table")
    assert await JetStreamLog(owner).read(table_id) == []
    assert await owner.js.stream_info("SJ_TABLES_0")
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


async def test_a_reader_hears_what_was_recorded(guarded: tuple[NatsServer, dict[str, str]]) -> None:
    server, known = guarded
    table_id = new_table()
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def hear(message: Msg) -> None:
        await heard.put(message.data)

    reader = await Broker.connect(url_as(server.url, "reader", known), "reader")
    await reader.client.subscribe("sj.v1.live.>", cb=hear)
    await reader.client.flush()
    owner = await Broker.connect(url_as(server.url, "table", known), "table")
    assert isinstance(await JetStreamLog(owner).append(table_id, 0, b"first", "d"), Appended)
    assert await asyncio.wait_for(heard.get(), 5) == b"first"
    await owner.close()
    await reader.close()


# The library leaves a refused connection to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_strangers_are_not_let_in(guarded: tuple[NatsServer, dict[str, str]]) -> None:
    server, _ = guarded
    with pytest.raises(Exception, match=r"refuses|answers"):
        await Broker.connect(url_as(server.url, "table", {"table": "guess"}), "table", within_s=1.0)
    with pytest.raises(Exception, match=r"refuses|answers"):
        await Broker.connect(server.url, "table", within_s=1.0)
