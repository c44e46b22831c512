"""Whether a recorded commit is what was to be decided: its command, read back from its events, decided anew.

Everything that ``decide`` takes is in the log: the state is the fold, the command shows in the events that it
led to, the clock is ``recorded_at_us``, and the randomness is the seed that was committed to.
"""

import builtins

from services.game.commands import (
    BuryCards,
    CallMutiny,
    Close,
    Command,
    Declare,
    EndUnfunded,
    Expire,
    GiveTime,
    Leave,
    OpenTable,
    Pass,
    Play,
    Ready,
    Refusal,
    SeatPlan,
    SetAutoPlay,
    Sit,
    TakeCounter,
    VoidDeal,
)
from services.game.decide import SecretsUnknown, decide
from services.game.errors import CorruptLog
from services.game.facts import Facts
from services.game.keys import commitment_in, reveal_in
from services.game.state import SEATS, Declaring, Table
from services.game.wire import cards_from_wire, pace_from_wire, rules_from_wire
from services.pb.event.v1.event_pb2 import Event, SeedCommitment, TableOpened
from services.pb.log.v1.log_pb2 import Commit


class RecordedEntropy:
    """Gives a decision the randomness that it drew when it was recorded: a server seed, then a salt.

    A seed that is still sealed is given as zeros.
    """

    def __init__(self, committed: SeedCommitment | None) -> None:
        self._draws = [committed.server_seed or builtins.bytes(32), committed.salt] if committed else []

    def bytes(self, n: int) -> builtins.bytes:
        """The next recorded bytes.

        Raises:
            ValueError: the record shows no such draw.
        """
        drawn = self._draws.pop(0) if self._draws else b""
        if len(drawn) != n:
            raise ValueError("randomness was drawn that is not recorded")
        return drawn

    def for_commit(self, table_id: str, version: int) -> "RecordedEntropy":
        """Itself: it is of one commit."""
        return self


def check(state: Table | None, commit: Commit, *, sealed: bool) -> None:
    """Checks that a commit's events are what its command leads to.

    Args:
        state: the table before it, None before the first.
        commit: the commit, opened.
        sealed: the commit is of a deal whose secrets are not revealed: what cannot be decided without them
            is let pass.

    Raises:
        CorruptLog: the command leads to other events, or to a refusal.
    """
    version = commit.version
    if sealed and state is not None and state.rules.sealed and isinstance(state.phase, Declaring):
        return  # what was declared decides when the window closes, and cannot be seen yet
    committed = next((seed for seed in map(commitment_in, commit.events) if seed is not None), None)
    facts = Facts(commit.recorded_at_us, RecordedEntropy(committed), committed.key_id if committed else "")
    command = command_of(state, commit)
    try:
        decision = decide(state, command, facts)
    except SecretsUnknown:
        if sealed:
            return
        raise
    name = type(command).__name__
    if isinstance(decision, Refusal):
        raise CorruptLog(version, f"{name} should have been refused: {decision.reason}")
    recorded = [_bare(event) for event in commit.events]
    if len(decision) != len(recorded):
        raise CorruptLog(version, f"{name} leads to {len(decision)} events, not {len(recorded)}")
    for index, (event, due) in enumerate(zip(recorded, decision, strict=True)):
        if event != _as_written_then(_as_far_as_known(due, committed), event, commit):
            kind = due.WhichOneof("kind")
            raise CorruptLog(version, f"event {index} is not what {name} leads to ({kind})")


def command_of(state: Table | None, commit: Commit) -> Command:
    """The command that a commit records.

    Args:
        state: the table before it.
        commit: the commit, opened.

    Raises:
        CorruptLog: no command has such events.
    """
    events = list(commit.events)
    if len(events) > 1 and events[0].WhichOneof("kind") == "auto_play_set":
        del events[0]  # a player who was away came back with the command that follows
    if commit.HasField("actor"):
        return _players(commit, events[0], state.version if state else 0)
    match events[0].WhichOneof("kind"):
        case "time_given":
            return GiveTime()
        case "deal_voided":
            return VoidDeal()
        case "table_closed":
            return Close(events[0].table_closed.reason)
        case _:
            return Expire()


