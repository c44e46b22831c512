"""Snapshots: exact, small, and of one fold version."""

import hashlib

import pytest
from support.scene import AT_ONCE, PLAYERS, dealt, founded, in_bury, in_tricks

from services.game import snapshot
from services.game.commands import Leave, Pass
from services.game.entropy import SeededEntropy
from services.game.errors import BadInput
from services.game.evolve import FOLD_VERSION, fold
from services.game.local import play_match
from services.game.snapshot import layout, pack, unpack
from services.rules.presets import PRESET_NAMES, preset


def states():
    yield founded(players=("ann",)).state
    yield founded("classic-1d-2c").state
    yield dealt(pace=AT_ONCE).state
    yield dealt("classic-4d").state
    yield in_bury("S2 S3 S4 S5 S6 S7 S8 S9 ST SJ").state
    yield in_tricks("HA C3", "HK C4", "HT C6", "S3 C7", fines=-40, attackers_points=-5).state
    scene = dealt()
    scene.do(Leave("bob"))
    scene.now_us = 2**60
    for player in ("ann", "cid", "dan"):
        scene.do(Pass(player))
    yield scene.state
    yield play_match(preset("classic-2d"), SeededEntropy("s"), lambda *_: None, 1).table
    yield play_match(
        preset("basic-1d").with_overrides({"deals": 1}), SeededEntropy("s"), lambda *_: None
    ).table


@pytest.mark.parametrize("state", list(states()), ids=lambda state: type(state.phase).__name__)
def test_unpacking_gives_the_state_back_exactly(state):
    packed = pack(state)
    again = unpack(packed)
    assert again == state
    assert type(again.phase) is type(state.phase)
    assert type(again.match.outcome) is type(state.match.outcome)
    assert pack(again) == packed


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_rules_of_every_preset_are_kept(name):
    state = founded().state
    state = state._replace(founding=snapshot.Founding("t", "c", preset(name), state.pace))
    assert unpack(pack(state)).rules == preset(name)


def test_folding_on_from_a_snapshot_is_folding_from_the_start():
    table = play_match(preset("classic-2d"), SeededEntropy("on"), lambda *_: None, 1)
    for cut in range(1, len(table.commits), 7):
        assert fold(table.commits[cut:], unpack(pack(fold(table.commits[:cut])))) == table.table


def test_a_snapshot_in_mid_deal_is_small():
    table = play_match(preset("classic-2d"), SeededEntropy("small"), lambda *_: None, 2)
    assert len(pack(fold(table.commits[:150]))) < 4096


def test_a_snapshot_of_another_fold_version_is_refused():
    packed = pack(founded().state)
    with pytest.raises(BadInput, match="fold version"):
        unpack(bytes([FOLD_VERSION + 1]) + packed[1:])


@pytest.mark.parametrize(
    "damage",
    [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b[:1], lambda b: b"", lambda b: b[:1] + b"\x09"],
)
def test_damage_is_refused(damage):
    with pytest.raises(BadInput):
        unpack(damage(pack(founded().state)))


def test_whoever_changes_the_layout_raises_the_fold_version():
    """When this fails: raise FOLD_VERSION, then write the new pair here."""
    digest = hashlib.sha256(layout().encode()).hexdigest()[:16]
    assert (FOLD_VERSION, digest) == (3, "1a2a7ca4ee682acc")


def test_players_are_text_of_any_kind():
    state = founded(players=("安", "bob", PLAYERS[2], "dan")).state
    assert unpack(pack(state)).seats[0].player_id == "安"
