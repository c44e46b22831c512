"""The fold of all tables' commits into a ledger: which commit is next, what is kept aside, what follows.

Pure, and the same for the consumer (which loads what a batch needs and writes what came of it), for the audit
(which begins with nothing and reads everything) and for tests.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from services.ledger.books import DealResult, TableBook, Transfer, held, purses, release
from services.ledger.moving import Funds, Unsettled, Why
from services.ledger.posting import Journal
from services.ledger.settling import settle
from services.pb.ledger.v1.ledger_service_pb2 import MATCH_STATE_FINISHED
from services.pb.log.v1.log_pb2 import Commit

UNREADABLE: Final = 0
"""The version under which bytes that are no commit are kept."""

_LAST_VERSION: Final = 1 << 62


class Entry(NamedTuple):
    """One message of a log stream."""

    stream: int
    sequence: int
    table_id: str
    """As its subject says."""
    stored: bytes
    commit: Commit | None
    """None when the bytes are no commit of that table."""
    people: Collection[str]
    """Everybody that it seats, or lets leave."""

    @property
    def at_us(self) -> int:
        """When it was recorded; 0 when nobody knows."""
        return 0 if self.commit is None else self.commit.recorded_at_us


def entry(stream: int, sequence: int, table_id: str, stored: bytes) -> Entry:
    """A message, decoded."""
    try:
        commit: Commit | None = Commit.FromString(stored)
    except DecodeError:
        commit = None
    people = () if commit is None else people_of(commit)
    if commit is not None and not _well_formed(commit, table_id, people):
        commit, people = None, ()
    return Entry(stream, sequence, table_id, stored, commit, people)


def people_of(commit: Commit) -> Collection[str]:
    """Everybody that a commit seats, or lets leave."""
    found: list[str] = []
    for event in commit.events:
        kind = event.WhichOneof("kind")
        if kind == "seat_left":
            found.append(event.seat_left.player_id)
        elif kind == "seat_taken":
            found.append(event.seat_taken.seat.player_id)
        elif kind == "table_opened":
            found += [seat.player_id for seat in event.table_opened.seats]
    return [player for player in found if player]


def _well_formed(commit: Commit, table_id: str, people: Iterable[str]) -> bool:
    """Whether a commit can be a table's at all, and its texts can be written into a database."""
    version = commit.version
    if commit.table_id != table_id or not 0 < version < _LAST_VERSION or not commit.events:
        return False
    texts = "".join(people)
    if version == 1:
        opened = commit.events[0].table_opened
        texts += opened.operator + opened.rules.preset
    return "\0" not in texts


class Parked(NamedTuple):
    """Why a table's commits are kept aside."""

    why: Why
    waits_for: str
    """The table whose end it waits for, or empty."""
    since_us: int


Kept = dict[int, bytes]
"""The commits of a parked table that were kept aside, by version."""
STATS: Final = ("deals", "deals_won", "matches", "matches_won", "levels", "escapes", "won")


