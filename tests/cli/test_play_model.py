"""The client's fold: after every step of whole matches it holds exactly what the service would show."""

import hashlib

import pytest

from services.bot.local import LocalBots, sides
from services.cli.play.model import Unknown, begin, fold
from services.game.entropy import SeededEntropy
from services.game.evolve import evolve
from services.game.local import open_local
from services.game.state import Pace
from services.game.views import SPECTATOR, updates, view
from services.pb.table.v1.view_pb2 import TableView, Update
from services.rules.presets import PRESET_NAMES, preset

PACE = Pace(draw_ms=10, declare_ms=1000, mutiny_ms=1000, bury_ms=1000, turn_ms=1000, next_deal_ms=0)


def match(name, deals):
    rules = preset(name)
    table = open_local(rules, SeededEntropy(name), PACE)
    LocalBots(table, sides(1, 2), look_every=5).play(deals)
    return table


def compared(shown: TableView) -> TableView:
    copy = TableView()
    copy.CopyFrom(shown)
    copy.ClearField("server_now_ms")
    return copy


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_every_step_is_what_get_view_shows(name):
    table = match(name, 3)
    rules = table.table.rules
    state, games, steps = None, {}, 0
    for commit in table.commits:
        before, state = state, evolve(state, commit)
        if before is None:
            games = {seat: begin(view(state, seat, commit.recorded_at_us), rules) for seat in (0, 1, 2, 3, 4)}
            continue
        for seat, game in games.items():
            games[seat] = fold_all(game, updates(before, commit, state, seat))
            expected = compared(view(state, seat, commit.recorded_at_us))
            assert compared(games[seat].view) == expected, f"{name} version {commit.version} seat {seat}"
            steps += 1
    assert steps > 100


@pytest.mark.parametrize("name", ["classic-2d", "classic-4d", "tournament-2d"])
def test_a_game_may_begin_from_any_snapshot(name):
    table = match(name, 2)
    state, snapshots = None, []
    for commit in table.commits:
        before, state = state, evolve(state, commit)
        now_us = commit.recorded_at_us
        if before is not None:
            snapshots = [fold_all(game, updates(before, commit, state, 1)) for game in snapshots]
            for game in snapshots:
                assert game.view.hand == view(state, 1, now_us).hand
                assert game.view.phase == view(state, 1, now_us).phase
                assert game.view.seats[:] == view(state, 1, now_us).seats[:]
        if commit.version % 20 == 5:
            snapshots.append(begin(view(state, 1, now_us), state.rules))
    assert len(snapshots) > 3


def fold_all(game, steps):
    for update in steps:
        game = fold(game, update)
    return game


def test_an_event_that_is_not_known_stops_the_fold():
    table = match("classic-2d", 1)
    game = begin(view(table.table, SPECTATOR, table.now_us), table.table.rules)
    update = Update(version=9)
    update.events.add()
    with pytest.raises(Unknown):
        fold(game, update)


def test_folding_changes_nothing_that_was_known():
    table = match("classic-2d", 1)
    first = evolve(None, table.commits[0])
    game = begin(view(first, 0, table.commits[0].recorded_at_us), first.rules)
    before = hashlib.sha256(game.view.SerializeToString(deterministic=True)).digest()
    for update in updates(first, table.commits[1], evolve(first, table.commits[1]), 0):
        fold(game, update)
    assert hashlib.sha256(game.view.SerializeToString(deterministic=True)).digest() == before


def test_a_match_to_its_end():
    rules = preset("classic-1d").with_overrides({"deals": 2})
    table = open_local(rules, SeededEntropy("end"), PACE)
    LocalBots(table, sides(1, 2), look_every=9).play()
    table.wait()
    game, state = None, None
    for commit in table.commits:
        before, state = state, evolve(state, commit)
        now_us = commit.recorded_at_us
        game = (
            fold_all(game, updates(before, commit, state, 3))
            if game
            else begin(view(state, 3, now_us), rules)
        )
        assert compared(game.view) == compared(view(state, 3, now_us))
    assert game.view.HasField("result")
