"""What the log tells a reader of its ``d`` commits alone: gaps, failed throws, ends; and it is verified."""

from dataclasses import replace

import pytest
from support.recorded import Recorder, event_of, rechained, short_match, versions_of
from support.scene import founding

from services.game import chain, commands, verify
from services.game.decide import kind_of
from services.game.evolve import evolve, fold
from services.game.local import PLAYERS
from services.game.state import Closed
from services.pb.event.v1 import event_pb2 as pb
from services.pb.log.v1.log_pb2 import Commit


@pytest.fixture(scope="module")
def match():
    return short_match("for the ledger")


def decoded(log):
    return [chain.decode(stored) for stored in log]


def problem_of(match, log):
    return verify.verify(match.table_id, log).problem


def older(commits):
    """Commits as they were written before they named ``previous_d`` and who threw in vain."""
    for commit in commits:
        commit.previous_d = 0
        for event in commit.events:
            if event.HasField("deal_scored"):
                event.deal_scored.ClearField("failed_throws")


def test_every_commit_names_the_newest_one_of_kind_d_before_it(match):
    newest, state = 0, None
    for commit in decoded(match.log):
        assert commit.previous_d == newest
        state = evolve(state, commit)
        newest = commit.version if kind_of(tuple(commit.events)) == "d" else newest
        assert state.newest_d == newest
    assert newest == len(match.log)


def test_a_reader_of_the_d_commits_alone_sees_every_gap(match):
    kept = [commit for commit in decoded(match.log) if kind_of(tuple(commit.events)) == "d"]
    assert [commit.previous_d for commit in kept] == [0, *(commit.version for commit in kept[:-1])]


def test_a_wrong_previous_d_is_found(match):
    for version in (1, 2, 7, len(match.log)):
        for wrong in (version, 3 if version == 2 else 2**40):
            change = lambda tail, wrong=wrong: setattr(tail[0], "previous_d", wrong)  # noqa: E731
            problem = problem_of(match, rechained(match.log, change, version))
            assert problem.version == version
            assert "previous_d" in problem.what


def test_older_logs_name_none_and_verify_and_fold_as_before(match):
    old = rechained(match.log, older, 1)
    assert problem_of(match, old) is None
    assert fold(decoded(old)).match == fold(decoded(match.log)).match


def test_a_table_may_have_begun_before_commits_named_it_but_never_stops(match):
    for cut in range(1, len(match.log)):
        began_before = rechained(match.log, lambda tail, cut=cut: older(tail[:cut]), 1)
        assert problem_of(match, began_before) is None, cut
        if cut > 1:
            stopped = rechained(match.log, lambda tail: older(tail[:1]), cut + 1)
            assert problem_of(match, stopped).version == cut + 1


def test_failed_throws_are_verified(match):
    version = versions_of(match.log, "deal_scored")[0]

    def forge(failed):
        def change(tail):
            event_of(tail[0], "deal_scored").failed_throws[:] = failed

        return rechained(match.log, change, version)

    assert list(event_of(decoded(match.log)[version - 1], "deal_scored").failed_throws) == [0, 0, 0, 0]
    assert problem_of(match, forge([0, 0, 0, 0])) is None
    for failed in ([1, 0, 0, 0], [0, 0, 0], []):
        assert problem_of(match, forge(failed)).version == version


def unfunded(deals):
    """A match with a stake that a service ended after so many deals."""
    match = Recorder("unfunded", "classic-1d", kitty=42, deals=3)
    plans = tuple(commands.SeatPlan(player) for player in PLAYERS)
    match.do(
        replace(
            founding("classic-1d", kitty=42, deals=3, stake=100),
            table_id=match.table_id,
            player_id="svc:lobby",
            seats=plans,
            operator="acme",
            rake_permille=25,
            prize=5000,
            insecure_entropy=match.insecure,
        )
    )
    for _ in range(deals):
        match.ready()
        match.deal()
    match.do(commands.EndUnfunded("svc:ledger"))
    return match


@pytest.mark.parametrize("deals", [0, 1])
def test_a_match_that_ended_unfunded_is_verified(deals):
    match = unfunded(deals)
    report = verify.verify(match.table_id, match.log, match.head)
    assert report.problem is None
    assert (report.closed, report.finished, len(report.deals)) == (True, False, deals)
    assert match.state.phase == Closed(pb.CLOSE_REASON_UNFUNDED)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda commit: setattr(commit.actor, "player_id", "north"), "not_yours"),
        (lambda commit: commit.ClearField("actor"), "bad_input"),
        (lambda commit: setattr(commit.events[0].table_closed, "reason", 1), "not what EndUnfunded"),
        (lambda commit: commit.events[0].table_closed.ClearField("reveal"), "not revealed"),
    ],
)
def test_a_forged_end_is_found(change, what):
    match = unfunded(1)
    version = len(match.log)

    def forge(tail: list[Commit]):
        change(tail[0])

    problem = problem_of(match, rechained(match.log, forge, version))
    assert problem.version == version
    assert what in problem.what
