"""`shengji play` as a process of its own, against a fake lobby, the real table service and real bots."""

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from support.fake_lobby import fake_lobby
from support.serving import replica

from services.bot.app import Bots
from services.bot.config import BotConfig
from services.shell.broker import Broker
from services.shell.logs import Log

ROOT = Path(__file__).resolve().parents[2]
ONE_DEAL = ("--preset", "classic-1d", "--option", "deals=1")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """One folder for the module, as for its nats-server: the keys of the tables that earlier tests left open."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
async def house(nats_server, data, tmp_path):
    async with replica(nats_server.url, data) as table:
        broker = await Broker.connect(nats_server.url, "bot")
        config = BotConfig(data=data, nats=nats_server.url, table=table.address)
        bots = Bots(config, broker, CollectorRegistry(), Log("bot", "warning"))
        bots.start()
        try:
            async with fake_lobby(data, table.address) as (lobby, address):
                yield House(lobby, address, table.address, tmp_path)
        finally:
            await bots.stop()
            await broker.close()


class House:
    def __init__(self, lobby, lobby_address, table_address, folder):
        self.lobby, self.folder = lobby, folder
        self.addresses = ("--lobby", lobby_address, "--table", table_address)

    @asynccontextmanager
    async def player(self, *arguments, profile="default", lang="en"):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "from services.cli.main import main; main()",
            "play",
            *self.addresses,
            "--profile",
            profile,
            "--lang",
            lang,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=ROOT,
            env={**os.environ, "XDG_CONFIG_HOME": str(self.folder / "config"), "PYTHONUNBUFFERED": "1"},
        )
        player = Player(process)
        try:
            yield player
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


class Player:
    def __init__(self, process):
        self.process = process
        self.seen = ""

    def type(self, *lines):
        self.process.stdin.write("".join(line + "\n" for line in lines).encode())

    async def until(self, text, within_s=30.0):
        """Everything printed so far, once this was printed after what was awaited before."""
        start = len(self.seen)
        try:
            async with asyncio.timeout(within_s):
                while text not in self.seen[start:]:
                    line = await self.process.stdout.readline()
                    assert line, "the program ended"
                    self.seen += line.decode()
        except TimeoutError:
            pytest.fail(f"{text!r} never came:\n{self.seen}")
        return self.seen[start:]

    async def end(self, within_s=10.0):
        self.process.stdin.close()
        rest = await asyncio.wait_for(self.process.stdout.read(), within_s)
        self.seen += rest.decode()
        return await self.process.wait()


async def test_a_match_against_bots_and_again(house):
    async with house.player(*ONE_DEAL) as ann:
        ann.type("auto")
        seen = await ann.until("Play again with the same four?")
        assert "Welcome, Guest 0." in seen
        assert "Deal 1 · playing 2" in seen
        assert "Attackers" in seen
        assert "match" in seen
        ann.type("y")
        await ann.until("Deal 1 · playing 2")
        await ann.until("Play again with the same four?")
        ann.type("n")
        await ann.until("Goodbye.")
        assert await ann.end() == 0
    assert house.lobby.places == {}


async def test_two_terminals_meet_by_code_in_two_languages(house):
    async with house.player("--create", "--name", "Ann", *ONE_DEAL) as ann:
        seen = await ann.until("shengji play --join AB3DE0")
        assert "█" in seen
        async with house.player("--join", "ab3de0", "--name", "Bo", profile="bo", lang="zh") as bo:
            await ann.until("Bo")
            await bo.until("等房主开始")
            ann.type("swap 1 2", "say nice")
            await bo.until("Ann：“打得好”")
            ann.type("start", "auto")
            bo.type("auto")
            assert "对家 Ann" in await bo.until("第 1 局 · 打 2")
            await ann.until("Play again")
            await bo.until("再来一场")
            assert "Bo" in ann.seen
            ann.type("n")
            await ann.until("Goodbye.")
            bo.type("n")
            await bo.until("再见")
            assert await bo.end() == 0
        assert await ann.end() == 0


async def test_killed_in_the_middle_and_going_on(house):
    async with house.player(*ONE_DEAL) as ann:
        await ann.until("Your declaration")
        ann.process.send_signal(signal.SIGKILL)
        await ann.process.wait()
    async with house.player() as ann:
        seen = await ann.until("Your declaration")
        assert "Signed in as Guest 0." in seen
        assert "You are still at a table" in seen
        ann.type("p", "auto")
        await ann.until("Play again")
    assert len(house.lobby.players) == 1


async def test_refusals_are_explained(house):
    async with house.player(*ONE_DEAL) as ann:
        await ann.until("Your declaration")
        ann.type("d S3 H4", "S2 X9", "p")
        assert "  ✗ " in await ann.until("“X9” is neither")
        ann.type("auto")
        await ann.until("Play again")
        assert await ann.end() == 0


async def test_a_match_by_ticket(house):
    async with house.player("--match", "--preset", "classic-1d", "--guest") as ann:
        ann.type("auto")
        seen = await ann.until("Play again")
        assert "Looking for opponents (1 waiting)" in seen
        assert "nothing is kept" in seen


async def test_a_profile_is_one_terminals_and_readable_by_its_owner_alone(house):
    async with house.player("--create") as ann:
        await ann.until("Invite code")
        async with house.player() as other:
            await other.until("in use in another terminal")
            assert await other.end() == 1
    (kept,) = (house.folder / "config" / "shengji").glob("*.json")
    assert kept.stat().st_mode & 0o777 == 0o600


async def test_an_access_token_that_ends_is_replaced_unseen(house):
    house.lobby.lifetime_ms = 3000
    async with house.player(*ONE_DEAL) as ann:
        await ann.until("Your declaration")
        await asyncio.sleep(4)
        house.lobby.lifetime_ms = 900_000
        ann.type("p", "auto")
        await ann.until("Play again")
    assert house.lobby.refreshes >= 1


async def test_an_unknown_code_is_said(house):
    async with house.player("--join", "NOSUCH") as ann:
        await ann.until("No room has that invite code.")
        assert await ann.end() == 1
