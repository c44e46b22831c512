"""What an audit compares: the books in themselves, and a ledger's database with the logs settled anew.

Every check goes through what it looks at in a fixed order and gives each difference that it meets.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Final, NamedTuple

from services.ledger.books import GRANTS, TableBook, Transfer, available, held, player_of, transfer_id
from services.ledger.folding import Fold
from services.ledger.ratings import RatedMatch, rate_all, standing_row
from services.ledger.snapshot import Moved, Snapshot
from services.pb.ledger.v1 import ledger_service_pb2 as pb

_OUTSIDE: Final = frozenset(
    {
        pb.PURPOSE_GRANT,
        pb.PURPOSE_HOLD,
        pb.PURPOSE_RELEASE,
        pb.PURPOSE_REVERSAL,
        pb.PURPOSE_ADJUSTMENT,
    }
)
"""What may move chips without a commit."""


class Difference(NamedTuple):
    """One thing that is not as it should be."""

    what: str
    table_id: str = ""
    deal: int = 0
    account: str = ""
    expected: object = None
    found: object = None

    def __str__(self) -> str:
        where = [self.what]
        where += [f"table {self.table_id}"] if self.table_id else []
        where += [f"deal {self.deal}"] if self.deal else []
        where += [f"account {self.account}"] if self.account else []
        return f"{', '.join(where)}: expected {self.expected}, found {self.found}"


# The books in themselves


def books_in_themselves(found: Snapshot) -> Iterator[Difference]:
    """Sums, signs and running balances, from the postings alone."""
    running: Counter[str] = Counter()
    sums: Counter[bytes] = Counter()
    for posting in found.postings:
        moved = found.transfers.get(posting.transfer_id)
        table_id, deal = (moved.transfer.table_id, moved.transfer.deal) if moved else ("", 0)
        if moved is None:
            yield Difference("posting", account=posting.account, expected="a transfer", found="none")
        sums[posting.transfer_id] += posting.amount
        running[posting.account] += posting.amount
        after = running[posting.account]
        if posting.balance_after != after:
            yield Difference(
                "balance after a posting", table_id, deal, posting.account, after, posting.balance_after
            )
        if after < 0 and player_of(posting.account) is not None:
            yield Difference("balance after a posting", table_id, deal, posting.account, "0 or more", after)
    for identity, moved in found.transfers.items():
        if sums[identity] or not moved.transfer.postings:
            transfer = moved.transfer
            yield Difference(
                f"{_name(transfer)}'s sum",
                transfer.table_id,
                transfer.deal,
                "",
                0,
                sums[identity] or "nothing",
            )
    for account in sorted(running.keys() | found.balances.keys()):
        if running[account] != found.balances.get(account, 0):
            yield Difference(
                "balance",
                account=account,
                expected=f"{running[account]} (the sum of its postings)",
                found=found.balances.get(account, "none"),
            )
    if sum(found.balances.values()):
        yield Difference("sum of all balances", expected=0, found=sum(found.balances.values()))


# What comes from outside


def is_outside(transfer: Transfer) -> bool:
    """Whether a transfer follows from no log."""
    return transfer.version == 0 and transfer.purpose in _OUTSIDE


def from_outside(found: Snapshot) -> Iterator[Difference]:
    """That what follows from no log has a form that it may have."""
    for moved in found.transfers.values():
        transfer = moved.transfer
        if is_outside(transfer) and not _may_be(moved, found):
            yield Difference(
                _name(transfer),
                transfer.table_id,
                transfer.deal,
                expected="what such a transfer moves",
                found=dict(transfer.postings),
            )


def _may_be(moved: Moved, found: Snapshot) -> bool:
    transfer = moved.transfer
    amounts = dict(transfer.postings)
    players = {player_of(account) for account in amounts}
    if transfer.purpose == pb.PURPOSE_GRANT:
        player = next((one for one in players if one is not None), "")
        amount = amounts.get(available(player), 0)
        return (
            amount > 0
            and amounts == {GRANTS: -amount, available(player): amount}
            and transfer.id == transfer_id(f"grant/{player}")
        )
    if transfer.purpose in {pb.PURPOSE_HOLD, pb.PURPOSE_RELEASE}:
        sign = 1 if transfer.purpose == pb.PURPOSE_HOLD else -1
        return all(
            player is not None
            and sign * amounts.get(held(player), 0) > 0
            and amounts.get(available(player), 0) == -amounts[held(player)]
            for player in players
        )
    if transfer.purpose == pb.PURPOSE_REVERSAL:
        back = found.transfers.get(moved.reverses or b"")
        return back is not None and amounts == {
            account: -amount for account, amount in back.transfer.postings
        }
    return True


# Comparing


def _name(transfer: Transfer) -> str:
    return pb.Purpose.Name(pb.Purpose.ValueType(transfer.purpose)).removeprefix("PURPOSE_").lower()


def transfers(found: Snapshot, fold: Fold) -> Iterator[Difference]:
    """Transfer by transfer, account by account, in the order of settling."""
    expected = {transfer.id: transfer for transfer in fold.journal.posted}
    for identity, transfer in expected.items():
        moved = found.transfers.get(identity)
        if moved is None:
            yield _difference_in(transfer, dict(transfer.postings), {})
        elif moved.transfer._replace(postings=()) != transfer._replace(postings=()):
            yield Difference(
                _name(transfer), transfer.table_id, transfer.deal, "", transfer[1:6], moved.transfer[1:6]
            )
        elif Counter(moved.transfer.postings) != Counter(transfer.postings):
            yield _difference_in(transfer, dict(transfer.postings), dict(moved.transfer.postings))
    for identity, moved in found.transfers.items():
        if identity not in expected:
            yield _difference_in(moved.transfer, {}, dict(moved.transfer.postings))


def _difference_in(transfer: Transfer, expected: dict[str, int], there: dict[str, int]) -> Difference:
    for account in sorted(expected.keys() | there.keys()):
        if expected.get(account, 0) != there.get(account, 0):
            return Difference(
                _name(transfer),
                transfer.table_id,
                transfer.deal,
                account,
                expected.get(account, 0),
                there.get(account, 0),
            )
    return Difference(_name(transfer), transfer.table_id, transfer.deal, "", "one posting an account", "more")


def balances(found: Snapshot, fold: Fold) -> Iterator[Difference]:
    """Account by account."""
    expected = fold.journal.balances
    for account in sorted(expected.keys() | found.balances.keys()):
        if expected.get(account, 0) != found.balances.get(account, 0):
            yield Difference(
                "balance", "", 0, account, expected.get(account, 0), found.balances.get(account, 0)
            )


def matches(found: Snapshot, fold: Fold) -> Iterator[Difference]:
    """Books, and the columns that repeat what they say."""
    for table_id in sorted(found.books.keys() | fold.books.keys()):
        there, expected = found.books.get(table_id), fold.books.get(table_id)
        if there is None or expected is None:
            yield Difference("match", table_id, expected=expected is not None, found=there is not None)
            continue
        for one in fields(TableBook):
            if getattr(there, one.name) != getattr(expected, one.name):
                yield Difference(
                    f"match's {one.name}",
                    table_id,
                    expected=getattr(expected, one.name),
                    found=getattr(there, one.name),
                )
        columns = found.columns[table_id]
        of_book = (
            expected.state,
            bool(expected.unfunded),
            expected.opened_at_us,
            expected.ended_at_us,
            expected.rated,
        )
        if columns != of_book:
            yield Difference("match's columns", table_id, expected=of_book, found=columns)


def _rows(what: str, expected: Mapping[Any, Any], there: Mapping[Any, Any]) -> Iterator[Difference]:
    """Rows by their keys: a key's first part is the table or the player, its second the deal."""
    for key in sorted(expected.keys() | there.keys()):
        if expected.get(key) != there.get(key):
            yield Difference(
                f"{what} {' '.join(map(str, key))}",
                expected=expected.get(key, "none"),
                found=there.get(key, "none"),
            )


