"""What happens at a watched table, as steps in the one order that every replica tells them in.

A step is a commit, or a round of the draw: every seat has one card more. Rounds have no commit of their own;
they follow from the recorded start and pace, and those whose time is not after a commit's come before it. So
the order is a function of the log, and a step's message is the same bytes on every replica.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from services.game.state import Declaring, Table
from services.game.views import SPECTATOR, commit_update, rounds_between
from services.game.waits import drawn, round_at_us
from services.pb.log.v1.log_pb2 import Commit
from services.pb.table.v1.table_service_pb2 import WatchResponse
from services.rules.reasons import Reason
from services.table.secrets import Place, TableSecrets

MARGIN_US: Final = 100_000
"""Rounds are told so much after their time, so that a commit that belongs before one is heard of first."""
RING: Final = 256
"""Steps kept for watchers that are behind or come back."""
RING_MOST: Final = 8192
"""Steps kept at most for spectators who are told later."""
AGAIN_S: Final = 0.02


class Base(NamedTuple):
    """A table between two steps."""

    state: Table
    sequence: int
    """The log's sequence of its last commit."""
    drawn: int
    """Cards that each seat has been told to have drawn."""

    @property
    def place(self) -> Place:
        """Where a watcher is who knows it."""
        return Place(self.state.version, self.drawn, self.sequence)


class Step(NamedTuple):
    """One step."""

    base: Base
    """The table after it."""
    at_us: int
    """When it happened, by the log."""
    commit: Commit | None
    """None for a round of the draw."""
    deals: bool
    """It starts a deal, so the count of drawn cards begins anew."""
    made: float
    """``time.perf_counter()`` when this process learnt of it."""
    told: list[bytes | None]
    """Its message for each audience, once somebody needed it."""

    @property
    def state(self) -> Table:
        """The table after it."""
        return self.base.state

    @property
    def place(self) -> Place:
        """Where a watcher is after it."""
        return self.base.place

    def told_after(self, told: Place) -> Place:
        """What a watcher has been told by this step who had been told as much as ``told``.

        A round may have been told before a commit became known that belongs ahead of it; it still counts.
        """
        place = self.base.place
        return place if self.deals else place._replace(drawn=max(place.drawn, told.drawn))

    def is_after(self, told: Place) -> bool:
        """Whether the step is news to a watcher who has been told as much as ``told``."""
        version = self.base.state.version
        if self.commit is not None:
            return version > told.version
        return version >= told.version and self.base.drawn > told.drawn

    def message(self, audience: int, secrets: TableSecrets) -> bytes:
        """Its serialised ``WatchResponse`` for a seat or for ``SPECTATOR``."""
        known = self.told[audience]
        if known is not None:
            return known
        if self.commit is not None:
            update = commit_update(self.commit, self.base.state, audience)
            update.drawn = self.base.drawn
        else:
            (update,) = rounds_between(self.base.state, self.base.drawn - 1, self.at_us, audience)
        response = WatchResponse(update=update, resume=secrets.resume_token(self.base.place))
        made = self.told[audience] = response.SerializeToString()
        return made


class Sequencer:
    """Puts the commits of a table and the passing of time into steps.

    Attributes:
        base: the table after the last step; None before its founding.
    """

    def __init__(self, base: Base | None) -> None:
        self.base = base

    def rounds(self, until_us: int) -> Iterator[Step]:
        """The rounds of the draw that come until a time and were not told."""
        if self.base is None or not isinstance(self.base.state.phase, Declaring):
            return
        state, sequence, told = self.base
        for number in range(told + 1, drawn(state, until_us) + 1):
            self.base = Base(state, sequence, number)
            yield _step(self.base, round_at_us(state, number), None, deals=False)

    def commit(self, commit: Commit, after: Table, sequence: int) -> Iterator[Step]:
        """The steps that lead to a commit, and the commit."""
        yield from self.rounds(commit.recorded_at_us)
        told = drawn(after, commit.recorded_at_us)
        before = 0 if self.base is None else _drawing(self.base.state)
        if self.base is not None and before == _drawing(after) != 0:
            told = max(told, self.base.drawn)
        self.base = Base(after, sequence, told)
        yield _step(self.base, commit.recorded_at_us, commit, deals=_drawing(after) not in {0, before})

    def next_round_us(self) -> int | None:
        """When the next round comes; None when no cards are being drawn."""
        if self.base is None or not _drawing(self.base.state):
            return None
        if self.base.drawn >= self.base.state.rules.hand_size:
            return None
        return round_at_us(self.base.state, self.base.drawn + 1)


def _step(base: Base, at_us: int, commit: Commit | None, *, deals: bool) -> Step:
    return Step(base, at_us, commit, deals, time.perf_counter(), [None] * (SPECTATOR + 1))


