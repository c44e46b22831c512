"""Scoring a deal, rotation, levels, escapes, the end of the match."""

import pytest
from support.cards import cards
from support.scene import AT_ONCE, PLAYERS, in_tricks

from services.game.commands import Play, Ready, SetAutoPlay
from services.game.decide import kind_of
from services.game.shuffle import commitment
from services.game.state import Declaring, Over, Scored
from services.game.waits import deadline_us
from services.pb.event.v1 import event_pb2 as pb
from services.rules.levels import Match
from services.rules.reasons import Reason


def last_trick(*plays, **changes):
    """Play a deal's last trick, seat 0 to lead and declarer."""
    scene = in_tricks(*plays, **changes)
    for seat, names in enumerate(plays):
        scene.do(Play(PLAYERS[seat], scene.state.version, cards(names)))
    return scene


def test_kitty_captured_by_a_pair_counts_four_times():
    scene = last_trick(
        "H3 H3", "HA HA", "H4 H4", "H6 H6", kitty="SK ST S5 C3 C4 C6 C7 C8", attackers_points=20
    )
    kinds = [event.WhichOneof("kind") for event in scene.events]
    assert kinds == ["cards_played", "trick_taken", "deal_scored"]
    assert kind_of(scene.events) == "d"
    scored = scene.event("deal_scored")
    assert (scored.kitty_points, scored.multiplier, scored.attackers_points) == (25, 4, 120)
    assert (scored.winning_side, scored.nominal_levels, scored.next_declarer) == (1, 1, 1)
    assert list(scored.levels) == [2, 3]
    assert isinstance(scene.phase, Scored)
    assert scene.state.match == Match(levels=(0, 1), declarer=1, deals=1, advanced=(0, 1))


def test_the_declaring_side_keeps_the_kitty_and_stays_in():
    scene = last_trick(
        "HA HA", "H3 H3", "H4 H4", "HK HK", kitty="SK ST S5 C3 C4 C6 C7 C8", attackers_points=35
    )
    scored = scene.event("deal_scored")
    assert (scored.multiplier, scored.attackers_points, scored.nominal_levels) == (0, 35, 2)
    assert (scored.winning_side, scored.next_declarer, list(scored.levels)) == (0, 2, [4, 2])


def test_the_end_of_a_deal_reveals_its_seed_and_commits_to_the_next():
    scene = last_trick("HA", "H3", "H4", "H6")
    scored = scene.event("deal_scored")
    assert (scored.reveal.deal, scored.next_seed.deal) == (1, 2)
    assert commitment(scored.next_seed.server_seed) == scored.next_seed.commitment
    assert scene.state.next_seed.deal == 2
    assert scene.state.deal_number == 1


def test_last_trick_counts_by_its_cards_and_is_taken_from_the_attackers_when_lost():
    """D13: 40 points in a last trick won by a pair: 180, or 20."""
    plays = ("HK HK", "HT HT", "H4 H4", "H6 H6")
    won = last_trick("HT HT", "HK HK", "H4 H4", "H6 H6", rules="classic-4d", level="3", attackers_points=100)
    assert won.event("deal_scored").attackers_points == 180
    lost = last_trick(*plays, rules="classic-4d", level="3", attackers_points=100)
    assert lost.event("deal_scored").attackers_points == 20


def test_fines_count():
    scene = last_trick("HA", "H3", "H4", "H6", attackers_points=30, fines=-40)
    scored = scene.event("deal_scored")
    assert (scored.fines, scored.attackers_points, scored.nominal_levels) == (-40, -10, 3)


def test_hook_back():
    rules = {"hook_back": ["J"], "match_end": "pass_ace"}
    scene = in_tricks("H3", "SJ", "H4", "H6", level="J", kitty="S3 S4 S6 S7 S8 S9 C3 C4", **rules)
    scene.state = scene.state._replace(match=Match(levels=(9, 3), declarer=0, deals=4))
    for seat, names in enumerate(("H3", "SJ", "H4", "H6")):
        scene.do(Play(PLAYERS[seat], scene.state.version, cards(names)))
    scored = scene.event("deal_scored")
    assert scored.hooked_back
    assert list(scored.levels) == [2, 5]
    assert scene.state.match.levels == (0, 3)
    assert scene.state.match.advanced == (-9, 0)


def at_level(levels, declarer, **changes):
    scene = in_tricks("HA", "H3", "H4", "H6", level="K", **changes)
    scene.state = scene.state._replace(
        match=Match(levels=levels, declarer=declarer, deals=7, advanced=(11, 2))
    )
    for seat, names in enumerate(("HA", "H3", "H4", "H6")):
        scene.do(Play(PLAYERS[seat], scene.state.version, cards(names)))
    return scene


def test_reaching_the_ace_ends_the_match():
    scene = at_level((11, 2), 0)
    assert [event.WhichOneof("kind") for event in scene.events][-2:] == ["deal_scored", "match_ended"]
    ended = scene.event("match_ended")
    assert (ended.winning_side, list(ended.levels), list(ended.advanced), ended.deals) == (
        0,
        [14, 4],
        [12, 2],
        8,
    )
    assert not scene.event("deal_scored").HasField("next_seed")
    assert isinstance(scene.phase, Over)
    assert scene.state.next_seed is None
    assert scene.refuses(Ready("ann")) is Reason.WRONG_PHASE
    assert scene.expire() == ["table_closed"]
    assert scene.event("table_closed").reason == pb.CLOSE_REASON_FINISHED


