"""Records a match for ``corpus/matches``; how, and what the files hold, is told in the README there.

cd tests && PYTHONPATH=.. python -m support.record_corpus NAME --preset classic-2d --seed TEXT
"""

import argparse
import base64
import json
from pathlib import Path
from random import Random

from engine_ext.codes import NO_TRUMP
from services.bot.actions import Play
from services.bot.choose import choose, situation
from services.bot.local import LocalBots
from services.game import chain, commands
from services.game.entropy import SeededEntropy
from services.game.local import KEY_ID, PLAYERS, open_local
from services.game.state import Closed, Over
from services.pb.event.v1.event_pb2 import DealScored, Difficulty
from services.pb.table.v1.view_pb2 import Phase
from services.rules.cards import level_text
from services.rules.options import Throws
from services.rules.presets import preset
from support.recorded import MASTERS, Recorder

FOLDER = Path(__file__).parent.parent / "corpus" / "matches"
SUFFIX = ".match"


class Daring:
    """A policy: what NORMAL does, but some leads are throws that nobody has thought about.

    Args:
        share: how many leads are, from 0 to 1.
    """

    def __init__(self, share):
        self._share = share
        self._tried = set()

    def __call__(self, view, rules, memory, difficulty, drawn=None):
        leads = view.phase == Phase.PHASE_TRICKS and view.my_seat in view.to_act and not memory.trick
        if leads and rules.throws is not Throws.NONE:
            hand = bytes(view.hand)
            rng = Random(f"{view.table_id}/{view.version}")
            if rng.random() < self._share and hand not in self._tried:
                self._tried.add(hand)
                cards = self._throw(situation(view, rules, memory), rng)
                if cards:
                    return Play(cards)
        return choose(view, rules, memory, difficulty, drawn)

    def _throw(self, s, rng):
        suits = [[card for card in s.hand if s.order.suit(card) == suit] for suit in range(NO_TRUMP + 1)]
        long = [cards for cards in suits if len(cards) > 1]
        if not long:
            return None
        suited = rng.choice(long)
        return bytes(sorted(rng.sample(suited, rng.randint(2, min(5, len(suited))))))


def play(name, seed, overrides, dare):
    """A table of bots whose match was played to its end."""
    table = open_local(preset(name).with_overrides(overrides), SeededEntropy(seed))
    LocalBots(table, (Difficulty.DIFFICULTY_NORMAL,) * 4, Daring(dare)).play()
    return table


def plain_match(name, seed, overrides):
    """A table of plain players, closed after the match; each fourth deal is left to the server."""
    match = Recorder(seed, name, **overrides)
    match.found()
    for seat, player in enumerate(PLAYERS):
        match.do(commands.Sit(player, seat))
    while not isinstance(match.table.phase, Over):
        match.ready()
        match.deal(expiring=match.table.match.deals % 4 == 3)
    match.expire()
    return match


def events_of(commits):
    """All events of commits, one after another."""
    return [event for commit in commits for event in commit.events]


def happenings(commits):
    """How often each kind of event is in commits; failed throws are counted too."""
    counted = {}
    for event in events_of(commits):
        kind = event.WhichOneof("kind")
        counted[kind] = counted.get(kind, 0) + 1
        if event.cards_played.attempted:
            counted["failed_throw"] = counted.get("failed_throw", 0) + 1
    return dict(sorted(counted.items()))


def scores(commits):
    """The score of each deal, as it is told."""
    return [score_of(event.deal_scored) for event in events_of(commits) if event.HasField("deal_scored")]


def score_of(scored: DealScored):
    """What a deal came to, for JSON."""
    return {
        "deal": scored.deal,
        "attackers_points": scored.attackers_points,
        "kitty_points": scored.kitty_points,
        "multiplier": scored.multiplier,
        "fines": scored.fines,
        "winning_side": scored.winning_side,
        "hooked_back": scored.hooked_back,
        "next_declarer": scored.next_declarer,
    }


def result(state):
    """Where the match stands, for JSON."""
    match = state.match
    return {
        "phase": type(state.phase).__name__,
        "levels": [level_text(level) for level in match.levels],
        "advanced": list(match.advanced),
        "deals": match.deals,
        "outcome": None if match.outcome is None else match.outcome.name,
    }


def record(table, made, master_keys):
    """The text of a file.

    Args:
        table: a played ``LocalTable``.
        made: how it was made, for people.
        master_keys: the key of each key id.
    """
    state = table.table
    header = {
        "table_id": state.table_id,
        "preset": state.rules.preset,
        "made": made,
        "master_keys": {key_id: key.hex() for key_id, key in master_keys.items()},
        "versions": state.version,
        "head": chain.commit_hash(table.stored[-1]).hex(),
        "result": result(state),
        "scores": scores(table.commits),
        "happenings": happenings(table.commits),
    }
    lines = [json.dumps(header, ensure_ascii=False)]
    lines += [base64.b64encode(stored).decode() for stored in table.stored]
    return "\n".join(lines) + "\n"


def read(path):
    """(header, stored commits) of a file."""
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    return json.loads(header), [base64.b64decode(line, validate=True) for line in lines]


def main():
    """Record one match in a new file."""
    parser = argparse.ArgumentParser(description="Record a match of bots for tests/corpus/matches.")
    parser.add_argument("name", help="of the new file, without suffix")
    parser.add_argument("--preset", required=True)
    parser.add_argument("--seed", required=True, help="any text; everything follows from it")
    parser.add_argument("--overrides", default="{}", help="rule options as a JSON object")
    parser.add_argument("--dare", type=float, default=0.25, help="share of leads that are rash throws")
    parser.add_argument(
        "--plain", action="store_true", help="no bots: plain players with command ids and seeds of their own"
    )
    asked = parser.parse_args()
    made = {"seed": asked.seed, "overrides": json.loads(asked.overrides)}
    if asked.plain:
        table, keys = plain_match(asked.preset, **made), MASTERS
    else:
        made["dare"] = asked.dare
        table, keys = play(asked.preset, **made), {KEY_ID: SeededEntropy(asked.seed).bytes(32)}
    assert isinstance(table.table.phase, Over | Closed)
    path = FOLDER / (asked.name + SUFFIX)
    with path.open("x", encoding="utf-8") as file:  # never over an old file
        file.write(record(table, made, keys))
    print(path.name, len(table.stored), "commits", json.dumps(happenings(table.commits)))


if __name__ == "__main__":
    main()
