"""How fast a table's state is made of its stored bytes."""

import time
from random import Random
from typing import Final

from services.bench.figures import Bar, Figure
from services.bench.matches import Match, new_table_id
from services.bench.scale import Scale
from services.game import chain
from services.game.evolve import evolve
from services.game.keys import Keyring, seal_of
from services.game.seal import open_commit
from services.game.state import Table
from services.rules.presets import preset

LINE: Final = "fold"
PASSES: Final = 5
_DEALS: Final = 60
_SEED: Final = "fold"


def fold(scale: Scale) -> list[Figure]:
    """Events folded a second on one core, decoding and hashing included."""
    logs, keyrings, events = [], [], 0
    rng = Random(_SEED)
    wanted = scale.of(_DEALS)
    while wanted:
        match = Match(new_table_id(rng), preset("classic-2d"), _SEED)
        for _ in range(min(wanted, 6)):
            for _move in match.deal():
                pass
            wanted -= 1
        logs.append(match.local.stored)
        keyrings.append(match.local.keyring)
        events += sum(len(commit.events) for commit in match.local.commits)
    plain, opened = [], []
    for _ in range(PASSES):
        started = time.process_time()
        for log in logs:
            _fold(log)
        plain.append(events / (time.process_time() - started))
        started = time.process_time()
        for log, keyring in zip(logs, keyrings, strict=True):
            _fold_open(log, keyring)
        opened.append(events / (time.process_time() - started))
    sizes = [len(stored) for log in logs for stored in log]
    note = f"{events:,} events in {len(sizes):,} commits of {sum(sizes) / len(sizes):.0f} bytes"
    return [
        Figure(
            LINE,
            "fold from stored bytes, decode and hash included",
            "events/s",
            tuple(plain),
            Bar(">=", 100_000),
            note=note,
        ),
        Figure(
            LINE, "the same with all secrets opened, as the table service does", "events/s", tuple(opened)
        ),
    ]


def _fold(log: list[bytes]) -> Table | None:
    """As a reader without keys folds: each commit decoded, its link checked by hash, its events applied."""
    state: Table | None = None
    previous: bytes | None = None
    for version, stored in enumerate(log, 1):
        commit = chain.decode(stored, version)
        chain.check_link(previous, commit, version)
        state = evolve(state, commit)
        previous = stored
    return state


def _fold_open(log: list[bytes], keyring: Keyring) -> Table | None:
    state: Table | None = None
    previous: bytes | None = None
    for version, stored in enumerate(log, 1):
        commit = chain.decode(stored, version)
        chain.check_link(previous, commit, version)
        state = evolve(state, open_commit(commit, current=seal_of(state), keyring=keyring))
        previous = stored
    return state
