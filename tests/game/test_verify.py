import re

import pytest
from support.recorded import Recorder, event_of, rechained, short_match, versions_of

from services.game import chain, commands, verify
from services.game.errors import BadId
from services.game.local import PLAYERS
from services.game.verify import DealState
from services.pb.event.v1.event_pb2 import Event, Passed, Reveal, TableClosed
from services.pb.log.v1.log_pb2 import Commit


@pytest.fixture(scope="module")
def match():
    return short_match()


def test_a_finished_match_is_verified_from_its_bytes_alone(match):
    report = verify.verify(str(match.table_id), match.log, match.head)
    assert report.problem is None
    assert report.ok
    assert report.versions == len(match.log)
    assert report.deals == {1: DealState.VERIFIED, 2: DealState.VERIFIED}
    assert (report.finished, report.closed, report.insecure) == (True, True, True)
    assert report.head == match.head


@pytest.mark.parametrize(
    ("rules", "options"),
    [("classic-2d", {}), ("classic-1d-2c", {}), ("closed-1d", {}), ("classic-4d", {})],
)
def test_matches_by_other_rules_are_verified(rules, options):
    match = Recorder(rules, rules, insecure=False, deals=2, **options)
    match.found(PLAYERS)
    for expiring in (False, True):
        match.ready()
        match.deal(expiring)
    match.expire()
    report = verify.verify(match.table_id, match.log, match.head)
    assert report.problem is None
    assert list(report.deals.values()) == [DealState.VERIFIED] * 2
    assert report.closed
    assert not report.insecure


def test_every_cut_of_a_log_is_verified_as_far_as_it_goes(match):
    started, scored = versions_of(match.log, "deal_started"), versions_of(match.log, "deal_scored")
    for length in range(1, len(match.log)):
        report = verify.verify(match.table_id, match.log[:length])
        assert report.problem is None
        assert report.versions == length
        over = [version <= length for version in scored]
        begun = [version <= length for version in started]
        expected = [
            DealState.VERIFIED if o else DealState.OPEN for b, o in zip(begun, over, strict=True) if b
        ]
        assert list(report.deals.values()) == expected
        assert not report.closed
        cut = verify.verify(match.table_id, match.log[:length], match.head)
        assert cut.problem == verify.Problem(length, "its hash is not the expected head")


def test_any_changed_byte_is_found_and_its_version_named(match):
    for at, stored in enumerate(match.log):
        log = list(match.log)
        for place in range(at % 3, len(stored), 3):
            log[at] = stored[:place] + bytes([stored[place] ^ 1 << place % 8]) + stored[place + 1 :]
            problem = verify.verify(match.table_id, log, match.head).problem
            assert problem is not None
            assert problem.version == at + 1, (at + 1, place, problem)


def test_without_the_head_a_changed_byte_is_found_in_every_commit_but_the_last(match):
    for at, stored in enumerate(match.log[:-1]):
        log = list(match.log)
        log[at] = stored[:-1] + bytes([stored[-1] ^ 1])
        assert verify.verify(match.table_id, log).problem.version == at + 1


@pytest.mark.parametrize("added", [b"\xf8\x07\x01", b"\x40\x01"])
def test_a_commit_has_one_encoding(match, added):
    """A field that the format has not, and one given twice: with no later commit to tell, the form tells."""
    log = [*match.log[:-1], match.log[-1] + added]
    problem = verify.verify(match.table_id, log).problem
    assert problem == verify.Problem(len(log), "it is not encoded as commits are")


@pytest.mark.parametrize(
    ("change", "version"),
    [
        (lambda log: log.pop(5), 6),
        (lambda log: log.insert(5, log[4]), 6),
        (lambda log: log.reverse(), 1),
        (lambda log: log.__setitem__(slice(6, 8), [log[7], log[6]]), 7),
        (lambda log: log.__setitem__(3, b"\xff"), 4),
        (lambda log: log.__setitem__(3, b""), 4),
        (lambda log: log.__setitem__(3, log[3] + b"\xf8\x07\x01"), 4),
        (lambda log: log.clear(), 1),
    ],
)
def test_missing_doubled_and_foreign_commits_are_named(match, change, version):
    log = list(match.log)
    change(log)
    assert verify.verify(match.table_id, log).problem.version == version


def test_a_log_of_another_table_is_refused(match):
    other = short_match("another")
    problem = verify.verify(other.table_id, match.log).problem
    assert problem == verify.Problem(1, "it is of another table")
    with pytest.raises(BadId):
        verify.verify("*", match.log)


# Forgers who hash the chain anew


