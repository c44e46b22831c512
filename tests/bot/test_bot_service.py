"""The bot service over the wire: a real nats-server, a real table service, real commands."""

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from contextlib import asynccontextmanager

import grpc
import pytest
from prometheus_client import CollectorRegistry
from support.broker import PATIENCE_S
from support.house import patience

from services.bot.app import Bots
from services.bot.config import BotConfig
from services.bot.history import History
from services.game.verify import verify
from services.pb.event.v1.event_pb2 import Difficulty, Pace, RuleOption, Seat
from services.pb.log.v1.log_pb2 import Commit
from services.pb.table.v1.table_service_pb2 import CreateTableRequest
from services.pb.table.v1.table_service_pb2_grpc import TableServiceStub
from services.shell.broker import Broker
from services.shell.keys import signing_key
from services.shell.log_jetstream import JetStreamLog
from services.shell.log_store import Unavailable
from services.shell.logs import Log
from services.shell.tokens import sign
from services.table.app import TableService
from services.table.config import TableConfig

NORMAL = Difficulty.DIFFICULTY_NORMAL
QUICK = Pace(
    draw_ms=0, declare_ms=0, bury_ms=600_000, turn_ms=600_000, next_deal_ms=600_000, mutiny_ms=0, away_turns=3
)


@pytest.fixture
async def house(nats_server, tmp_path):
    """A table service on the module's nats-server."""
    broker = await Broker.connect(nats_server.url, "table")
    config = TableConfig(data=tmp_path, nats=nats_server.url, listen="127.0.0.1:0")
    service = TableService(config, broker, Log("table", "error"))
    running = await service.start()
    yield House(nats_server.url, tmp_path, f"127.0.0.1:{running.port}", broker)
    await service.stop(wait_s=0, grace_s=0.1)
    await broker.close()


class House:
    def __init__(self, nats, data, table, broker):
        self.nats, self.data, self.table = nats, data, table
        self.log = JetStreamLog(broker)

    @property
    def config(self):
        return BotConfig(data=self.data, nats=self.nats, table=self.table)

    @asynccontextmanager
    async def bots(self):
        broker = await Broker.connect(self.nats, "bot")
        bots = Bots(self.config, broker, CollectorRegistry(), Log("bot", "warning"))
        bots.start()
        try:
            yield bots
        finally:
            await bots.stop()
            await broker.close()

    async def found(self, preset="classic-1d", pace=QUICK, deals=1):
        """Found a table of four bots, to play so many deals."""
        request = CreateTableRequest(
            command_id=str(uuid.uuid4()),
            preset=preset,
            overrides=[RuleOption(name="deals", value=str(deals))],
            seats=[Seat(seat=seat, difficulty=NORMAL) for seat in range(4)],
            pace=pace,
        )
        token = sign(signing_key(self.data, "local"), "local", "founder")
        async with grpc.aio.insecure_channel(self.table) as channel:
            stub = TableServiceStub(channel)
            answer = await stub.CreateTable(request, metadata=(("authorization", f"Bearer {token}"),))
        return answer.table_id

    async def commits(self, table_id):
        return [Commit.FromString(stored.payload) for stored in await self.log.read(table_id)]

    async def until(self, table_id, condition, within_s=2 * PATIENCE_S):
        async with asyncio.timeout(within_s):
            while True:
                try:
                    commits = await self.commits(table_id)
                except Unavailable:
                    commits = []
                if condition(commits):
                    return commits
                await asyncio.sleep(0.05)


def kinds(commits):
    return [event.WhichOneof("kind") for commit in commits for event in commit.events]


def is_over(commits):
    return "match_ended" in kinds(commits)


async def test_four_bots_play_a_deal(house):
    async with house.bots():
        table_id = await house.found()
        commits = await house.until(table_id, is_over)
    found = kinds(commits)
    assert found.count("deal_scored") == 1
    assert "turn_expired" not in found, "the server never had to play"
    assert found.count("cards_played") >= 4
    stored = [item.payload for item in await house.log.read(table_id)]
    assert verify(table_id, stored).problem is None


