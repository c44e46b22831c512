"""Founding, sitting, leaving, readiness, and letting the server play."""

from dataclasses import replace

import pytest
from support.scene import AT_ONCE, NOW, PACE, PLAYERS, Scene, dealt, founded, founding

from services.game.commands import Declare, Leave, Play, Ready, Refusal, SeatPlan, SetAutoPlay, Sit
from services.game.decide import kind_of
from services.game.shuffle import commitment
from services.game.state import Closed, Declaring, Seating
from services.pb.event.v1 import event_pb2 as pb
from services.rules.presets import PRESET_NAMES
from services.rules.reasons import Reason


def bots(*seats):
    return tuple(
        SeatPlan(f"bot:{seat}", pb.DIFFICULTY_EASY) if seat in seats else SeatPlan() for seat in range(4)
    )


def test_founding_commits_to_the_first_seed():
    scene = Scene()
    assert scene.do(founding(players=("ann",))) == ["table_opened"]
    seed = scene.event("table_opened").next_seed
    assert (seed.deal, seed.key_id, len(seed.salt)) == (1, "k1", 32)
    assert seed.commitment == commitment(seed.server_seed)
    assert scene.state.seat_of("ann") == 0
    assert scene.state.seat_of("bob") is None
    assert isinstance(scene.phase, Seating)
    assert kind_of(scene.events) == "d"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"player_id": ""}, "player_id"),
        ({"player_id": "x" * 129}, "player_id"),
        ({"stake": -1}, "stake"),
        ({"stake": 1_000_000_001}, "stake"),
        ({"spectators": 9}, "spectators"),
        ({"spectator_delay_ms": 600_001}, "spectator_delay_ms"),
        ({"pace": replace(PACE, draw_ms=10_001)}, "pace.draw_ms"),
        ({"pace": replace(PACE, declare_ms=600_001)}, "pace.declare_ms"),
        ({"pace": replace(PACE, bury_ms=999)}, "pace.bury_ms"),
        ({"pace": replace(PACE, turn_ms=999)}, "pace.turn_ms"),
        ({"pace": replace(PACE, away_turns=0)}, "pace.away_turns"),
        ({"seats": (SeatPlan("ann"), SeatPlan("ann"), SeatPlan(), SeatPlan())}, "seats"),
        ({"seats": (SeatPlan("", 2), SeatPlan(), SeatPlan(), SeatPlan())}, "seats"),
        ({"seats": (SeatPlan("b", 9), SeatPlan(), SeatPlan(), SeatPlan())}, "seats"),
    ],
)
def test_a_table_that_cannot_be_is_refused_by_its_field(changes, field):
    command = replace(founding(), **changes)
    answer = Scene().ask(command)
    assert isinstance(answer, Refusal)
    assert answer.reason is Reason.BAD_INPUT
    assert answer.detail["field"] == field


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_every_preset_is_served_with_a_mutiny_or_without(name):
    for mutiny in (True, False):
        assert Scene().do(founding(name, mutiny=mutiny)) == ["table_opened"]


def test_a_table_is_founded_once_and_nothing_comes_before():
    assert founded().refuses(founding()) is Reason.WRONG_PHASE
    assert Scene().refuses(Ready("ann")) is Reason.UNKNOWN_TABLE


def test_a_change_of_seats_makes_a_new_commitment_and_shows_the_old_seed():
    scene = founded(players=("ann",))
    old = scene.state.next_seed
    scene.do(Ready("ann", b"mine"))
    assert scene.do(Sit("bob", 1)) == ["seat_taken", "seed_committed"]
    event = scene.event("seed_committed")
    assert event.discarded.server_seed == old.server_seed
    assert commitment(event.discarded.server_seed) == old.commitment
    assert event.next_seed.deal == 1
    assert event.next_seed.commitment != old.commitment
    assert not scene.state.seats[0].ready
    assert scene.state.seats[0].client_seed == b""
    assert scene.do(Leave("bob")) == ["seat_left", "seed_committed"]
    assert scene.state.seats[1].player_id == ""
    assert not scene.event("seat_left").escaped


def test_who_may_not_sit():
    scene = founded(players=("ann", "bob"))
    assert scene.refuses(Sit("cid", 1)) is Reason.SEAT_TAKEN
    assert scene.refuses(Sit("ann", 2)) is Reason.ALREADY_SEATED
    assert scene.refuses(Sit("cid", 4)) is Reason.BAD_INPUT
    assert scene.refuses(Sit("", 2)) is Reason.BAD_INPUT
    assert founded().refuses(Sit("eve", 2)) is Reason.TABLE_FULL
    assert dealt().refuses(Sit("eve", 2)) is Reason.WRONG_PHASE


def staked(**changes):
    """What a service asks to found a table with a stake."""
    return replace(founding(stake=100), player_id="svc:lobby", **changes)


