"""A terminal of its own for `shengji play`."""

import asyncio
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAY = """
import fcntl, termios
from services.cli.main import main
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C is one
main()
"""
WHERE = b"\x1b[6n"
"""Where is the cursor?"""


class Screen:
    """The program at a terminal of its own: what it prints, and keys."""

    def __init__(self, house, *arguments, **environ):
        self.master, terminal = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.seen = b""
        self.told = 0
        """How often it was said where the cursor is."""
        self.arrived = asyncio.Event()
        self.process = subprocess.Popen(
            [sys.executable, "-c", PLAY, "play", *house.addresses, *arguments],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=ROOT,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "XDG_CONFIG_HOME": str(house.folder / "config"), **environ},
        )
        os.close(terminal)
        asyncio.get_running_loop().add_reader(self.master, self._read)

    def _read(self):
        try:
            data = os.read(self.master, 65536)
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self.master)
        self.seen += data
        while self.told < self.seen.count(WHERE):
            self.told += 1
            os.write(self.master, b"\x1b[20;1R")
        self.arrived.set()

    async def until(self, text, within_s=120.0):
        try:
            async with asyncio.timeout(within_s):
                while text.encode() not in self.seen:
                    self.arrived.clear()
                    await self.arrived.wait()
        except TimeoutError:
            pytest.fail(f"{text!r} never came:\n{self.seen.decode(errors='replace')}")

    def type(self, keys):
        os.write(self.master, keys)

    async def end(self):
        code = await asyncio.to_thread(self.process.wait, 120)
        asyncio.get_running_loop().remove_reader(self.master)
        os.close(self.master)
        return code
