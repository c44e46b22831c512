"""What the table service counts (ARCHITECTURE §6). Every label's values are fixed here; none is an id."""

from typing import Final

from prometheus_client import CollectorRegistry

from services.rules.reasons import Reason
from services.shell.metrics import Histogram, Registrar

STAGES: Final = ("receive", "decide", "append", "fan_out")
"""receive: from the handler to the decision; append: to the durable acknowledgement, the timer included."""
CONFLICTS: Final = ("lost", "unavailable", "frozen")
LOADS: Final = ("snapshot", "log")
TIMERS: Final = ("expired", "late", "stale", "failed")


class TableMetrics:
    """The table service's own metrics; labelled ones are resolved once, here."""

    def __init__(self, registry: CollectorRegistry) -> None:
        made = Registrar(registry)
        self.stage = Histogram(
            registry,
            "shengji_command_seconds",
            "Command to durable acknowledgement, by stage.",
            "stage",
            STAGES,
        ).series
        self.conflicts = made.counters(
            "shengji_conflicts", "Appends that did not take at once.", "outcome", CONFLICTS
        )
        self.refusals = made.counters(
            "shengji_refusals",
            "Commands refused, by reason.",
            "reason",
            tuple(reason.value for reason in Reason),
        )
        self.cold_loads = made.counters("shengji_cold_loads", "Tables loaded into memory.", "source", LOADS)
        loads = Histogram(registry, "shengji_cold_load_seconds", "Time to load a table.")
        self.cold_load_seconds = loads.series[""]
        self.timers = made.counters(
            "shengji_timers", "Timers that fired, by what came of it.", "outcome", TIMERS
        )
        self.late_timers = made.counter(
            "shengji_late_timers", "Waits given back because the service was late."
        )
        self.snapshots = made.counter("shengji_snapshots_written", "Snapshots written.")
        self.repeats = made.counter("shengji_repeated_commands", "Commands answered a second time.")
        lag = Histogram(registry, "shengji_watch_lag_seconds", "From a commit's fold to a watcher's stream.")
        self.watch_lag = lag.series[""]
        self.slow_readers = made.counter(
            "shengji_slow_readers", "Watchers cut off because they did not read."
        )
        self.watchers = made.gauge("shengji_watchers", "Watchers now.")
        self.open_tables = made.gauge("shengji_open_tables", "Tables in memory.")
        self.seated_players = made.gauge("shengji_seated_players", "Seats taken at tables in memory.")
        self.frozen_tables = made.gauge(
            "shengji_frozen_tables", "Tables that the log would not let be written: an alarm."
        )
