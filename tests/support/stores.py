"""Listeners, writers and sums that show what a store of the lobby's records lost, doubled or did by half."""

import asyncio
import itertools
import random
from collections.abc import Callable

from services.lobby.store import Conflict, Entry, Store, Write
from services.shell.log_store import Unavailable
from support.broker import until

_numbers = itertools.count()


def fresh() -> str:
    """A prefix that no other test uses."""
    return f"t{next(_numbers)}"


class Told:
    """A listener that keeps what it was told."""

    def __init__(self) -> None:
        self.all: list[tuple[str, Entry]] = []

    def __call__(self, key: str, entry: Entry) -> None:
        self.all.append((key, entry))

    @property
    def now(self) -> dict[str, bytes]:
        """What stands where, as far as told."""
        return {key: entry.value for key, entry in dict(self.all).items() if entry.value}

    def values(self, key: str) -> list[bytes]:
        return [entry.value for told, entry in self.all if told == key]

    def check_order(self) -> None:
        """Nothing older after something newer, nothing twice."""
        highest: dict[str, int] = {}
        for key, entry in self.all:
            assert entry.revision > highest.get(key, 0), f"{key} went back"
            highest[key] = entry.revision


async def put(store: Store, key: str, value: bytes, ttl_s: float = 0) -> int:
    """Write over whatever is there."""
    [revision] = await store.commit([Write(key, value, (await store.get(key)).revision, ttl_s)])
    return revision


async def retried(change: Callable[[], object]) -> None:
    """Do a change until it succeeds, however often it conflicts or the store is away."""
    while True:
        try:
            await change()  # type: ignore[misc]
        except (Conflict, Unavailable) as error:
            await asyncio.sleep(random.uniform(0, 0.05 if isinstance(error, Unavailable) else 0.002))
        else:
            return


class Purses:
    """Records with coins in them, that move between them and are neither made nor lost."""

    def __init__(self, store: Store, prefix: str, count: int = 5) -> None:
        self.prefix = prefix
        self.whole = 100 * count
        self._store = store
        self._keys = [f"{prefix}.p{number}" for number in range(count)]

    async def fill(self) -> None:
        await self._store.commit([Write(key, b"100", 0) for key in self._keys])

    async def move(self) -> None:
        """Move some coins from one purse to two others."""
        giver, *takers = random.sample(self._keys, 3)
        coins = 2 * random.randint(0, 10)
        entries = [await self._store.get(key) for key in (giver, *takers)]
        amounts = [int(entries[0].value) - coins, *(int(entry.value) + coins // 2 for entry in entries[1:])]
        await self._store.commit(
            [
                Write(key, str(amount).encode(), entry.revision)
                for key, amount, entry in zip((giver, *takers), amounts, entries, strict=True)
            ]
        )

    async def total(self) -> int:
        return sum([int((await self._store.get(key)).value) for key in self._keys])


class Ledger:
    """Racing writers who count in one record and keep what they counted in others, all in one change.

    Every count has records that say whose it was: so each change that was told as made must stand, each that
    was told as refused must not, and none is half written.
    """

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix
        self._changes = itertools.count()
        self.made: dict[str, int] = {}
        self.unknown: set[str] = set()
        self.refused: set[str] = set()

    async def write_until(self, stop: asyncio.Event, who: int) -> None:
        while not stop.is_set():
            await self._write(f"{who}-{next(self._changes)}")
            await asyncio.sleep(random.uniform(0, 0.002))

    async def goes_on(self, changes: int = 1) -> None:
        """Wait until so many more changes are told as made."""
        enough = len(self.made) + changes
        await until(lambda: len(self.made) >= enough)

    async def _write(self, change: str) -> None:
        sent = False
        try:
            counts = [await self._store.get(f"{self._prefix}.count{half}") for half in "ab"]
            count = int(counts[0].value or b"0") + 1
            text = str(count).encode()
            mine = [Write(f"{self._prefix}.by.{count}.{part}", change.encode(), 0) for part in "xyz"]
            halves = [
                Write(f"{self._prefix}.count{half}", text, entry.revision)
                for half, entry in zip("ab", counts, strict=True)
            ]
            sent = True
            await self._store.commit([halves[0], *mine, halves[1]])
            self.made[change] = count
        except Conflict:
            self.refused.add(change)
        except Unavailable as error:
            if sent and error.outcome_unknown:
                self.unknown.add(change)
            await asyncio.sleep(0.02)

    async def check(self, store: Store) -> None:
        a, b = [await store.get(f"{self._prefix}.count{half}") for half in "ab"]
        assert a.value == b.value, "half of a change"
        stored: dict[str, int] = {}
        for count in range(1, int(a.value) + 1):
            kept = {(await store.get(f"{self._prefix}.by.{count}.{part}")).value for part in "xyz"}
            assert len(kept) == 1, "half of a change"
            [change] = kept
            assert change, f"{count} is lost"
            assert change.decode() not in stored, "doubled"
            stored[change.decode()] = count
        for change, count in self.made.items():
            assert stored.get(change) == count, "told as made, and not there"
        assert not self.refused & set(stored), "told as refused, and there"
        assert set(stored) <= set(self.made) | self.unknown
        assert self.made
