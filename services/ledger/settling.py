"""What a table's commits mean in chips: pure, and the one place of every rule of RULES §9.

``settle`` takes a table's book, its next commit of kind `d` and what the players have, and gives the next
book and the transfers between accounts. Nothing here knows of databases: the consumer, the audit and whoever
rebuilds a ledger fold the same commits with it.

Money moves at a table with a stake or a prize. There, all chips are held at once when the four seats are
filled, and each person is bound to that table until the match is over or the seat is left before it began.
Since nobody is bound to two tables, balances follow from the logs alone.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from services.ledger.books import SEATS, TableBook
from services.ledger.moving import Funds, Settled, Unsettled, Why, Work, in_parts
from services.pb.event.v1 import event_pb2 as events_pb
from services.pb.ledger.v1.ledger_service_pb2 import (
    MATCH_STATE_BROKEN_OFF,
    MATCH_STATE_FINISHED,
    MATCH_STATE_OPEN,
    PURPOSE_ESCAPE,
    PURPOSE_FINE,
    PURPOSE_PRIZE,
    PURPOSE_RAKE,
    PURPOSE_SETTLEMENT,
)
from services.pb.log.v1.log_pb2 import Commit

ESCAPE_STAKES: Final = 8
"""Base stakes that an escape costs; each of the three others gets one of them (D15)."""

MOST_CHIPS: Final = 10**12
"""Of a stake or a prize; far more than a table service allows, and far less than a database's number."""
MOST_TIMES: Final = 1000
"""Of levels, and of throws of a seat, in one deal; likewise."""


def settle(book: TableBook | None, commit: Commit, funds: Funds) -> Settled:
    """What the next commit of a table comes to.

    Args:
        book: the table's book; None before it is founded.
        commit: its next commit of kind `d`.
        funds: what the players have.

    Raises:
        Unsettled: it cannot have its effect now.
    """
    if book is None:
        book = _opened(commit)
    elif book.closed:
        raise Unsettled(Why.POISON, "something follows the table's end")
    work = Work(book, commit, funds)
    try:
        for event in commit.events:
            kind = event.WhichOneof("kind")
            if kind is None:
                raise Unsettled(Why.POISON, "an event of an unknown kind")
            handler = _HANDLERS.get(kind)
            if handler is not None:
                handler(work, getattr(event, kind))
        return work.done()
    except IndexError:
        raise Unsettled(Why.POISON, "a seat that no table has") from None


def _opened(commit: Commit) -> TableBook:
    """The book of a table that is founded with this commit."""
    first = commit.events[0]
    if not first.HasField("table_opened"):
        raise Unsettled(Why.GAP, "the table was not founded")
    opened = first.table_opened
    options = {option.name: option.value for option in opened.rules.options}
    quarters = options.get("failed_throw_quarters", "0")
    if len(opened.seats) != SEATS or not (quarters.isdigit() and int(quarters) <= MOST_TIMES):
        raise Unsettled(Why.POISON, "a table has four seats, and numbers as options")
    if opened.stake > MOST_CHIPS or opened.prize > MOST_CHIPS or opened.rake_permille > 1000:
        raise Unsettled(Why.POISON, "more chips than a table may move")
    return TableBook(
        table_id=commit.table_id,
        version=0,
        opened_at_us=commit.recorded_at_us,
        preset=opened.rules.preset,
        stake=opened.stake,
        operator=opened.operator,
        rake_permille=opened.rake_permille,
        prize=opened.prize,
        fine_quarters=int(quarters),
        escape_fee=options.get("escape_fee") == "true",
        players=tuple(seat.player_id for seat in opened.seats),
        difficulties=tuple(seat.difficulty for seat in opened.seats),
    )


def _table_opened(work: Work, opened: events_pb.TableOpened) -> None:
    if work.before.version:
        raise Unsettled(Why.POISON, "a table is founded once")
    work.meet(work.book.people())


def _seat_taken(work: Work, taken: events_pb.SeatTaken) -> None:
    """Somebody sat down; the last of the four to do so makes the holds."""
    seat = taken.seat.seat
    work.sit(seat, taken.seat.player_id, taken.seat.difficulty)
    if not work.book.is_bot(seat):
        work.meet([taken.seat.player_id])


def _seat_left(work: Work, left: events_pb.SeatLeft) -> None:
    """A seat was left: before the match with everything given back, later by an escape (RULES §9)."""
    book = work.book
    if left.escaped:
        work.book = book.replace(escaped=(*book.escaped[: left.seat], True, *book.escaped[left.seat + 1 :]))
        if book.escape_fee and book.stake:
            _escape(work, left.seat)
        return
    name = f"0/release/v{work.version}"
    if book.held:
        work.release(work.everybody_bound(), name)
    elif left.player_id in work.everybody_bound():
        work.release([left.player_id], name)
    work.sit(left.seat, "", 0, held=False, unfunded=())


def _escape(work: Work, seat: int) -> None:
    """Who escapes pays 8B: the three others get B each, the house the rest (D15).

    Who has less gives what there is: to the others first, equally, odd chips to the lower seats.
    """
    stake, moved = work.book.stake, dict[str, int]()
    paid = work.take(seat, ESCAPE_STAKES * stake, moved)
    others = [other for other in range(SEATS) if other != seat]
    for other, part in zip(others, in_parts(min(paid, 3 * stake), 3), strict=True):
        work.give(other, part, moved)
        work.won(other, part)
    house = work.book.house
    moved[house] = moved.get(house, 0) + paid - min(paid, 3 * stake)
    work.won(seat, -paid)
    deal = work.scored.deal if work.scored is not None else work.book.ended + 1
    work.transfer(f"{deal}/escape/{seat}", PURPOSE_ESCAPE, deal, moved)


