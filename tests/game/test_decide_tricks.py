"""Leading, following, throwing; who wins."""

import pytest
from support.cards import cards
from support.scene import dealt, in_tricks

from services.game.commands import BuryCards, Play, SetAutoPlay
from services.game.decide.tricks import owed_text
from services.game.waits import to_act
from services.game.wire import cards_to_wire
from services.rules.reasons import Reason

PLAYERS = ("ann", "bob", "cid", "dan")
FILL = " C3 C4 C6 C7 C8"


def lay(scene, seat, names):
    return scene.do(Play(PLAYERS[seat], scene.state.version, cards(names)))


def refusal(scene, seat, names):
    return scene.ask(Play(PLAYERS[seat], scene.state.version, cards(names)))


def test_a_trick_goes_round_and_its_winner_leads():
    scene = in_tricks("HA C3", "HK C4", "HT C6", "S3 C7")
    assert lay(scene, 0, "HA") == ["cards_played"]
    lay(scene, 1, "HK")
    lay(scene, 2, "HT")
    assert lay(scene, 3, "S3") == ["cards_played", "trick_taken"]
    taken = scene.event("trick_taken")
    assert (taken.seat, taken.points, taken.attackers_points) == (3, 20, 20)
    phase = scene.phase
    assert (phase.leader, phase.trick, phase.left, phase.attackers_points) == (3, (), 1, 20)
    assert phase.last_trick == (cards("HA"), cards("HK"), cards("HT"), cards("S3"))
    assert phase.last_leader == 0
    assert to_act(scene.state, scene.now_us) == (3,)


def test_a_trick_of_pairs_takes_two_cards_from_each_hand():
    scene = in_tricks("HA HA C3", "HK HK C4", "H6 H6 C6", "S3 S3 C7")
    for seat, names in enumerate(("HA HA", "HK HK", "H6 H6", "S3 S3")):
        lay(scene, seat, names)
    assert scene.phase.left == 1
    assert [len(hand) for hand in scene.phase.hands] == [1] * 4


def test_the_declaring_sides_points_do_not_count():
    scene = in_tricks("HA C3", "HK C4", "HT C6", "H5 C7", attackers_points=35)
    for seat, names in enumerate(("HA", "HK", "HT", "H5")):
        lay(scene, seat, names)
    taken = scene.event("trick_taken")
    assert (taken.seat, taken.points, taken.attackers_points) == (0, 25, 35)


def test_follows_are_checked_and_told_what_is_owed():
    scene = in_tricks("HA HA C3", "HK HK H3 H4", "H6 H7 H8", "S3 S4 S6")
    lay(scene, 0, "HA HA")
    shape = refusal(scene, 1, "H3 H4")
    assert shape.reason is Reason.MUST_FOLLOW_SHAPE
    assert (shape.detail["shapes"], shape.detail["owed"]) == ((((2, 1),),), "2")
    assert refusal(scene, 1, "HK").reason is Reason.WRONG_COUNT
    assert refusal(scene, 1, "HK").detail == {"count": 2}
    assert refusal(scene, 1, "HK HQ").reason is Reason.NOT_IN_HAND
    assert refusal(scene, 1, "HK HQ").detail == {"card": "HQ"}
    lay(scene, 1, "HK HK")
    scene = in_tricks("HA C3", "HK C4", "H6 C6", "S3 C7")
    lay(scene, 0, "HA")
    assert refusal(scene, 1, "C4").reason is Reason.MUST_FOLLOW_SUIT


def test_owed_shapes_in_words():
    assert owed_text((((2, 3), (2, 1)), ((3, 1),))) == "2x3, 2, 3"
    assert owed_text(((), ())) == "1"


def test_leads_are_of_one_suit_and_held():
    scene = in_tricks("HA HA SA C3", *(["C4 C6 C7 C8"] * 3))
    assert refusal(scene, 0, "HA SA").reason is Reason.MIXED_SUITS
    assert refusal(scene, 0, "HA HA HA").reason is Reason.NOT_IN_HAND
    assert refusal(scene, 0, "").reason is Reason.WRONG_COUNT


def test_a_throw_that_nobody_beats_stands():
    scene = in_tricks("HA HK HK C3", "H3 H4 H5 C4", "H6 H7 H8 C6", "S3 S4 S5 C7")
    lay(scene, 0, "HA HK HK")
    played = scene.event("cards_played")
    assert (list(played.attempted), list(played.blocked_by)) == ([], [])
    assert scene.phase.trick == (bytes(sorted(cards("HA HK HK"))),)


def test_a_failed_throw_plays_the_component_that_is_beaten_and_shows_the_rest():
    scene = in_tricks("H9 H8 H8 H4 H4 C3", "HJ H3 C4 C6 C7 C8", "H6 H7 C4 C6 C7 C8", "S3 S4 C4 C6 C7 C8")
    lay(scene, 0, "H9 H8 H8 H4 H4")
    played = scene.event("cards_played")
    assert list(played.cards) == cards_to_wire(cards("H9"))
    assert list(played.attempted) == cards_to_wire(cards("H4 H4 H8 H8 H9"))
    assert list(played.blocked_by) == []
    assert scene.phase.hands[0] == bytes(sorted(cards("H8 H8 H4 H4 C3")))
    assert scene.phase.to_move == 1


@pytest.mark.parametrize(("leader", "blocked_by"), [(0, [2, 3]), (2, [3, 0])])
def test_a_table_may_be_told_who_blocked_a_throw(leader, blocked_by):
    """In turn order: every seat that beats the component played, not one that beats another part only."""
    hands = ["H9 H8 H8 H4 H4 C3", "HJ H3 C4 C6 C7 C8", "H5 H5 C4 C6 C7 C8", "H7 H7 C4 C6 C7 C8"]
    hands[0], hands[leader] = hands[leader], hands[0]
    scene = in_tricks(*hands, leader=leader, throw_blockers="shown")
    lay(scene, leader, "H9 H8 H8 H4 H4")
    assert list(scene.event("cards_played").blocked_by) == blocked_by