def with_event(kind, change):
    def apply(tail):
        change(event_of(tail[0], kind))

    return apply


def flip(message, field):
    value = getattr(message, field)
    setattr(message, field, bytes([value[0] ^ 1]) + value[1:])


def add(message, field, number=1):
    setattr(message, field, getattr(message, field) + number)


def swap_hands(started):
    started.sealed_hands.reverse()


def reorder_hands(started):
    hands = list(started.sealed_hands)
    del started.sealed_hands[:]
    started.sealed_hands.extend([hands[1], hands[0], *hands[2:]])


FORGERIES = [
    ("table_opened", lambda e: add(e.pace, "turn_ms", 10**6), "refused"),
    ("table_opened", lambda e: flip(e.next_seed, "salt"), "does not open"),
    ("table_opened", lambda e: setattr(e, "creator_id", "eve"), "not what OpenTable leads to"),
    ("table_opened", lambda e: e.rules.options[3].ClearField("value"), "malformed"),
    ("seat_taken", lambda e: setattr(e.seat, "player_id", ""), "refused"),
    ("seed_committed", lambda e: e.ClearField("discarded"), "is not revealed"),
    ("seed_committed", lambda e: e.ClearField("next_seed"), "."),
    ("seed_committed", lambda e: flip(e.discarded, "server_seed"), "not the one that was committed to"),
    ("seed_committed", lambda e: e.discarded.keys.pop(), "is not sealed|keys are not revealed"),
    ("seat_ready", lambda e: setattr(e, "client_seed", bytes(33)), "refused"),
    ("deal_started", lambda e: add(e, "first_drawer"), "."),
    ("deal_started", lambda e: add(e, "deal"), "no seed was committed"),
    ("deal_started", lambda e: e.client_seeds.__setitem__(2, bytes(32)), "not what the seeds give"),
    ("deal_started", swap_hands, "another audience"),
    ("deal_started", reorder_hands, "another audience"),
    ("deal_started", lambda e: flip(e.sealed_kitty, "ciphertext"), "kitty does not open"),
    ("deal_started", lambda e: flip(e.sealed_hands[3], "nonce"), "hand does not open"),
    ("deal_started", lambda e: e.sealed_hands.pop(), "hand is not sealed"),
    ("deal_started", lambda e: e.kitty.cards.append(1), "in the clear"),
    ("declared", lambda e: add(e, "count"), "not what Declare leads to"),
    ("declared", lambda e: e.cards.__setitem__(0, e.cards[0] % 52 + 1), "refused|not what Declare"),
    ("passed", lambda e: e.__setattr__("seat", (e.seat + 1) % 4), "not what Pass leads to"),
    ("passed", lambda e: e.__setattr__("seat", 77), "not what Pass leads to"),
    ("declaring_closed", lambda e: add(e, "trump"), "event 1 is not what Pass leads to"),
    ("kitty_taken", lambda e: setattr(e, "seat", (e.seat + 1) % 4), "another audience"),
    ("buried", lambda e: flip(e.sealed_cards, "ciphertext"), "buried does not open"),
    ("cards_played", lambda e: e.cards.__setitem__(0, e.cards[0] % 54 + 1), "refused"),
    ("cards_played", lambda e: e.cards.__setitem__(0, 0), "malformed"),
    ("cards_played", lambda e: e.attempted.extend([e.cards[0], e.cards[0]]), "refused"),
    ("trick_taken", lambda e: add(e, "points", 5), "event 1 is not what Play leads to"),
    ("trick_taken", lambda e: setattr(e, "seat", (e.seat + 1) % 4), "event 1 is not what Play leads to"),
    ("deal_scored", lambda e: add(e, "attackers_points", 40), "not what Play leads to"),
    ("deal_scored", lambda e: add(e, "nominal_levels"), "not what Play leads to"),
    ("deal_scored", lambda e: e.levels.__setitem__(0, e.levels[0] + 1), "not what Play leads to"),
    ("deal_scored", lambda e: e.kitty.__setitem__(0, e.kitty[0] % 54 + 1), "not what Play leads to"),
    ("deal_scored", lambda e: e.ClearField("reveal"), "is not revealed"),
    ("deal_scored", lambda e: e.reveal.CopyFrom(Reveal(deal=1)), "is not revealed"),
    ("deal_scored", lambda e: flip(e.reveal, "server_seed"), "not the one that was committed to"),
    ("deal_scored", lambda e: add(e.reveal, "deal"), "is not revealed"),
    ("deal_scored", lambda e: add(e.next_seed, "deal"), "."),
    ("deal_scored", lambda e: e.ClearField("next_seed"), "."),
    ("turn_expired", lambda e: setattr(e, "seat", (e.seat + 1) % 4), "not what Expire leads to"),
    ("match_ended", lambda e: add(e, "deals"), "not what Expire leads to"),
    ("table_closed", lambda e: setattr(e, "reason", 2), "refused"),
    ("table_closed", lambda e: setattr(e, "reason", 99), "refused"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "change", "what"), FORGERIES)
