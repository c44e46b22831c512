"""`shengji demo` plays a deal with all services as processes, verifies it, and leaves nothing behind."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from services.rules.presets import PRESET_NAMES

ROOT = Path(__file__).parents[2]
DEMO = "from services.cli.main import main; main(['demo', *__import__('sys').argv[1:]])"
USUAL = ("tournament-2d",)
"""Joker-backed declaring; the others are played in `tests/bot` and, here, with `-m slow`."""
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in PRESET_NAMES if name not in USUAL]
LIMIT_S = 240
ENDS_S = 20
"""For what a service started itself, and what ends by itself once its parent has."""


def of_session(leader):
    """The processes of a session."""
    found = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) == leader:
                found.append(psutil.Process(pid))
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return [process for process in found if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("name", [*USUAL, *SLOW])
def test_a_deal_is_played_shown_and_verified(name, tmp_path):
    arguments = ["--preset", name, "--deals", "1", "--speed", "max", "--data", str(tmp_path / "data")]
    demo = subprocess.Popen(
        [sys.executable, "-c", DEMO, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # The services that it starts are those of this folder, not of an installed package.
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"},
        cwd=tmp_path,
        start_new_session=True,
    )
    try:
        shown, said = demo.communicate(timeout=LIMIT_S)
    finally:
        _, left = psutil.wait_procs(of_session(demo.pid), timeout=ENDS_S)
        for process in left:
            process.kill()
    assert demo.returncode == 0, said
    assert not left, "processes outlive the demo"
    assert name in shown
    assert "Summary" in shown
    # A mutiny begins a new deal, so the first one that is scored may bear a higher number.
    assert re.search(r"deal +\d+  attackers", shown)
    assert "sound" in shown
    assert re.search(r"deals: \d+ verified", shown)
