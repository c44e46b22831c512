"""The draw, the declaring window, and what it settles."""

from dataclasses import replace

import pytest
from support.cards import card, cards
from support.scene import AT_ONCE, NOW, PACE, PLAYERS, SECOND, dealt, dealt_where, drawn_cards

from services.game.commands import Declare, Leave, Pass, SetAutoPlay
from services.game.shuffle import first_drawer
from services.game.state import Bury, Declaring, Tricks
from services.game.waits import all_drawn_us, deadline_us, drawn, due_us, to_act
from services.game.wire import cards_to_wire
from services.pb.card.v1 import card_pb2
from services.rules.reasons import Reason

S2, H2, D2 = card("S2"), card("H2"), card("D2")


def holds(seat, *wanted, first=25):
    """Whether a seat draws these cards among its first ones."""
    return lambda hands, _: all(hands[seat][:first].count(c) >= wanted.count(c) for c in wanted)


def both(*conditions):
    return lambda hands, kitty: all(condition(hands, kitty) for condition in conditions)


def test_cards_are_drawn_in_rounds_at_the_tables_pace():
    scene = dealt(pace=replace(PACE, draw_ms=300))
    times = [0, 299_999, 300_000, 600_000, 25 * 300_000 - 1, 25 * 300_000, 10**9]
    assert [drawn(scene.state, NOW + time) for time in times] == [0, 0, 1, 2, 24, 25, 25]
    assert all_drawn_us(scene.state) == NOW + 7_500_000
    assert drawn(dealt(pace=AT_ONCE).state, NOW) == 25


def test_the_deal_follows_from_the_seeds():
    scene = dealt()
    deal = scene.phase.deal
    assert deal.first_drawer == first_drawer(
        deal.seed.server_seed, deal.client_seeds, scene.state.table_id, 1
    )
    hands, kitty = drawn_cards(scene.state)
    assert scene.phase.hands == tuple(bytes(sorted(hand)) for hand in hands)
    assert scene.phase.kitty == kitty


def test_undrawn_cards_are_refused_like_cards_not_held():
    scene = dealt_where(
        both(holds(0, S2), lambda hands, _: hands[0].index(S2) > 3, lambda hands, _: H2 not in hands[0])
    )
    place = drawn_cards(scene.state).hands[0].index(S2)
    scene.now_us = NOW + place * 300_000
    undrawn, absent = scene.ask(Declare("ann", bytes([S2]))), scene.ask(Declare("ann", bytes([H2])))
    assert undrawn.reason is absent.reason is Reason.NOT_IN_HAND
    assert (undrawn.detail, absent.detail) == ({"card": "S2"}, {"card": "H2"})
    scene.now_us += 300_000
    assert scene.do(Declare("ann", bytes([S2]))) == ["declared"]
    assert scene.event("declared").count == 1


def test_a_stronger_declaration_overrides_and_reopens_the_passes():
    scene = dealt_where(both(holds(0, S2), holds(1, H2, H2)), pace=AT_ONCE)
    scene.do(Declare("ann", bytes([S2])))
    for player in ("ann", "cid", "dan"):
        scene.do(Pass(player))
    assert scene.refuses(Pass("cid")) is Reason.ALREADY_PASSED
    assert to_act(scene.state, scene.now_us) == (1,)
    scene.now_us += 5 * SECOND
    scene.do(Declare("bob", bytes([H2, H2])))
    assert to_act(scene.state, scene.now_us) == (0, 1, 2, 3)
    assert deadline_us(scene.state) == scene.now_us + 8 * SECOND
    for player in PLAYERS[:3]:
        scene.do(Pass(player))
    assert scene.do(Pass("dan")) == ["passed", "declaring_closed", "kitty_taken"]
    closed = scene.event("declaring_closed")
    assert (closed.trump, closed.declared_by) == (card_pb2.TRUMP_HEARTS, 1)
    assert closed.declarer == 0  # classic-2d: the first seat that declared (D12)
    assert len(scene.phase.hands[0]) == 33
    assert isinstance(scene.phase, Bury)


def test_a_weaker_declaration_is_refused():
    scene = dealt_where(both(holds(0, S2), holds(1, H2)), pace=AT_ONCE)
    scene.do(Declare("ann", bytes([S2])))
    assert scene.refuses(Declare("bob", bytes([H2]))) is Reason.NOT_STRONG_ENOUGH
    assert scene.refuses(Declare("bob", b"")) is Reason.NOT_A_DECLARATION
    assert scene.refuses(Declare("eve", bytes([H2]))) is Reason.NOT_SEATED


def test_reinforce_by_oneself_and_by_the_partner():
    scene = dealt_where(holds(0, S2, S2), pace=AT_ONCE)
    scene.do(Declare("ann", bytes([S2])))
    scene.do(Declare("ann", bytes([S2, S2])))
    assert scene.event("declared").count == 2
    scene = dealt_where(both(holds(0, S2), holds(2, S2)), pace=AT_ONCE)
    scene.do(Declare("ann", bytes([S2])))
    scene.do(Declare("cid", bytes([S2])))
    assert scene.event("declared").count == 2
    standing = scene.phase.declarations.standing
    assert (standing.seat, standing.count) == (0, 2)


