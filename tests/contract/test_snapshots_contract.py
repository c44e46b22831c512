"""What every snapshot store does, in memory and on a real server alike."""

import asyncio

import pytest
from support.broker import new_table

from services.game.errors import BadId
from services.shell.broker import SNAPSHOT_BUCKET, Broker
from services.shell.snapshots import SNAPSHOT_MAX, JetStreamSnapshots, MemorySnapshots, Snapshot, Snapshots


class SnapshotsContract:
    """The contract; an adapter's class provides ``snapshots``."""

    async def test_what_was_put_is_got(self, snapshots: Snapshots) -> None:
        table, data = new_table(), bytes(range(256))
        assert await snapshots.get(table) is None
        assert await snapshots.put(table, 8, data)
        assert await snapshots.get(table) == Snapshot(8, data)
        assert await snapshots.get(new_table()) is None

    async def test_a_newer_one_replaces_an_older_one(self, snapshots: Snapshots) -> None:
        table = new_table()
        for version in (1, 9, 10):
            assert await snapshots.put(table, version, b"v%d" % version)
        assert await snapshots.get(table) == Snapshot(10, b"v10")

    async def test_an_older_one_never_replaces_a_newer_one(self, snapshots: Snapshots) -> None:
        table = new_table()
        assert await snapshots.put(table, 20, b"v20")
        assert not await snapshots.put(table, 10, b"v10")
        assert not await snapshots.put(table, 20, b"another v20")
        assert await snapshots.get(table) == Snapshot(20, b"v20")

    async def test_of_many_at_once_the_newest_stays(self, snapshots: Snapshots) -> None:
        table, versions = new_table(), [3, 9, 1, 7]
        answers = await asyncio.gather(
            *(snapshots.put(table, version, b"%d" % version) for version in versions)
        )
        newest = max(version for version, kept in zip(versions, answers, strict=True) if kept)
        assert await snapshots.get(table) == Snapshot(newest, b"%d" % newest)

    @pytest.mark.parametrize("bad", ["*", "", "tbl_*", "a.b"])
    async def test_no_other_text_becomes_a_key(self, snapshots: Snapshots, bad: str) -> None:
        with pytest.raises(BadId):
            await snapshots.put(bad, 1, b"x")
        with pytest.raises(BadId):
            await snapshots.get(bad)

    @pytest.mark.parametrize(
        ("version", "data"), [(0, b"x"), (-1, b"x"), (1, b""), (1, b"x" * (SNAPSHOT_MAX + 1))]
    )
    async def test_what_is_no_snapshot_is_an_error(
        self, snapshots: Snapshots, version: int, data: bytes
    ) -> None:
        table = new_table()
        with pytest.raises(ValueError, match="no such snapshot"):
            await snapshots.put(table, version, data)
        assert await snapshots.get(table) is None


class TestMemorySnapshots(SnapshotsContract):
    @pytest.fixture
    def snapshots(self) -> MemorySnapshots:
        return MemorySnapshots()


class TestJetStreamSnapshots(SnapshotsContract):
    @pytest.fixture
    def snapshots(self, broker: Broker) -> JetStreamSnapshots:
        return JetStreamSnapshots(broker)

    async def test_natss_own_tools_see_and_delete_them(
        self, snapshots: JetStreamSnapshots, broker: Broker
    ) -> None:
        table = new_table()
        await snapshots.put(table, 5, b"five")
        bucket = await broker.js.key_value(SNAPSHOT_BUCKET)
        assert (await bucket.get(table)).value == (5).to_bytes(8, "big") + b"five"
        await bucket.delete(table)
        assert await snapshots.get(table) is None
        assert await snapshots.put(table, 1, b"one")
        assert await snapshots.get(table) == Snapshot(1, b"one")
