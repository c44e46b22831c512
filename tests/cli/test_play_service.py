"""`shengji play` as a process of its own, against a fake lobby, the real table service and real bots."""

import asyncio
import os
import re
import shlex
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry
from support.fake_lobby import fake_lobby
from support.proxy import Proxy
from support.screens import Screen
from support.serving import replica

from services.bot.app import Bots
from services.bot.config import BotConfig
from services.cli.main import main
from services.shell.broker import Broker
from services.shell.logs import Log

ROOT = Path(__file__).resolve().parents[2]
ONE_DEAL = (
    "--preset",
    "classic-1d",
    "--option",
    "deals=1",
    "--option",
    "kitty=42",
    "--option",
    "kitty_card=3",
)
"""Of three cards a hand, since the server takes half a second for each that it plays."""
LONG = ("--preset", "classic-1d", "--option", "deals=20")
"""What is not over while somebody is away, however slow their machine is."""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """One folder for the module, as for its nats-server: it has the keys of tables that tests left open."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
async def house(nats_server, data, tmp_path):
    async with replica(nats_server.url, data) as table:
        broker = await Broker.connect(nats_server.url, "bot")
        config = BotConfig(data=data, nats=nats_server.url, table=table.address)
        bots = Bots(config, broker, CollectorRegistry(), Log("bot", "warning"))
        bots.start()
        try:
            async with (
                fake_lobby(data, table.address) as (lobby, address),
                Proxy(int(address.rpartition(":")[2])) as to_lobby,
                Proxy(int(table.address.rpartition(":")[2])) as to_table,
            ):
                yield House(lobby, to_lobby, to_table, tmp_path)
        finally:
            await bots.stop()
            await broker.close()


class House:
    def __init__(self, lobby, to_lobby, to_table, folder):
        self.lobby, self.folder = lobby, folder
        self.ways = (to_lobby, to_table)
        self.addresses = ("--lobby", f"127.0.0.1:{to_lobby.port}", "--table", f"127.0.0.1:{to_table.port}")

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

    async def until(self, text, within_s=120.0):
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

    async def end(self, within_s=120.0):
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


@pytest.mark.slow
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


async def test_the_server_plays_on_for_whom_it_shall_while_they_are_away(house):
    async with house.player(*LONG) as ann:
        ann.type("auto")
        await ann.until("The server plays for you")
        assert "Time ran out: you" not in await ann.until("trick to")
        ann.type("quit")
        await ann.until("Leave for good?")
        await ann.until("trick to")
        ann.process.send_signal(signal.SIGKILL)
        await ann.process.wait()
    async with house.player() as ann:
        seen = await ann.until("The server plays for you")
        assert "You are still at a table" in seen
        ann.type("auto")
        # Should a deal just be over, the next one is waited for, in which she does nothing before the tricks.
        assert "You play yourself again" in await ann.until("Type cards or a number", 240)


async def test_a_room_tells_what_is_played_and_what_cannot_be_done(house):
    async with house.player("--create", "--stake", "5", *ONE_DEAL) as ann:
        await ann.until("Invite code")
        assert "deals=1" in ann.seen
        assert "stake: 5 chips" in ann.seen
        ann.type("seat 9")
        await ann.until("Seats are 0, 1, 2 and 3")
        ann.type("rules")
        await ann.until("Cards and players")
        ann.type("bots")
        await ann.until("bot, normal")
        ann.type("bots easy")
        await ann.until("bot, easy")
        ann.type("bots hard")
        await ann.until("“hard” is neither")


async def test_refusals_are_explained(house):
    async with house.player(*ONE_DEAL) as ann:
        await ann.until("Your declaration")
        ann.type("d S3 H4", "S2 X9", "p")
        assert "  ✗ " in await ann.until("“X9” is neither")
        ann.type("auto")
        await ann.until("Play again")
        assert await ann.end() == 0


@pytest.mark.slow
async def test_a_match_by_ticket(house):
    async with house.player("--match", "--preset", "classic-1d", "--guest") as ann:
        ann.type("auto")
        seen = await ann.until("Play again")
        assert "Looking for opponents (1 waiting, four are needed)" in seen
        assert "--bots-after 30" in seen
        assert "nothing is kept" in seen


async def test_a_profile_is_one_terminals_and_readable_by_its_owner_alone(house):
    async with house.player("--create") as ann:
        await ann.until("Invite code")
        async with house.player() as other:
            await other.until("in use in another terminal")
            assert await other.end() == 1
    (kept,) = (house.folder / "config" / "shengji").glob("*.json")
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
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


async def test_whatever_is_piped_ends_no_game(house):
    async with house.player(*ONE_DEAL) as ann:
        await ann.until("Your declaration")
        ann.process.stdin.write(bytes(range(256)) + b"\xff" * 10_000 + b"\n" + b"7" * 5000 + b"\n")
        ann.type("p", "auto")
        await ann.until("Play again")
        assert "Traceback" not in ann.seen


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--join", "\udcff"], "no readable text"),
        (["--option", "deals=\udcff"], "no readable text"),
        (["--stake", "9" * 30], "--stake"),
    ],
)
def test_arguments_that_nobody_can_read_are_refused(arguments, told):
    done = CliRunner().invoke(main, ["play", "--lobby", "127.0.0.1:1", *arguments])
    assert done.exit_code in (1, 2)
    assert isinstance(done.exception, SystemExit)
    assert told in done.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--name", b"\xff"], "no readable text"),
        (["--option", 'deals="\\ud800"'], "deals"),
        (["--option", "deals=" + "[" * 10_000], "deals"),
    ],
)
async def test_neither_are_they_by_a_house(house, arguments, told):
    async with house.player(*arguments) as ann:
        assert await ann.end() in (1, 2)
        assert told in ann.seen
        assert "Traceback" not in ann.seen


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
async def test_closed_streams_are_no_fault(house, closed):
    program = "from services.cli.main import main; main()"
    command = [sys.executable, "-c", program, "play", "--guest", *house.addresses]
    process = await asyncio.create_subprocess_shell(
        f"exec {shlex.join(command)} {closed}",
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    _, errors = await asyncio.wait_for(process.communicate(), 120)
    assert (process.returncode, errors) == (0, b"")


@pytest.mark.slow
async def test_lost_connections_come_back_by_themselves(house):
    async with house.player(*ONE_DEAL) as ann:
        await ann.until("Your declaration")
        for way in house.ways:
            way.refuse = True
            way.cut()
        await ann.until("Connection lost")
        for way in house.ways:
            way.refuse = False
        await ann.until("Connected again")
        ann.type("p", "auto")
        seen = await ann.until("Play again")
        assert seen.count("Trump is") == 1, "nothing is told twice, nothing is missed"
        assert "Deal 1" not in seen


async def test_leaving_in_mid_match_is_asked_for_and_is_an_escape(house):
    async with house.player(*ONE_DEAL) as ann:
        await ann.until("Your declaration")
        ann.type("quit", "n", "quit", "y")
        seen = await ann.until("You have left the table.")
        assert seen.count("leaving it is an escape") == 2
        assert await ann.end() == 0


async def test_the_end_of_what_is_piped_ends_the_program_and_keeps_the_place(house):
    async with house.player("--create") as ann:
        await ann.until("Commands: start")
        assert await ann.end() == 0
        assert "`shengji play` goes on here" in ann.seen
        assert "\x1b" not in ann.seen
    async with house.player() as ann:
        await ann.until("You are still in a room")


@pytest.mark.parametrize("no_colour", [False, True])
async def test_at_a_terminal(house, no_colour):
    screen = Screen(house, *ONE_DEAL, "--lang", "en", **({"NO_COLOR": "1"} if no_colour else {}))
    try:
        await screen.until("Your declaration")
        await screen.until("turn: ")
        screen.type(b"auto\r")
        await screen.until("Trump is")
        screen.type(b"\x03")
        await screen.until("Nothing is lost")
    finally:
        if "Nothing is lost" not in screen.seen.decode(errors="replace"):
            screen.process.kill()
        assert await screen.end() == 0
    coloured = re.search(rb"\x1b\[[0-9;]*3[1-7](;[0-9]+)*m", screen.seen) is not None
    assert coloured is not no_colour
