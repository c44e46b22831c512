"""What the lobby counts (ARCHITECTURE §6). Every label's values are fixed here; none is an id."""

from typing import Final

from prometheus_client import CollectorRegistry

from services.rules.reasons import Reason
from services.shell.metrics import Histogram, Registrar

SIGN_INS: Final = ("guest", "device", "user", "refresh")
ENDED_ROOMS: Final = ("left", "offline", "after")
DROPPED_TICKETS: Final = ("cancelled", "offline")
WAIT_BOUNDS: Final = ("people", "bots")


class LobbyMetrics:
    """The lobby's own metrics; labelled ones are resolved once, here."""

    def __init__(self, registry: CollectorRegistry) -> None:
        made = Registrar(registry)
        self.refusals = made.counters(
            "shengji_refusals",
            "Calls refused, by reason.",
            "reason",
            tuple(reason.value for reason in Reason),
        )
        self.sign_ins = made.counters("shengji_sign_ins", "Tokens given out, by the way in.", "way", SIGN_INS)
        self.wrong_secrets = made.counter("shengji_wrong_secrets", "Secrets and tokens that were not right.")
        self.revoked_families = made.counter("shengji_revoked_families", "Sign-ins ended by a reused token.")
        self.conflicts = made.counter("shengji_store_conflicts", "Changes decided again: another was faster.")
        self.players_online = made.gauge("shengji_players_online", "Players with a stay, on all replicas.")
        self.stays = made.gauge("shengji_stays", "Stay streams of this replica.")
        self.rooms = made.gauge("shengji_rooms", "Rooms there are.")
        self.ended_rooms = made.counters(
            "shengji_ended_rooms", "Rooms that ended, by why.", "why", ENDED_ROOMS
        )
        self.founded_tables = made.counter("shengji_founded_tables", "Tables founded for rooms.")
        self.failed_starts = made.counter("shengji_failed_starts", "Rooms whose table could not be founded.")
        self.tickets = made.gauge("shengji_tickets", "Tickets that wait.")
        self.dropped_tickets = made.counters(
            "shengji_dropped_tickets", "Tickets that ended without a match.", "why", DROPPED_TICKETS
        )
        self.matches = made.counters(
            "shengji_matches", "Matches made, by who fills them.", "filled", WAIT_BOUNDS
        )
        passes = Histogram(registry, "shengji_pass_seconds", "Time of a matchmaking pass.")
        self.pass_seconds = passes.series[""]
        waits = Histogram(registry, "shengji_ticket_wait_seconds", "From a ticket's making to its match.")
        self.ticket_wait = waits.series[""]
        self.said = made.counter("shengji_said", "Phrases said.")
        self.reports = made.counter("shengji_reports", "Reports filed.")
        lag = Histogram(
            registry, "shengji_aftermath_lag_seconds", "From a commit to what the lobby made of it."
        )
        self.aftermath_lag = lag.series[""]