def _drawing(state: Table) -> int:
    """The number of the deal whose cards are being drawn, 0 for none."""
    return state.phase.deal.number if isinstance(state.phase, Declaring) else 0


class Listener(Protocol):
    """A watcher, as the timeline sees it."""

    def wake(self) -> None:
        """There is a new step, or the end."""


class Timeline:
    """The newest steps of one table, shared by all of its watchers in this process.

    Attributes:
        secrets: makes resume tokens.
        watchers: who is to be woken.
        ready: set once live commits are being heard, or never will be.
        reaching: held by who reads older steps from the log.
        keeps_us: how old the steps are that are kept for spectators who are told later.
        ended: why everybody must go; None while it goes on.
        used_at: when the last watcher left, ``time.monotonic()``.
    """

    def __init__(
        self,
        state: Table,
        sequence: int,
        secrets: TableSecrets,
        now_us: Callable[[], int],
        appending: Callable[[], bool],
    ) -> None:
        """Begin at the table as it is.

        Args:
            state: the table.
            sequence: the log's sequence of its last commit.
            secrets: makes resume tokens.
            now_us: the clock.
            appending: whether a commit is under way in this process; rounds wait for its answer.
        """
        self.secrets = secrets
        self.watchers: set[Listener] = set()
        self.ready = asyncio.Event()
        self.reaching = asyncio.Lock()
        self.keeps_us = 0
        self.ended: Reason | None = None
        self.used_at = time.monotonic()
        self._now_us = now_us
        self._appending = appending
        told = drawn(state, max(state.recorded_at_us, now_us() - MARGIN_US))
        self._base: Base | None = Base(state, sequence, told)
        self._sequencer = Sequencer(self._base)
        self._steps: deque[Step] = deque()
        self._first = 0
        self._timer: asyncio.TimerHandle | None = None
        self._set_timer()

    @property
    def first(self) -> int:
        """The number of the oldest step kept."""
        return self._first

    @property
    def end(self) -> int:
        """The number that the next step will have."""
        return self._first + len(self._steps)

    def __getitem__(self, number: int) -> Step:
        return self._steps[number - self._first]

    def before(self, number: int) -> Base | None:
        """The table before a step that is kept or is the next; None before its founding."""
        return self[number - 1].base if number > self._first else self._base

    def covers(self, place: Place) -> bool:
        """Whether all steps after a place are kept."""
        return self._base is None or place[:2] >= self._base.place[:2]

    def lacks(self, step: Step) -> bool:
        """Whether a step is older than those that are kept."""
        return self._base is not None and step.place[:2] <= self._base.place[:2]

    def number_after(self, time_us: int) -> int:
        """The number of the first step kept that happened after a time."""
        for number, step in enumerate(self._steps, self._first):
            if step.at_us > time_us:
                return number
        return self.end

    def add(self, commit: Commit, after: Table, sequence: int) -> None:
        """One more commit."""
        self._extend(self._sequencer.commit(commit, after, sequence))

    def prepend(self, base: Base | None, steps: list[Step]) -> None:
        """Take in the steps before the oldest one kept, and the table before those (None: its founding)."""
        self._steps.extendleft(reversed(steps))
        self._first -= len(steps)
        self._base = base

    def leave(self, watcher: Listener) -> None:
        """A watcher has gone."""
        self.watchers.discard(watcher)
        self.used_at = time.monotonic()

    def end_for(self, reason: Reason) -> None:
        """Nothing more will come, and everybody is told why."""
        self.ended = reason
        self.stop()
        for watcher in list(self.watchers):
            watcher.wake()

    def stop(self) -> None:
        """Let no more time pass."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        if self._appending():
            # The commit under way may belong before the round that is due.
            self._timer = asyncio.get_running_loop().call_later(AGAIN_S, self._tick)
        else:
            self._extend(self._sequencer.rounds(self._now_us() - MARGIN_US))

    def _extend(self, steps: Iterator[Step]) -> None:
        self._steps.extend(steps)
        self._trim()
        self._set_timer()
        for watcher in self.watchers:
            watcher.wake()

    def _trim(self) -> None:
        since = self._now_us() - self.keeps_us - 2 * MARGIN_US
        while len(self._steps) > RING and (self._steps[0].at_us < since or len(self._steps) > RING_MOST):
            self._base = self._steps.popleft().base
            self._first += 1

    def _set_timer(self) -> None:
        next_us = self._sequencer.next_round_us()
        if next_us is None or self._timer is not None or self.ended is not None:
            return
        delay_s = max(0.001, (next_us + MARGIN_US - self._now_us()) / 1e6)
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._tick)
