"""Mirrors: what a replica knows of the records of one kind."""

import asyncio
import random
from collections.abc import Callable

import pytest
from support.broker import PATIENCE_S, until
from support.stores import retried

from services.lobby import mirror as mirror_module
from services.lobby.mirror import Mirror
from services.lobby.records import atomically, code_key
from services.lobby.store import Entry, Listener, Write
from services.lobby.store_jetstream import JetStreamStore
from services.lobby.store_memory import MemoryStore
from services.pb.lobby.v1.stored_pb2 import CodeRecord
from services.shell.broker import Broker
from services.shell.nats_server import NatsServer

Change = tuple[str, str | None, str | None]


def code(room_id: str) -> bytes:
    return CodeRecord(room_id=room_id).SerializeToString()


def keeping(changes: list[Change]) -> Callable[[str, CodeRecord | None, CodeRecord | None], None]:
    """A listener that keeps what it was told."""

    def listener(name: str, before: CodeRecord | None, after: CodeRecord | None) -> None:
        changes.append((name, before and before.room_id, after and after.room_id))

    return listener


class Told:
    """A store that tells what the test says."""

    def __init__(self) -> None:
        self.listener: Listener | None = None

    async def follow(self, prefix: str, listener: Listener) -> "Told":
        self.listener = listener
        return self

    async def stop(self) -> None:
        self.listener = None

    def tell(self, name: str, room_id: str, revision: int) -> None:
        assert self.listener is not None
        self.listener(f"code.{name}", Entry(code(room_id) if room_id else b"", revision))


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
async def mirror(told: Told) -> Mirror[CodeRecord]:
    mirror = Mirror(told, "code", CodeRecord)  # type: ignore[arg-type]  # follow alone is used
    await mirror.start()
    return mirror


def known(mirror: Mirror[CodeRecord]) -> dict[str, str]:
    return {name: record.room_id for name, record in mirror.items()}


async def test_it_knows_what_is_there_and_what_becomes_of_it() -> None:
    clock = [0.0]
    store = MemoryStore(lambda: clock[0])
    await store.commit([Write("code.a", code("1"), 0), Write("code.b", code("2"), 0, 5)])
    await store.commit([Write("room.a", b"not a code \xff", 0)])
    mirror, changes = Mirror(store, "code", CodeRecord), []
    mirror.on_change(keeping(changes))
    await mirror.start()
    await mirror.start()
    assert changes == [("a", None, "1"), ("b", None, "2")]
    await store.commit([Write("code.c.d", code("3"), 0), Write("code.a", code("4"), 1)])
    await store.commit([Write("code.a", b"", (await store.get("code.a")).revision)])
    clock[0] = 5
    store.expire()
    assert changes[2:] == [("c.d", None, "3"), ("a", "1", "4"), ("a", "4", None), ("b", "2", None)]
    assert known(mirror) == {"c.d": "3"}
    assert len(mirror) == 1
    assert mirror.get("a") is None
    record = mirror.get("c.d")
    assert record is not None
    assert record.room_id == "3"
    await mirror.stop()
    await store.commit([Write("code.z", code("9"), 0)])
    assert known(mirror) == {"c.d": "3"}


async def test_it_never_goes_back(told: Told, mirror: Mirror[CodeRecord]) -> None:
    changes: list[Change] = []
    mirror.on_change(keeping(changes))
    told.tell("a", "new", 9)
    told.tell("a", "old", 8)
    told.tell("a", "same", 9)
    told.tell("a", "", 7)
    assert known(mirror) == {"a": "new"}
    told.tell("a", "", 10)
    told.tell("a", "old", 9)
    assert known(mirror) == {}
    told.tell("a", "again", 11)
    told.tell("a", "", 10)
    assert known(mirror) == {"a": "again"}
    assert changes == [("a", None, "new"), ("a", "new", None), ("a", None, "again")]


