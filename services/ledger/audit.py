"""The audit: every balance, transfer, result and rating again, from logs and archives alone.

Taken from the database is only what comes from outside the logs: opening grants, stakes held before a table
was founded, and an admin's adjustments; and, where two tables have the same people, in which order the ledger
met them. All else is settled anew with the code that settled it, and compared. The books are checked a second
time, in themselves: transfers that sum to zero, balances that are the sums of postings, nobody below zero.

What the consumer has not reached yet is no difference. Each check names the first thing it finds.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from services.game import chain
from services.game.decide import kind_of
from services.game.errors import CorruptLog
from services.game.ids import STREAMS, TableId, partition
from services.game.verify import read_chain
from services.ledger import comparing
from services.ledger.archive import Archive, ArchiveDamaged
from services.ledger.books import Transfer, player_of
from services.ledger.comparing import Difference
from services.ledger.folding import Fold, entry
from services.ledger.moving import Why
from services.ledger.snapshot import Snapshot
from services.pb.ledger.v1 import ledger_service_pb2 as pb
from services.pb.log.v1.log_pb2 import Commit


class TableLog(NamedTuple):
    """What is left of a table's log."""

    commits: Sequence[bytes]
    """From version 1 on, out of the stream or, once that has dropped them, the archive."""
    sequences: Sequence[int]
    """Where they stand in the stream; empty for what came from the archive."""
    last: int
    """Where the table's newest commit stands in the stream; 0 when nothing is left there."""


class Logs(Protocol):
    """Where the logs are."""

    async def tables(self) -> list[str]:
        """All tables that have one."""

    async def log(self, table_id: str) -> TableLog:
        """One table's."""

    async def created(self) -> Mapping[int, str]:
        """When each stream was made."""


@dataclass
class Report:
    """What an audit found.

    Attributes:
        differences: empty when everything is as it should be.
        tables, commits, transfers, accounts, matches: how much was compared.
        unreached: commits that the consumer has not reached yet.
    """

    differences: list[Difference] = field(default_factory=list)
    tables: int = 0
    commits: int = 0
    transfers: int = 0
    accounts: int = 0
    matches: int = 0
    unreached: int = 0


async def audit(found: Snapshot, logs: Logs, archive: Archive) -> Report:
    """Compare a ledger's database with the logs.

    Args:
        found: the database, read before the logs are.
        logs: the streams and the archive behind them.
        archive: of which every file is checked.
    """
    report = Report(accounts=len(found.balances), transfers=len(found.transfers))
    differences = report.differences
    differences += _first(comparing.books_in_themselves(found))
    differences += _first(_archives(found, archive))
    differences += _first(_parked(found))
    reached = await _read_logs(found, logs, report)
    differences += _first(comparing.from_outside(found))
    fold, trouble = _settle_again(found, reached)
    differences += _first(trouble)
    report.matches = len(fold.books)
    for compare in comparing.WITH_LOGS:
        differences += _first(compare(found, fold))
    return report


def _first(differences: Iterable[Difference]) -> list[Difference]:
    """The first difference, if there is one."""
    return [one for one, _ in zip(differences, range(1), strict=False)]


# The logs and archives


def _archives(found: Snapshot, archive: Archive) -> Iterator[Difference]:
    """Every file of the archive: its bytes, its chain, its name, and what the database says of it."""
    for row in found.archives:
        if row.fault:
            yield Difference("log", row.table_id, expected="one that verifies", found=row.fault)
        if not row.place:
            continue
        try:
            commits = archive.read(row.place)
        except ArchiveDamaged as error:
            yield Difference("archive", row.table_id, expected="a sound one", found=error)
            continue
        head = chain.commit_hash(commits[-1])
        if (len(commits), head) != (row.commits, row.head):
            yield Difference(
                "archive",
                row.table_id,
                expected=f"{row.commits} commits up to {row.head.hex()[:16]}",
                found=f"{len(commits)} up to {head.hex()[:16]}",
            )


class _Applied(NamedTuple):
    """A commit that the ledger has applied."""

    table_id: str
    version: int
    at_us: int
    stored: bytes
    founds: bool
    """It may bind people to its table."""


def _parked(found: Snapshot) -> Iterator[Difference]:
    """Tables that are not settled any more; one that waits for another heals by itself."""
    for table_id, why in sorted(found.parked.items()):
        if why != Why.WAITS.value:
            yield Difference("table", table_id, expected="settled", found=f"parked: {why}")


