"""Matches recorded by earlier versions: they decode, verify, and fold to the result recorded with them."""

from functools import cache
from random import Random

import pytest
from support.record_corpus import FOLDER, SUFFIX, happenings, read, result, scores
from support.recorded import rechained, versions_of

from services.game import chain
from services.game.evolve import evolve, fold
from services.game.keys import Keyring, seal_of
from services.game.seal import open_commit
from services.game.snapshot import pack, unpack
from services.game.verify import DealState, verify
from services.rules.presets import PRESET_NAMES

NAMES = sorted(path.name.removesuffix(SUFFIX) for path in FOLDER.glob(f"*{SUFFIX}"))
POINTS = 4
"""Snapshots that each match is folded on from."""


@cache
def recorded(name):
    return read(FOLDER / (name + SUFFIX))


@cache
def opened(name):
    """(states, commits) of a match, folded with the keys of its table."""
    header, stored = recorded(name)
    keys = {key_id: bytes.fromhex(key) for key_id, key in header["master_keys"].items()}
    return folded(stored, Keyring(keys, next(iter(keys))))


def folded(stored, keyring):
    state, states, commits = None, [], []
    for message in stored:
        commit = open_commit(chain.decode(message), current=seal_of(state), keyring=keyring)
        state = evolve(state, commit)
        states.append(state)
        commits.append(commit)
    return states, commits


def verified(name, log):
    header, _ = recorded(name)
    return verify(header["table_id"], log, bytes.fromhex(header["head"]))


def test_every_preset_and_every_turn_of_a_match_is_recorded():
    assert {recorded(name)[0]["preset"] for name in NAMES} == {*PRESET_NAMES}
    met = {kind for name in NAMES for kind in recorded(name)[0]["happenings"]}
    assert met >= {
        *("declared", "countered", "mutiny_called", "failed_throw", "throw_refused"),
        *("turn_expired", "seat_left", "auto_play_set", "match_ended", "table_closed"),
    }
    natural = [name for name in NAMES if name.endswith("-to-the-ace")]
    assert len(natural) == len(PRESET_NAMES) - 1, "of all but the tournament, which ends by its deals"


@pytest.mark.parametrize("name", NAMES)
def test_it_verifies(name):
    header, stored = recorded(name)
    report = verified(name, stored)
    assert report.problem is None
    assert report.versions == header["versions"] == len(stored)
    assert report.head.hex() == header["head"]
    assert report.finished
    assert report.closed == (header["result"]["phase"] == "Closed")
    assert set(report.deals.values()) == {DealState.VERIFIED}
    assert len(report.deals) == header["happenings"]["deal_started"]


@pytest.mark.parametrize("name", NAMES)
def test_it_folds_to_the_recorded_result(name):
    header, stored = recorded(name)
    states, commits = opened(name)
    assert states[-1].version == header["versions"]
    assert states[-1].rules.preset == header["preset"]
    assert result(states[-1]) == header["result"]
    assert scores(commits) == header["scores"]
    assert happenings(commits) == header["happenings"]
    blind, _ = folded(stored, Keyring())
    assert result(blind[-1]) == header["result"]


@pytest.mark.parametrize("name", NAMES)
def test_it_folds_alike_from_snapshots(name):
    states, commits = opened(name)
    for at in Random(name).sample(range(len(states) - 1), POINTS):
        assert fold(commits[at + 1 :], unpack(pack(states[at]))) == states[-1], f"from version {at + 1}"


@pytest.mark.parametrize("name", ["classic-2d-two-deals", "tournament-2d-plain", "classic-4d-two-deals"])
def test_what_is_changed_is_found(name):
    """A bit, a commit that is missing, the newest ones cut off, and a forged play in a chain that holds."""
    _, stored = recorded(name)
    middle = len(stored) // 2
    flipped = bytearray(stored[middle])
    flipped[-1] ^= 1
    assert verified(name, [*stored[:middle], bytes(flipped), *stored[middle + 1 :]]).problem is not None
    assert verified(name, [*stored[:middle], *stored[middle + 1 :]]).problem is not None
    assert verified(name, stored[:-1]).problem is not None

    version = versions_of(stored, "cards_played")[0]

    def forge(commits):
        (play,) = [event.cards_played for event in commits[0].events if event.HasField("cards_played")]
        play.cards[0] = play.cards[0] % 54 + 1

    forged = rechained(stored, forge, version)
    report = verify(recorded(name)[0]["table_id"], forged)
    assert report.problem is not None
    assert report.problem.version >= version, "there, or where the card is missing later"


def test_a_result_that_is_not_the_recorded_one_is_found():
    """What the tests above compare would differ: a match forged to end with another winner's score."""
    states, commits = opened("classic-2d-two-deals")
    forged = list(commits)
    last = type(commits[-1])()
    last.CopyFrom(commits[-1])
    (scored,) = [event.deal_scored for event in last.events if event.HasField("deal_scored")]
    scored.attackers_points += 5
    forged[-1] = last
    assert scores(forged) != recorded("classic-2d-two-deals")[0]["scores"]
    assert fold(forged) != states[-1]
