"""Decisions: a command on a table's state becomes events, or a refusal that changes nothing.

``decide`` is the one entry. It is pure: the same state, command and facts give the same answer on every
replica. One module holds each phase: ``seating``, ``dealing`` (the shuffle), ``declaring``, ``mutiny``,
``bury``, ``countering``, ``tricks``, ``ending`` (scoring, the match), and ``server`` what the server does by
itself when a time has come.

A refusal tells only what the caller may know. Events carry secrets in the clear; ``seal`` closes them on
their way into the log, ``views.redact`` takes them out on their way to a player.
"""

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
    PlayerCommand,
    Ready,
    Refusal,
    SetAutoPlay,
    Sit,
    TakeCounter,
    VoidDeal,
)
from services.game.decide import bury, countering, declaring, mutiny, seating, server, tricks
from services.game.decide.common import Decision, Events, SecretsUnknown, auto_play_set
from services.game.facts import Facts
from services.game.ids import D_EVENTS, Kind
from services.game.state import Closed, Counter, Mutiny, Table
from services.game.waits import COMMIT_CAP
from services.pb.event.v1 import event_pb2 as pb
from services.rules.reasons import Reason

__all__ = ["Decision", "Events", "SecretsUnknown", "decide", "kind_of"]


def decide(state: Table | None, command: Command, facts: Facts) -> Decision:
    """What a command comes to.

    Args:
        state: the table; ``None`` before it is founded.
        command: what is asked.
        facts: time and randomness.

    Returns:
        The events to record as one commit, at least one; or why there are none.

    Raises:
        SecretsUnknown: the state was folded without the keys that this decision needs.
    """
    if isinstance(command, OpenTable):
        return seating.open_table(command, facts) if state is None else Refusal(Reason.WRONG_PHASE)
    if state is None:
        return Refusal(Reason.UNKNOWN_TABLE)
    if isinstance(state.phase, Closed):
        return Refusal(Reason.TABLE_CLOSED)
    if state.version >= COMMIT_CAP - 1 and not isinstance(command, Expire | Close):
        return Refusal(Reason.CAP_REACHED)
    match command:
        case Expire():
            return server.expire(state, facts)
        case GiveTime():
            return server.give_time(state, facts)
        case VoidDeal():
            return server.void_deal(state, facts)
        case Close():
            return server.close(state, command, facts)
        case _:
            return _with_return(state, command, _decide_player(state, command, facts))


def kind_of(events: Events) -> Kind:
    """Which of a table's subjects these events' commit goes to.

    ``d`` when they found or close the table, seat somebody, end a deal or move money; ``m`` otherwise.
    """
    return "d" if any(event.WhichOneof("kind") in D_EVENTS for event in events) else "m"


def _decide_player(state: Table, command: PlayerCommand, facts: Facts) -> Decision:
    match command:
        case Sit():
            return seating.sit(state, command, facts)
        case Leave():
            return seating.leave(state, command, facts)
        case Ready():
            return seating.ready(state, command, facts)
        case SetAutoPlay():
            return seating.set_auto_play(state, command)
        case Declare():
            return declaring.declare(state, command, facts)
        case Pass():
            return _pass(state, command, facts)
        case CallMutiny():
            return mutiny.call(state, command, facts)
        case BuryCards():
            return bury.bury(state, command)
        case TakeCounter():
            return countering.counter(state, command)
        case Play():
            return tricks.play(state, command, facts)
        case EndUnfunded():
            return server.end_unfunded(state, command)
        case OpenTable():
            return Refusal(Reason.WRONG_PHASE)


def _pass(state: Table, command: Pass, facts: Facts) -> Decision:
    """A pass says no to whatever the table asks."""
    match state.phase:
        case Mutiny() as phase:
            return mutiny.decline(state, phase, command)
        case Counter() as phase:
            return countering.decline(state, phase, command)
        case _:
            return declaring.pass_window(state, command, facts)


def _with_return(state: Table, command: PlayerCommand, decision: Decision) -> Decision:
    """An accepted command of a player who was away takes the seat back first."""
    seat = state.seat_of(command.player_id)
    if isinstance(decision, Refusal) or seat is None or not state.seats[seat].away:
        return decision
    if isinstance(command, SetAutoPlay | Leave):
        return decision
    return (pb.Event(auto_play_set=auto_play_set(seat, on=False, by_player=True)), *decision)
