"""What each receiver is shown, and what nobody is."""

from dataclasses import replace

import pytest
from support.cards import card, cards
from support.scene import (
    AT_ONCE,
    NOW,
    PACE,
    PLAYERS,
    dealt,
    dealt_where,
    drawn_cards,
    founded,
    in_bury,
    in_tricks,
)

from services.game.commands import BuryCards, Declare, Leave, Pass, Play, Ready
from services.game.entropy import SeededEntropy
from services.game.evolve import evolve
from services.game.local import play_match
from services.game.views import SPECTATOR, redact, rounds_between, updates, view
from services.game.waits import all_drawn_us, drawn
from services.game.wire import cards_to_wire
from services.pb.event.v1 import event_pb2 as pb
from services.pb.log.v1.log_pb2 import Commit
from services.pb.table.v1 import view_pb2 as view_pb
from services.rules.presets import preset

EVERYBODY = (0, 1, 2, 3, SPECTATOR)
CLASSIC, SEALED = preset("classic-2d"), preset("classic-4d")


def test_a_table_before_its_match():
    scene = founded(players=("ann",))
    scene.do(Ready("ann"))
    shown = view(scene.state, SPECTATOR, scene.now_us)
    assert (shown.phase, shown.deal, shown.drawn, shown.version) == (view_pb.PHASE_SEATING, 0, 0, 2)
    assert [seat.player_id for seat in shown.seats] == ["ann", "", "", ""]
    assert shown.seats[0].ready
    assert not shown.HasField("my_seat")
    assert (list(shown.to_act), shown.deadline_ms) == ([], 0)
    assert shown.next_seed_commitment == scene.state.next_seed.commitment
    assert list(shown.levels) == [2, 2]


def test_a_hand_grows_in_the_order_drawn():
    scene = dealt(pace=replace(PACE, draw_ms=100))
    hand = drawn_cards(scene.state).hands[1]
    for rounds in (0, 1, 13, 25):
        shown = view(scene.state, 1, NOW + rounds * 100_000)
        assert list(shown.hand) == cards_to_wire(hand[:rounds])
        assert shown.drawn == rounds
        assert [seat.hand_size for seat in shown.seats] == [rounds] * 4
        assert list(view(scene.state, SPECTATOR, NOW + rounds * 100_000).hand) == []
    assert (shown.my_seat, shown.first_drawer, shown.level) == (1, scene.phase.deal.first_drawer, 2)
    assert not shown.HasField("declarer")


def test_the_standing_declaration_is_public():
    two = card("S2")
    scene = dealt_where(lambda hands, _: two in hands[0], pace=AT_ONCE)
    scene.do(Declare("ann", bytes([two])))
    for audience in EVERYBODY:
        shown = view(scene.state, audience, NOW)
        assert (shown.standing.seat, list(shown.standing.cards), shown.standing.count) == (0, [two + 1], 1)


def test_a_sealed_declaration_shows_who_and_how_many():
    three = card("S3")
    scene = dealt_where(lambda hands, _: three in hands[0], rules="classic-4d", pace=AT_ONCE)
    scene.do(Declare("ann", bytes([three])))
    for audience in EVERYBODY:
        own = audience == 0
        shown = view(scene.state, audience, NOW)
        assert (shown.standing.seat, shown.standing.count) == (0, 1)
        assert list(shown.standing.cards) == ([three + 1] if own else [])
        told = redact(scene.events[0], audience, SEALED)
        assert list(told.declared.cards) == ([three + 1] if own else [])
    for player in PLAYERS:
        scene.do(Pass(player))
    assert list(view(scene.state, SPECTATOR, NOW).standing.cards) == [three + 1]


def test_the_kitty_is_the_buriers_alone():
    scene = in_bury("S2 S3 S4 S5 S6 S7 S8 S9 ST SJ", declarer=1)
    for audience in EVERYBODY:
        assert len(view(scene.state, audience, NOW).kitty) == (8 if audience == 1 else 0)
    assert [seat.hand_size for seat in view(scene.state, 0, NOW).seats] == [25, 33, 25, 25]
    eight = cards("S2 S3 S4 S5 S6 S7 S8 S9")
    scene.do(BuryCards("bob", scene.state.version, eight))
    for audience in EVERYBODY:
        shown = view(scene.state, audience, NOW)
        assert list(shown.kitty) == (cards_to_wire(eight) if audience == 1 else [])
        assert shown.kitty_size == 8
        assert list(redact(scene.events[0], audience, CLASSIC).buried.cards) == list(shown.kitty)


