"""Counters after a bury (反主炒底): RULES §7 ``joker_backed``, sentence by sentence."""

from dataclasses import replace

import pytest
from support.cards import cards
from support.scene import PLAYERS, SECOND, in_bury, in_counter

from engine_ext.codes import NO_TRUMP
from services.game.commands import BuryCards, GiveTime, Leave, Pass, Play, TakeCounter
from services.game.state import Bury, Counter, Tricks
from services.game.views import SPECTATOR, redact, view
from services.game.waits import deadline_us, due_us, to_act
from services.game.wire import cards_to_wire
from services.rules.reasons import Reason

OPEN = "0 S2 LJ"
PAIR = "H2 H2 BJ S3"
LITTLE = "LJ LJ S4 S5"
BIG = "BJ BJ S6 S7"
PLAIN = "S2 S8 S9 ST"


def taking(scene, player, text):
    return TakeCounter(player, scene.state.version, cards(text))


def burying(scene, seat, count=8):
    return BuryCards(PLAYERS[seat], scene.state.version, scene.phase.hands[seat][:count])


def asked(scene):
    return to_act(scene.state, scene.now_us)


def test_seats_are_asked_in_turn_order_after_who_buried_until_three_have_passed():
    scene = in_counter(PLAIN, PLAIN, PLAIN, PLAIN, standing="2 S2 LJ", declarer=2)
    order = []
    while isinstance(scene.phase, Counter):
        (seat,) = asked(scene)
        order.append(seat)
        assert scene.do(Pass(PLAYERS[seat])) == ["passed"]
    assert order == [3, 0, 1]
    assert isinstance(scene.phase, Tricks)
    assert (scene.phase.leader, scene.phase.buried_by) == (2, 2)


def test_every_bury_of_a_later_deal_is_followed_by_the_question_and_none_of_a_first_deal():
    scene = in_bury("S2 S3 S4 S5 S6 S7 S8 S9 ST SJ", rules="tournament-2d")
    scene.rig(deal=replace(scene.phase.deal, declarer=0))
    scene.do(burying(scene, 0))
    assert isinstance(scene.phase, Counter)
    assert (scene.phase.buried_by, scene.phase.to_act) == (0, 1)
    first = in_bury("S2 S3 S4 S5 S6 S7 S8 S9 ST SJ", rules="tournament-2d")
    first.do(burying(first, 0))
    assert isinstance(first.phase, Tricks)


def test_a_counter_changes_trump_takes_the_kitty_and_buries_again():
    scene = in_counter(PLAIN, PAIR, PLAIN, PLAIN, standing=OPEN)
    buried = scene.phase.buried
    assert scene.do(taking(scene, "bob", "BJ H2 H2")) == ["countered", "kitty_taken"]
    assert (scene.event("countered").trump, scene.event("countered").seat) == (2, 1)
    assert list(scene.event("kitty_taken").cards) == cards_to_wire(buried)
    phase = scene.phase
    assert isinstance(phase, Bury)
    assert (phase.settled.trump, phase.settled.declarer, phase.seat) == (1, 0, 1)
    assert phase.hands[1] == bytes(sorted(cards(PAIR) + buried))
    assert asked(scene) == (1,)
    assert scene.refuses(BuryCards("ann", scene.state.version, buried)) is Reason.NOT_YOUR_TURN
    again = bytes(sorted(cards("H2 S3") + buried[:6]))
    scene.do(BuryCards("bob", scene.state.version, again))
    assert (scene.phase.buried, scene.phase.buried_by, scene.phase.to_act) == (again, 1, 2)


def test_the_declarer_and_the_first_lead_stay():
    scene = in_counter("C2 HA", PAIR, PLAIN, PLAIN, standing=OPEN)
    scene.do(taking(scene, "bob", "BJ H2 H2"))
    scene.do(burying(scene, 1))
    for player in ("cid", "dan", "ann"):
        scene.do(Pass(player))
    assert isinstance(scene.phase, Tricks)
    assert (scene.phase.leader, scene.phase.settled.declarer, scene.phase.buried_by) == (0, 0, 1)
    assert scene.do(Play("ann", scene.state.version, cards("HA"))) == ["cards_played"]


def test_counters_may_follow_each_other_in_rising_order_and_each_begins_a_new_round():
    scene = in_counter(PLAIN, PAIR, LITTLE, BIG, standing="0 C2 LJ")
    scene.do(taking(scene, "bob", "BJ H2 H2"))
    scene.do(burying(scene, 1))
    scene.do(taking(scene, "cid", "LJ LJ"))
    assert scene.phase.settled.trump == NO_TRUMP
    scene.do(burying(scene, 2))
    scene.do(taking(scene, "dan", "BJ BJ"))
    scene.do(burying(scene, 3))
    for player in ("ann", "bob", "cid"):
        scene.do(Pass(player))
    assert (scene.phase.leader, scene.phase.buried_by) == (0, 3)
    assert scene.phase.settled.standing.seat == 3


@pytest.mark.parametrize(
    ("standing", "shown", "reason"),
    [
        (OPEN, "H2 BJ", Reason.NOT_A_DECLARATION),
        (OPEN, "H2 H2", Reason.NOT_A_DECLARATION),
        (OPEN, "", Reason.NOT_A_DECLARATION),
        ("2 LJ LJ", "H2 H2 BJ", Reason.NOT_STRONG_ENOUGH),
        ("0 S2 S2 LJ", "H2 H2 BJ", Reason.LOCKED),
        ("1 S2 LJ", "H2 H2 BJ", Reason.MUST_NOT_COUNTER_OWN),
        (OPEN, "C3 C3 LJ", Reason.NOT_IN_HAND),
        (OPEN, "D2 D2 BJ", Reason.NOT_IN_HAND),
    ],
)
def test_what_counters_nothing(standing, shown, reason):
    scene = in_counter(PLAIN, PAIR, PLAIN, PLAIN, standing=standing)
    assert scene.refuses(taking(scene, "bob", shown)) is reason