async def test_what_was_dropped_is_remembered_within_bounds(
    told: Told, mirror: Mirror[CodeRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_module, "DROPPED_KEPT", 10)
    for number in range(50):
        told.tell(f"r{number}", "x", 2 * number + 1)
        told.tell(f"r{number}", "", 2 * number + 2)
    assert len(mirror._dropped) == 10
    told.tell("r49", "old", 99)
    assert known(mirror) == {}


async def test_a_record_that_was_never_there_tells_nobody(told: Told, mirror: Mirror[CodeRecord]) -> None:
    changes: list[Change] = []
    mirror.on_change(keeping(changes))
    told.tell("a", "", 3)
    assert changes == []


async def test_one_listeners_fault_stops_no_other(
    told: Told, mirror: Mirror[CodeRecord], caplog: pytest.LogCaptureFixture
) -> None:
    changes: list[Change] = []

    def faulty(name: str, before: CodeRecord | None, after: CodeRecord | None) -> None:
        raise RuntimeError("fault")

    mirror.on_change(faulty)
    mirror.on_change(keeping(changes))
    told.tell("a", "1", 1)
    assert changes == [("a", None, "1")]
    assert known(mirror) == {"a": "1"}
    assert "listener_failed" in caplog.messages


async def test_listeners_may_go_and_act_while_told(told: Told, mirror: Mirror[CodeRecord]) -> None:
    changes: list[Change] = []
    listener = keeping(changes)
    remove, remove_again = mirror.on_change(listener), mirror.on_change(listener)

    def leaving(name: str, before: CodeRecord | None, after: CodeRecord | None) -> None:
        remove()
        mirror.on_change(listener)

    gone = mirror.on_change(leaving)
    told.tell("a", "1", 1)
    assert len(changes) == 2
    gone()
    gone()
    told.tell("a", "2", 2)
    assert len(changes) == 4, "the one that stayed, and the one that came"
    remove_again()
    told.tell("a", "3", 3)
    assert len(changes) == 5


async def test_a_record_that_cannot_be_read_changes_nothing(
    told: Told, mirror: Mirror[CodeRecord], caplog: pytest.LogCaptureFixture
) -> None:
    told.tell("a", "1", 1)
    assert told.listener is not None
    told.listener("code.a", Entry(b"\xff\xff", 2))
    assert known(mirror) == {"a": "1"}
    assert "record_unreadable" in caplog.messages
    told.tell("a", "2", 3)
    assert known(mirror) == {"a": "2"}


async def test_on_a_real_server_it_agrees_with_the_store_after_a_restart(
    nats_server: NatsServer, broker: Broker
) -> None:
    store = JetStreamStore(broker, timeout_s=30)
    mirror = Mirror(store, "code", CodeRecord)
    await mirror.start()
    agreed: dict[str, str] = {}
    mirror.on_change(lambda name, _, after: agreed.update({name: after.room_id if after else ""}))
    names, chance = [f"c{number}" for number in range(20)], random.Random(1)

    async def write(number: int) -> None:
        name = chance.choice(names)

        async def work(change):  # type: ignore[no-untyped-def]
            if number % 5 == 0:
                await change.drop(code_key(name))
            else:
                await change.put(code_key(name), CodeRecord(room_id=str(number)))

        await retried(lambda: atomically(store, work))

    await asyncio.gather(*(write(number) for number in range(60)))
    nats_server.kill()
    await until(lambda: not broker.connected)
    await nats_server.start(within_s=PATIENCE_S)
    await until(lambda: broker.connected)
    for number in range(60, 120):
        await write(number)
    stored = {name: (await store.get(code_key(name))).value for name in names}
    wanted = {name: CodeRecord.FromString(value).room_id for name, value in stored.items() if value}
    await until(lambda: known(mirror) == wanted)
    assert {name: room_id for name, room_id in agreed.items() if room_id} == wanted
    await mirror.stop()
