"""What each receiver may know of a table: snapshots, redacted events, and the steps between them.

An audience is a seat 0..3 or ``SPECTATOR``. A seat is told its own hand as far as it has drawn it, the kitty
it took or buried last, and what is public; a spectator what is public. Everything here is a pure function of
the table and a time, so the steps that a watcher sees are the same on every replica.
"""

from collections.abc import Iterator
from typing import Final

from services.game.draw import drawn_hand
from services.game.state import (
    SEATS,
    UNKNOWN_CARD,
    Bury,
    Closed,
    Counter,
    Dealt,
    Declaring,
    Mutiny,
    Over,
    Phase,
    Scored,
    Seating,
    Table,
    Tricks,
)
from services.game.waits import deadline_us, drawn, round_at_us, to_act
from services.game.wire import cards_to_wire, level_to_wire, pace_to_wire, trump_to_wire
from services.pb.event.v1 import event_pb2 as pb
from services.pb.log.v1.log_pb2 import Commit
from services.pb.table.v1 import view_pb2 as view_pb
from services.rules.declarations import Standing
from services.rules.options import RuleSet

SPECTATOR: Final = 4
"""The audience without a seat."""

_PHASES: Final[dict[type[Phase], view_pb.Phase.ValueType]] = {
    Seating: view_pb.PHASE_SEATING,
    Declaring: view_pb.PHASE_DECLARING,
    Mutiny: view_pb.PHASE_MUTINY,
    Bury: view_pb.PHASE_BURY,
    Counter: view_pb.PHASE_COUNTER,
    Tricks: view_pb.PHASE_TRICKS,
    Scored: view_pb.PHASE_SCORED,
    Over: view_pb.PHASE_OVER,
    Closed: view_pb.PHASE_CLOSED,
}


# -------------------------------------------------------------------------------------------------- snapshots


def view(state: Table, audience: int, now_us: int) -> view_pb.TableView:
    """The whole table as one receiver may know it.

    Args:
        state: the table.
        audience: a seat, or ``SPECTATOR``.
        now_us: the server's clock; it decides how many cards have been drawn.
    """
    phase = state.phase
    shown = view_pb.TableView(
        table_id=state.table_id,
        version=state.version,
        drawn=drawn(state, now_us),
        phase=_PHASES[type(phase)],
        preset=state.rules.preset,
        pace=pace_to_wire(state.pace),
        stake=state.founding.stake,
        rake_permille=state.founding.rake_permille,
        prize=state.founding.prize,
        seats=_seats(state, now_us),
        my_seat=audience if audience < SEATS else None,
        deal=state.deal_number,
        levels=[level_to_wire(level) for level in state.match.levels],
        kitty_size=state.rules.kitty,
        to_act=to_act(state, now_us),
        deadline_ms=_milliseconds(deadline_us(state)),
        server_now_ms=now_us // 1000,
        turn_version=state.turn_version,
        next_seed_commitment=state.next_seed.commitment if state.next_seed else b"",
    )
    if state.last_score and not isinstance(phase, Dealt):
        shown.last_score.ParseFromString(state.last_score)
        if state.next_seed is None:  # the match is over; deals that ended without a score had numbers too
            shown.deal = shown.last_score.deal
    match phase:
        case Declaring() | Mutiny() | Bury() | Counter() | Tricks():
            _show_deal(shown, state, audience, now_us)
        case Over(result) | Closed(_, result) if result:
            shown.result.ParseFromString(result)
    return shown