def _players(commit: Commit, event: Event, version: int) -> Command:
    player = commit.actor.player_id
    match event.WhichOneof("kind"):
        case "table_opened":
            return _founding(commit.table_id, player, event.table_opened)
        case "seat_taken":
            seat = event.seat_taken.seat
            return Sit(seat.player_id, seat.seat, seat.difficulty)
        case "seat_left":
            return Leave(event.seat_left.player_id)
        case "seat_ready":
            return Ready(player, event.seat_ready.client_seed)
        case "declared":
            return Declare(player, cards_from_wire(event.declared.cards))
        case "passed":
            return Pass(player)
        case "mutiny_called":
            return CallMutiny(player, version)
        case "countered":
            return TakeCounter(player, version, cards_from_wire(event.countered.cards))
        case "buried":
            return BuryCards(player, version, cards_from_wire(event.buried.cards))
        case "cards_played":
            played = event.cards_played
            return Play(player, version, cards_from_wire(played.attempted or played.cards))
        case "throw_refused":
            return Play(player, version, cards_from_wire(event.throw_refused.cards))
        case "auto_play_set":
            return SetAutoPlay(player, event.auto_play_set.on)
        case "table_closed":
            return EndUnfunded(player)
        case kind:
            raise CorruptLog(commit.version, f"no player's command leads to {kind}")


def _founding(table_id: str, player: str, opened: TableOpened) -> OpenTable:
    plans = [SeatPlan(seat.player_id, seat.difficulty) for seat in opened.seats]
    one, two, three, four = plans + [SeatPlan()] * (SEATS - len(plans))
    return OpenTable(
        table_id=table_id,
        player_id=player,
        rules=rules_from_wire(opened.rules),
        pace=pace_from_wire(opened.pace),
        stake=opened.stake,
        spectators=opened.spectators,
        spectator_delay_ms=opened.spectator_delay_ms,
        seats=(one, two, three, four),
        previous_table_id=opened.previous_table_id,
        insecure_entropy=opened.insecure_entropy,
        operator=opened.operator,
        rake_permille=opened.rake_permille,
        prize=opened.prize,
    )


def _bare(event: Event) -> Event:
    """An opened event as it was decided: without seals and keys."""
    bare = Event()
    bare.CopyFrom(event)
    committed, reveal = commitment_in(bare), reveal_in(bare)
    if committed is not None:
        committed.ClearField("sealed_server_seed")
    if reveal is not None:
        reveal.ClearField("keys")
    match bare.WhichOneof("kind"):
        case "deal_started":
            bare.deal_started.ClearField("sealed_hands")
            bare.deal_started.ClearField("sealed_kitty")
        case "declared":
            bare.declared.ClearField("sealed_cards")
        case "kitty_taken":
            bare.kitty_taken.ClearField("sealed_cards")
        case "buried":
            bare.buried.ClearField("sealed_cards")
    return bare


def _as_written_then(due: Event, recorded: Event, commit: Commit) -> Event:
    """What was decided anew, less what was not written yet when it was recorded.

    That is rule options that did not exist, and who threw in vain: commits that name no ``previous_d`` are
    older than that.
    """
    match due.WhichOneof("kind"):
        case "table_opened":
            known = {option.name for option in recorded.table_opened.rules.options}
            written = Event()
            written.CopyFrom(due)
            options = written.table_opened.rules.options
            kept = [option for option in due.table_opened.rules.options if option.name in known]
            del options[:]
            options.extend(kept)
            return written
        case "deal_scored" if not commit.previous_d:
            written = Event()
            written.CopyFrom(due)
            written.deal_scored.ClearField("failed_throws")
            return written
        case _:
            return due


def _as_far_as_known(due: Event, recorded: SeedCommitment | None) -> Event:
    """What was decided anew, but for a seed that is still sealed: that and its commitment as recorded."""
    if recorded is None or recorded.server_seed or commitment_in(due) is None:
        return due
    known = Event()
    known.CopyFrom(due)
    committed = commitment_in(known)
    if committed is not None:
        committed.commitment = recorded.commitment
        committed.server_seed = b""
    return known