def test_a_forged_event_is_found_though_the_chain_holds(match, kind, change, what):
    version = versions_of(match.log, kind)[0]
    log = rechained(match.log, with_event(kind, change), version)
    problem = verify.verify(match.table_id, log, chain.commit_hash(log[-1])).problem
    assert problem is not None
    assert problem.version == version, problem
    assert re.search(what, problem.what), problem


def test_a_forged_commitment_is_found_where_its_seed_is_revealed(match):
    forged = with_event("table_opened", lambda event: flip(event.next_seed, "commitment"))
    problem = verify.verify(match.table_id, rechained(match.log, forged, 1)).problem
    assert problem == verify.Problem(2, "the seed revealed is not the one that was committed to")


def test_a_forged_time_is_found(match):
    version = versions_of(match.log, "turn_expired")[0]

    def earlier(tail):
        tail[0].recorded_at_us = Commit.FromString(match.log[version - 2]).recorded_at_us + 1

    problem = verify.verify(match.table_id, rechained(match.log, earlier, version)).problem
    assert problem == verify.Problem(version, "Expire should have been refused: wrong_phase")

    def backwards(tail):
        tail[0].recorded_at_us = Commit.FromString(match.log[version - 2]).recorded_at_us - 1

    problem = verify.verify(match.table_id, rechained(match.log, backwards, version)).problem
    assert problem == verify.Problem(version, "it was recorded before the previous commit")


def played_by(tail):
    tail[0].actor.player_id = "eve"


def by_the_server(tail):
    tail[0].ClearField("actor")
    tail[0].ClearField("command_id")
    tail[0].ClearField("command_check")


def unknown_event(tail):
    tail[0].events.add()


def one_event_less(tail):
    del tail[0].events[-1]


def one_event_more(tail):
    tail[0].events.append(Event(passed=Passed(seat=1)))


FORGED_COMMITS = [
    (change, kind)
    for change in (played_by, by_the_server, unknown_event, one_event_less, one_event_more)
    for kind in ("table_opened", "seat_taken", "declaring_closed", "trick_taken", "deal_scored")
    if (change, kind) != (played_by, "seat_taken")  # who may seat a player is not for the rules to say
]


@pytest.mark.parametrize(("change", "kind"), FORGED_COMMITS)
def test_forged_commits_are_found_though_the_chain_holds(match, change, kind):
    version = versions_of(match.log, kind)[0]
    problem = verify.verify(match.table_id, rechained(match.log, change, version)).problem
    assert problem is not None
    unrevealed = (change, kind) == (one_event_less, "deal_scored")
    assert problem.version == version + unrevealed, problem


def test_one_player_may_seat_another(match):
    version = versions_of(match.log, "seat_taken")[0]
    assert verify.verify(match.table_id, rechained(match.log, played_by, version)).problem is None


def test_left_out_and_added_commits_are_found_though_the_chain_holds(match):
    for version in range(1, len(match.log)):
        left_out = rechained(match.log, lambda tail: tail.pop(0), version)
        assert verify.verify(match.table_id, left_out).problem.version >= version
    for version in (2, 10, 20, len(match.log)):
        doubled = rechained(match.log, lambda tail: tail.insert(0, tail[0]), version)
        assert verify.verify(match.table_id, doubled).problem.version >= version
    closing = Event(table_closed=TableClosed(reason=1))

    def go_on(tail):
        tail.append(Commit.FromString(match.log[-1]))
        del tail[-1].events[:]
        tail[-1].events.append(closing)

    after_the_end = rechained(match.log, go_on, len(match.log))
    problem = verify.verify(match.table_id, after_the_end).problem
    assert problem == verify.Problem(len(match.log) + 1, "Close should have been refused: table_closed")


def test_a_seed_is_never_used_twice():
    class Stuck:
        """Entropy that has run dry."""

        def bytes(self, n):
            return bytes(range(n))

        def for_commit(self, table_id, version):
            return self

    match = Recorder("stuck", "classic-1d", kitty=42)
    match.entropy = Stuck()
    match.found(PLAYERS)
    match.do(commands.Leave(PLAYERS[3]))
    problem = verify.verify(match.table_id, match.log).problem
    assert problem == verify.Problem(2, "a seed or a salt is used for the second time")
