"""The lobby's records on a real server that is killed, cut off, silent, crowded or full."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest
from support.broker import PATIENCE_S, until
from support.house import patience
from support.proxy import Proxy
from support.stores import Ledger, Purses, Told, fresh, put, retried

from services.lobby import store_following
from services.lobby.store import NOTHING, VALUE_MOST, WRITES_MOST, Conflict, Entry, Write
from services.lobby.store_jetstream import OPEN_BATCHES, JetStreamStore
from services.shell.broker import LOBBY_STREAM, TOMBSTONE_S, Broker, ensure_streams, lobby_stream
from services.shell.log_store import Unavailable, Why
from services.shell.nats_server import NatsServer


@pytest.fixture(autouse=True)
def unhurried() -> None:
    """The times of the product: what is tested here is what it does when they end."""


@pytest.fixture
def store(broker: Broker) -> JetStreamStore:
    return JetStreamStore(broker, timeout_s=PATIENCE_S)


async def until_is(store: JetStreamStore, key: str, wanted: Callable[[Entry], bool]) -> Entry:
    """Wait until a record is as wanted."""
    async with asyncio.timeout(PATIENCE_S):
        while not wanted(entry := await store.get(key)):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
    return entry


def _is_x(entry: Entry) -> bool:
    return entry.value == b"x"


class TestServer:
    """What only the server knows."""

    async def test_a_tombstone_goes_after_an_hour_and_leaves_no_other(
        self, store: JetStreamStore, broker: Broker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        prefix = fresh()
        monkeypatch.setattr("services.lobby.store_jetstream.TOMBSTONE_S", 1)
        first = await put(store, f"{prefix}.a", b"x")
        await store.commit([Write(f"{prefix}.a", b"", first), Write(f"{prefix}.b", b"", 0)])
        for name in "ab":
            await until_is(store, f"{prefix}.{name}", NOTHING.__eq__)
        assert await store.get(f"{prefix}.a") == NOTHING
        info = await broker.js.stream_info(LOBBY_STREAM)
        assert info.config.subject_delete_marker_ttl == TOMBSTONE_S == 3600

    async def test_the_bucket_is_made_as_it_is_described(self, broker: Broker) -> None:
        config = (await broker.js.stream_info(LOBBY_STREAM)).config
        for name, wanted in lobby_stream(1).as_dict().items():
            if wanted and name != "duplicate_window":
                assert config.as_dict()[name] == wanted, name
        await ensure_streams(broker)

    async def test_more_changes_at_once_than_the_server_has_room_for(
        self, broker: Broker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # On a slow disk the queue alone lasts longer than a try, and whoever tries again makes it no shorter.
        monkeypatch.setattr("services.lobby.store_jetstream.ATTEMPT_S", PATIENCE_S)
        prefix = fresh()
        stores = [JetStreamStore(broker, timeout_s=2 * PATIENCE_S) for _ in range(5)]
        each = 2 * OPEN_BATCHES  # so all five have as many open as they may: more than the server's fifty
        done = await asyncio.gather(
            *(
                store.commit([Write(f"{prefix}.k{row}.{number}.{column}", b"x", 0) for column in range(3)])
                for row, store in enumerate(stores)
                for number in range(each)
            )
        )
        assert len({revision for revisions in done for revision in revisions}) == 5 * each * 3

    async def test_batches_that_broke_off_leave_nothing_and_block_nobody(
        self, store: JetStreamStore, broker: Broker
    ) -> None:
        prefix = fresh()
        for number in range(49):
            headers = {"Nats-Batch-Id": f"{prefix}-{number}", "Nats-Batch-Sequence": "1"}
            await broker.client.publish(f"$KV.SJ_LOBBY.{prefix}.a", b"x", headers=headers)
        await store.commit([Write(f"{prefix}.b", b"x", 0), Write(f"{prefix}.c", b"x", 0)])
        assert await store.get(f"{prefix}.a") == NOTHING

    async def test_without_a_connection_it_says_so(self, nats_server: NatsServer) -> None:
        connection = await Broker.connect(nats_server.url, "closed")
        store = JetStreamStore(connection)
        await connection.close()
        for call in (
            store.get("t.a"),
            store.commit([Write("t.a", b"x", 0)]),
            store.commit([Write("t.a", b"x", 0), Write("t.b", b"x", 0)]),
            store.follow("t", Told()),
        ):
            with pytest.raises(Unavailable) as caught:
                await call
            assert caught.value.why is Why.NOT_CONNECTED
            assert not caught.value.outcome_unknown

    async def test_a_listener_that_fails_is_told_on(
        self, store: JetStreamStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        prefix, told = fresh(), Told()

        def listener(key: str, entry: Entry) -> None:
            told(key, entry)
            raise RuntimeError("listener")

        following = await store.follow(prefix, listener)
        await put(store, f"{prefix}.a", b"1")
        await put(store, f"{prefix}.a", b"2")
        await until(lambda: told.values(f"{prefix}.a") == [b"1", b"2"])
        assert "listener_failed" in caplog.messages
        await following.stop()


class TestLostAnswers:
    """On a connection through a proxy that keeps the server's answers to itself."""

    @pytest.fixture
    async def proxied(self, nats_server: NatsServer) -> AsyncIterator[tuple[Proxy, JetStreamStore]]:
        async with Proxy(nats_server.port) as proxy:
            connection = await Broker.connect(proxy.url, "proxied")
            yield proxy, JetStreamStore(connection, timeout_s=PATIENCE_S)
            await connection.close()

    @staticmethod
    def writes(prefix: str, count: int, value: bytes = b"x") -> list[Write]:
        return [Write(f"{prefix}.k{number}", value, 0) for number in range(count)]

    @pytest.mark.parametrize("count", [1, 3])
    async def test_the_change_was_made_once(
        self, store: JetStreamStore, proxied: tuple[Proxy, JetStreamStore], count: int
    ) -> None:
        prefix = fresh()
        proxy, mine = proxied
        proxy.swallow = True
        pending = asyncio.create_task(mine.commit(self.writes(prefix, count)))
        made = [await until_is(store, write.key, _is_x) for write in self.writes(prefix, count)]
        if count > 1:  # somebody goes on from there: one record is proof of all
            await store.commit([Write(f"{prefix}.k0", b"on top", made[0].revision)])
        proxy.swallow = False
        assert await pending == [entry.revision for entry in made]
        assert (await store.get(f"{prefix}.k0")).value == (b"on top" if count > 1 else b"x")

    @pytest.mark.parametrize("count", [1, 3])
    async def test_the_same_value_of_another_writer_is_not_ones_own(
        self, store: JetStreamStore, proxied: tuple[Proxy, JetStreamStore], count: int
    ) -> None:
        prefix = fresh()
        proxy, mine = proxied
        proxy.hold = True
        pending = asyncio.create_task(mine.commit(self.writes(prefix, count)))
        await asyncio.sleep(0.1)
        theirs = await store.commit(self.writes(prefix, count))
        await asyncio.sleep(1.6)  # beyond the first try, whose outcome is unknown then
        proxy.hold = False
        with pytest.raises(Conflict):
            await pending
        kept = [(await store.get(write.key)).revision for write in self.writes(prefix, count)]
        assert kept == theirs

    @pytest.mark.parametrize("count", [1, 3])
    async def test_no_answer_at_all_leaves_it_unknown(
        self, nats_server: NatsServer, store: JetStreamStore, count: int
    ) -> None:
        prefix = fresh()
        async with Proxy(nats_server.port) as proxy:
            connection = await Broker.connect(proxy.url, "proxied")
            mine = JetStreamStore(connection, timeout_s=0.5)
            proxy.swallow = True
            began = time.monotonic()
            with pytest.raises(Unavailable) as caught:
                await mine.commit(self.writes(prefix, count))
            assert caught.value.outcome_unknown
            assert time.monotonic() - began < patience(1)
            for write in self.writes(prefix, count):
                await until_is(store, write.key, _is_x)
            await connection.close()

    async def test_a_cut_connection_mid_race_doubles_nothing(
        self, store: JetStreamStore, proxied: tuple[Proxy, JetStreamStore]
    ) -> None:
        prefix, (proxy, mine) = fresh(), proxied
        ledger = Ledger(mine, prefix)
        stop = asyncio.Event()
        racing = [asyncio.create_task(ledger.write_until(stop, who)) for who in range(6)]
        for _ in range(5):
            await asyncio.sleep(random.uniform(0, 0.3))
            await ledger.goes_on(10)
            proxy.cut()
        await ledger.goes_on(10)
        stop.set()
        await asyncio.gather(*racing)
        await ledger.check(store)