@pytest.mark.parametrize(
    ("field", "fine", "bad"),
    [
        ("operator", ("", "ab", "a-9", "x" * 32), ("a", "x" * 33, "Ab", "a_b", "a b", "ü2")),
        ("rake_permille", (0, 100), (-1, 101)),
        ("prize", (0, 10**12), (-1, 10**12 + 1)),
        ("stake", (0, 1, 10**9), (-1, 10**9 + 1)),
    ],
)
def test_what_a_table_plays_for_has_limits_and_is_recorded(field, fine, bad):
    for value in fine:
        scene = Scene()
        scene.do(staked(**{field: value}))
        assert getattr(scene.event("table_opened"), field) == value
        assert getattr(scene.state.founding, field) == value
    for value in bad:
        refused = Scene().ask(staked(**{field: value}))
        assert (refused.reason, refused.detail["field"]) == (Reason.BAD_INPUT, field)


def test_a_table_with_a_stake_is_founded_full_and_nobody_else_sits_at_it():
    seats = (*founding().seats[:3], SeatPlan())
    assert Scene().refuses(staked(seats=seats)) is Reason.BAD_INPUT
    scene = Scene()
    scene.do(staked())
    assert scene.refuses(Sit("eve", 2)) is Reason.NOT_YOURS
    scene.do(Leave("cid"))
    assert scene.refuses(Sit("eve", 2)) is Reason.NOT_YOURS
    free = Scene()
    free.do(staked(seats=seats, stake=0))
    assert free.refuses(Sit("svc:lobby", 3)) is Reason.NOT_YOURS
    assert free.do(Sit("eve", 3)) == ["seat_taken", "seed_committed"]


def test_the_last_person_to_leave_closes_the_table():
    scene = Scene()
    scene.do(replace(founding(players=()), seats=bots(1, 2)))
    scene.do(Sit("ann", 0))
    assert scene.do(Leave("ann")) == ["seat_left", "table_closed"]
    assert scene.event("table_closed").reason == pb.CLOSE_REASON_EMPTY
    assert scene.event("table_closed").reveal.deal == 1
    assert isinstance(scene.phase, Closed)
    assert scene.refuses(Sit("ann", 0)) is Reason.TABLE_CLOSED


def test_the_fourth_ready_seat_starts_the_deal():
    scene = founded()
    for player in PLAYERS[:3]:
        assert scene.do(Ready(player, player.encode())) == ["seat_ready"]
    assert scene.refuses(Ready("ann")) is Reason.ALREADY_DONE
    assert scene.do(Ready("dan", b"d" * 32)) == ["seat_ready", "deal_started"]
    started = scene.event("deal_started")
    assert list(started.client_seeds) == [
        b"ann".ljust(32, b"\0"),
        b"bob".ljust(32, b"\0"),
        b"cid".ljust(32, b"\0"),
        b"d" * 32,
    ]
    assert not started.HasField("declarer")
    assert isinstance(scene.phase, Declaring)
    assert kind_of(scene.events) == "m"
    assert not any(held.ready for held in scene.state.seats)


def test_three_players_wait_for_the_fourth():
    scene = founded(players=PLAYERS[:3])
    for player in PLAYERS[:3]:
        scene.do(Ready(player))
    assert isinstance(scene.phase, Seating)


def test_who_may_not_be_ready():
    scene = founded(players=("ann",))
    assert scene.refuses(Ready("bob")) is Reason.NOT_SEATED
    assert scene.refuses(Ready("ann", bytes(33))) is Reason.BAD_INPUT
    assert dealt().refuses(Ready("ann")) is Reason.WRONG_PHASE


def test_leaving_in_mid_match_is_an_escape_for_good():
    scene = dealt(pace=AT_ONCE)
    assert scene.do(Leave("bob")) == ["seat_left"]
    assert scene.event("seat_left").escaped
    held = scene.state.seats[1]
    assert (held.player_id, held.escaped, held.auto_play) == ("bob", True, True)
    for command in (Leave("bob"), SetAutoPlay("bob", on=False), Declare("bob", b"\0"), Play("bob", 1, b"")):
        assert scene.refuses(command) is Reason.NOT_YOURS


def test_auto_play_is_set_and_taken_back_by_the_player():
    scene = dealt()
    assert scene.do(SetAutoPlay("cid", on=True)) == ["auto_play_set"]
    assert (scene.state.seats[2].auto_play, scene.state.seats[2].away) == (True, False)
    assert scene.refuses(SetAutoPlay("cid", on=True)) is Reason.ALREADY_DONE
    scene.do(SetAutoPlay("cid", on=False))
    assert not scene.state.seats[2].auto_play
    assert scene.refuses(SetAutoPlay("cid", on=False)) is Reason.ALREADY_DONE
    assert founded().refuses(SetAutoPlay("cid", on=True)) is Reason.WRONG_PHASE
    assert scene.refuses(SetAutoPlay("eve", on=True)) is Reason.NOT_SEATED


def test_time_of_a_commit_is_the_facts():
    scene = dealt()
    assert scene.state.recorded_at_us == NOW
