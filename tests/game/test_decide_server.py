"""What the server does by itself: expiry, time given back, lost keys, closing, the commit cap."""

from dataclasses import replace

import pytest
from support.cards import cards
from support.scene import AT_ONCE, NOW, PLAYERS, SECOND, dealt, founded, in_tricks

from services.game.commands import (
    Close,
    EndUnfunded,
    Expire,
    GiveTime,
    Play,
    Ready,
    SetAutoPlay,
    Sit,
    VoidDeal,
)
from services.game.decide import SecretsUnknown, kind_of
from services.game.state import UNKNOWN_HANDS, Closed, Declaring, Over, Scored, Seating
from services.game.waits import COMMIT_CAP, IDLE_US, deadline_us, due_us, is_players_wait
from services.pb.event.v1 import event_pb2 as pb
from services.rules.reasons import Reason


def tricks(**changes):
    return in_tricks("HA HK", "H3 H4", "C3 C4", "D3 D4", **changes)


def test_nothing_expires_before_its_time():
    scene = tricks()
    scene.now_us = due_us(scene.state) - 1
    assert scene.refuses(Expire()) is Reason.WRONG_PHASE
    scene.now_us += 1
    assert scene.do(Expire()) == ["turn_expired", "cards_played"]


def test_a_limit_that_passed_in_an_outage_is_given_again_whole():
    scene = tricks()
    scene.now_us = deadline_us(scene.state) + 300 * SECOND + 1
    assert is_players_wait(scene.state)
    assert scene.do(GiveTime()) == ["time_given"]
    assert 0 <= deadline_us(scene.state) - (scene.now_us + 20 * SECOND) < 1000
    assert scene.refuses(GiveTime()) is Reason.WRONG_PHASE
    scene.do(Play("ann", scene.state.version, cards("HA")))
    assert scene.state.given_us == 0
    assert deadline_us(scene.state) == scene.now_us + 20 * SECOND


def test_time_given_leaves_the_turn_as_it_is():
    scene = tricks()
    version = scene.state.version
    scene.now_us = deadline_us(scene.state)
    scene.do(GiveTime())
    assert scene.do(Play("ann", version, cards("HA"))) == ["cards_played"]


def test_no_time_is_given_to_the_server():
    scene = tricks()
    scene.do(SetAutoPlay("ann", on=True))
    scene.now_us = deadline_us(scene.state)
    assert not is_players_wait(scene.state)
    assert scene.refuses(GiveTime()) is Reason.WRONG_PHASE
    assert founded().refuses(GiveTime()) is Reason.WRONG_PHASE


def test_the_declaring_window_is_given_again_too():
    scene = dealt(pace=AT_ONCE)
    scene.now_us = deadline_us(scene.state) + 60 * SECOND
    scene.do(GiveTime())
    assert deadline_us(scene.state) == scene.now_us + 8 * SECOND


def test_an_outage_passes_for_the_seats_that_the_server_plays_and_gives_the_others_their_time():
    scene = dealt(pace=AT_ONCE)
    scene.do(SetAutoPlay("bob", on=True))
    scene.now_us = deadline_us(scene.state) + 60 * SECOND
    assert not is_players_wait(scene.state)
    assert scene.do(Expire()) == ["turn_expired", "passed"]
    assert is_players_wait(scene.state)
    assert scene.do(GiveTime()) == ["time_given"]
    assert isinstance(scene.phase, Declaring)


def test_four_seats_under_the_servers_hand_pass_without_a_limit_too():
    scene = dealt(pace=replace(AT_ONCE, declare_ms=0))
    for player in PLAYERS:
        scene.do(SetAutoPlay(player, on=True))
    assert scene.expire()[-1] == "kitty_taken"


def without_keys(scene):
    """The same table as somebody folds it who has lost the master key."""
    state = scene.state
    if state.next_seed is not None:
        scene.state = state._replace(next_seed=replace(state.next_seed, server_seed=b""))
    else:
        scene.rig(
            hands=UNKNOWN_HANDS,
            deal=replace(scene.phase.deal, seed=replace(scene.phase.deal.seed, server_seed=b"")),
        )
    return scene


def test_a_deal_whose_key_is_lost_cannot_go_on_and_is_voided():
    scene = without_keys(tricks())
    with pytest.raises(SecretsUnknown):
        scene.ask(Play("ann", scene.state.version, cards("HA")))
    scene.now_us = due_us(scene.state)
    with pytest.raises(SecretsUnknown):
        scene.ask(Expire())
    assert scene.do(VoidDeal()) == ["deal_voided"]
    assert kind_of(scene.events) == "d"
    voided = scene.event("deal_voided")
    assert (voided.deal, voided.reveal.deal, voided.reveal.server_seed) == (1, 1, b"")
    assert voided.next_seed.deal == 2
    assert isinstance(scene.phase, Scored)
    assert scene.state.match.deals == 0
    for player in PLAYERS:
        scene.do(Ready(player))
    assert scene.event("deal_started").deal == 2
    assert not scene.event("deal_started").HasField("declarer")


