"""What the bot service counts (ARCHITECTURE §6). Every label's values are fixed here; none is an id."""

from typing import Final

import grpc
from prometheus_client import CollectorRegistry, Counter, Gauge

from services.shell.metrics import Histogram

ACTIONS: Final = ("ready", "take_back", "declare", "pass", "call_mutiny", "counter", "bury", "play")
FALLBACKS: Final = ("difficulty", "legal_plays", "server")
"""difficulty: NORMAL answered for a stronger bot; legal_plays: a play was refused and one from the service's
list was made; server: the bot gave up, and the server will play at the turn's limit."""


class BotMetrics:
    """The bot service's own metrics; labelled ones are resolved once, here."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.decision = Histogram(
            registry,
            "shengji_bot_decision_seconds",
            "Time to decide, without waiting for anybody.",
            "action",
            (*ACTIONS, "nothing"),
        ).series
        fallbacks = Counter(
            "shengji_bot_fallbacks", "Decisions not made as asked for.", ["kind"], registry=registry
        )
        self.fallbacks = {name: fallbacks.labels(name) for name in FALLBACKS}
        commands = Counter(
            "shengji_bot_commands", "Commands sent, by status.", ["action", "code"], registry=registry
        )
        codes = [code.name for code in grpc.StatusCode]
        self.commands = {(name, code): commands.labels(name, code) for name in ACTIONS for code in codes}
        lag = Gauge(
            "shengji_bot_lag_messages",
            "Doorbells not yet delivered, by stream.",
            ["stream"],
            registry=registry,
        )
        self.lag_messages = {str(stream): lag.labels(str(stream)) for stream in range(4)}
        lags = Histogram(registry, "shengji_bot_lag_seconds", "Age of a commit when it is looked at.")
        self.lag_seconds = lags.series[""]
        self.tables = Gauge("shengji_bot_tables", "Tables in memory.", registry=registry)
        self.retries = Counter(
            "shengji_bot_retries", "Looks at a table that are repeated.", registry=registry
        )
