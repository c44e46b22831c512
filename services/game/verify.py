"""Verifies a table's whole history from its stored bytes alone: no key, no service, nobody's word.

What is checked, commit by commit:

- the chain: the bytes follow each other by hash, versions have no gap, time never runs backwards, each
  commit names the newest one of kind ``d`` before it (older logs do not);
- every seed that was committed to is revealed when its deal ends, and is the one committed to;
- every seal of an ended deal opens with the revealed keys, and holds what the shuffle gives;
- every decision: the recorded command, decided anew on the state before it, gives the recorded events
  (``redecide``); in a deal that is still sealed, as far as a decision needs no secret.

What stored bytes cannot show: who truly sent a command, at what time, and whether secrets were told to
somebody; and, without the hash of the newest commit from elsewhere, whether that commit was replaced or newer
ones were cut off. A deal that is not over keeps its secrets: it is reported as open, which is no fault.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from services.game import chain, redecide
from services.game.errors import CorruptLog, ShengjiError
from services.game.evolve import evolve
from services.game.ids import TableId
from services.game.keys import (
    AUDIENCES,
    KEY_SIZE,
    SERVICE,
    DealSeal,
    Keyring,
    commitment_in,
    reveal_in,
    seal_after,
    seal_of,
    with_revealed,
)
from services.game.seal import open_commit
from services.game.shuffle import commitment, deal_cards, deck_order
from services.game.state import Dealt, Table
from services.game.wire import stored_cards
from services.pb.event.v1.event_pb2 import DealStarted, Event, Reveal, SeedCommitment
from services.pb.log.v1.log_pb2 import Commit
from services.rules.options import RuleSet

_ENDS_DEAL = ("deal_scored", "deal_voided", "mutiny_called", "table_closed")
_MAY_BE_LOST = ("deal_voided", "table_closed")
_MALFORMED = (ShengjiError, ValueError, LookupError, TypeError, AttributeError, OverflowError)
"""What pure code raises on forged events, which it has no reason to check."""


class DealState(StrEnum):
    """What is known about a deal that was started."""

    VERIFIED = "verified"
    """It is over, its secrets are revealed, and all of them are right."""
    OPEN = "open"
    """It is not over; its secrets are still sealed."""
    LOST = "lost"
    """It was given up because its master key was lost; its secrets can never be checked."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The first thing that is wrong."""

    version: int
    """The commit."""
    what: str
    """For people; holds no secret."""


@dataclass(slots=True)
class Report:
    """What a verification found.

    Attributes:
        table_id: the table. versions: commits that were found right. deals: the deals that were started, by
        their numbers. finished: the match has ended. closed: the table is closed; nothing follows. insecure:
        the table's randomness came from a text that anybody may know: its deals were foreseeable. head: the
        hash of the newest commit, to be compared with one known from elsewhere; empty without commits.
        problem: the first thing that is wrong; None when all is right.
    """

    table_id: str
    versions: int = 0
    deals: dict[int, DealState] = field(default_factory=dict)
    finished: bool = False
    closed: bool = False
    insecure: bool = False
    head: bytes = b""
    problem: Problem | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.problem is None


def verify(table_id: str, stored: Iterable[bytes], expected_head: bytes | None = None) -> Report:
    """Verifies the history of one table.

    Args:
        table_id: the table that it is said to be of.
        stored: the stored bytes of its commits, from version 1 on.
        expected_head: the hash of the newest commit as it is known from elsewhere. Without it a change of the
            newest commit is found only if it cannot have been decided.

    Raises:
        BadId: no table id.
    """
    table = TableId.parse(table_id)
    log = list(stored)
    report = Report(table, head=chain.commit_hash(log[-1]) if log else b"")
    try:
        commits = read_chain(table, log, expected_head)
        _Verification(report, commits).run()
    except CorruptLog as error:
        report.problem = Problem(error.version, error.detail)
    return report


def read_chain(table_id: TableId, log: Sequence[bytes], expected_head: bytes | None = None) -> list[Commit]:
    """The commits of a log whose bytes follow each other.

    Raises:
        CorruptLog: they do not; the version is that of the commit that was changed, as far as bytes can tell.
    """
    commits: list[Commit] = []
    for at, stored in enumerate(log):
        version = at + 1
        commit = chain.decode(stored, version)
        commit.DiscardUnknownFields()
        if commit.schema == chain.SCHEMA and chain.encode(commit) != stored:
            raise CorruptLog(version, "it is not encoded as commits are")
        if commit.table_id != table_id:
            raise CorruptLog(version, "it is of another table")
        try:
            chain.check_link(log[at - 1] if at else None, commit, version)
        except CorruptLog as error:
            raise _changed(log, at, expected_head, error) from None
        if commits and commit.recorded_at_us < commits[-1].recorded_at_us:
            raise CorruptLog(version, "it was recorded before the previous commit")
        commits.append(commit)
    if not commits:
        raise CorruptLog(1, "there are no commits")
    if expected_head is not None and chain.commit_hash(log[-1]) != expected_head:
        raise CorruptLog(len(log), "its hash is not the expected head")
    return commits


def _changed(log: Sequence[bytes], at: int, expected_head: bytes | None, error: CorruptLog) -> CorruptLog:
    """Which of two commits was changed that do not fit: the later one if its successor disowns it as well."""
    commit = chain.decode(log[at], at + 1)
    if at == 0 or commit.version != at + 1:
        return error
    try:
        known = chain.decode(log[at + 1], at + 2).prev_hash if at + 1 < len(log) else expected_head
    except CorruptLog:
        known = None
    if known is not None and known != chain.commit_hash(log[at]):
        return error
    return CorruptLog(at, "its bytes have not the hash that the next commit names")


