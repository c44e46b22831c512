"""Everything that can happen at a table is verified."""

from itertools import combinations

import pytest
from support.recorded import Recorder, event_of, rechained, short_match, versions_of

from services.game import chain, commands, verify, waits
from services.game.decide import Refusal, decide
from services.game.entropy import SeededEntropy
from services.game.evolve import evolve
from services.game.facts import Facts
from services.game.keys import Keyring, seal_of
from services.game.local import PLAYERS
from services.game.redecide import command_of
from services.game.seal import open_commit, seal_events
from services.game.state import Dealt, Pace, Tricks
from services.game.verify import DealState
from services.pb.log.v1.log_pb2 import Commit


@pytest.fixture(scope="module")
def match():
    return short_match()


def small(seed, **options):
    match = Recorder(seed, "classic-1d", kitty=42, deals=3, **options)
    match.found(PLAYERS)
    return match


def report_of(match):
    report = verify.verify(match.table_id, match.log, match.head)
    assert report.problem is None
    return report


def test_seats_that_change_hands_discard_their_seeds():
    match = small("seats")
    match.do(commands.Leave(PLAYERS[2]))
    match.do(commands.Sit("eve", 2, 2))
    match.do(commands.Leave("eve"))
    match.do(commands.Sit(PLAYERS[2], 2))
    match.ready()
    match.deal()
    assert report_of(match).deals == {1: DealState.VERIFIED}


def test_who_blocked_a_throw_is_verified():
    match = Recorder("blocked", "classic-2d", throw_blockers="shown")
    match.found(PLAYERS, Pace(draw_ms=0))
    match.ready()
    match.declare()
    while not isinstance(match.state.phase, Tricks):
        match.turn()
    match.do(failing_throw(match))
    match.deal()
    assert report_of(match).deals == {1: DealState.VERIFIED}

    def others(commits):
        played = event_of(commits[0], "cards_played")
        assert played.blocked_by
        played.blocked_by[:] = [seat for seat in range(4) if seat not in (*played.blocked_by, played.seat)]

    first = versions_of(match.log, "cards_played")[0]
    report = verify.verify(match.table_id, rechained(match.log, others, first))
    assert report.problem.version == first


def failing_throw(match):
    """A lead of two singles of one suit that somebody can beat."""
    seat = match.state.phase.to_move
    for pair in combinations(sorted(match.state.phase.hands[seat]), 2):
        throw = commands.Play(PLAYERS[seat], match.state.version, bytes(pair))
        answer = decide(match.state, throw, Facts(match.now_us, SeededEntropy("asking"), ""))
        if not isinstance(answer, Refusal) and answer[0].cards_played.attempted:
            return throw
    raise AssertionError("no throw fails")


def test_a_table_that_everybody_leaves_is_verified():
    match = small("leaving")
    for player in PLAYERS:
        match.do(commands.Leave(player))
    report = report_of(match)
    assert report.closed
    assert not report.finished
    assert not report.deals


def test_a_deal_that_is_abandoned_is_verified():
    match = small("abandoned")
    match.ready()
    match.now_us += waits.IDLE_US
    match.do(commands.Close(2))
    report = report_of(match)
    assert report.deals == {1: DealState.VERIFIED}
    assert report.closed


def test_time_given_escapes_and_returns_are_verified():
    match = small("absence")
    match.ready()
    match.declare()
    while not isinstance(match.state.phase, Tricks):
        match.expire()
    match.now_us = waits.deadline_us(match.state) + 5_000_000
    match.do(commands.GiveTime())
    for _ in range(9):
        match.expire()
    seat = match.state.phase.to_move
    match.do(commands.SetAutoPlay(PLAYERS[seat], True))
    while isinstance(match.state.phase, Tricks):
        match.expire()
    assert report_of(match).deals == {1: DealState.VERIFIED}


def test_an_escape_is_verified():
    match = small("escape")
    match.ready()
    match.do(commands.Leave(PLAYERS[0]))
    match.deal(expiring=True)
    match.expire()
    match.deal(expiring=True)
    assert report_of(match).deals == {1: DealState.VERIFIED, 2: DealState.VERIFIED}


def test_a_player_who_comes_back_is_verified():
    match = Recorder("back", "classic-1d", kitty=42)
    match.found(PLAYERS, pace=Pace(draw_ms=0, away_turns=1))
    match.ready()
    match.declare()
    while not isinstance(match.state.phase, Tricks):
        match.expire()
    while not match.state.seats[match.state.phase.to_move].away:
        match.expire()
    match.turn()
    assert versions_of(match.log, "auto_play_set")[-1] == len(match.log)
    match.deal(expiring=True)
    assert report_of(match).deals == {1: DealState.VERIFIED}


def throw(match):
    """Leads everything that the leader holds in one suit, where that is a throw."""
    phase = match.state.phase
    player, version = PLAYERS[phase.to_move], match.state.version
    order = match.rules.engine().order(phase.deal.level, phase.settled.trump)
    suits = {}
    for card in phase.hands[phase.to_move]:
        suits.setdefault(order.suit(card), []).append(card)
    command = commands.Play(player, version, bytes(max(suits.values(), key=len)))
    if phase.trick or isinstance(
        decide(match.state, command, Facts(match.now_us, match.entropy, "")), Refusal
    ):
        match.turn()
    else:
        match.do(command)