def test_tricks_as_they_lie():
    scene = in_tricks("HA C3", "HK C4", "HT C6", "S3 C7", declarer=0)
    for player, names in zip(PLAYERS, ("HA", "HK", "HT", "S3"), strict=True):
        scene.do(Play(player, scene.state.version, cards(names)))
    scene.do(Play("dan", scene.state.version, cards("C7")))
    shown = view(scene.state, 0, NOW)
    assert [(play.seat, list(play.cards)) for play in shown.trick] == [(3, cards_to_wire(cards("C7")))]
    assert [play.seat for play in shown.last_trick] == [0, 1, 2, 3]
    assert (shown.last_winner, shown.attackers_points, list(shown.to_act)) == (3, 20, [0])
    assert [seat.hand_size for seat in shown.seats] == [1, 1, 1, 0]
    assert list(shown.hand) == cards_to_wire(cards("C3"))
    assert shown.turn_version == shown.version == scene.state.version
    assert shown.deadline_ms == NOW // 1000 + 20_000


def test_between_deals_and_at_the_end_the_score_and_the_kitty_are_shown():
    rules = preset("classic-2d").with_overrides({"deals": 1})
    table = play_match(rules, SeededEntropy("end"), lambda *_: None)
    shown = view(table.table, SPECTATOR, table.now_us)
    assert shown.phase == view_pb.PHASE_OVER
    assert len(shown.last_score.kitty) == 8
    assert not shown.last_score.HasField("reveal")
    assert shown.result.deals == 1
    table.wait()
    closed = view(table.table, SPECTATOR, table.now_us)
    assert (closed.phase, closed.result) == (view_pb.PHASE_CLOSED, shown.result)


@pytest.mark.parametrize("audience", EVERYBODY)
def test_redacting_takes_every_secret_and_every_seal_out(audience):
    box = pb.Sealed(audience=4, nonce=bytes(12), ciphertext=b"sealed")
    seed = pb.SeedCommitment(
        deal=1, commitment=b"c", salt=b"s", key_id="k", server_seed=b"seed", sealed_server_seed=box
    )
    hands = [pb.Cards(cards=[seat + 1]) for seat in range(4)]
    secret = [
        pb.Event(table_opened=pb.TableOpened(next_seed=seed, insecure_entropy="text")),
        pb.Event(seed_committed=pb.SeedCommitted(next_seed=seed, discarded=pb.Reveal(server_seed=b"old"))),
        pb.Event(seat_ready=pb.SeatReady(seat=1, client_seed=b"mine")),
        pb.Event(
            deal_started=pb.DealStarted(hands=hands, kitty=hands[0], sealed_hands=[box] * 4, sealed_kitty=box)
        ),
        pb.Event(declared=pb.Declared(seat=1, cards=[2], count=1, sealed_cards=box)),
        pb.Event(kitty_taken=pb.KittyTaken(seat=1, cards=[2], sealed_cards=box)),
        pb.Event(buried=pb.Buried(seat=1, cards=[2], sealed_cards=box)),
        pb.Event(deal_scored=pb.DealScored(kitty=[5], next_seed=seed)),
        pb.Event(deal_voided=pb.DealVoided(next_seed=seed)),
        pb.Event(mutiny_called=pb.MutinyCalled(seat=1, cards=[3], next_seed=seed)),
    ]
    copies = [event.SerializeToString() for event in secret]
    told = [redact(event, audience, SEALED) for event in secret]
    assert [event.SerializeToString() for event in secret] == copies
    raw = b"".join(event.SerializeToString() for event in told)
    assert not any(hidden in raw for hidden in (b"seed", b"sealed", b"text"))
    own = [2] if audience == 1 else []
    assert told[2].seat_ready.client_seed == (b"mine" if audience == 1 else b"")
    assert [list(told[4].declared.cards), list(told[5].kitty_taken.cards), list(told[6].buried.cards)] == [
        own
    ] * 3
    assert list(told[3].deal_started.hands) == []
    assert told[7].deal_scored.next_seed.commitment == b"c"
    assert list(told[7].deal_scored.kitty) == [5]
    assert list(told[9].mutiny_called.cards) == [3]
    assert told[1].seed_committed.discarded.server_seed == b"old"
    assert list(redact(secret[4], 3, CLASSIC).declared.cards) == [2]


