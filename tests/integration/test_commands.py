"""The `shengji` command as processes of its own: a demo that repeats, and a house that is kept up."""

import asyncio
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from support.calls import Calls
from support.forks import Command
from support.house import own_port, patience
from support.seats import founding

from services.cli.data import running
from services.cli.log import entry
from services.cli.reading import reader_of
from services.pb.log.v1.log_pb2 import Commit

DEMO = ("demo", "--deals", "1", "--speed", "max", "--bots", "easy", "--preset", "classic-1d", "--seed", "s1")
DIFFERING = """
import services.cli.booked as booked
from services.ledger.comparing import Difference

compare = booked.audit


async def audit(*arguments):
    report = await compare(*arguments)
    report.differences.append(Difference("balance", "house:bots", expected=1, found=2))
    return report


booked.audit = audit
"""
"""Run before a command: an audit finds what is not there."""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return Command(*arguments).finish()


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    """The same demo run twice in fresh folders, side by side: (folder, what came of it)."""
    folders = [tmp_path_factory.mktemp("demo") / name for name in ("one", "two")]
    commands = [Command(*DEMO, "--data", str(folder)) for folder in folders]
    return [(folder, command.finish()) for folder, command in zip(folders, commands, strict=True)]


async def events_of(folder: Path) -> tuple[list[str], list[list[bytes]]]:
    """The tables in a folder, and the events of the only one, commit by commit, as stored."""
    async with reader_of(folder) as reader:
        tables = await reader.tables()
        commits = [Commit.FromString(raw) for raw in await reader.commits(tables[0])]
    events = [[event.SerializeToString(deterministic=True) for event in commit.events] for commit in commits]
    return tables, events


async def test_a_demo_repeats_byte_for_byte(demos):
    (one, first), (two, second) = demos
    assert first.returncode == 0, first.stderr
    assert second.returncode == 0, second.stderr
    assert first.stdout == second.stdout
    assert "sound" in first.stdout
    assert max(map(len, first.stdout.splitlines())) <= 80
    # The bots may be on their way into the next deal when the demo ends.
    (table, events), (same, repeated) = await events_of(one), await events_of(two)
    common = min(len(events), len(repeated))
    assert table == same
    assert common >= 50
    assert events[:common] == repeated[:common]


def test_a_demo_says_what_the_ledger_says(demos):
    _, shown = demos[0]
    chips = re.search(
        r"chips at a stake of 10: West (\S+), South (\S+), East (\S+), North (\S+)", shown.stdout
    )
    west, south, east, north = map(int, chips.groups())
    deals = re.findall(r"deal +\d+  attackers .*(West–East|South–North) +(\+\d+|takes over)", shown.stdout)
    expected = sum(
        (1 if side == "West–East" else -1) * 10 * max(1, int(gain) if gain[1:].isdigit() else 0)
        for side, gain in deals
    )
    assert west == east == -south == -north == expected
    assert "rated: no (bots)" in shown.stdout
    assert f"ledger: {len(deals)} deals settled, sums to zero, nothing differs" in shown.stdout


@pytest.mark.slow
def test_a_demo_whose_ledger_differs_fails(tmp_path):
    done = Command(*DEMO, "--data", str(tmp_path), before=DIFFERING).finish()
    assert done.returncode == 1
    assert "ledger: DIFFERS" in done.stdout
    assert "nothing differs" not in done.stdout
    assert "Traceback" not in done.stderr


def test_what_a_demo_leaves_can_be_verified_and_replayed(demos):
    folder, shown = demos[0]
    verified = run("verify", "--data", str(folder))
    assert verified.returncode == 0, verified.stderr
    assert "sound" in verified.stdout
    replayed = run("replay", "--data", str(folder))
    assert replayed.returncode == 0, replayed.stderr
    score = [line for line in shown.stdout.splitlines() if "points" in line]
    assert score
    assert set(score) <= set(replayed.stdout.splitlines())


