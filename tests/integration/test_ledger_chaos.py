"""Games for chips while ledgers, tables, lobby, bots, nats-server and the database are killed or go away.

Tables are begun anew as they end, by people who meet in the lobby again. Two ledgers stand on one database.
In the end every balance follows from the logs alone, to the chip, and nobody has more or less than due.

The default run takes some twenty seconds on SQLite. The long one, on both databases:
``SHENGJI_CHAOS_S=300 pytest -m slow -n 0 -s tests/integration/test_ledger_chaos.py``
"""

import asyncio
import os
import random
import sqlite3
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest
from support.databases import KINDS, postgresql
from support.house import READY_S, patience
from support.ledger_house import LedgerHouse, People, opened_ledger_house, people_of, staked

from services.pb.ledger.v1 import ledger_service_pb2 as pb
from services.pb.lobby.v1 import room_service_pb2 as rooms
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_AFTER, ROOM_STATE_OPEN, ROOM_STATE_PLAYING
from services.pb.log.v1.log_pb2 import Commit

SEED = int(os.environ.get("SHENGJI_CHAOS_SEED", "2026"))
LONG_S = float(os.environ.get("SHENGJI_CHAOS_S", "150"))
SHORT_S = 8.0
GRANT = 100_000
STAKES = (1, 7, 50, 300)
QUIET_S = (0.3, 1.2)
DOWN_S = (0.0, 0.8)
AWAY_S = (1.0, 6.0)
"""How long the database stays away: longer than a transaction waits for it, sometimes."""
SETTLED_S = 60
PARTIES = ((1, 1, 0, 0), (1, 1, 1, 1), (1, 0, 1, 0), (1, 0, 0, 0))
"""Who sits on the seats 0 to 3 of each group's tables: people or bots."""
ESSENTIAL = ("ledger 0", "ledger 1", "nats", "database")
MORE = ("table 0", "table 1", "lobby", "bot", "ledgers")


@dataclass
class Run:
    """What is going on.

    Attributes:
        until: when no new match is begun, if everything was killed by then.
        kinds: what is killed or taken away.
        matches: tables that were played to their ends: (table, who asks about it).
        killed: what was killed or taken away.
        ended: nothing more is to be killed.
    """

    house: LedgerHouse
    people: People
    rng: random.Random
    until: float
    kinds: tuple[str, ...]
    matches: list[tuple[str, str]] = field(default_factory=list)
    killed: Counter = field(default_factory=Counter)
    ended: bool = False

    @property
    def over(self):
        """Whether it is time to end."""
        return time.monotonic() > self.until and all(self.killed[what] for what in self.kinds)


async def party(run: Run, number: int):
    """One group of people, who play one match after another for chips until time is up."""
    rng = random.Random(run.rng.random())
    seats = PARTIES[number % len(PARTIES)]
    guests = iter(await run.people.guests(sum(seats)))
    sitting = [next(guests) if person else "" for person in seats]
    people = [player for player in sitting if player]
    plan = staked(STAKES[number % len(STAKES)], deals=str(rng.randint(1, 3)), match_end='"loop"')
    room = await run.people.table(sitting, plan, patience(60))
    while True:
        await run.people.play(room, rng, patience(120))
        run.matches.append((room.table_id, people[0]))
        await run.people.until(room.room_id, people[0], ROOM_STATE_AFTER, within_s=patience(30))
        if run.over:
            return
        for player in people:
            again = rooms.PlayAgainRequest(room_id=room.room_id, again=True)
            await run.people.call("PlayAgain", again, player)
        room = await run.people.until(
            room.room_id, people[0], ROOM_STATE_PLAYING, ROOM_STATE_OPEN, within_s=patience(60)
        )
        assert room.state == ROOM_STATE_PLAYING, f"the same people were refused: {room.failed}"


async def faults(run: Run):
    """Kill and start again one thing after another, or take the database away, until all is played."""
    left = []
    while not run.ended:
        await asyncio.sleep(run.rng.uniform(*QUIET_S))
        if not left:
            left = list(run.kinds)
            run.rng.shuffle(left)
        what = left.pop()
        if what == "database":
            await away(run)
        elif what == "nats":
            run.house.nats.kill()
            await asyncio.sleep(run.rng.uniform(*DOWN_S))
            await run.house.nats.start(READY_S)
        else:
            await killed(run, what)
        run.killed[what] += 1