async def _read_logs(found: Snapshot, logs: Logs, report: Report) -> list[_Applied]:
    """The commits of kind `d` that the ledger has reached, and what is wrong with their logs."""
    reached: list[_Applied] = []
    tables, created = await logs.tables(), await logs.created()
    trouble = [
        Difference("log", table_id, expected="one in the stream or the archive", found="none")
        for table_id in sorted(found.books.keys() - set(tables))
    ]
    for table_id in tables:
        report.tables += 1
        try:
            log = await logs.log(table_id)
            commits = read_chain(TableId.parse(table_id), log.commits)
        except ArchiveDamaged as error:
            trouble.append(Difference("archive", table_id, expected="a sound one", found=error))
            continue
        except CorruptLog as error:
            trouble.append(
                Difference(
                    "log",
                    table_id,
                    expected="a sound chain",
                    found=f"version {error.version}: {error.detail}",
                )
            )
            continue
        report.commits += len(commits)
        trouble += _first(_reached(found, table_id, log, commits, created, reached, report))
    report.differences += trouble[:1]
    return reached


def _reached(
    found: Snapshot,
    table_id: str,
    log: TableLog,
    commits: Sequence[Commit],
    created: Mapping[int, str],
    reached: list[_Applied],
    report: Report,
) -> Iterator[Difference]:
    """Add the table's applied commits, and compare which are with the log."""
    stream = partition(table_id) % STREAMS
    place = found.positions.get(stream)
    read_to = place[1] if place is not None and place[0] == created.get(stream, "") else 0
    hashes = dict(found.applied.get(table_id, {}))
    book = found.books.get(table_id)
    version = 0 if book is None else book.version
    for at, commit in enumerate(commits):
        if kind_of(tuple(commit.events)) != "d":
            continue
        stored = log.commits[at]
        if commit.version <= version:
            digest = hashes.pop(commit.version, None)
            if digest != chain.commit_hash(stored):
                yield Difference(
                    f"commit {commit.version}",
                    table_id,
                    expected=chain.commit_hash(stored).hex()[:16],
                    found="none" if digest is None else digest.hex()[:16],
                )
            seats = any(_may_bind(event) for event in commit.events)
            reached.append(_Applied(table_id, commit.version, commit.recorded_at_us, stored, seats))
            continue
        report.unreached += 1
        sequence = log.sequences[at] if log.sequences else log.last
        passed = sequence <= read_to if sequence else True
        if passed and (table_id, commit.version) not in found.unapplied:
            yield Difference(f"commit {commit.version}", table_id, expected="applied", found="left out")
    for extra in sorted(hashes):
        yield Difference(f"commit {extra}", table_id, expected="none in the log", found="applied")


def _may_bind(event: Any) -> bool:
    return bool(event.HasField("table_opened") or event.HasField("seat_taken"))


# Settling again


def _settle_again(found: Snapshot, reached: Iterable[_Applied]) -> tuple[Fold, list[Difference]]:
    """Everything that was applied, folded anew in the order in which the ledger met it."""
    fold = Fold(0)
    for item in _in_order(found, reached):
        if isinstance(item, _Applied):
            fold.apply(entry(0, 0, item.table_id, item.stored), item.at_us)
            continue
        fold.journal.post(item)
        if item.purpose in {pb.PURPOSE_HOLD, pb.PURPOSE_RELEASE}:
            for player in {player_of(account) for account, _ in item.postings}:
                if player is not None and item.purpose == pb.PURPOSE_HOLD:
                    fold.bind(player, item.table_id)
                elif player is not None:
                    fold.free(player)
    trouble = [
        Difference(f"commit {min(fold.kept[table_id])}", table_id, expected="settled", found=parked.why)
        for table_id, parked in sorted(fold.parked.items())
        if fold.kept[table_id]
    ]
    return fold, trouble


def _in_order(found: Snapshot, reached: Iterable[_Applied]) -> list[_Applied | Transfer]:
    """Commits and what came from outside, by the postings that followed from them.

    A commit that moved nothing takes its table's last place, so that ends come early. One that may bind
    people comes right before its table's next transfer: until then they may have been bound elsewhere.
    """
    own: defaultdict[str, dict[int, int]] = defaultdict(dict)
    reached_by: defaultdict[str, int] = defaultdict(int)
    items: list[tuple[int, int, str, int, _Applied | Transfer]] = []
    for moved in found.transfers.values():
        transfer, place = moved.transfer, 2 * moved.seq
        if comparing.is_outside(transfer):
            items.append((place, 0, transfer.table_id, 0, transfer))
            reached_by[transfer.table_id] = max(place, reached_by[transfer.table_id])
        else:
            places = own[transfer.table_id]
            places[transfer.version] = min(place, places.get(transfer.version, place))
    furthest = 0
    for commit in sorted(reached, key=lambda one: (one.at_us, one.table_id, one.version)):
        table_id, version = commit.table_id, commit.version
        place = max(own[table_id].get(version, 0), reached_by[table_id])
        if version not in own[table_id] and commit.founds:
            later = [seq for at, seq in own[table_id].items() if at > version]
            place = max(place, min(later) - 1 if later else furthest)
        reached_by[table_id] = place
        furthest = max(furthest, place)
        items.append((place, commit.at_us, table_id, version, commit))
    return [item for *_, item in sorted(items, key=lambda one: one[:4])]