# --- steps


def commit_of(scene, before, command):
    """Do a command; the table before, the commit, the table after."""
    scene.do(command)
    commit = Commit(
        table_id=before.table_id,
        version=scene.state.version,
        recorded_at_us=scene.now_us,
        events=scene.events,
    )
    return before, commit, scene.state


def test_all_rounds_up_to_a_commit_come_before_it():
    scene = dealt(pace=replace(PACE, draw_ms=100))
    hand = drawn_cards(scene.state).hands[2]
    scene.now_us = NOW + 1_050_000
    steps = list(updates(*commit_of(scene, scene.state, Leave("bob")), audience=2))
    assert [step.drawn for step in steps] == [*range(1, 11), 10]
    assert {step.version for step in steps[:-1]} == {steps[-1].version - 1}
    assert [list(step.drawn_cards) for step in steps[:-1]] == [
        cards_to_wire(hand[at : at + 1]) for at in range(10)
    ]
    assert [step.recorded_at_ms for step in steps[:2]] == [NOW // 1000 + 100, NOW // 1000 + 200]
    assert [event.WhichOneof("kind") for event in steps[-1].events] == ["seat_left"]
    assert list(steps[-1].drawn_cards) == []


def test_who_has_been_told_some_rounds_gets_the_others():
    scene = dealt(pace=replace(PACE, draw_ms=100))
    scene.now_us = NOW + 1_050_000
    steps = list(updates(*commit_of(scene, scene.state, Leave("bob")), audience=SPECTATOR, from_drawn=8))
    assert [step.drawn for step in steps] == [9, 10, 10]
    assert all(list(step.drawn_cards) == [] for step in steps)


def test_rounds_in_real_time_are_the_same_as_afterwards():
    scene = dealt(pace=replace(PACE, draw_ms=100))
    end = all_drawn_us(scene.state)
    at_once = list(rounds_between(scene.state, 0, end + 10**9, 3))
    live = [
        step for at in range(25) for step in rounds_between(scene.state, at, NOW + (at + 1) * 100_000 + 50, 3)
    ]
    assert live == at_once
    assert len(live) == 25
    assert b"".join(bytes(step.drawn_cards) for step in live) == bytes(
        cards_to_wire(drawn_cards(scene.state).hands[3])
    )
    assert list(live[0].to_act) == [0, 1, 2, 3]


def test_with_no_time_between_cards_the_hand_comes_with_the_deal():
    scene = founded(pace=AT_ONCE)
    for player in PLAYERS[:3]:
        scene.do(Ready(player))
    *rounds, dealt_step = updates(*commit_of(scene, scene.state, Ready("dan")), audience=0)
    assert rounds == []
    assert dealt_step.drawn == 25
    assert list(dealt_step.drawn_cards) == cards_to_wire(drawn_cards(scene.state).hands[0])
    following = list(updates(*commit_of(scene, scene.state, Pass("ann")), audience=0))
    assert [list(step.drawn_cards) for step in following] == [[]]


def test_watching_a_match_to_its_end_tells_what_looking_does():
    """Who only follows the steps of a deal knows the same hand as who asks for a view."""
    table = play_match(
        preset("classic-2d"), SeededEntropy("watch"), lambda *_: None, 1, pace=replace(PACE, draw_ms=50)
    )
    state, hand = None, []
    for commit in table.commits:
        after = evolve(state, commit)
        if state is not None:
            for step in updates(state, commit, after, 1, drawn(state, state.recorded_at_us)):
                hand += step.drawn_cards
                for event in step.events:
                    if event.HasField("kitty_taken"):
                        hand += event.kitty_taken.cards
                    for played in (event.buried, event.cards_played):
                        if played.seat == 1:
                            for laid in played.cards:
                                hand.remove(laid)
            assert sorted(hand) == sorted(view(after, 1, commit.recorded_at_us).hand)
        state = after
    assert hand == []