class _Verification:
    """One run over commits whose bytes follow each other."""

    def __init__(self, report: Report, commits: list[Commit]) -> None:
        self._report = report
        self._commits = commits
        self._keyring = _revealed(report.table_id, commits)
        self._state: Table | None = None
        self._committed: SeedCommitment | None = None
        self._used: set[bytes] = set()
        self._names_d = False

    def run(self) -> None:
        """Checks every commit and keeps count in the report.

        Raises:
            CorruptLog: the first that is wrong.
        """
        for commit in self._commits:
            try:
                self._check(commit)
            except CorruptLog:
                raise
            except _MALFORMED as error:
                raise CorruptLog(commit.version, f"its events are malformed ({error})") from error
            self._report.versions = commit.version

    def _check(self, commit: Commit) -> None:
        version = commit.version
        opened = open_commit(commit, current=seal_of(self._state), keyring=self._keyring)
        for event in opened.events:
            self._follow(version, event)
        redecide.check(self._state, opened, sealed=self._is_sealed(opened))
        self._check_previous_d(commit)
        self._state = evolve(self._state, opened)

    def _check_previous_d(self, commit: Commit) -> None:
        """Checks the newest earlier commit of kind ``d`` where it is named: from some commit on, or never."""
        self._names_d = self._names_d or commit.previous_d > 0
        newest = self._state.newest_d if self._state is not None else 0
        if self._names_d and commit.previous_d != newest:
            raise CorruptLog(commit.version, f"previous_d is {commit.previous_d} where {newest} is due")

    def _follow(self, version: int, event: Event) -> None:
        """Checks what an event does to seeds and deals."""
        kind = event.WhichOneof("kind")
        new = commitment_in(event)
        if self._committed is not None and (new is not None or kind in _ENDS_DEAL):
            self._end(version, self._committed, reveal_in(event), may_be_lost=kind in _MAY_BE_LOST)
            self._committed = None
        if new is not None:
            self._begin(version, new)
        match kind:
            case "table_opened":
                self._report.insecure = bool(event.table_opened.insecure_entropy)
            case "deal_started":
                self._deal(version, event.deal_started)
            case "match_ended":
                self._report.finished = True
            case "table_closed":
                self._report.closed = True

    def _begin(self, version: int, committed: SeedCommitment) -> None:
        if not self._used.isdisjoint((committed.commitment, committed.salt)):
            raise CorruptLog(version, "a seed or a salt is used for the second time")
        self._used.update((committed.commitment, committed.salt))
        self._committed = committed

    def _end(
        self, version: int, committed: SeedCommitment, reveal: Reveal | None, *, may_be_lost: bool
    ) -> None:
        """Checks the reveal that a deal's secrets end with."""
        if reveal is None or reveal.deal != committed.deal:
            raise CorruptLog(version, "the seed that was committed to is not revealed")
        lost = not reveal.server_seed and not reveal.keys
        if lost and not may_be_lost:
            raise CorruptLog(version, "the seed that was committed to is not revealed")
        if not lost:
            if commitment(reveal.server_seed) != committed.commitment:
                raise CorruptLog(version, "the seed revealed is not the one that was committed to")
            if [len(key) for key in reveal.keys] != [KEY_SIZE] * AUDIENCES:
                raise CorruptLog(version, "the deal's keys are not revealed")
        if committed.deal in self._report.deals:
            self._report.deals[committed.deal] = DealState.LOST if lost else DealState.VERIFIED

    def _deal(self, version: int, started: DealStarted) -> None:
        """Checks the cards of a deal against its seeds, if they are revealed."""
        committed = self._committed
        if self._state is None or committed is None or committed.deal != started.deal:
            raise CorruptLog(version, "a deal starts for which no seed was committed")
        self._report.deals[started.deal] = DealState.OPEN
        if committed.server_seed:
            _check_cards(version, started, committed.server_seed, self._state.rules, self._report.table_id)

    def _is_sealed(self, commit: Commit) -> bool:
        """Whether the commit is of a deal whose secrets are not revealed."""
        in_deal = self._state is not None and isinstance(self._state.phase, Dealt)
        starts = any(event.HasField("deal_started") for event in commit.events)
        seal = seal_of(self._state)
        if not (in_deal or starts) or seal is None:
            return False
        return self._keyring.deal_key(commit.table_id, seal, SERVICE) is None


def _revealed(table_id: str, commits: Iterable[Commit]) -> Keyring:
    """The keys that a log reveals together with the seed committed to; other reveals open nothing."""
    keyring = Keyring()
    committed: SeedCommitment | None = None
    for event in (event for commit in commits for event in commit.events):
        reveal = reveal_in(event)
        if committed is not None and reveal is not None:
            current = DealSeal.of(committed)
            if commitment(reveal.server_seed) == committed.commitment:
                keyring = with_revealed(keyring, table_id, [event], current)
            if seal_after(event, current) != current:
                committed = None
        committed = commitment_in(event) or committed
    return keyring


def _check_cards(version: int, started: DealStarted, seed: bytes, rules: RuleSet, table_id: str) -> None:
    deck = deck_order(seed, started.client_seeds, table_id, started.deal, rules.decks)
    hands, kitty = deal_cards(deck, started.first_drawer, rules.hand_size)
    if [stored_cards(hand.cards) for hand in started.hands] != [bytes(sorted(hand)) for hand in hands]:
        raise CorruptLog(version, "the hands are not what the seeds give")
    if stored_cards(started.kitty.cards) != kitty:
        raise CorruptLog(version, "the kitty is not what the seeds give")
