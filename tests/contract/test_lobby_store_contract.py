"""What every store of the lobby's records does, in memory and on a real server alike."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from support.broker import PATIENCE_S, eventually, until
from support.stores import Purses, Told, fresh, put, retried

from services.lobby.store import KEY_MOST, NOTHING, VALUE_MOST, WRITES_MOST, Conflict, Entry, Store, Write
from services.lobby.store_jetstream import JetStreamStore
from services.lobby.store_memory import MemoryStore
from services.shell.broker import Broker

Expire = Callable[[float], Awaitable[None]]
TTL_S = 1
"""The shortest that NATS knows."""


class StoreContract:
    """The contract; an adapter's class provides ``store``, and ``expire`` that lets so much time pass."""

    async def test_what_was_written_is_read(self, store: Store) -> None:
        key = f"{fresh()}.a"
        assert await store.get(key) == NOTHING
        [first] = await store.commit([Write(key, b"one", 0)])
        assert first > 0
        assert await store.get(key) == Entry(b"one", first)
        [second] = await store.commit([Write(key, bytes(range(256)), first)])
        assert second > first
        assert await store.get(key) == Entry(bytes(range(256)), second)

    @pytest.mark.parametrize("count", [2, 9, WRITES_MOST])
    async def test_several_records_change_together(self, store: Store, count: int) -> None:
        prefix = fresh()
        keys = [f"{prefix}.k{number}" for number in range(count)]
        revisions = await store.commit([Write(key, key.encode(), 0) for key in keys])
        assert [await store.get(key) for key in keys] == [
            Entry(key.encode(), revision) for key, revision in zip(keys, revisions, strict=True)
        ]
        again = await store.commit([Write(k, b"2", r) for k, r in zip(keys, revisions, strict=True)])
        assert min(again) > max(revisions)

    @pytest.mark.parametrize("wrong", [0, 1, 2])
    async def test_one_wrong_expectation_and_nothing_changes(self, store: Store, wrong: int) -> None:
        prefix = fresh()
        keys = [f"{prefix}.{name}" for name in "abc"]
        before = await store.commit([Write(key, b"old", 0) for key in keys])
        expected = list(before)
        expected[wrong] += 1
        with pytest.raises(Conflict):
            await store.commit([Write(k, b"new", r) for k, r in zip(keys, expected, strict=True)])
        expected[wrong] = 0
        with pytest.raises(Conflict):
            await store.commit([Write(k, b"new", r) for k, r in zip(keys, expected, strict=True)])
        assert [await store.get(key) for key in keys] == [Entry(b"old", r) for r in before]
        with pytest.raises(Conflict):
            await store.commit([Write(keys[wrong], b"new", 0)])

    async def test_a_new_record_expects_nothing(self, store: Store) -> None:
        key = f"{fresh()}.a"
        with pytest.raises(Conflict):
            await store.commit([Write(key, b"x", 7)])
        assert await store.get(key) == NOTHING

    async def test_a_record_that_was_taken_away_is_remembered(self, store: Store) -> None:
        key = f"{fresh()}.a"
        first = await put(store, key, b"x")
        [gone] = await store.commit([Write(key, b"", first)])
        assert await store.get(key) == Entry(b"", gone)
        assert gone > first
        for old in (0, first):
            with pytest.raises(Conflict):
                await store.commit([Write(key, b"y", old)])
        [again] = await store.commit([Write(key, b"y", gone)])
        assert await store.get(key) == Entry(b"y", again)

    async def test_taken_away_beside_others(self, store: Store) -> None:
        prefix = fresh()
        first = await put(store, f"{prefix}.a", b"x")
        revisions = await store.commit([Write(f"{prefix}.a", b"", first), Write(f"{prefix}.b", b"x", 0)])
        assert await store.get(f"{prefix}.a") == Entry(b"", revisions[0])
        assert await store.get(f"{prefix}.b") == Entry(b"x", revisions[1])

    async def test_a_record_ends_by_itself(self, store: Store, expire: Expire) -> None:
        prefix = fresh()
        alone, beside, lasting = f"{prefix}.alone", f"{prefix}.beside", f"{prefix}.lasting"
        began = time.monotonic()
        first = await put(store, alone, b"x", ttl_s=TTL_S)
        await store.commit([Write(beside, b"x", 0, TTL_S), Write(lasting, b"x", 0)])
        values = [(await store.get(key)).value for key in (alone, beside)]
        assert values == [b"x", b"x"] or time.monotonic() - began > TTL_S
        await expire(TTL_S)

        async def ended() -> bool:
            return not any([(await store.get(key)).value for key in (alone, beside)])

        await eventually(ended)
        for key in (alone, beside):
            entry = await store.get(key)
            assert entry.value == b""
            assert entry.revision > first, "an end is a change"
        assert (await store.get(lasting)).value == b"x"
        with pytest.raises(Conflict):
            await store.commit([Write(alone, b"y", first)])
        await put(store, alone, b"y")
        assert (await store.get(alone)).value == b"y"

    async def test_written_again_it_lives_longer(self, store: Store, expire: Expire) -> None:
        prefix = fresh()
        longer, forever = f"{prefix}.longer", f"{prefix}.forever"
        for key, ttl_s in ((longer, 10 * PATIENCE_S), (forever, 0)):
            await put(store, key, b"1", ttl_s=TTL_S)
            # Again if it ended between the look at it and the writing.
            await retried(lambda key=key, ttl_s=ttl_s: put(store, key, b"2", ttl_s))
        await expire(TTL_S)
        assert (await store.get(longer)).value == (await store.get(forever)).value == b"2"

    async def test_a_follower_is_told_what_is_there_and_every_change(self, store: Store) -> None:
        prefix, told = fresh(), Told()
        a, b, gone = f"{prefix}.a", f"{prefix}.b.c", f"{prefix}.gone"
        await put(store, a, b"1")
        await put(store, b, b"1")
        await put(store, gone, b"1")
        await put(store, gone, b"")
        await put(store, f"{prefix}x.a", b"another prefix")
        await put(store, f"x{prefix}.a", b"another prefix")
        following = await store.follow(prefix, told)
        assert told.now == {a: b"1", b: b"1"}
        revision = await put(store, a, b"2")
        await store.commit([Write(a, b"3", revision), Write(b, b"", (await store.get(b)).revision)])
        await put(store, a, b"4")
        await until(lambda: told.now == {a: b"4"})
        assert told.values(a) == [b"1", b"2", b"3", b"4"]
        assert told.values(b) == [b"1", b""]
        assert told.all[-1] == (a, await store.get(a))
        told.check_order()
        await following.stop()
        count = len(told.all)
        await put(store, a, b"5")
        await asyncio.sleep(0.1)
        assert len(told.all) == count

    async def test_a_follower_of_nothing_hears_the_first(self, store: Store) -> None:
        prefix, told, other = fresh(), Told(), Told()
        followings = [await store.follow(prefix, told), await store.follow(prefix, other)]
        assert not told.all
        await put(store, f"{prefix}.a", b"1")
        await until(lambda: told.now == other.now == {f"{prefix}.a": b"1"})
        for following in followings:
            await following.stop()
            await following.stop()

    async def test_a_follower_is_told_what_ends_by_itself(self, store: Store, expire: Expire) -> None:
        # Again with more time if it passed before anybody listened.
        for ttl_s in (TTL_S, 10 * TTL_S, 100 * TTL_S):
            prefix, told, began = fresh(), Told(), time.monotonic()
            a, b = f"{prefix}.a", f"{prefix}.b"
            await put(store, a, b"1", ttl_s=ttl_s)
            following = await store.follow(prefix, told)
            if time.monotonic() - began < ttl_s:
                break
            await following.stop()
        await put(store, b, b"1", ttl_s=ttl_s)
        await until(lambda: told.values(a)[:1] == told.values(b)[:1] == [b"1"])
        await expire(ttl_s)
        await until(lambda: not told.now)
        assert told.values(a) == told.values(b) == [b"1", b""]
        told.check_order()
        await following.stop()

    async def test_a_follower_of_many_during_writes_misses_nothing(self, store: Store) -> None:
        prefix, told = fresh(), Told()
        keys = [f"{prefix}.k{number}" for number in range(300)]
        for some in _chunks(keys, 30):
            await store.commit([Write(key, b"0", 0) for key in some])

        async def write(mine: list[str]) -> None:
            for key in mine:
                await put(store, key, b"1")

        writing = [asyncio.create_task(write(keys[start::10])) for start in range(10)]
        await asyncio.sleep(0.01)
        following = await store.follow(prefix, told)
        assert set(told.now) == set(keys)
        await asyncio.gather(*writing)
        await until(lambda: set(told.now.values()) == {b"1"})
        told.check_order()
        await following.stop()

    async def test_racing_writers_count_exactly(self, store: Store) -> None:
        key = f"{fresh()}.count"

        async def increment() -> None:
            value, revision = await store.get(key)
            await store.commit([Write(key, str(int(value or b"0") + 1).encode(), revision)])

        await asyncio.gather(*(retried(increment) for _ in range(40)))
        assert (await store.get(key)).value == b"40"

    async def test_what_moves_between_records_is_never_more_or_less(self, store: Store) -> None:
        purses, told = Purses(store, fresh(), 8), Told()
        await purses.fill()
        following = await store.follow(purses.prefix, told)
        await asyncio.gather(*(retried(purses.move) for _ in range(30)))
        assert await purses.total() == purses.whole
        await until(lambda: sum(map(int, told.now.values())) == purses.whole)
        told.check_order()
        await following.stop()

    @pytest.mark.parametrize(
        "bad",
        [
            *("", "a", "room.*", "room.>", "*.a", "room.", ".a", "room..a", "Room.a", "room.a b", "room.ä"),
            *("room.a\n", "room.a\r\nPUB x 0", "room." + "a" * KEY_MOST),
        ],
    )
    async def test_no_other_text_becomes_a_key(self, store: Store, bad: str) -> None:
        with pytest.raises(ValueError, match="is no key"):
            await store.get(bad)
        with pytest.raises(ValueError, match="is no key"):
            await store.commit([Write(bad, b"x", 0)])
        with pytest.raises(ValueError, match="is no key"):
            await store.follow(bad.rpartition(".")[0] + ".*", Told())

    async def test_what_is_no_change_is_an_error(self, store: Store) -> None:
        prefix = fresh()
        a = f"{prefix}.a"
        many = [Write(f"{prefix}.k{number}", b"x", 0) for number in range(WRITES_MOST + 1)]
        for writes in (
            [],
            many,
            [Write(a, b"x", 0), Write(a, b"y", 0)],
            [Write(a, b"x" * (VALUE_MOST + 1), 0)],
            [Write(a, b"x", -1)],
            [Write(a, b"x", 0, -1)],
        ):
            with pytest.raises(ValueError, match=r"a change has|no such write"):
                await store.commit(writes)
        assert await store.get(a) == NOTHING
        await store.commit([Write(key, b"x" * VALUE_MOST, 0) for key, *_ in many[:-1]])


def _chunks(keys: list[str], size: int) -> list[list[str]]:
    return [keys[start : start + size] for start in range(0, len(keys), size)]


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def clock(self) -> list[float]:
        return [0.0]

    @pytest.fixture
    def store(self, clock: list[float]) -> MemoryStore:
        return MemoryStore(lambda: clock[0])

    @pytest.fixture
    def expire(self, clock: list[float], store: MemoryStore) -> Expire:
        async def pass_time(seconds: float) -> None:
            clock[0] += seconds
            store.expire()

        return pass_time


class TestJetStreamStore(StoreContract):
    @pytest.fixture
    def store(self, broker: Broker) -> JetStreamStore:
        return JetStreamStore(broker, timeout_s=PATIENCE_S)

    @pytest.fixture
    def expire(self) -> Expire:
        return lambda seconds: asyncio.sleep(seconds + 0.3)