def test_self_counter_and_the_joker_pair():
    joker = card("BJ")
    scene = dealt_where(both(holds(0, S2), holds(0, joker, joker)), pace=AT_ONCE)
    scene.do(Declare("ann", bytes([S2])))
    scene.do(Declare("ann", bytes([joker, joker])))
    for player in PLAYERS:
        scene.do(Pass(player))
    assert scene.event("declaring_closed").trump == card_pb2.TRUMP_NO_TRUMP


def test_nobody_passes_before_the_last_card():
    scene = dealt()
    scene.now_us = all_drawn_us(scene.state) - 1
    assert scene.refuses(Pass("ann")) is Reason.WRONG_PHASE
    scene.now_us += 1
    assert scene.do(Pass("ann")) == ["passed"]


def test_a_window_after_the_deal_opens_with_the_last_card():
    scene = dealt_where(holds(0, S2), rules="basic-2d")
    scene.now_us = all_drawn_us(scene.state) - 1
    assert to_act(scene.state, scene.now_us) == ()
    assert scene.refuses(Declare("ann", bytes([S2]))) is Reason.WRONG_PHASE
    scene.now_us += 1
    assert scene.do(Declare("ann", bytes([S2]))) == ["declared"]


def test_at_its_limit_the_window_closes_without_counting_anybody_away():
    scene = dealt()
    scene.do(SetAutoPlay("ann", on=True))
    scene.do(SetAutoPlay("ann", on=False))
    assert deadline_us(scene.state) == NOW + 7_500_000 + 8 * SECOND
    kinds = scene.expire()
    assert kinds == ["turn_expired", "passed"] * 4 + ["declaring_closed", "kitty_taken"]
    assert all(held.missed == 0 for held in scene.state.seats)


def test_seats_under_the_servers_hand_pass_at_once_and_the_others_keep_their_time():
    scene = dealt(pace=AT_ONCE)
    scene.do(SetAutoPlay("bob", on=True))
    scene.do(Leave("cid"))
    assert (due_us(scene.state), deadline_us(scene.state)) == (NOW + SECOND // 2, NOW + 8 * SECOND)
    assert scene.expire() == ["turn_expired", "passed"] * 2
    assert to_act(scene.state, scene.now_us) == (0, 3)
    assert deadline_us(scene.state) == NOW + 8 * SECOND


def test_without_a_limit_the_window_waits_for_four_passes():
    scene = dealt(pace=replace(AT_ONCE, declare_ms=0))
    assert deadline_us(scene.state) is None
    for player in PLAYERS:
        scene.do(Pass(player))
    assert isinstance(scene.phase, Bury)


def test_nobody_declares_the_third_card_is_turned_and_its_twin_declares_on_a_first_deal():
    scene = dealt_where(
        lambda hands, kitty: kitty[2] < 52 and any(kitty[2] in hand for hand in hands), pace=AT_ONCE
    )
    hands, kitty = drawn_cards(scene.state)
    for player in PLAYERS:
        scene.do(Pass(player))
    closed = scene.event("declaring_closed")
    assert (closed.turned_card, closed.turned_place) == (cards_to_wire(kitty[2:3])[0], 3)
    assert closed.trump == kitty[2] // 13 + 1
    assert kitty[2] in hands[closed.declarer]
    assert not closed.HasField("declared_by")
    assert scene.phase.settled.turned_card == kitty[2]


def test_without_a_kitty_the_tricks_begin_at_once():
    scene = dealt("classic-4d", pace=AT_ONCE)
    for player in PLAYERS:
        scene.do(Pass(player))
    assert scene.events[-1].WhichOneof("kind") == "declaring_closed"
    assert isinstance(scene.phase, Tricks)
    assert scene.phase.settled.trump == 0  # spades, the fallback of classic-4d
    assert scene.phase.left == 54


def test_sealed_declarations_are_opened_when_the_window_closes():
    s3 = card("S3")
    scene = dealt_where(holds(0, s3), rules="classic-4d", pace=AT_ONCE)
    scene.do(Declare("ann", bytes([s3])))
    for player in PLAYERS:
        scene.do(Pass(player))
    opened = scene.event("declaring_closed").opened
    assert [(shown.seat, list(shown.cards), shown.count) for shown in opened] == [
        (0, cards_to_wire(bytes([s3])), 1)
    ]


def test_on_a_later_deal_the_declarer_is_fixed_and_draws_first():
    scene = dealt_where(holds(1, D2), pace=AT_ONCE)
    scene.rig(deal=replace(scene.phase.deal, declarer=3))
    scene.do(Declare("bob", bytes([D2])))
    for player in PLAYERS:
        scene.do(Pass(player))
    closed = scene.event("declaring_closed")
    assert (closed.declarer, closed.declared_by, closed.trump) == (3, 1, card_pb2.TRUMP_DIAMONDS)


@pytest.mark.parametrize("command", [Declare("ann", cards("S2")), Pass("ann")])
def test_after_the_window_nobody_declares_or_passes(command):
    scene = dealt(pace=AT_ONCE)
    scene.expire()
    assert not isinstance(scene.phase, Declaring)
    assert scene.refuses(command) is Reason.WRONG_PHASE