def _deal_scored(work: Work, scored: events_pb.DealScored) -> None:
    """A deal is scored: failed throws are paid for, as they happened before, then the deal itself."""
    deal = _next_deal(work, scored)
    book = work.book
    _side(scored.winning_side)
    if max(0, scored.nominal_levels, *scored.failed_throws) > MOST_TIMES:
        raise Unsettled(Why.POISON, "more levels or throws than a deal has")
    work.scored = scored
    work.book = book.replace(ended=deal, scored=book.scored + 1)
    if not book.stake:
        return
    if book.fine_quarters:
        for seat, failed in enumerate(scored.failed_throws):
            if failed:
                _fine(work, deal, seat, failed)
    _settlement(work, scored)


def _fine(work: Work, deal: int, seat: int, failed: int) -> None:
    """Failed throws of a seat: for each, ⌊B/4⌋ to each opponent, as many times as the rules say (D6)."""
    moved: dict[str, int] = {}
    each = failed * work.book.fine_quarters * (work.book.stake // 4)
    paid = work.take(seat, 2 * each, moved)
    opponents = sorted(((seat + 1) % SEATS, (seat + 3) % SEATS))
    for other, part in zip(opponents, in_parts(paid, 2), strict=True):
        work.give(other, part, moved)
        work.won(other, part)
    work.won(seat, -paid)
    work.transfer(f"{deal}/fine/{seat}", PURPOSE_FINE, deal, moved)


def _settlement(work: Work, scored: events_pb.DealScored) -> None:
    """Each of the losing side pays B × max(1, nominal levels) to the winners, in equal parts (D14).

    Nobody pays more than there is. Of the winners' parts the house, or the operator, takes its share.
    """
    book, side, deal = work.book, scored.winning_side, scored.deal
    owed = book.stake * max(1, scored.nominal_levels)
    moved: dict[str, int] = {}
    pot = 0
    for seat in (1 - side, 3 - side):
        paid = work.take(seat, owed, moved)
        work.won(seat, -paid)
        pot += paid
    parts = in_parts(pot, 2)
    for seat, part in zip((side, side + 2), parts, strict=True):
        work.give(seat, part, moved)
        work.won(seat, part)
    work.transfer(f"{deal}/settlement", PURPOSE_SETTLEMENT, deal, moved)
    if book.rake_permille:
        taken: dict[str, int] = {}
        for seat, part in zip((side, side + 2), parts, strict=True):
            share = part * book.rake_permille // 1000
            work.give(seat, -share, taken)
            work.won(seat, -share)
            taken[book.house] = taken.get(book.house, 0) + share
        work.transfer(f"{deal}/rake", PURPOSE_RAKE, deal, taken)


def _side(side: int) -> int:
    if side not in {0, 1}:
        raise Unsettled(Why.POISON, "a side that no table has")
    return side


def _next_deal(work: Work, event: Any) -> int:
    """The deal that is over; deals are numbered without gaps, so that old logs show gaps as well."""
    deal: int = event.deal
    if deal != work.book.ended + 1:
        raise Unsettled(Why.GAP, f"deal {deal} after deal {work.book.ended}")
    return deal


def _deal_over(work: Work, event: Any) -> None:
    """A deal is over that is not scored."""
    work.book = work.book.replace(ended=_next_deal(work, event))


def _match_ended(work: Work, ended: events_pb.MatchEnded) -> None:
    """The match was played to its end: the prize is given, and everything held goes back."""
    book = work.book
    side = _side(ended.winning_side) if ended.HasField("winning_side") else -1
    people = all(player and not book.is_bot(seat) for seat, player in enumerate(book.players))
    work.book = book.replace(
        winning_side=side,
        advanced=tuple(ended.advanced),
        rated=people and not any(book.escaped) and not book.unfunded,
    )
    if book.prize and side >= 0:
        moved = {book.house: -book.prize}
        for seat, part in zip((side, side + 2), in_parts(book.prize, 2), strict=True):
            work.give(seat, part, moved)
            work.gained[seat] += part
        work.transfer(f"{book.ended}/prize", PURPOSE_PRIZE, book.ended, moved)
    work.over(MATCH_STATE_FINISHED)


def _table_closed(work: Work, closed: events_pb.TableClosed) -> None:
    """The table is closed; a match that was not over is broken off, and everything held goes back."""
    if work.book.state == MATCH_STATE_OPEN:
        if closed.reason == events_pb.CLOSE_REASON_FINISHED:
            raise Unsettled(Why.GAP, "the match's end has not come")  # only old logs need this to see it
        work.over(MATCH_STATE_BROKEN_OFF)
    work.book = work.book.replace(closed=True, unfunded=())


_HANDLERS: Final[Mapping[str, Callable[[Work, Any], None]]] = {
    "table_opened": _table_opened,
    "seat_taken": _seat_taken,
    "seat_left": _seat_left,
    "deal_scored": _deal_scored,
    "deal_voided": _deal_over,
    "mutiny_called": _deal_over,
    "match_ended": _match_ended,
    "table_closed": _table_closed,
}
"""Events that mean something here; all other known kinds mean nothing."""
