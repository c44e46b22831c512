"""Whole matches in memory, decided by the same code as over the network."""

import pytest

from services.bot.choose import choose
from services.bot.local import LocalBots, sides
from services.bot.memory import Memory
from services.game.entropy import SeededEntropy
from services.game.local import QUICK, open_local
from services.game.state import Over, Pace, Tricks
from services.game.views import SPECTATOR, redact, view
from services.pb.event.v1.event_pb2 import Difficulty
from services.rules.presets import PRESETS, preset

EASY, NORMAL = Difficulty.DIFFICULTY_EASY, Difficulty.DIFFICULTY_NORMAL
SYSTEMS = list(PRESETS)


def played(name, seed, difficulties, max_deals=0, pace=QUICK, look_every=1):
    table = open_local(preset(name), SeededEntropy(seed), pace)
    LocalBots(table, difficulties, look_every=look_every).play(max_deals)
    return table


def events(table, kind):
    return [
        getattr(event, kind)
        for commit in table.commits
        for event in commit.events
        if event.WhichOneof("kind") == kind
    ]


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_choice_is_accepted_and_no_throw_fails(name):
    """``LocalBots`` raises at a refusal; what the server did by itself would show as expired turns."""
    table = played(name, f"systems {name}", (NORMAL,) * 4, max_deals=3)
    assert len(events(table, "deal_scored")) == 3
    assert not events(table, "turn_expired")
    assert not any(play.attempted for play in events(table, "cards_played"))
    assert events(table, "declared"), "somebody declares"


@pytest.mark.parametrize("seed", ["easy 1", "easy 35"])
def test_easy_knows_its_own_sealed_declaration(seed):
    """It stands, so what would change it to another suit is no choice."""
    table = played("classic-4d", seed, (EASY,) * 4, max_deals=1)
    assert len(events(table, "deal_scored")) == 1


@pytest.mark.parametrize(
    "name", ["classic-1d", "basic-1d", pytest.param("classic-2d", marks=pytest.mark.slow)]
)
def test_matches_end(name):
    table = played(name, "to the end", (NORMAL,) * 4)
    assert isinstance(table.table.phase, Over)


@pytest.mark.parametrize(("name", "pairs"), [("classic-2d", 10), ("closed-1d", 15), ("bigkitty-4d", 4)])
def test_normal_beats_easy_with_the_same_cards(name, pairs):
    won = 0
    for number in range(pairs):
        for side, difficulties in enumerate((sides(NORMAL, EASY), sides(EASY, NORMAL))):
            table = played(name, f"duel {number}", difficulties, max_deals=1)
            (scored,) = events(table, "deal_scored")
            won += scored.winning_side == side
    assert won >= 0.85 * 2 * pairs


def test_equal_bots_with_the_same_cards_come_to_the_same_result():
    first = played("classic-2d", "twice", sides(NORMAL, NORMAL), max_deals=2)
    second = played("classic-2d", "twice", sides(NORMAL, NORMAL), max_deals=2)
    assert first.stored == second.stored


@pytest.mark.parametrize("difficulty", [EASY, NORMAL])
@pytest.mark.parametrize("name", ["classic-2d", "classic-4d", "basic-2d"])
def test_lag_changes_no_decision(name, difficulty):
    """Looking at every round, at every seventh, or once at the end: the same moves in the same order."""
    pace = Pace(draw_ms=300)
    logs = [
        played(name, "lag", (difficulty,) * 4, max_deals=1, pace=pace, look_every=every)
        for every in (1, 7, 60)
    ]
    moves = [[list(commit.events) for commit in log.commits] for log in logs]
    assert moves[0] == moves[1] == moves[2]


def test_other_hidden_hands_change_no_choice():
    """Two seats' cards are exchanged behind a player's back: the same view, so the same move."""
    exchanged = 0

    def watching(shown, rules, memory, difficulty, drawn):
        nonlocal exchanged
        action = choose(shown, rules, memory, difficulty, drawn)
        state = table.table
        if isinstance(state.phase, Tricks):
            seat = shown.my_seat
            left, right = [other for other in range(4) if other != seat and other != seat ^ 2]
            hands = list(state.phase.hands)
            if len(hands[left]) == len(hands[right]):
                hands[left], hands[right] = hands[right], hands[left]
                twin = state._replace(phase=state.phase._replace(hands=tuple(hands)))
                twin_view = view(twin, seat, table.now_us)
                assert twin_view == view(state, seat, table.now_us)
                assert choose(twin_view, rules, memory, difficulty, drawn) == action
                exchanged += 1
        return action

    table = open_local(preset("classic-2d"), SeededEntropy("twin"))
    LocalBots(table, sides(NORMAL, EASY), watching).play(1)
    assert exchanged > 20


def test_a_memory_of_the_stored_log_is_that_of_a_spectator():
    """What the service folds from sealed commits is what was told in public."""
    table = played("classic-4d", "memory", (NORMAL,) * 4, max_deals=1)
    sealed, told = Memory(table.table.rules), Memory(table.table.rules)
    for stored, commit in zip(table.stored, table.commits, strict=True):
        sealed.observe_all(type(commit).FromString(stored).events)
        told.observe_all(redact(event, SPECTATOR, table.table.rules) for event in commit.events)
        for name in ("deal", "declarations", "gone", "void", "no_pair", "known", "trick", "declarer"):
            assert getattr(sealed, name) == getattr(told, name)
