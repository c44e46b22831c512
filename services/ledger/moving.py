"""A commit in the middle of being settled: what everybody has by now, what moved, who is bound.

The rules that use this are in settling.py.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from operator import add
from typing import Any, Final, NamedTuple

from services.ledger.books import (
    BOTS,
    GRANTS,
    SEATS,
    DealResult,
    TableBook,
    Transfer,
    available,
    held,
    purses,
    transfer_id,
)
from services.pb.event.v1 import event_pb2 as events_pb
from services.pb.ledger.v1.ledger_service_pb2 import (
    MATCH_STATE_OPEN,
    PURPOSE_GRANT,
    PURPOSE_HOLD,
    PURPOSE_RELEASE,
)
from services.pb.log.v1.log_pb2 import Commit

HOLD_STAKES: Final = 8
"""Base stakes that are held of each person at a table."""


class Why(StrEnum):
    """Why a table's commits are kept aside; a closed set, fit for a metric's label."""

    GAP = "gap"
    """A commit before this one has not come."""
    WAITS = "waits"
    """A player's chips are held at another table, whose end must come first; heals by itself."""
    POISON = "poison"
    """A commit that cannot be read or means nothing here."""
    CONFLICT = "conflict"
    """Other content under a version or a transfer's id that was there before."""


class Unsettled(Exception):
    """A commit that cannot have its effect now.

    Attributes:
        why: the reason.
        waits_for: the table whose end is waited for.
    """

    def __init__(self, why: Why, detail: str = "", waits_for: str = "") -> None:
        super().__init__(f"{why}: {detail}" if detail else why.value)
        self.why = why
        self.waits_for = waits_for


class Funds(NamedTuple):
    """What players have, as far as one commit can need it."""

    balances: Mapping[str, int]
    """By account; the available account of everybody who was ever seen is there."""
    bound: Mapping[str, str]
    """Player → the table that holds the player's chips."""
    at_table: Mapping[str, Collection[str]]
    """The same the other way round."""
    grant: int
    """The opening grant."""


class Settled(NamedTuple):
    """What a commit comes to."""

    book: TableBook
    transfers: list[Transfer]
    met: Collection[str]
    """Accounts of people who are seen for the first time; with no opening grant nothing moves there."""
    binds: Collection[str]
    """People who are bound to the table from now on."""
    frees: Collection[str]
    """People who were, and are not any more."""
    deal: DealResult | None
    """The deal that was scored with it."""


