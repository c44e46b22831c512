"""Settling, as pure functions: RULES §9 case by case, and whole worlds against a second telling of it."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledger_oracle import expected, totals
from support.ledger_tables import Table

from services.bench.ledger_logs import Mix, World
from services.ledger.books import DealResult, available, held, transfer_id
from services.ledger.folding import Fold, entry
from services.ledger.moving import Why
from services.pb.ledger.v1.ledger_service_pb2 import MatchState, Purpose

GRANT = 1000
BROKE = Mix(people=9, stakes=(0, 7, 50, 90), parallel=2, options=0.6, escapes=0.15, bots=0.2)
"""People who run out of chips soon."""


def folded(messages, grant=GRANT):
    fold = Fold(grant)
    for message in messages:
        fold.apply(entry(*message[:4]), 1)
    return fold


def check_sums(fold):
    sums, after = Counter(), {}
    for transfer_of, account, amount, balance_after, _, _ in fold.journal.postings:
        sums[transfer_of] += amount
        after[account] = balance_after
        assert balance_after >= 0 or account.split(":")[0] in {"house", "operator"}
    assert set(sums.values()) <= {0}
    assert {account: fold.journal.balances[account] for account in after} == after
    assert len({row[0] for row in fold.journal.transfers}) == len(fold.journal.transfers)


class TestOneTable:
    def test_a_deal_is_paid_to_the_winners_in_equal_parts(self):
        table = Table(stake=10)
        table.score(1, levels=2)
        assert table.won == [-20, 20, -20, 20]
        assert table.held == [80] * 4

    def test_no_level_gained_still_costs_one_stake(self):
        table = Table(stake=10)
        table.score(0, levels=0)
        assert table.won == [10, -10, 10, -10]

    def test_a_table_without_stake_moves_nothing(self):
        table = Table(stake=0)
        table.score(1, levels=3)
        assert table.purposes() == [Purpose.PURPOSE_GRANT] * 4
        assert table.deals == [DealResult(1, 80, 1, 3, (0, 0, 0, 0), table.at_us, table.version)]

    def test_who_has_less_pays_what_there_is_and_the_odd_chip_goes_to_the_lower_seat(self):
        table = Table(stake=10, grant=85)
        table.score(0, levels=8)
        table.score(0, levels=8)
        assert table.owned == [170, 0, 170, 0]
        assert table.won == [5, -5, 5, -5]
        assert table.book.unfunded == (1, 3)

    def test_odd_chips_of_a_pot(self):
        table = Table(stake=1, grant=11, bots={1})
        table.score(0, levels=20)
        assert table.won == [16, -20, 15, -11]

    def test_held_chips_are_filled_up_before_and_released_after(self):
        table = Table(stake=10, grant=100)
        assert (table.available, table.held) == ([20] * 4, [80] * 4)
        table.score(0, levels=5)
        assert (table.available, table.held) == ([70, 0, 70, 0], [80, 50, 80, 50])
        assert table.book.unfunded == (1, 3)
        table.score(1, levels=5)
        assert (table.available, table.held) == ([20] * 4, [80] * 4)
        assert table.book.unfunded == ()
        table.end(1)
        assert (table.available, table.held) == ([100] * 4, [0] * 4)
        assert table.book.state == MatchState.MATCH_STATE_FINISHED
        assert table.book.rated
        assert not table.fold.bound

    def test_bots_pay_and_win_without_limit(self):
        table = Table(stake=10, grant=100, bots={1, 3})
        table.score(0, levels=50)
        assert table.won == [500, -500, 500, -500]
        assert table.fold.journal.balances["house:bots"] == -1000
        table.end(0)
        assert not table.book.rated

    def test_failed_throws_cost_quarters_rounded_down(self):
        table = Table(stake=11, options={"failed_throw_quarters": "1"})
        table.score(0, levels=1, failed=(3, 0, 0, 1))
        assert table.won == [-12 + 2 + 11, 6 - 11, 2 + 11, -4 + 6 - 11]

    def test_failed_throws_are_free_without_the_option(self):
        table = Table(stake=11)
        table.score(0, levels=1, failed=(3, 0, 0, 1))
        assert table.won == [11, -11, 11, -11]

    def test_an_escape_costs_eight_stakes_of_which_the_house_gets_five(self):
        table = Table(stake=10, options={"escape_fee": "true"})
        table.escape(2)
        table.score(0, levels=1)
        assert table.won == [10 + 10, 10 - 10, -80 + 10, 10 - 10]
        assert table.fold.journal.balances["house:fees"] == 50
        table.end(0)
        assert not table.book.rated

    def test_an_escape_of_who_has_less_goes_to_the_others_first(self):
        table = Table(stake=10, grant=80, options={"escape_fee": "true"})
        table.score(1, levels=7)  # seats 0 and 2 have 10 left
        table.escape(0)
        table.score(1, levels=1)
        assert table.won == [-10, 4 + 5, 3 - 10, 3 + 5]
        assert table.owned[0] == 0
        assert not table.fold.journal.balances.get("house:fees")

    def test_an_escape_is_free_without_the_option(self):
        table = Table(stake=10)
        table.escape(2)
        assert table.owned == [GRANT] * 4
        assert table.book.escaped == (False, False, True, False)

    def test_who_escaped_ends_no_match_for_want_of_chips(self):
        table = Table(stake=10, grant=80, options={"escape_fee": "true"})
        table.escape(0)
        table.score(0, levels=1)
        assert table.owned == [10, 80, 100, 80]
        assert table.book.unfunded == ()

    def test_rake_and_prize_go_through_the_operator(self):
        table = Table(stake=10, operator="acme", rake=125, prize=101)
        table.score(1, levels=3)
        assert table.won == [-30, 27, -30, 27]
        assert table.fold.journal.balances["operator:acme"] == 6
        table.end(0)
        assert table.fold.journal.balances["operator:acme"] == -95
        assert table.owned == [1000 - 30 + 51, 1027, 1000 - 30 + 50, 1027]
        assert table.book.won == (21, 27, 20, 27)

    def test_a_draw_has_no_prize(self):
        table = Table(stake=0, prize=100)
        table.score(1)
        table.end(None)
        assert table.owned == [GRANT] * 4
        assert table.book.winning_side == -1
        assert table.book.rated

    def test_redeals_and_voids_pay_nothing(self):
        table = Table(stake=10)
        table.void()
        table.mutiny()
        assert table.owned == [GRANT] * 4
        assert table.book.ended == 2
        assert table.book.scored == 0

    def test_a_closed_table_gives_everything_back_unrated(self):
        table = Table(stake=10)
        table.score(1)
        table.close()
        assert table.held == [0] * 4
        assert table.book.state == MatchState.MATCH_STATE_BROKEN_OFF
        assert not table.book.rated

    def test_chips_are_held_when_the_fourth_seat_is_taken_and_given_back_when_one_is_left(self):
        table = Table(stake=10, seated=2)
        assert table.held == [0, 0, 0, 0]
        table.sit(2)
        table.sit(3)
        assert table.held == [80] * 4
        table.leave(1)
        assert table.fold.journal.balances[held("p0")] == 0
        assert not table.fold.bound
        table.sit(1)
        assert table.held == [80] * 4

    def test_who_cannot_hold_from_the_start_is_named(self):
        table = Table(stake=10, grant=79)
        assert table.book.unfunded == (0, 1, 2, 3)


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("spoil", "why"),
        [
            (lambda commit: commit.events[0].deal_scored.__setattr__("winning_side", 2), Why.POISON),
            (lambda commit: commit.events.add(), Why.POISON),
            (lambda commit: commit.events[0].deal_scored.__setattr__("deal", 3), Why.GAP),
            (lambda commit: commit.__setattr__("previous_d", commit.version - 1), Why.GAP),
            (lambda commit: commit.events.add().table_opened.SetInParent(), Why.POISON),
        ],
    )
    def test_a_commit_that_makes_no_sense_parks_the_table_and_moves_nothing(self, spoil, why):
        table = Table(stake=10)
        before = dict(table.fold.journal.balances)
        table.score(1, spoil=spoil)
        assert table.fold.parked[table.table_id].why is why
        assert table.fold.journal.balances == before
        table.score(1)
        assert table.fold.journal.balances == before

    def test_nothing_follows_the_end(self):
        table = Table(stake=10)
        table.close()
        table.score(1)
        assert table.fold.parked[table.table_id].why is Why.POISON

    def test_the_same_commit_again_changes_nothing_and_another_one_is_an_alarm(self):
        table = Table(stake=10)
        table.score(1)
        before = dict(table.fold.journal.balances)
        table.again()
        assert (table.fold.skipped, table.fold.alarms) == (1, [])
        table.again(lambda commit: commit.__setattr__("recorded_at_us", 9))
        assert table.fold.alarms == [(table.table_id, Why.CONFLICT)]
        assert table.fold.journal.balances == before

    def test_a_commit_of_another_history_is_an_alarm(self):
        table = Table(stake=10)
        table.score(1)
        table.score(1, spoil=lambda commit: commit.__setattr__("previous_d", 1))
        assert table.fold.alarms == [(table.table_id, Why.CONFLICT)]

    def test_bytes_that_are_no_commit(self):
        table = Table(stake=10)
        table.fold.apply(entry(0, 9, table.table_id, b"\xff\xff"), 5)
        assert table.fold.alarms == [(table.table_id, Why.POISON)]
        other = Table(stake=10)
        table.fold.apply(entry(0, 9, table.table_id, other.last), 5)


class TestWorlds:
    @given(st.integers(0, 2**32))
    @settings(max_examples=40, deadline=None)
    def test_everybody_owns_what_the_rules_say(self, seed):
        messages = World(Random(seed), BROKE).messages(30)
        fold = folded(messages)
        chips, oracle = expected(messages, GRANT)
        assert not fold.alarms
        assert not fold.parked
        assert totals(fold.journal.balances) == chips
        check_sums(fold)
        results = {}
        for table_id, deal in fold.deals:
            results.setdefault(table_id, []).append(list(deal.won))
        assert results == dict(oracle.deals)
        assert not fold.bound
        assert not any(amount for name, amount in fold.journal.balances.items() if name.startswith("held:"))

    @given(st.integers(0, 2**32))
    @settings(max_examples=20, deadline=None)
    def test_tables_wait_for_who_still_plays_elsewhere_and_all_end_well(self, seed):
        messages = World(Random(seed), replace(BROKE, hurried=0.7, parallel=4)).messages(30)
        fold = folded(messages)
        assert not fold.alarms
        assert not fold.parked
        check_sums(fold)
        assert sum(fold.journal.balances.values()) == 0
        assert not fold.bound

    def test_a_thousand_deals(self):
        messages = World(Random(5), replace(BROKE, people=60, parallel=9)).messages(1000)
        fold = folded(messages)
        assert totals(fold.journal.balances) == expected(messages, GRANT)[0]
        assert len(fold.deals) >= 1000
        check_sums(fold)


def test_ids_of_transfers_are_uuids_of_version_5():
    import uuid

    made = uuid.UUID(bytes=transfer_id("tbl/1/settlement"))
    assert made == uuid.uuid5(uuid.UUID("5d0c3c1e-9d0e-5c5e-8f0a-7a5c1b9e6d42"), "tbl/1/settlement")
    assert available("x") != held("x")