def test_the_blockers_of_a_part_that_nobody_beats_are_those_of_the_others():
    """D4 plays the lowest component, which stands here."""
    scene = in_tricks(
        "HQ H4 H4 C3", "HA C4 C6 C7", "H3 H7 C4 C6", "S3 S4 C4 C6", rules="closed-2d", throw_blockers="shown"
    )
    lay(scene, 0, "HQ H4 H4")
    played = scene.event("cards_played")
    assert (list(played.cards), list(played.blocked_by)) == (cards_to_wire(cards("H4 H4")), [1])


def test_who_blocked_is_not_told_of_a_throw_that_stands():
    scene = in_tricks("HA HK HK C3", "H3 H4 H5 C4", "H6 H7 H8 C6", "S3 S4 S5 C7", throw_blockers="shown")
    lay(scene, 0, "HA HK HK")
    assert list(scene.event("cards_played").blocked_by) == []


@pytest.mark.parametrize(("leader", "fines"), [(0, 40), (1, -40)])
def test_a_fine_for_a_failed_throw_goes_against_the_throwers_side(leader, fines):
    hands = ["HJ H3 C4 C6 C7 C8"] * 4
    hands[leader] = "H9 H8 H8 H4 H4 C3"
    scene = in_tricks(*hands, leader=leader, throw_fine_points=10)
    lay(scene, leader, "H9 H8 H8 H4 H4")
    assert scene.phase.fines == fines


def test_failed_throws_are_counted_by_seat_until_the_deal_is_scored():
    hands = ["HJ HJ C3 C4 C6"] * 4
    hands[1] = "H9 H8 H8 S3 D4"
    scene = in_tricks(*hands, leader=1, kitty="C9")
    lay(scene, 1, "H9 H8 H8")
    assert len(scene.event("cards_played").attempted) == 3
    assert scene.phase.failed_throws == (0, 1, 0, 0)
    for seat in (2, 3, 0):
        lay(scene, seat, "HJ HJ" if len(scene.event("cards_played").cards) == 2 else "HJ")
    assert scene.phase.failed_throws == (0, 1, 0, 0)
    while "deal_scored" not in scene.expire():
        pass
    assert list(scene.event("deal_scored").failed_throws) == [0, 1, 0, 0]
    again = in_tricks("HA", "HK", "HQ", "HJ")
    while "deal_scored" not in again.expire():
        pass
    assert list(again.event("deal_scored").failed_throws) == [0, 0, 0, 0]


def test_no_throws_where_the_rules_have_none():
    scene = in_tricks("HA HK", "C4 C6", "C7 C8", "C9 CJ", rules="closed-4d")
    assert refusal(scene, 0, "HA HK").reason is Reason.THROW_NOT_ALLOWED
    assert refusal(scene, 0, "HA HK").detail == {}


def test_a_throw_that_the_other_hands_forbid_is_recorded_once_a_turn():
    """D5: whether the others are void is their secret, so the question is public."""
    scene = in_tricks(
        "HA HK C3 C4", "H5 C4 C6 C7", "C7 C8 C9 CJ", "C9 CJ CQ CQ", rules="classic-4d", level="3"
    )
    assert lay(scene, 0, "HA HK") == ["throw_refused"]
    assert list(scene.event("throw_refused").cards) == cards_to_wire(cards("HK HA"))
    assert scene.phase.to_move == 0
    assert refusal(scene, 0, "HA HK").reason is Reason.THROW_NOT_ALLOWED
    lay(scene, 0, "HA")
    assert not scene.phase.throw_refused


def test_a_throw_stands_when_the_others_are_void():
    scene = in_tricks("HA HK C3", "C4 C6 C7", "C7 C8 C9", "C9 CJ CQ", rules="classic-4d", level="3")
    assert lay(scene, 0, "HA HK") == ["cards_played"]


def test_turn_commands_name_a_version_of_their_turn():
    scene = in_tricks("HA C3", "HK C4", "HT C6", "H5 C7")
    before = scene.state.version
    lay(scene, 0, "HA")
    scene.do(SetAutoPlay("ann", on=True))  # not a new turn: what bob decided on stays good
    assert scene.refuses(Play("bob", before, cards("HK"))) is Reason.STALE_VERSION
    assert scene.refuses(Play("bob", scene.state.version + 1, cards("HK"))) is Reason.STALE_VERSION
    assert scene.refuses(Play("cid", scene.state.version, cards("HT"))) is Reason.NOT_YOUR_TURN
    scene.do(Play("bob", before + 1, cards("HK")))


def test_playing_is_for_the_tricks():
    assert dealt().refuses(Play("ann", 1, cards("HA"))) is Reason.WRONG_PHASE
    scene = in_tricks("HA C3", "HK C4", "HT C6", "H5 C7")
    assert scene.refuses(BuryCards("ann", 1, b"")) is Reason.WRONG_PHASE
    assert scene.refuses(Play("eve", 1, cards("HA"))) is Reason.NOT_SEATED


def test_the_server_plays_the_lowest_card_without_points():
    scene = in_tricks("HK H5 H3", "HA HQ C4", "H6 C6 C7", "C8 C9 CJ")
    assert scene.expire() == ["turn_expired", "cards_played"]
    assert scene.phase.trick == (cards("H3"),)
    scene.expire()
    assert scene.phase.trick[1] == cards("HQ")