def test_a_seed_that_is_lost_before_its_deal_is_voided_with_the_readies_for_it():
    scene = without_keys(founded())
    for player in PLAYERS[:3]:
        scene.do(Ready(player))
    with pytest.raises(SecretsUnknown):
        scene.ask(Ready("dan"))
    scene.do(VoidDeal())
    assert isinstance(scene.phase, Seating)
    assert not any(held.ready for held in scene.state.seats)
    for player in PLAYERS:
        scene.do(Ready(player))
    assert isinstance(scene.phase, Declaring)


@pytest.mark.parametrize("make", [founded, dealt, tricks])
def test_a_deal_whose_secrets_are_known_is_not_voided(make):
    assert make().refuses(VoidDeal()) is Reason.WRONG_PHASE


def test_a_table_that_nobody_touches_for_a_day_is_closed():
    scene = founded(players=("ann",))
    assert deadline_us(scene.state) is None
    assert due_us(scene.state) == NOW + IDLE_US
    assert scene.refuses(Close(pb.CLOSE_REASON_ABANDONED)) is Reason.WRONG_PHASE
    assert scene.expire() == ["table_closed"]
    closed = scene.event("table_closed")
    assert (closed.reason, closed.reveal.deal) == (pb.CLOSE_REASON_ABANDONED, 1)
    assert len(closed.reveal.server_seed) == 32
    assert due_us(scene.state) is None
    assert scene.refuses(Expire()) is Reason.TABLE_CLOSED


@pytest.mark.parametrize(
    ("make", "reason", "refusal"),
    [
        (founded, pb.CLOSE_REASON_FINISHED, Reason.WRONG_PHASE),
        (founded, pb.CLOSE_REASON_COMMIT_CAP, Reason.WRONG_PHASE),
        (founded, pb.CLOSE_REASON_EMPTY, Reason.WRONG_PHASE),
        (tricks, pb.CLOSE_REASON_EMPTY, Reason.WRONG_PHASE),
        (founded, 0, Reason.BAD_INPUT),
        (founded, 99, Reason.BAD_INPUT),
    ],
)
def test_a_table_closes_for_a_reason_that_holds(make, reason, refusal):
    assert make().refuses(Close(reason)) is refusal


def test_a_table_that_nobody_ever_sat_at_may_be_closed_as_empty():
    scene = founded(players=())
    assert scene.do(Close(pb.CLOSE_REASON_EMPTY)) == ["table_closed"]


def staked(scene):
    """The same table with a stake."""
    scene.state = scene.state._replace(founding=replace(scene.state.founding, stake=100))
    return scene


UNFUNDED = EndUnfunded("svc:ledger")


def test_a_service_ends_a_match_that_a_seat_cannot_pay_for():
    scene = staked(founded())
    seed = scene.state.next_seed
    assert scene.do(UNFUNDED) == ["table_closed"]
    assert kind_of(scene.events) == "d"
    closed = scene.event("table_closed")
    assert (closed.reason, closed.reveal.deal) == (pb.CLOSE_REASON_UNFUNDED, 1)
    assert closed.reveal.server_seed == seed.server_seed
    assert scene.state.phase == Closed(pb.CLOSE_REASON_UNFUNDED)
    assert due_us(scene.state) is None
    assert scene.refuses(UNFUNDED) is Reason.TABLE_CLOSED


def test_a_match_ends_unfunded_between_two_deals_only():
    scene = staked(tricks())
    assert scene.refuses(UNFUNDED) is Reason.WRONG_PHASE
    assert staked(dealt()).refuses(UNFUNDED) is Reason.WRONG_PHASE
    scene.stand(Scored())
    assert scene.do(UNFUNDED) == ["table_closed"]
    over = staked(founded()).stand(Over(b""))
    assert over.refuses(UNFUNDED) is Reason.WRONG_PHASE


def test_who_and_what_ends_no_match_unfunded():
    for player in ("ann", "eve", "bot:1"):
        assert staked(founded()).refuses(EndUnfunded(player)) is Reason.NOT_YOURS
    assert founded().refuses(UNFUNDED) is Reason.BAD_INPUT
    assert staked(founded()).refuses(Close(pb.CLOSE_REASON_UNFUNDED)) is Reason.BAD_INPUT


def test_the_last_commit_of_a_table_is_its_closing():
    scene = tricks()
    scene.state = scene.state._replace(version=COMMIT_CAP - 1)
    assert scene.refuses(Play("ann", scene.state.version, cards("HA"))) is Reason.CAP_REACHED
    assert scene.refuses(Sit("eve", 0)) is Reason.CAP_REACHED
    assert due_us(scene.state) == scene.state.recorded_at_us
    assert scene.do(Expire()) == ["table_closed"]
    closed = scene.event("table_closed")
    assert (closed.reason, closed.reveal.deal) == (pb.CLOSE_REASON_COMMIT_CAP, 1)
    assert isinstance(scene.phase, Closed)
    assert scene.state.version == COMMIT_CAP
