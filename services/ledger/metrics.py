"""What the ledger service counts (ARCHITECTURE §6). Every label's values are fixed here; none is an id."""

from collections import Counter as Tally

import grpc
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client import Histogram as LibraryHistogram

from services.game.ids import STREAMS
from services.ledger.folding import Fold
from services.ledger.moving import Why
from services.pb.ledger.v1.ledger_service_pb2 import Purpose
from services.shell.metrics import Histogram


class LedgerMetrics:
    """The ledger service's own metrics; labelled ones are resolved once, here."""

    def __init__(self, registry: CollectorRegistry) -> None:
        lag = Histogram(
            registry,
            "shengji_ledger_posting_lag_seconds",
            "From a commit's record to its effect in the database.",
        )
        self.posting_lag = lag.series[""]
        batch = Histogram(registry, "shengji_ledger_batch_seconds", "Time to apply one batch.")
        self.batch_seconds = batch.series[""]
        self.batch_size = LibraryHistogram(
            "shengji_ledger_batch_commits",
            "Commits of a batch.",
            buckets=(1, 3, 10, 30, 100, 300, 1000, 3000, 10_000),
            registry=registry,
        )
        lags = Gauge(
            "shengji_ledger_lag_messages",
            "Commits in the log that have had no effect yet, by stream.",
            ["stream"],
            registry=registry,
        )
        self.lag_messages = [lags.labels(str(stream)) for stream in range(STREAMS)]
        self.writer = Gauge(
            "shengji_ledger_writer", "1 in the one process that applies the log.", registry=registry
        )
        parked = Gauge(
            "shengji_ledger_parked_tables", "Tables whose commits are kept aside.", ["why"], registry=registry
        )
        self.parked = {why: parked.labels(why.value) for why in Why}
        alarms = Counter(
            "shengji_ledger_alarms",
            "Tables that somebody must look at, as they came up.",
            ["why"],
            registry=registry,
        )
        self.alarms = {why: alarms.labels(why.value) for why in Why}
        self.behind = Gauge(
            "shengji_ledger_log_behind",
            "Streams that end before what was read of them: lost data.",
            registry=registry,
        )
        self.commits = Counter("shengji_ledger_commits", "Commits applied.", registry=registry)
        self.repeated = Counter("shengji_ledger_repeated", "Commits that came again.", registry=registry)
        self.deals = Counter("shengji_ledger_settled_deals", "Scored deals settled.", registry=registry)
        transfers = Counter("shengji_ledger_transfers", "Transfers posted.", ["purpose"], registry=registry)
        self._transfers = {
            number: transfers.labels(name.removeprefix("PURPOSE_").lower())
            for name, number in Purpose.items()
        }
        self.away = Counter(
            "shengji_ledger_database_away", "Times that the database could not be used.", registry=registry
        )
        unfunded = Counter(
            "shengji_ledger_unfunded_calls",
            "Calls to end a match that a seat cannot pay for, by status.",
            ["code"],
            registry=registry,
        )
        self.unfunded = {code.name: unfunded.labels(code.name) for code in grpc.StatusCode}

    def applied(self, fold: Fold) -> None:
        """Count what a batch came to."""
        self.commits.inc(len(fold.applied))
        self.repeated.inc(fold.skipped)
        self.deals.inc(len(fold.deals))
        for purpose, count in Tally(row[1] for row in fold.journal.transfers).items():
            self._transfers[purpose].inc(count)
        for _, why in fold.alarms:
            self.alarms[why].inc()
