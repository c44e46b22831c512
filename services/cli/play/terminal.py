"""Reading lines and printing them: with a live prompt at a terminal, plainly when input is piped."""

import asyncio
import io
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from prompt_toolkit import PromptSession
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console
from rich.text import Text

from services.cli.play.streams import Line, Queue


class Terminal:
    """Where the player sits.

    Attributes:
        interactive: a person is at a terminal; else lines come from a pipe or a file.
        below: the text below the prompt, asked for once a second.
    """

    def __init__(self, queue: Queue) -> None:
        # Either may be closed, and what comes from a pipe may be anything: nothing of that ends a game.
        here = [stream for stream in (sys.stdin, sys.stdout) if stream is not None]
        self.interactive = len(here) == 2 and all(stream.isatty() for stream in here)
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        self.below: Callable[[], str] = str
        self._queue = queue
        self._console = Console()

    def show(self, lines: Iterable[Text]) -> None:
        """Print lines."""
        for line in lines:
            self._console.print(line, overflow="fold", soft_wrap=not self.interactive, highlight=False)
        if sys.stdout is not None:
            sys.stdout.flush()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Put what is typed into the queue for the length of a block."""
        if not self.interactive:
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._read_plainly, args=(loop,), daemon=True).start()
            yield
            return
        with patch_stdout(raw=True):
            reader = asyncio.create_task(self._prompt())
            try:
                yield
            finally:
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)

    def _read_plainly(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread of its own, which may wait for ever: a file or pipe has no other way."""
        for line in sys.stdin or ():
            loop.call_soon_threadsafe(self._queue.put_nowait, Line(line.rstrip("\n")))
        loop.call_soon_threadsafe(self._queue.put_nowait, Line(None))

    async def _prompt(self) -> None:
        session: PromptSession[str] = PromptSession()
        while True:
            try:
                text = await session.prompt_async(
                    "> ", bottom_toolbar=lambda: self.below() or " ", refresh_interval=1.0
                )
            except (EOFError, KeyboardInterrupt):
                self._queue.put_nowait(Line(None))
                return
            self._queue.put_nowait(Line(text))