def deals(found: Snapshot, fold: Fold) -> Iterator[Difference]:
    """The results of deals."""
    expected = {(table_id, deal.deal): tuple(deal) for table_id, deal in fold.deals}
    for key in sorted(expected.keys() | found.deals.keys()):
        if expected.get(key) != found.deals.get(key):
            yield Difference(
                "deal's result",
                key[0],
                key[1],
                "",
                expected.get(key, "none"),
                found.deals.get(key, "none"),
            )


def people(found: Snapshot, fold: Fold) -> Iterator[Difference]:
    """Who sits where."""
    expected = {
        (player, table_id): (book.opened_at_us, seat)
        for table_id, book in fold.books.items()
        for seat, player in enumerate(book.players)
        if player and not book.is_bot(seat)
    }
    yield from _rows("seat of", expected, found.people)


def stats(found: Snapshot, fold: Fold) -> Iterator[Difference]:
    """The sums of what players did."""
    expected = {key: tuple(sums) for key, sums in fold.stats.items()}
    yield from _rows("statistics of", expected, found.stats)


def holds(found: Snapshot, fold: Fold) -> Iterator[Difference]:
    """Who is bound to which table."""
    yield from _rows(
        "hold of",
        {(player,): table_id for player, table_id in fold.bound.items()},
        {(player,): table_id for player, table_id in found.holds.items()},
    )


def ratings(found: Snapshot, fold: Fold) -> Iterator[Difference]:
    """The history of ratings, and the leaderboards that follow from it."""
    rated = sorted(RatedMatch.of(book) for book in fold.books.values() if book.rated)
    history = rate_all(rated, {})
    yield from _rows(
        "rating of", {row[:3]: row[3:] for made in history for row in (made.row(),)}, found.ratings
    )
    last = {(made.match.season, made.match.operator, made.player_id): made.standing for made in history}
    yield from _rows(
        "standing in",
        {row[:3]: row[3:] for key, standing in last.items() for row in (standing_row(*key, standing),)},
        found.standings,
    )


WITH_LOGS: Final = (transfers, balances, matches, deals, people, stats, holds, ratings)
"""The comparisons with what follows from the logs, in the order in which they are told."""
