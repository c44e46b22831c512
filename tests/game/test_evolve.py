"""The fold: what it does to a state, and with how little it gets by."""

import pytest
from support.cards import cards
from support.scene import AT_ONCE, SECOND, TABLE, Scene, dealt, founded, founding, in_bury, in_tricks

from services.game import chain
from services.game.commands import BuryCards, Leave, Play, Ready, SetAutoPlay, Sit
from services.game.entropy import SeededEntropy
from services.game.errors import CorruptLog, UnknownEvent
from services.game.evolve import evolve, fold
from services.game.keys import Keyring, seal_of
from services.game.local import PLAYERS as LOCAL_PLAYERS
from services.game.local import play_match
from services.game.recent import REMEMBERED, REUSED, repeat_of
from services.game.seal import open_commit
from services.game.state import UNKNOWN_CARD, UNKNOWN_HANDS, Declaring, Tricks
from services.game.views import hand_size
from services.pb.event.v1 import event_pb2 as pb
from services.pb.log.v1.log_pb2 import Commit
from services.rules.presets import preset


def commit(version, *events):
    return Commit(table_id=TABLE, version=version, recorded_at_us=1, events=events)


def folded(stored, keyring=None):
    """The fold of stored bytes with a keyring."""
    state, states = None, []
    for raw in stored:
        opened = open_commit(chain.decode(raw), current=seal_of(state), keyring=keyring or Keyring())
        state = evolve(state, opened)
        states.append(state)
    return states


def test_an_unknown_kind_of_event_stops_the_fold():
    with pytest.raises(UnknownEvent) as error:
        evolve(founded().state, commit(2, pb.Event()))
    assert error.value.version == 2


def test_a_history_begins_with_its_founding():
    with pytest.raises(CorruptLog):
        evolve(None, commit(1, pb.Event(passed=pb.Passed())))
    with pytest.raises(ValueError, match="no commits"):
        fold([])


def test_a_play_leaves_the_hand_and_begins_a_turn():
    scene = in_tricks("HA C3", "HK C4", "HT C6", "S3 C7")
    scene.now_us += 3 * SECOND
    before = scene.state
    scene.do(Play("ann", before.version, cards("HA")))
    after = scene.state
    assert (after.version, after.turn_version) == (before.version + 1, before.version + 1)
    assert (after.waiting_since_us, after.recorded_at_us) == (scene.now_us, scene.now_us)
    assert after.phase.hands == (cards("C3"), *before.phase.hands[1:])


def test_of_two_copies_one_is_played():
    scene = in_tricks("HA HA C3", "HK C4 C4", "HT C6 C6", "S3 C7 C7")
    scene.do(Play("ann", scene.state.version, cards("HA")))
    assert scene.phase.hands[0] == bytes(sorted(cards("HA C3")))


def test_the_kitty_goes_into_the_hand_and_the_bury_out_of_it():
    scene = in_bury("S2 S3 S4 S5 S6 S7 S8 S9 ST SJ")
    eight = cards("S2 S3 S4 S5 S6 S7 S8 S9")
    scene.do(BuryCards("ann", scene.state.version, eight))
    assert (scene.phase.hands[0], scene.phase.buried) == (cards("ST SJ"), eight)


def match_stored(rules="classic-2d", deals=1):
    return play_match(preset(rules), SeededEntropy("fold"), lambda *_: None, deals)


def test_a_fold_without_keys_knows_all_but_the_secrets():
    table = match_stored()
    known, blind = folded(table.stored, table.keyring), folded(table.stored)
    for with_keys, without in zip(known, blind, strict=True):
        assert (with_keys.match, with_keys.seats, with_keys.version) == (
            without.match,
            without.seats,
            without.version,
        )
        assert type(with_keys.phase) is type(without.phase)
        if isinstance(without.phase, Declaring | Tricks):
            assert without.phase.hands == UNKNOWN_HANDS
            for seat in range(4):
                assert hand_size(without, seat, without.recorded_at_us) == hand_size(
                    with_keys, seat, with_keys.recorded_at_us
                )
        if isinstance(without.phase, Tricks):
            assert without.phase.buried is None
            assert (without.phase.trick, without.phase.leader) == (
                with_keys.phase.trick,
                with_keys.phase.leader,
            )


def test_sealed_declarations_are_known_by_their_number_until_they_are_opened():
    scene = dealt("classic-4d", AT_ONCE)
    shown = pb.Event(declared=pb.Declared(seat=1, count=2))
    state = evolve(scene.state, commit(scene.state.version + 1, shown))
    assert state.phase.declarations.standing.cards == bytes((UNKNOWN_CARD, UNKNOWN_CARD))
    opened = pb.Declared(seat=1, count=2, cards=[2, 2])
    closed = pb.DeclaringClosed(trump=1, declarer=1, declared_by=1, opened=[opened])
    state = evolve(state, commit(state.version + 1, pb.Event(declaring_closed=closed)))
    assert state.phase.settled.standing.cards == bytes((1, 1))


def test_a_declaration_that_the_rules_refuse_is_no_history_of_ours():
    scene = dealt(pace=AT_ONCE)
    shown = pb.Event(declared=pb.Declared(seat=1, count=1, cards=[5]))
    with pytest.raises(CorruptLog):
        evolve(scene.state, commit(scene.state.version + 1, shown))


# --- remembered commands


def send(scene, command, number, body=b"body    "):
    scene.do(command, number.to_bytes(16, "big"), body)
    return scene.state.version


def known(scene, player, number, body=b"body    "):
    return repeat_of(scene.state, player, number.to_bytes(16, "big"), body)


def test_a_repeated_command_finds_its_version():
    scene = dealt()
    version = send(scene, SetAutoPlay("bob", on=True), 7)
    assert known(scene, "bob", 7) == version
    assert known(scene, "bob", 8) is None
    assert known(scene, "bob", 7, b"another!") is REUSED
    assert known(scene, "cid", 7) is None


def test_the_last_sixteen_of_a_seat_are_kept_apart_from_the_others():
    scene = dealt()
    send(scene, SetAutoPlay("ann", on=True), 99)
    versions = [
        send(scene, SetAutoPlay("bob", on=number % 2 == 0), number) for number in range(REMEMBERED + 3)
    ]
    assert [known(scene, "bob", number) for number in range(3)] == [None] * 3
    assert [known(scene, "bob", number) for number in range(3, REMEMBERED + 3)] == versions[3:]
    assert known(scene, "ann", 99) is not None


def test_founding_and_leaving_are_remembered_too():
    scene = Scene()
    send(scene, founding(players=("ann", "bob")), 1)
    assert known(scene, "ann", 1) == 1
    version = send(scene, Leave("bob"), 2)
    assert known(scene, "bob", 2) == version
    send(scene, Sit("cid", 1), 3)
    assert known(scene, "cid", 3) == scene.state.version
    assert known(scene, "bob", 2) == version


def test_a_new_player_does_not_inherit_the_seats_commands():
    scene = founded(players=("ann", "bob"))
    send(scene, Ready("bob"), 5)
    scene.do(Leave("bob"))
    scene.do(Sit("cid", 1))
    assert known(scene, "cid", 5) is None


def test_a_refused_command_is_not_remembered():
    scene = dealt()
    scene.ask(SetAutoPlay("bob", on=False))
    assert known(scene, "bob", 0) is None


def test_players_of_a_local_match_are_seated_in_their_order():
    table = match_stored()
    assert tuple(held.player_id for held in table.table.seats) == LOCAL_PLAYERS