async def test_bots_answer_mutinies_and_counters(house):
    pace = Pace()
    pace.CopyFrom(QUICK)
    pace.mutiny_ms = 600_000
    async with house.bots():
        table_id = await house.found("tournament-2d", pace, deals=2)
        commits = await house.until(table_id, is_over)
    found = kinds(commits)
    assert "turn_expired" not in found
    # Four passes or so in each window, two on each mutiny, three or more after the second deal's bury.
    assert found.count("passed") >= 2 * 2 + 3
    stored = [item.payload for item in await house.log.read(table_id)]
    assert verify(table_id, stored).problem is None


async def test_bots_wait_for_nothing_but_the_draw(house):
    """Cards are drawn by time; rounds are decided as they come, and the window is passed at once."""
    pace = Pace()
    pace.CopyFrom(QUICK)
    pace.draw_ms = 40
    async with house.bots():
        table_id = await house.found(pace=pace)
        commits = await house.until(table_id, is_over)
    assert "turn_expired" not in kinds(commits)


async def test_a_table_that_waited_before_bots_came_is_played(house):
    table_id = await house.found()
    async with house.bots():
        commits = await house.until(table_id, is_over)
    assert "turn_expired" not in kinds(commits)


async def test_two_bot_services_share_the_work(house):
    async with house.bots() as first, house.bots() as second:
        tables = [await house.found("classic-2d") for _ in range(3)]
        for table_id in tables:
            commits = await house.until(table_id, is_over)
            assert "turn_expired" not in kinds(commits)
            assert [commit.version for commit in commits] == list(range(1, len(commits) + 1))
    assert first is not second


async def test_another_service_takes_over_in_the_middle_of_a_deal(house):
    table_id = None
    async with house.bots():
        table_id = await house.found("classic-4d")
        await house.until(table_id, lambda commits: "trick_taken" in kinds(commits))
    before = len(await house.commits(table_id))
    async with house.bots():
        commits = await house.until(table_id, is_over)
    assert before < len(commits)
    assert "turn_expired" not in kinds(commits)


async def test_a_killed_process_is_replaced_without_a_loss(house):
    """The real process, ended by SIGKILL in the middle of a deal: the next one is rung again and goes on."""
    env = {
        **os.environ,
        "SHENGJI_DATA": str(house.data),
        "SHENGJI_NATS": house.nats,
        "SHENGJI_TABLE": house.table,
        "SHENGJI_THINK_MS": "20",
    }

    def start():
        return subprocess.Popen([sys.executable, "-m", "services.bot"], env=env, stderr=subprocess.DEVNULL)

    process = start()
    try:
        table_id = await house.found("classic-4d")
        commits = await house.until(table_id, lambda commits: "trick_taken" in kinds(commits))
        process.kill()
        process.wait()
        assert not is_over(commits), "it was killed in the middle"
        process = start()
        commits = await house.until(table_id, is_over)
        assert "turn_expired" not in kinds(commits)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, patience(15)) == 0
    finally:
        process.kill()
        process.wait()


async def test_play_goes_on_after_nats_was_away(house, nats_server):
    async with house.bots():
        table_id = await house.found("classic-4d")
        await house.until(table_id, lambda commits: "trick_taken" in kinds(commits))
        nats_server.kill()
        await asyncio.sleep(0.3)
        await nats_server.start(within_s=PATIENCE_S)
        commits = await house.until(table_id, is_over)
    assert "turn_expired" not in kinds(commits)


async def test_a_history_from_the_log_is_that_of_the_doorbells(house):
    async with house.bots():
        table_id = await house.found("classic-2d", deals=2)
        await house.until(table_id, is_over)
    stored = await house.log.read(table_id)
    whole, step_by_step = History(), History()
    whole.catch_up(stored)
    for item in stored:
        step_by_step.take(item.sequence, Commit.FromString(item.payload))
    for name in ("version", "sequence", "bots", "over", "to_move", "declaring"):
        assert getattr(whole, name) == getattr(step_by_step, name)
    for name in ("deal", "gone", "void", "no_pair", "known", "declarations", "declarer"):
        assert getattr(whole.memory, name) == getattr(step_by_step.memory, name)