def _milliseconds(time_us: int | None) -> int:
    return 0 if time_us is None else -(-time_us // 1000)


def _seats(state: Table, now_us: int) -> list[view_pb.SeatView]:
    return [
        view_pb.SeatView(
            seat=seat,
            player_id=held.player_id,
            difficulty=pb.Difficulty.ValueType(held.difficulty),
            ready=held.ready,
            auto_play=held.auto_play,
            escaped=held.escaped,
            hand_size=hand_size(state, seat, now_us),
            passed=_has_passed(state.phase, seat),
        )
        for seat, held in enumerate(state.seats)
    ]


def _has_passed(phase: Phase, seat: int) -> bool:
    match phase:
        case Declaring():
            return phase.declarations.has_passed(seat)
        case Mutiny() | Counter():
            return phase.has_passed(seat)
        case _:
            return False


def hand_size(state: Table, seat: int, now_us: int) -> int:
    """How many cards a seat holds, known from play alone."""
    match state.phase:
        case Declaring():
            return drawn(state, now_us)
        case Tricks() as phase:
            place = (seat - phase.leader) % SEATS
            return phase.left - (len(phase.trick[place]) if place < len(phase.trick) else 0)
        case Bury() as phase:
            return state.rules.hand_size + (state.rules.kitty if seat == phase.seat else 0)
        case Mutiny() | Counter():
            return state.rules.hand_size
        case _:
            return 0


def _show_deal(shown: view_pb.TableView, state: Table, audience: int, now_us: int) -> None:
    phase = state.phase
    if not isinstance(phase, Dealt):
        return
    shown.level = level_to_wire(phase.deal.level)
    shown.first_drawer = phase.deal.first_drawer
    hand = _hand(state, audience, now_us)
    shown.hand.extend(cards_to_wire(hand))
    if isinstance(phase, Declaring):
        if phase.deal.declarer is not None:
            shown.declarer = phase.deal.declarer
        _show_standing(shown, phase.declarations.standing, audience, sealed=state.rules.sealed)
        return
    shown.trump = trump_to_wire(phase.settled.trump, two_colour=state.rules.two_colour)
    shown.declarer = phase.settled.declarer
    _show_standing(shown, phase.settled.standing, audience, sealed=False)
    shown.kitty.extend(cards_to_wire(_kitty(phase, audience)))
    if isinstance(phase, Tricks):
        shown.trick.extend(_plays(phase.trick, phase.leader))
        shown.last_trick.extend(_plays(phase.last_trick, phase.last_leader))
        if phase.last_trick:
            shown.last_winner = phase.leader
        shown.attackers_points = phase.attackers_points


def _hand(state: Table, audience: int, now_us: int) -> bytes:
    """The receiver's hand: as drawn so far, in that order, then ascending."""
    phase = state.phase
    if audience >= SEATS or not isinstance(phase, Dealt):
        return b""
    if isinstance(phase, Declaring):
        return drawn_hand(state, audience, now_us) or b""
    return phase.hands[audience] or b""


def _kitty(phase: Phase, audience: int) -> bytes:
    """The kitty, for the seat that has it in hand or buried it last."""
    match phase:
        case Bury() if audience == phase.seat:
            return bytes(sorted(phase.kitty or b""))
        case Tricks() | Counter() if audience == phase.buried_by:
            return phase.buried or b""
        case _:
            return b""


def _plays(plays: tuple[bytes, ...], leader: int) -> list[view_pb.PlayView]:
    return [
        view_pb.PlayView(seat=(leader + place) % SEATS, cards=cards_to_wire(cards))
        for place, cards in enumerate(plays)
    ]


def _show_standing(
    shown: view_pb.TableView, standing: Standing | None, audience: int, *, sealed: bool
) -> None:
    if standing is None:
        return
    cards = standing.cards + standing.added
    hidden = (sealed and audience != standing.seat) or UNKNOWN_CARD in cards
    shown.standing.CopyFrom(
        pb.Declared(seat=standing.seat, cards=[] if hidden else cards_to_wire(cards), count=standing.count)
    )


# ----------------------------------------------------------------------------------------------------- events


def redact(event: pb.Event, audience: int, rules: RuleSet) -> pb.Event:
    """An event as one receiver may be told it: seals and secrets taken out, the receiver's own left in.

    Args:
        event: as decided, as stored, or as opened; it is not changed.
        audience: a seat, or ``SPECTATOR``.
        rules: of the table; they tell whether declarations are sealed.
    """
    kind = event.WhichOneof("kind")
    if kind not in _WITH_SECRETS:
        return event
    told = pb.Event()
    told.CopyFrom(event)
    match kind:
        case "table_opened":
            told.table_opened.ClearField("insecure_entropy")
            _strip_seed(told.table_opened.next_seed)
        case "seed_committed":
            _strip_seed(told.seed_committed.next_seed)
        case "deal_scored":
            _strip_seed(told.deal_scored.next_seed)
        case "deal_voided":
            _strip_seed(told.deal_voided.next_seed)
        case "mutiny_called":
            _strip_seed(told.mutiny_called.next_seed)
        case "seat_ready":
            if told.seat_ready.seat != audience:
                told.seat_ready.ClearField("client_seed")
        case "deal_started":
            for name in ("hands", "kitty", "sealed_hands", "sealed_kitty"):
                told.deal_started.ClearField(name)
        case "declared":
            _strip_cards(told.declared, keep=not rules.sealed or told.declared.seat == audience)
        case "kitty_taken":
            _strip_cards(told.kitty_taken, keep=told.kitty_taken.seat == audience)
        case "buried":
            _strip_cards(told.buried, keep=told.buried.seat == audience)
    return told


_WITH_SECRETS: Final = frozenset(
    {
        "table_opened",
        "seed_committed",
        "deal_scored",
        "deal_voided",
        "mutiny_called",
        "seat_ready",
        "deal_started",
        "declared",
        "kitty_taken",
        "buried",
    }
)


def _strip_seed(seed: pb.SeedCommitment) -> None:
    seed.ClearField("server_seed")
    seed.ClearField("sealed_server_seed")


def _strip_cards(message: pb.Declared | pb.KittyTaken | pb.Buried, *, keep: bool) -> None:
    message.ClearField("sealed_cards")
    if not keep:
        message.ClearField("cards")


# ------------------------------------------------------------------------------------------------------ steps


def updates(
    before: Table, commit: Commit, after: Table, audience: int, from_drawn: int | None = None
) -> Iterator[view_pb.Update]:
    """The steps from one version to the next: the rounds drawn up to the commit, then the commit.

    Args:
        before: the table before the commit.
        commit: the commit, opened as far as the caller has keys.
        after: ``evolve(before, commit)``.
        audience: a seat, or ``SPECTATOR``.
        from_drawn: how many rounds of ``before`` the receiver has been told; absent, those that had come
            when ``before`` was recorded.
    """
    told = drawn(before, before.recorded_at_us) if from_drawn is None else from_drawn
    yield from rounds_between(before, told, commit.recorded_at_us, audience)
    yield commit_update(commit, after, audience)


def commit_update(commit: Commit, after: Table, audience: int) -> view_pb.Update:
    """The step that a commit makes. When it deals all cards at once they come with it."""
    at_us = commit.recorded_at_us
    update = _step(after, at_us)
    update.events.extend(redact(event, audience, after.rules) for event in commit.events)
    if isinstance(after.phase, Declaring) and after.turn_version == after.version:  # it was just dealt
        update.drawn_cards.extend(cards_to_wire(_hand(after, audience, at_us)))
    return update


def rounds_between(state: Table, from_drawn: int, until_us: int, audience: int) -> Iterator[view_pb.Update]:
    """One step for each round of four cards drawn after ``from_drawn`` and not after ``until_us``.

    The server sends them as their time comes (``waits.round_at_us``); who catches up gets the same ones at
    once.
    """
    for number in range(from_drawn + 1, drawn(state, until_us) + 1):
        at_us = round_at_us(state, number)
        update = _step(state, at_us)
        update.drawn_cards.extend(cards_to_wire(_hand(state, audience, at_us)[number - 1 :]))
        yield update


def _step(state: Table, at_us: int) -> view_pb.Update:
    """A step at a time, still without what it brings. A sender who is late sets ``server_now_ms``."""
    return view_pb.Update(
        version=state.version,
        drawn=drawn(state, at_us),
        to_act=to_act(state, at_us),
        deadline_ms=_milliseconds(deadline_us(state)),
        server_now_ms=at_us // 1000,
        recorded_at_ms=at_us // 1000,
        turn_version=state.turn_version,
    )