class TestKilledServer:
    """The server is killed and started again."""

    async def test_racing_writers_lose_and_double_nothing(
        self, nats_server: NatsServer, store: JetStreamStore, broker: Broker
    ) -> None:
        other = await Broker.connect(nats_server.url, "other")
        ledgers = [Ledger(store, fresh()), Ledger(JetStreamStore(other), fresh())]
        purses, told = Purses(store, fresh()), Told()
        await purses.fill()
        following = await store.follow(purses.prefix, told)
        stop = asyncio.Event()

        async def move() -> None:
            while not stop.is_set():
                await retried(purses.move)

        racing = [
            asyncio.create_task(ledger.write_until(stop, who)) for ledger in ledgers for who in range(4)
        ]
        racing += [asyncio.create_task(move()) for _ in range(4)]
        for _ in range(4):
            await asyncio.gather(*(ledger.goes_on(10) for ledger in ledgers))
            await asyncio.sleep(random.uniform(0, 0.3))
            nats_server.kill()
            await asyncio.sleep(0.2)
            await nats_server.start(within_s=PATIENCE_S)
        await asyncio.gather(*(ledger.goes_on(10) for ledger in ledgers))
        stop.set()
        await asyncio.gather(*racing)
        for ledger in ledgers:
            await ledger.check(store)
        assert await purses.total() == purses.whole
        await until(lambda: sum(map(int, told.now.values())) == purses.whole)
        told.check_order()
        await following.stop()
        await other.close()

    @pytest.mark.parametrize("in_order", [True, False])
    async def test_a_follower_heals(
        self, nats_server: NatsServer, store: JetStreamStore, broker: Broker, in_order: bool
    ) -> None:
        prefix, told = fresh(), Told()
        stays, changes, goes, ends, comes = (f"{prefix}.{name}" for name in "abcde")
        for key in (stays, changes, goes):
            await put(store, key, b"1")
        following = await store.follow(prefix, told)
        await put(store, ends, b"1", ttl_s=2)
        await until(lambda: ends in told.now)
        if in_order:
            await nats_server.stop()
        else:
            nats_server.kill()
        await until(lambda: not broker.connected)
        await asyncio.sleep(2.2)  # it ends while the server is away
        await nats_server.start(within_s=PATIENCE_S)
        await until(lambda: broker.connected)
        for key, value in ((changes, b"2"), (goes, b""), (comes, b"1")):
            await retried(partial(put, store, key, value))
        await until(lambda: told.now == {stays: b"1", changes: b"2", comes: b"1"})
        assert told.values(stays) == [b"1"], "only what differs is told"
        assert told.values(ends) == [b"1", b""]
        told.check_order()
        await put(store, changes, b"3")
        await until(lambda: told.now[changes] == b"3")
        await following.stop()

    # The library leaves a refused connection to the garbage collector.
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    async def test_a_follower_that_was_away_too_long_asks_what_is_gone(
        self, nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("services.lobby.store_jetstream.TOMBSTONE_S", 1)
        monkeypatch.setattr(store_following, "RELIST_AFTER_S", 0.5)
        monkeypatch.setattr(store_following, "UNUSED_NS", 200_000_000)
        prefix, told = fresh(), Told()
        direct = await Broker.connect(nats_server.url, "direct")
        store = JetStreamStore(direct)
        async with Proxy(nats_server.port) as proxy:
            connection = await Broker.connect(proxy.url, "proxied")
            for name in ("stays", "goes", "changes"):
                await put(store, f"{prefix}.{name}", b"1")
            following = await JetStreamStore(connection).follow(prefix, told)
            proxy.refuse = True
            proxy.cut()
            await put(store, f"{prefix}.goes", b"")
            await put(store, f"{prefix}.changes", b"2")
            await until_is(store, f"{prefix}.goes", NOTHING.__eq__)
            proxy.refuse = False
            expected = {f"{prefix}.stays": b"1", f"{prefix}.changes": b"2"}
            await until(lambda: told.now == expected)
            assert told.values(f"{prefix}.stays") == [b"1"]
            await put(store, f"{prefix}.goes", b"back")
            await until(lambda: told.now == {**expected, f"{prefix}.goes": b"back"})
            told.check_order()
            await following.stop()
            await connection.close()
        await direct.close()

    async def test_a_silent_connection_is_noticed(self, nats_server: NatsServer) -> None:
        prefix, told = fresh(), Told()
        direct = await Broker.connect(nats_server.url, "direct")
        store = JetStreamStore(direct)
        async with Proxy(nats_server.port) as proxy:
            connection = await Broker.connect(proxy.url, "proxied")
            following = await JetStreamStore(connection).follow(prefix, told)
            proxy.swallow = True
            await put(store, f"{prefix}.a", b"1")
            await asyncio.sleep(0.3)
            proxy.swallow = False
            await put(store, f"{prefix}.b", b"1")
            await until(lambda: len(told.now) == 2)
            told.check_order()
            await following.stop()
            await connection.close()
        await direct.close()

    async def test_a_store_that_is_full_says_so(self, tmp_path: Path) -> None:
        server = NatsServer(tmp_path / "small", store_max=64 * 1024 * 1024)
        await server.start(within_s=PATIENCE_S)
        connection = await Broker.connect(server.url, "small", within_s=PATIENCE_S)
        await ensure_streams(connection)
        store = JetStreamStore(connection, timeout_s=2 * PATIENCE_S)
        try:
            keys: list[str] = []

            async def fill() -> None:
                for number in range(100):
                    keys[:] = [f"full.k{number}.{column}" for column in range(WRITES_MOST)]
                    await store.commit([Write(key, b"x" * VALUE_MOST, 0) for key in keys])

            with pytest.raises(Unavailable) as caught:
                await fill()
            assert (caught.value.why, caught.value.outcome_unknown) == (Why.STORE_FULL, False)
            assert [await store.get(key) for key in keys] == [NOTHING] * WRITES_MOST
        finally:
            await connection.close()
            server.kill()
