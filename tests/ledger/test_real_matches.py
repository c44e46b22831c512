"""Logs of real matches, decided and sealed in process, also as they were before newer fields."""

import pytest
from support.ledgers import feed, rows, whole
from support.recorded import PLAYERS, Recorder

from services.game.commands import Leave, OpenTable, SeatPlan
from services.game.decide import kind_of
from services.game.state import Over, Pace, Scored, Seating
from services.ledger.folding import Fold, entry
from services.ledger.schema import deals, matches
from services.pb.ledger.v1.ledger_service_pb2 import MatchState
from services.pb.log.v1.log_pb2 import Commit

QUICK = {"kitty": 42, "kitty_card": 3}


class Staked(Recorder):
    """A table with a stake and three cards a hand."""

    def found(self, seats=PLAYERS, pace=None, stake=10):
        plans = tuple(SeatPlan(player) for player in seats)
        self.do(
            OpenTable(
                self.table_id,
                PLAYERS[0],
                self.rules,
                seats=plans,
                pace=pace or Pace(draw_ms=10),
                stake=stake,
                insecure_entropy=self.insecure,
            )
        )

    def entries(self):
        """What the ledger reads."""
        found, number = [], 0
        for stored in self.log:
            commit = Commit.FromString(stored)
            if kind_of(tuple(commit.events)) == "d":
                number += 1
                found.append(entry(0, number, self.table_id, stored))
        return found


def played(deals=2, **overrides):
    match = Staked("staked", "classic-1d", deals=deals, **QUICK, **overrides)
    match.found()
    while not isinstance(match.state.phase, Over):
        match.ready()
        if isinstance(match.state.phase, Seating | Scored):
            match.expire()  # who has escaped is not ready
        match.deal()
    match.expire()
    return match


@pytest.mark.parametrize("deals_played", [1, 3])
async def test_a_real_match_is_settled_to_the_chip(database, deals_played):
    match = played(deals=deals_played)
    fold = Fold(1000)
    for made in match.entries():
        fold.apply(made, 1)
    assert not fold.alarms
    assert not fold.parked
    book = fold.books[match.table_id]
    assert book.state == MatchState.MATCH_STATE_FINISHED
    assert book.rated == (not any(book.escaped))
    assert book.scored == len(fold.deals) >= 1
    for seat, player in enumerate(PLAYERS):
        assert fold.journal.balances[f"available:{player}"] == 1000 + book.won[seat]
    assert sum(book.won) == 0
    await feed(database, [match.entries()])
    assert len(await rows(database, deals)) == book.scored
    assert (await whole(database))["holds"] == []
    assert [row[2] for row in await rows(database, matches)] == [book.state]


def test_who_leaves_in_mid_match_escapes_and_pays_where_the_rules_say_so():
    match = Staked("escape", "classic-1d", deals=1, escape_fee=True, **QUICK)
    match.found(pace=Pace(draw_ms=10, away_turns=100))
    match.ready()
    match.do(Leave(PLAYERS[3]))
    match.deal(expiring=True)
    assert isinstance(match.state.phase, Over | Scored)
    fold = Fold(1000)
    for made in match.entries():
        fold.apply(made, 1)
    assert fold.journal.balances["house:fees"] == 50
    assert fold.books[match.table_id].escaped[3]


def test_a_gap_in_an_old_log_shows_in_the_numbers_of_its_deals():
    entries = played(deals=3).entries()
    scored = [
        number
        for number, made in enumerate(entries)
        if any(event.HasField("deal_scored") for event in made.commit.events)
    ]
    fold = Fold(1000)
    for number, made in enumerate(entries):
        if number != scored[0]:
            made.commit.previous_d = 0
            fold.apply(made, 1)
    assert fold.parked[entries[0].table_id].why == "gap"
    fold.apply(entries[scored[0]], 1)
    assert not fold.parked
    assert fold.books[entries[0].table_id].closed