def test_tables_are_listed_with_what_was_played(demos):
    """None of several can be asked for here, so that the list is made of one."""
    folder, _ = demos[0]
    listed = asyncio.run(_entry_of(folder))
    assert re.fullmatch(r"tbl_\w{26}  \d{4}-\d\d-\d\d \d\d:\d\d  classic-1d  bot, bot, bot, bot", listed)


async def _entry_of(folder: Path) -> str:
    async with reader_of(folder) as reader:
        (table_id,) = await reader.tables()
        return entry(table_id, (await reader.commits(table_id))[:1])


@pytest.mark.slow
def test_a_seed_is_played_once_in_a_folder(demos):
    folder, _ = demos[1]
    again = run(*DEMO, "--data", str(folder))
    assert again.returncode == 1
    assert "this folder holds this --seed's match already" in again.stderr
    assert "Traceback" not in again.stderr


@pytest.mark.slow
async def test_an_interrupted_demo_says_what_it_leaves_and_nothing_else(tmp_path):
    demo = Command("demo", "--data", str(tmp_path))
    try:
        await demo.says("Trump is")
        demo.signal(signal.SIGINT)
        ended = await asyncio.to_thread(demo.finish, patience(30))
    finally:
        demo.end()
    assert ended.returncode == 130
    assert ended.stderr.strip() == f"Stopped before its end; kept in {tmp_path}"
    assert (await asyncio.to_thread(run, "verify", "--data", str(tmp_path))).returncode == 0


def test_a_damaged_log_is_not_sound(demos, tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(demos[1][0], folder)
    blocks = max((folder / "nats").rglob("*.blk"), key=lambda path: path.stat().st_size)
    raw = bytearray(blocks.read_bytes())
    raw[len(raw) // 2] ^= 1
    blocks.write_bytes(raw)
    verified = run("verify", "--data", str(folder))
    assert verified.returncode != 0
    assert "Traceback" not in verified.stderr


async def test_a_house_is_kept_up_until_it_is_interrupted(tmp_path):
    listen = f"127.0.0.1:{own_port()}"
    others = ("--lobby-listen", "127.0.0.1:0", "--ledger-listen", "127.0.0.1:0")
    house = Command("up", "--data", str(tmp_path), "--listen", listen, *others, "--founders", "all")
    try:
        await house.says(f"tables at {listen}")
        signed = await asyncio.to_thread(run, "token", "--player", "ply_anna", "--data", str(tmp_path))
        assert signed.returncode == 0
        calls = Calls([listen], lambda _: signed.stdout.strip())
        founded = await calls.settle("CreateTable", founding(seats=("ply_anna", 1, 1, 1)), "ply_anna")
        await calls.close()
        second = await asyncio.to_thread(run, "up", "--data", str(tmp_path), "--listen", "127.0.0.1:0")
        assert second.returncode == 1
        assert "is in use by `shengji up`" in second.stderr
        assert str(house.pid) in second.stderr
        # While it runs, its log can be read.
        verified = await asyncio.to_thread(run, "verify", founded.table_id, "--data", str(tmp_path))
        assert verified.returncode == 0, verified.stderr
        told = running(tmp_path)
        assert told is not None
        elsewhere = await asyncio.to_thread(run, "verify", founded.table_id, "--nats", told.nats)
        assert elsewhere.returncode == 0, elsewhere.stderr
        assert f"{founded.table_id}: sound" in elsewhere.stdout
        house.signal(signal.SIGINT)
        ended = await asyncio.to_thread(house.finish, patience(20))
        assert ended.returncode == 0, ended.stderr
        assert "Traceback" not in ended.stdout + ended.stderr
    finally:
        house.end()
    # Nothing is left running, and the folder is free again.
    again = await asyncio.to_thread(run, "verify", founded.table_id, "--data", str(tmp_path))
    assert again.returncode == 0, again.stderr