async def killed(run: Run, what: str):
    """Kill a process, or both ledgers, and start it again."""
    house, (kind, _, number) = run.house, what.partition(" ")
    services = {
        "table": house.replicas,
        "ledger": house.ledgers,
        "ledgers": house.ledgers,
        "lobby": [house.lobby],
        "bot": [house.bots],
    }[kind]
    services = [services[int(number)]] if number else services
    for service in services:
        service.kill()
    await asyncio.sleep(run.rng.uniform(*DOWN_S))
    for service in services:
        service.start()
    # The other ledger goes on meanwhile; of the rest, wait until it serves.
    await asyncio.gather(*(service.ready() for service in services))


async def away(run: Run):
    """Nobody can use the database for some seconds: it is down, or somebody holds its lock."""
    away_s = run.rng.uniform(*AWAY_S)
    if run.house.database.startswith("postgresql"):
        await asyncio.to_thread(postgresql().stop, run.rng.choice(["fast", "immediate"]))
        await asyncio.sleep(away_s)
        await asyncio.to_thread(postgresql().start)
        return
    file = run.house.database.removeprefix("sqlite+aiosqlite:///")

    def lock():
        connection = sqlite3.connect(file, timeout=30, isolation_level=None)
        try:
            connection.execute("BEGIN EXCLUSIVE")
            time.sleep(away_s)
            connection.execute("ROLLBACK")
        finally:
            connection.close()

    await asyncio.to_thread(lock)


async def play_under_faults(run: Run, tables: int):
    """All parties to the end of their last matches; then everything runs."""
    chaos = asyncio.create_task(faults(run))
    try:
        async with asyncio.TaskGroup() as group:
            playing = [group.create_task(party(run, number)) for number in range(tables)]
            await asyncio.wait([chaos, asyncio.gather(*playing)], return_when=asyncio.FIRST_COMPLETED)
            if chaos.done():
                chaos.result()
    finally:
        run.ended = True
        await asyncio.gather(chaos, return_exceptions=True)
    chaos.result()


def won_by_the_log(stored, stake):
    """What seats 0 to 3 won by RULES §9, from a table's log alone."""
    won = [0, 0, 0, 0]
    for raw in stored:
        for event in Commit.FromString(raw).events:
            if event.HasField("deal_scored"):
                for seat in range(4):
                    sign = 1 if seat % 2 == event.deal_scored.winning_side else -1
                    won[seat] += sign * stake * max(1, event.deal_scored.nominal_levels)
    return won


async def check(run: Run):
    """Every match is settled as its log says, everybody owns the sum of it, and an audit finds nothing."""
    owned: Counter = Counter()
    logs = await run.house.stored([table_id for table_id, _ in run.matches])
    deals = 0
    for table_id, player in run.matches:
        told = await run.people.settled(table_id, player, patience(SETTLED_S))
        assert told.match.state == pb.MATCH_STATE_FINISHED
        won = won_by_the_log(logs[table_id], told.match.stake)
        assert list(told.match.won) == won, table_id
        people = [seat.player_id for seat in told.match.seats]
        assert told.match.rated == (not any(name.startswith("bot:") for name in people))
        for name, chips in zip(people, won, strict=True):
            owned[name] += chips
        deals += len(told.deals)
    for player in run.people.tokens:
        balance = await run.people.balance(player)
        assert (balance.available, balance.held) == (GRANT + owned[player], 0), player
    # Tables close while this reads the database and then the log: the ledger may have more to read by then.
    async with asyncio.timeout(patience(SETTLED_S)):
        while (await run.house.audited()).unreached:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.5)
    return deals


def check_printed(house):
    """What the services met were faults that heal by themselves."""
    for line in house.printed().splitlines():
        assert not line.startswith("Traceback"), house.printed()[-4000:]
        assert '"level": "error"' not in line, line


async def chaos(folder, kind, seconds, tables, kinds):
    """A whole run; what it says."""
    url = postgresql().new_url() if kind == "postgresql" else ""
    async with (
        opened_ledger_house(folder, replicas=2, ledgers=2, grant=GRANT, database=url) as house,
        people_of(house) as people,
    ):
        began = time.monotonic()
        run = Run(house, people, random.Random(SEED), began + seconds, kinds)
        await play_under_faults(run, tables)
        played_s = time.monotonic() - began
        deals = await check(run)
        check_printed(house)
        await house.stop()
        await house.nothing_differs()
    print(
        f"{kind}: {len(run.matches)} matches, {deals} deals in {played_s:.0f} s,"
        f" {run.people.tables.retries} calls made again, {dict(run.killed)}"
    )


async def test_nothing_is_lost_or_doubled(tmp_path):
    await chaos(tmp_path, "sqlite", SHORT_S, 4, ESSENTIAL)


@pytest.mark.slow
@pytest.mark.timeout(LONG_S + 400)
@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_is_lost_or_doubled_in_the_long_run(tmp_path, kind):
    await chaos(tmp_path, kind, LONG_S, 12, (*ESSENTIAL, *MORE))