def test_a_number_of_deals_may_end_in_a_draw():
    scene = in_tricks("HA", "H3", "H4", "H6", attackers_points=85, deals=8)
    scene.state = scene.state._replace(match=Match(levels=(3, 3), declarer=0, deals=7, advanced=(3, 3)))
    for seat, names in enumerate(("HA", "H3", "H4", "H6")):
        scene.do(Play(PLAYERS[seat], scene.state.version, cards(names)))
    assert not scene.event("match_ended").HasField("winning_side")
    assert isinstance(scene.phase, Over)


def test_who_lets_too_many_turns_run_out_is_played_and_has_escaped_at_the_deals_end():
    scene = in_tricks("HA HK HQ HJ", "H3 H4 H6 H7", "C3 C4 C6 C7", "D3 D4 D6 D7")
    for trick in range(3):
        scene.do(Play("ann", scene.state.version, scene.phase.hands[0][-1:]))
        kinds = scene.expire()
        assert ("auto_play_set" in kinds) == (trick == 2)
        scene.do(Play("cid", scene.state.version, scene.phase.hands[2][:1]))
        scene.do(Play("dan", scene.state.version, scene.phase.hands[3][:1]))
    held = scene.state.seats[1]
    assert (held.auto_play, held.away, held.escaped) == (True, True, False)
    scene.do(Play("ann", scene.state.version, scene.phase.hands[0]))
    assert deadline_us(scene.state) == scene.now_us + 500_000
    assert scene.expire() == ["turn_expired", "cards_played"]
    scene.do(Play("cid", scene.state.version, scene.phase.hands[2]))
    kinds = scene.do(Play("dan", scene.state.version, scene.phase.hands[3]))
    assert kinds == ["cards_played", "trick_taken", "deal_scored", "seat_left"]
    left = scene.event("seat_left")
    assert (left.seat, left.player_id, left.escaped) == (1, "bob", True)
    assert scene.refuses(SetAutoPlay("bob", on=False)) is Reason.NOT_YOURS


def away(player="bob"):
    scene = in_tricks("HA HK", "H3 H4", "C3 C4", "D3 D4")
    seat = PLAYERS.index(player)
    seats = list(scene.state.seats)
    seats[seat] = seats[seat]._replace(auto_play=True, away=True)
    scene.state = scene.state._replace(seats=tuple(seats))
    scene.do(Play("ann", scene.state.version, cards("HA")))
    return scene


def test_an_own_command_takes_the_seat_back():
    scene = away()
    assert scene.do(Play("bob", scene.state.version, cards("H3"))) == ["auto_play_set", "cards_played"]
    taken = scene.event("auto_play_set")
    assert (taken.on, taken.by_player) == (False, True)
    assert not scene.state.seats[1].away
    assert not scene.state.seats[1].auto_play


def test_so_does_auto_play_by_ones_own_word_and_that_is_no_escape():
    scene = away()
    assert scene.do(SetAutoPlay("bob", on=True)) == ["auto_play_set"]
    assert (scene.state.seats[1].auto_play, scene.state.seats[1].away) == (True, False)
    while not isinstance(scene.phase, Scored):
        scene.expire()
    assert not scene.state.seats[1].escaped


def test_a_refused_command_takes_nothing_back():
    scene = away()
    assert scene.refuses(Play("bob", scene.state.version, cards("HK"))) is Reason.NOT_IN_HAND
    assert scene.state.seats[1].away


def test_turns_in_a_row_are_counted_anew_after_an_own_command():
    scene = in_tricks("HA HK HQ", "H3 H4 H6", "C3 C4 C6", "D3 D4 D6")
    scene.expire()
    assert scene.state.seats[0].missed == 1
    scene.do(SetAutoPlay("ann", on=True), command_id=bytes(16), check=bytes(8))
    assert scene.state.seats[0].missed == 0


@pytest.mark.parametrize("ready", [4, 3])
def test_the_next_deal_starts_at_four_readies_or_at_its_time(ready):
    scene = last_trick("HA", "H3", "H4", "H6", pace=AT_ONCE)
    for player in PLAYERS[:ready]:
        scene.do(Ready(player))
    if ready < 4:
        assert deadline_us(scene.state) == scene.state.waiting_since_us + 10_000_000
        assert scene.expire() == ["deal_started"]
    started = scene.event("deal_started")
    assert (started.deal, started.declarer, started.first_drawer, started.level) == (2, 2, 2, 5)
    assert isinstance(scene.phase, Declaring)


def test_the_next_deal_does_not_wait_for_a_seat_that_the_server_plays():
    scene = last_trick("HA", "H3", "H4", "H6", pace=AT_ONCE)
    scene.do(SetAutoPlay("bob", on=True))
    for player in ("ann", "cid"):
        scene.do(Ready(player))
    assert scene.do(Ready("dan")) == ["seat_ready", "deal_started"]


def test_a_random_seat_draws_first_in_every_deal_of_classic_4d():
    drawers = set()
    for spade in range(6):
        scene = last_trick(
            "HA", "H4", "H6", "H7", rules="classic-4d", level="3", pace=AT_ONCE, attackers_points=170
        )
        for player in PLAYERS:
            scene.do(Ready(player, bytes([spade])))
        drawers.add(scene.event("deal_started").first_drawer)
    assert len(drawers) > 1