@pytest.mark.parametrize("rules", ["classic-2d", "classic-4d"])
def test_throws_that_fail_are_verified(rules):
    match = Recorder("throws", rules)
    match.found(PLAYERS)
    match.ready()
    match.now_us = waits.all_drawn_us(match.state)
    match.declare()
    while not isinstance(match.state.phase, Tricks):
        match.turn()
    while isinstance(match.state.phase, Tricks):
        throw(match)
    plays = [
        event_of(Commit.FromString(match.log[v - 1]), "cards_played")
        for v in versions_of(match.log, "cards_played")
    ]
    failed = [play for play in plays if play.attempted]
    refused = versions_of(match.log, "throw_refused")
    assert refused if rules == "classic-4d" else failed
    assert report_of(match).deals == {1: DealState.VERIFIED}


def test_mutinies_and_counters_are_verified_and_what_is_forged_in_them_is_found():
    match = Recorder("joker 41", "tournament-2d", deals=3, kitty=60)
    match.found(PLAYERS)
    while match.state.match.outcome is None:
        match.ready()
        match.deal(expiring=match.state.match.deals == 2)
    report = report_of(match)
    mutinies, counters = versions_of(match.log, "mutiny_called"), versions_of(match.log, "countered")
    assert mutinies
    assert counters
    assert set(report.deals.values()) == {DealState.VERIFIED}
    assert len(report.deals) == 3 + len(mutinies) == len(versions_of(match.log, "deal_started"))
    for version, change in (
        (mutinies[0], lambda e: setattr(e.mutiny_called, "declarer", e.mutiny_called.seat)),
        (mutinies[0], lambda e: e.mutiny_called.cards.pop()),
        (counters[0], lambda e: setattr(e.countered, "trump", e.countered.trump % 5 + 1)),
        (counters[0] - 1, lambda e: setattr(e.passed, "seat", (e.passed.seat + 1) % 4)),
    ):
        forged = rechained(match.log, lambda tail, change=change: change(tail[0].events[0]), version)
        report = verify.verify(match.table_id, forged)
        assert report.problem is not None
        assert report.problem.version == version


def test_an_open_deal_with_a_counter_is_verified_as_far_as_it_goes():
    match = Recorder("joker 41", "tournament-2d", deals=3, kitty=60)
    match.found(PLAYERS)
    while not versions_of(match.log, "countered"):
        match.ready()
        match.now_us = waits.all_drawn_us(match.state)
        match.declare()
        while isinstance(match.state.phase, Dealt) and not versions_of(match.log[-1:], "countered"):
            match.turn()
    match.turn()
    report = report_of(match)
    assert list(report.deals.values())[-1] is DealState.OPEN


def test_a_deal_whose_key_was_lost_is_reported():
    match = small("lost")
    match.ready()
    match.declare()
    match.keyring = Keyring({"k2": bytes(range(1, 33))}, "k2")
    match.state = None
    for stored in match.log:
        match.read(stored)
    match.do(commands.VoidDeal())
    match.ready()
    match.deal()
    report = report_of(match)
    assert report.deals == {1: DealState.LOST, 2: DealState.VERIFIED}


def test_folding_what_was_stored_gives_the_state_that_was_decided(match):
    state = None
    for stored in match.log:
        state = evolve(
            state, open_commit(chain.decode(stored), current=seal_of(state), keyring=match.keyring)
        )
    assert state == match.state


def test_a_seed_other_than_the_one_committed_to_cannot_be_sealed():
    match = small("sealed")
    [opened] = [Commit.FromString(match.log[0]).events[0]]
    opened.table_opened.next_seed.ClearField("sealed_server_seed")
    opened.table_opened.next_seed.server_seed = bytes(32)
    [sealed] = seal_events(
        [opened],
        table_id=match.table_id,
        current=None,
        keyring=match.keyring,
        entropy=match.entropy,
        sealed_declarations=False,
    )
    match.do(commands.Leave(PLAYERS[3]))
    forged = rechained(match.log, lambda tail: tail[0].events[0].CopyFrom(sealed), 1)
    problem = verify.verify(match.table_id, forged).problem
    assert problem == verify.Problem(1, "event 0 is not what OpenTable leads to (table_opened)")


def test_commands_are_read_back_as_they_were_given(match):
    """A log's commands, given anew, make the same table."""
    state, rebuilt = None, Recorder("short", "classic-1d", kitty=42, deals=2)
    for stored in match.log:
        commit = chain.decode(stored)
        opened = open_commit(commit, current=seal_of(state), keyring=match.keyring)
        rebuilt.now_us = commit.recorded_at_us
        rebuilt.do(command_of(state, opened))
        state = evolve(state, opened)
    assert [Commit.FromString(stored).events for stored in rebuilt.log] == [
        Commit.FromString(stored).events for stored in match.log
    ]