class Fold:
    """A ledger in memory: all of it, or as much as one batch needs.

    Attributes:
        books: the tables' books.
        bound: player → the table that holds the player's chips.
        at_table: the same the other way round.
        journal: balances, transfers, postings.
        parked: tables whose commits are kept aside.
        kept: those commits.
        hashes: SHA-256 of applied commits by table and version: as many as redelivered ones need.
        applied: (table, version, hash) of what was applied since the fold was made.
        deals: deals that were scored since then.
        stats: what was added to (player, preset), in the order of ``STATS``.
        changed: tables whose book changed since then.
        reseated: of those, the ones whose people changed.
        ended: matches that were played to their end since then, to be rated.
        alarms: tables that somebody must look at, and why.
        skipped: commits that were applied before.
        existing: transfers that are there already, as far as somebody looked; None for one whose postings
            are not those that its row should have.
        now_us: the clock, as the last message was taken with.
    """

    def __init__(self, grant: int, balances: dict[str, int] | None = None) -> None:
        self.books: dict[str, TableBook] = {}
        self.bound: dict[str, str] = {}
        self.at_table: defaultdict[str, set[str]] = defaultdict(set)
        self.journal = Journal(balances)
        self.parked: dict[str, Parked] = {}
        self.kept: defaultdict[str, Kept] = defaultdict(dict)
        self.hashes: dict[tuple[str, int], bytes] = {}
        self.applied: list[tuple[str, int, bytes]] = []
        self.deals: list[tuple[str, DealResult]] = []
        self.stats: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * len(STATS))
        self.changed: set[str] = set()
        self.reseated: set[str] = set()
        self.ended: list[str] = []
        self.alarms: list[tuple[str, Why]] = []
        self.skipped = 0
        self.existing: dict[bytes, Transfer | None] = {}
        self.now_us = 0
        self._funds = Funds(self.journal.balances, self.bound, self.at_table, grant)

    def bind(self, player: str, table_id: str) -> None:
        """Note that a table holds a player's chips."""
        self.bound[player] = table_id
        self.at_table[table_id].add(player)

    def free(self, player: str) -> None:
        """Note that no table does."""
        table_id = self.bound.pop(player, None)
        if table_id is not None:
            self.at_table[table_id].discard(player)

    def apply(self, new: Entry, now_us: int) -> None:
        """Take one message of the log: apply it, keep it aside, or know it as one that was there before."""
        self.now_us = now_us
        table_id, commit = new.table_id, new.commit
        if commit is None:
            self._keep(table_id, UNREADABLE, new.stored)
            self._park(table_id, Why.POISON)
            return
        book = self.books.get(table_id)
        if book is not None and commit.version <= book.version:
            self._known(table_id, commit.version, new.stored)
            return
        parked = self.parked.get(table_id)
        if parked is not None and parked.why is not Why.GAP:
            self._keep(table_id, commit.version, new.stored)
        elif self._next(book, commit, new.stored) and parked is not None:
            self.retry(table_id)

    def retry(self, table_id: str) -> None:
        """Apply what is kept aside of a table, as far as that is possible now."""
        kept = self.kept[table_id]
        while kept:
            version = min(kept)
            stored = kept[version]
            commit = entry(0, 0, table_id, stored).commit
            book = self.books.get(table_id)
            if commit is None:
                self._park(table_id, Why.POISON)
                return
            if book is not None and version <= book.version:
                del kept[version]  # it came again and was applied from the stream
            elif not self._next(book, commit, stored):
                return
        self.parked.pop(table_id, None)

    def _known(self, table_id: str, version: int, stored: bytes) -> None:
        """A version that was applied: the same bytes are nothing new, others are an alarm."""
        if self.hashes.get((table_id, version)) == _hash(stored):
            self.skipped += 1
        else:
            self._park(table_id, Why.CONFLICT)

    def _next(self, book: TableBook | None, commit: Commit, stored: bytes) -> bool:
        """Apply a commit if it is the next one and can be; else keep it aside. Whether it was applied."""
        table_id = commit.table_id
        try:
            if not _follows(book, commit):
                raise Unsettled(Why.GAP)
            settled = settle(book, commit, self._funds)
            if self.existing:
                self._check_existing(settled.transfers)
        except Unsettled as error:
            self._keep(table_id, commit.version, stored)
            self._park(table_id, error.why, error.waits_for)
            if error.why is Why.WAITS:
                self._let_go(table_id, commit)
            return False
        if table_id in self.kept:
            self.kept[table_id].pop(commit.version, None)
        for transfer in settled.transfers:
            if transfer.id not in self.existing:
                self.journal.post(transfer)
        for account in settled.met:
            self.journal.balances.setdefault(account, 0)
        for player in settled.binds:
            self.bind(player, table_id)
        for player in settled.frees:
            self.free(player)
        digest = _hash(stored)
        self.hashes[table_id, commit.version] = digest
        self.applied.append((table_id, commit.version, digest))
        self._note(book, settled.book, settled.deal)
        if settled.frees:
            self._wake(table_id)
        return True

    def _check_existing(self, transfers: Iterable[Transfer]) -> None:
        """A transfer that is there already must be the same in everything; then it is not made again."""
        for transfer in transfers:
            if self.existing.get(transfer.id, transfer) != transfer:
                raise Unsettled(Why.CONFLICT, "a transfer of the same id moved something else")

    def refuse(self, new: Entry, why: Why) -> None:
        """Keep a message aside that cannot be written, whatever it says."""
        self._keep(new.table_id, UNREADABLE if new.commit is None else new.commit.version, new.stored)
        self._park(new.table_id, why)

    def _note(self, before: TableBook | None, after: TableBook, deal: DealResult | None) -> None:
        """Remember what changed, for the projections."""
        table_id = after.table_id
        self.books[table_id] = after
        self.changed.add(table_id)
        if before is None or before.players != after.players:
            self.reseated.add(table_id)
        if deal is not None:
            self.deals.append((table_id, deal))
        if before is None:
            return
        finished = after.state == MATCH_STATE_FINISHED != before.state
        if finished:
            self.ended.append(table_id)
        escapes = after.escaped != before.escaped
        if deal is None and not finished and not escapes and after.won == before.won:
            return
        for seat, purse in enumerate(purses(after.players, after.difficulties)):
            if purse is None:
                continue
            sums = self.stats[after.players[seat], after.preset]
            if deal is not None:
                sums[0] += 1
                sums[1] += seat % 2 == deal.winning_side
            if finished:
                sums[2] += 1
                sums[3] += seat % 2 == after.winning_side
                sums[4] += after.advanced[seat % 2] if len(after.advanced) == 2 else 0
            if escapes:
                sums[5] += after.escaped[seat] and not before.escaped[seat]
            sums[6] += after.won[seat] - before.won[seat]

    def _wake(self, table_id: str) -> None:
        """Let the tables go on that waited for this one, the oldest first."""
        waiting = [other for other, parked in self.parked.items() if parked.waits_for == table_id]
        for other in sorted(waiting, key=self._age):
            self.retry(other)

    def _age(self, table_id: str) -> tuple[int, str]:
        kept = self.kept[table_id]
        first = entry(0, 0, table_id, kept[min(kept)]) if kept else None
        return (0 if first is None else first.at_us, table_id)

    def _let_go(self, table_id: str, commit: Commit) -> None:
        """Give back what was held in advance for a table that must wait: who waits holds nothing."""
        people = sorted(self.at_table.get(table_id, ()))
        if not people:
            return
        given_back = release(
            f"{table_id}/0/release/v{commit.version}",
            table_id,
            commit.version,
            commit.recorded_at_us,
            {player: self.journal.balances.get(held(player), 0) for player in people},
        )
        if given_back is not None:
            self.journal.post(given_back)
        for player in people:
            self.free(player)
        self._wake(table_id)

    def _keep(self, table_id: str, version: int, stored: bytes) -> None:
        there = self.kept[table_id].setdefault(version, stored)
        if there != stored and version != UNREADABLE:
            self._park(table_id, Why.CONFLICT)

    def _park(self, table_id: str, why: Why, waits_for: str = "") -> None:
        """Keep a table's commits aside from now on; a worse reason takes the place of a better one."""
        before = self.parked.get(table_id)
        if before is not None and before.why is Why.CONFLICT:
            return
        since_us = self.now_us if before is None else before.since_us
        self.parked[table_id] = Parked(why, waits_for, since_us)
        if why is not Why.WAITS and (before is None or before.why is not why):
            self.alarms.append((table_id, why))


def _follows(book: TableBook | None, commit: Commit) -> bool:
    """Whether a commit is the next one of kind `d`; logs older than ``previous_d`` cannot say.

    Raises:
        Unsettled: it belongs to another history than the book does.
    """
    if book is None:
        return commit.version == 1
    previous = commit.previous_d
    if 0 < previous < book.version:
        raise Unsettled(Why.CONFLICT, "it leaves out a commit that was there")
    return previous in {0, book.version}


def _hash(stored: bytes) -> bytes:
    return hashlib.sha256(stored).digest()