def test_a_locked_declaration_yields_to_no_trump():
    scene = in_counter(PLAIN, LITTLE, PLAIN, PLAIN, standing="0 S2 S2 LJ")
    scene.do(taking(scene, "bob", "LJ LJ"))
    assert scene.phase.settled.trump == NO_TRUMP


def test_who_declared_may_counter_only_after_another_has():
    scene = in_counter("LJ LJ S3 S4", "H2 H2 BJ S5", PLAIN, PLAIN, standing="0 S2 LJ", declarer=2)
    scene.do(Pass("dan"))
    assert scene.refuses(taking(scene, "ann", "LJ LJ")) is Reason.MUST_NOT_COUNTER_OWN
    scene.do(Pass("ann"))
    scene.do(taking(scene, "bob", "H2 H2 BJ"))
    scene.do(burying(scene, 1))
    scene.do(Pass("cid"))
    scene.do(Pass("dan"))
    assert scene.do(taking(scene, "ann", "LJ LJ")) == ["countered", "kitty_taken"]


def test_after_a_fallback_every_other_seat_may_counter_the_partner_too():
    for seat in (1, 2, 3):
        hands = [PLAIN] * 4
        hands[seat] = PAIR
        scene = in_counter(*hands, trump="C")
        for player in PLAYERS[1:seat]:
            scene.do(Pass(player))
        assert scene.do(taking(scene, PLAYERS[seat], "H2 H2 BJ")) == ["countered", "kitty_taken"]


def test_only_the_seat_that_is_asked_and_only_on_this_turn():
    scene = in_counter(LITTLE, PAIR, BIG, PLAIN, standing="3 S2 LJ")
    version = scene.state.version
    shown = cards("H2 H2 BJ")
    assert scene.refuses(taking(scene, "cid", "BJ BJ")) is Reason.NOT_YOUR_TURN
    assert scene.refuses(taking(scene, "ann", "LJ LJ")) is Reason.NOT_YOUR_TURN
    assert scene.refuses(TakeCounter("bob", version - 1, shown)) is Reason.STALE_VERSION
    assert scene.refuses(TakeCounter("bob", version + 1, shown)) is Reason.STALE_VERSION
    assert scene.refuses(taking(scene, "eve", "LJ LJ")) is Reason.NOT_SEATED
    assert scene.refuses(Pass("cid")) is Reason.NOT_YOUR_TURN
    scene.do(Pass("bob"))
    assert scene.refuses(TakeCounter("cid", version, cards("BJ BJ"))) is Reason.STALE_VERSION
    scene.do(taking(scene, "cid", "BJ BJ"))
    assert scene.refuses(taking(scene, "cid", "BJ BJ")) is Reason.WRONG_PHASE


def test_at_the_limit_the_server_passes_and_a_turn_is_missed():
    scene = in_counter(PLAIN, PAIR, PLAIN, PLAIN, standing=OPEN)
    assert deadline_us(scene.state) == scene.state.waiting_since_us + 20 * SECOND
    scene.now_us = deadline_us(scene.state) + 60 * SECOND
    scene.do(GiveTime())
    assert deadline_us(scene.state) == scene.now_us + 20 * SECOND
    assert scene.expire() == ["turn_expired", "passed"]
    assert scene.state.seats[1].missed == 1
    scene.do(Leave("cid"))
    assert due_us(scene.state) == scene.state.waiting_since_us + SECOND // 2
    assert scene.expire() == ["turn_expired", "passed"]
    assert asked(scene) == (3,)


def test_who_countered_buries_at_the_limit_by_the_fixed_rule():
    scene = in_counter(PLAIN, PAIR, PLAIN, PLAIN, standing=OPEN)
    scene.do(taking(scene, "bob", "H2 H2 BJ"))
    assert deadline_us(scene.state) == scene.state.waiting_since_us + 60 * SECOND
    assert scene.expire() == ["turn_expired", "buried"]
    assert isinstance(scene.phase, Counter)
    assert scene.phase.buried_by == 1


def test_only_who_buried_last_is_shown_the_kitty():
    scene = in_counter(PLAIN, PAIR, PLAIN, PLAIN, standing=OPEN)
    looks = [view(scene.state, audience, scene.now_us) for audience in range(5)]
    assert [bool(look.kitty) for look in looks] == [True, False, False, False, False]
    scene.do(taking(scene, "bob", "H2 H2 BJ"))
    looks = [view(scene.state, audience, scene.now_us) for audience in range(5)]
    assert [len(look.kitty) for look in looks] == [0, 8, 0, 0, 0]
    assert [seat.hand_size for seat in looks[SPECTATOR].seats] == [25, 33, 25, 25]
    assert list(looks[SPECTATOR].standing.cards) == cards_to_wire(cards("H2 H2 BJ"))
    countered, taken = scene.events
    assert redact(countered, SPECTATOR, scene.state.rules) == countered
    assert not redact(taken, 0, scene.state.rules).kitty_taken.cards
    assert len(redact(taken, 1, scene.state.rules).kitty_taken.cards) == 8
    scene.do(burying(scene, 1))
    scene.do(Pass("cid"))
    looks = [view(scene.state, audience, scene.now_us) for audience in range(5)]
    assert [len(look.kitty) for look in looks] == [0, 8, 0, 0, 0]
    assert [seat.passed for seat in looks[0].seats] == [False, False, True, False]