class Work:
    """A commit being settled: the book as it becomes, and what moves."""

    def __init__(self, book: TableBook, commit: Commit, funds: Funds) -> None:
        self.before = book
        self.book = book
        self.purses = purses(book.players, book.difficulties)
        """The accounts behind the seats; None for bots and free seats."""
        self.at_us = commit.recorded_at_us
        self.version = commit.version
        self._funds = funds
        self._balances = funds.balances
        self._changed: dict[str, int] = {}
        self._transfers: list[Transfer] = []
        self._met: list[str] = []
        self._binds: list[str] = []
        self._frees: list[str] = []
        self.scored: events_pb.DealScored | None = None
        self.gained = [0] * SEATS
        """What the seats won with this commit."""
        self.deal_won = list(book.deal_won)

    # What accounts have, and moving it

    def has(self, account: str) -> int:
        """What is in an account now."""
        balance = self._changed.get(account)
        return self._balances.get(account, 0) if balance is None else balance

    def take(self, seat: int, most: int, moved: dict[str, int]) -> int:
        """Take chips of a seat, available ones first and never more than there are; how many it had.

        Args:
            seat: who pays. A bot's account has no bottom.
            most: how many at most.
            moved: gets what is taken of each account.
        """
        purse = self.purses[seat]
        if purse is None:
            moved[BOTS] = moved.get(BOTS, 0) - most
            return most
        taken = 0
        for account in purse:
            there = moved.get(account, 0)
            some = min(most - taken, self.has(account) + there)
            if some > 0:
                moved[account] = there - some
                taken += some
                if taken == most:
                    break
        return taken

    def give(self, seat: int, amount: int, moved: dict[str, int]) -> None:
        """Give chips to a seat."""
        purse = self.purses[seat]
        account = BOTS if purse is None else purse.free
        moved[account] = moved.get(account, 0) + amount

    def transfer(self, name: str, purpose: int, deal: int, moved: Mapping[str, int]) -> None:
        """Make a transfer of what was moved, if anything was.

        Args:
            name: what its id is made of, after the table's id; a name without a table begins with a slash.
            purpose: Purpose of ledger.v1.
            deal: the deal, 0 for none.
            moved: what each account gets.
        """
        if 0 in moved.values():
            moved = {account: amount for account, amount in moved.items() if amount}
        if not moved:
            return
        if sum(moved.values()):
            raise Unsettled(Why.POISON, f"{name} does not sum to zero")
        changed, balances = self._changed, self._balances
        for account, amount in moved.items():
            before = changed[account] if account in changed else balances.get(account, 0)
            changed[account] = before + amount
        table_id, version = ("", 0) if name[0] == "/" else (self.book.table_id, self.version)
        identity = transfer_id(name[1:] if name[0] == "/" else f"{table_id}/{name}")
        self._transfers.append(
            Transfer(identity, purpose, table_id, deal, version, self.at_us, tuple(moved.items()))
        )

    def won(self, seat: int, amount: int) -> None:
        """Count what a seat won with the deal, negative when it lost."""
        self.gained[seat] += amount
        self.deal_won[seat] += amount

    # Who sits where, and binding people to the table

    def sit(self, seat: int, player: str, difficulty: int, **changes: Any) -> None:
        """Change who is on a seat, and what else of the book changes with it."""
        book = self.book
        players = (*book.players[:seat], player, *book.players[seat + 1 :])
        difficulties = (*book.difficulties[:seat], difficulty, *book.difficulties[seat + 1 :])
        self.purses = purses(players, difficulties)
        self.book = book.replace(players=players, difficulties=difficulties, **changes)

    def meet(self, players: Iterable[str]) -> None:
        """Give an account, and the opening grant, to people who are seen for the first time."""
        for player in players:
            account = available(player)
            if account in self._changed or account in self._balances:
                continue
            self._changed[account] = 0
            self._met.append(account)
            grant = self._funds.grant
            self.transfer(f"/grant/{player}", PURPOSE_GRANT, 0, {GRANTS: -grant, account: grant})

    def hold(self, name: str, deal: int) -> None:
        """Hold eight base stakes of each person, or what there is; who has less is noted in the book."""
        book, has = self.book, self.has
        wanted = HOLD_STAKES * book.stake
        moved: dict[str, int] = {}
        unfunded: list[int] = []
        for seat, purse in enumerate(self.purses):
            if purse is None:
                continue
            free, kept = purse
            missing = wanted - has(kept)
            if missing > 0:
                some = min(missing, has(free))
                moved[free], moved[kept] = -some, some
                if some < missing and not book.escaped[seat]:
                    unfunded.append(seat)
        if moved:
            self.transfer(name, PURPOSE_HOLD, deal, moved)
        if unfunded or book.unfunded:
            self.book = book.replace(unfunded=tuple(unfunded))

    def bind(self) -> None:
        """Bind the four seats' people to the table and hold their stakes: all at once, or the table waits.

        A table that waits holds nothing, so two tables never wait for each other.
        """
        people = self.book.people()
        for player in people:
            elsewhere = self._funds.bound.get(player)
            if elsewhere is not None and elsewhere != self.book.table_id:
                raise Unsettled(Why.WAITS, waits_for=elsewhere)
        self._binds += people
        self.book = self.book.replace(held=True)
        self.hold(f"0/hold/v{self.version}", 0)

    def release(self, players: Iterable[str], name: str) -> None:
        """Give people their held chips back and let them go."""
        moved: dict[str, int] = {}
        for player in players:
            self._frees.append(player)
            kept = self.has(held(player))
            moved[held(player)], moved[available(player)] = -kept, kept
        self.transfer(name, PURPOSE_RELEASE, self.book.ended, moved)

    def everybody_bound(self) -> list[str]:
        """All people whose chips the table holds, also those who never sat down."""
        return sorted(self._funds.at_table.get(self.book.table_id, ()))

    def over(self, state: int) -> None:
        """The match is over, one way or the other: everything that is held is given back."""
        self.book = self.book.replace(state=state, ended_at_us=self.at_us, unfunded=())
        self.release(self.everybody_bound(), f"{self.book.ended}/release")

    # The end of the commit

    def done(self) -> Settled:
        """What it came to; holds are made, or filled up again, after everything else."""
        book, scored, deal = self.book, self.scored, None
        if book.state == MATCH_STATE_OPEN and book.moves_money:
            if scored is not None:
                self.hold(f"{scored.deal}/hold", scored.deal)
            elif not book.held and all(book.players):
                self.bind()
        won = tuple(self.deal_won)
        total = tuple(map(add, book.won, self.gained)) if any(self.gained) else book.won
        if scored is not None:
            deal = DealResult(
                scored.deal,
                scored.attackers_points,
                scored.winning_side,
                scored.nominal_levels,
                won,
                self.at_us,
                self.version,
            )
            won = (0,) * SEATS
        book = self.book.replace(version=self.version, won=total, deal_won=won)
        return Settled(book, self._transfers, self._met, self._binds, self._frees, deal)


def in_parts(amount: int, number: int) -> list[int]:
    """Chips in equal parts; the odd ones go to the first."""
    share, odd = divmod(amount, number)
    return [share + 1] * odd + [share] * (number - odd)
