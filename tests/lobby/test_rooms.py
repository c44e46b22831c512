"""Decisions about rooms by themselves: searches of two partners, versions, and what changes nothing."""

import pytest

from services.lobby import room_tables, rooms
from services.lobby.room_checks import Person
from services.pb.event.v1.event_pb2 import DIFFICULTY_EASY, RuleOption
from services.pb.lobby.v1.room_pb2 import (
    ROOM_STATE_ENDED,
    ROOM_STATE_OPEN,
    ROOM_STATE_SEARCHING,
    VISIBILITY_CODE,
    RoomPlan,
)
from services.rules.reasons import Reason
from services.shell.errors import RefusedError

A, B, C = (Person(name, name.upper()) for name in ("ann", "bob", "cyd"))
TICKET = "tkt_1"


def room(*, stand=False, plan=None, code="AAAAAA"):
    return rooms.create(
        "rom_1",
        A,
        plan or RoomPlan(preset="classic-2d"),
        VISIBILITY_CODE,
        code,
        operator="",
        request_id=b"r" * 16,
        stand=stand,
        now_ms=1,
    )


def partners():
    record = rooms.join(room(), B, 2)
    return rooms.take_seat(record, "bob", 2, 3)


def refused(reason, decide, *args):
    with pytest.raises(RefusedError) as caught:
        decide(*args)
    assert caught.value.reason is reason


def test_versions_rise_with_every_real_change_and_with_no_other():
    record = room()
    joined = rooms.join(record, B, 5)
    assert (joined.room.version, joined.changed_at_ms) == (2, 5)
    assert record.room.version == 1, "what was decided on stays as it was"
    for same in (
        rooms.join(joined, B, 6),
        rooms.take_seat(joined, "ann", 0, 6),
        rooms.take_seat(joined, "bob", None, 6),
        rooms.swap_seats(joined, "ann", 1, 2, 6),
        rooms.set_bots(joined, "ann", 0, None, 6),
        rooms.set_plan(joined, "ann", joined.room.plan, 0, 6),
        rooms.hand_over(joined, "ann", "ann", 6),
        rooms.leave(joined, "cyd", 6),
        rooms.end_search(joined, TICKET, 6),
        room_tables.founded(joined, "", "", "", 6),
        room_tables.start_failed(joined, "", "BAD_OPTION", 6),
        room_tables.happened(joined, "", room_tables.Happened(("ann",), over=True), 6),
    ):
        assert same is joined


def test_two_partners_look_for_opponents():
    record = partners()
    searching = rooms.begin_search(record, "ann", TICKET, 4)
    assert searching.room.state == ROOM_STATE_SEARCHING
    assert rooms.begin_search(searching, "ann", TICKET, 5) is searching
    for decide, *args in (
        (rooms.leave, "bob", 5),
        (rooms.join, C, 5),
        (rooms.take_seat, "bob", None, 5),
        (rooms.kick, "ann", "bob", 5),
        (rooms.begin_search, "ann", "tkt_2", 5),
        (room_tables.start, "ann", True, 5),
    ):
        refused(Reason.WRONG_PHASE, decide, searching, *args)
    assert rooms.end_search(searching, "tkt_2", 5) is searching, "another ticket's end"
    again = rooms.end_search(searching, TICKET, 5)
    assert again.room.state == ROOM_STATE_OPEN
    assert not again.room.ticket_id


def test_who_are_no_two_partners_do_not():
    record = partners()
    refused(Reason.NOT_HOST, rooms.begin_search, record, "bob", TICKET, 4)
    for wrong in (
        room(),
        rooms.join(record, C, 4),
        rooms.take_seat(record, "bob", 1, 4),
        rooms.take_seat(record, "bob", None, 4),
        rooms.set_bots(record, "ann", DIFFICULTY_EASY, 1, 4),
        rooms.set_plan(
            record,
            "ann",
            RoomPlan(preset="classic-2d", overrides=[RuleOption(name="deals", value="2")]),
            0,
            4,
        ),
    ):
        refused(Reason.BAD_INPUT, rooms.begin_search, wrong, "ann", TICKET, 5)


def test_the_host_cannot_send_itself_away():
    refused(Reason.BAD_INPUT, rooms.kick, room(), "ann", "ann", 2)
    refused(Reason.NOT_IN_ROOM, rooms.kick, room(), "ann", "bob", 2)


def test_of_those_sent_away_the_last_hundred_are_remembered():
    record = room()
    for number in range(rooms.KICKED_MOST + 5):
        record = rooms.join(record, Person(f"p{number}", ""), 2)
        record = rooms.kick(record, "ann", f"p{number}", 2)
    assert list(record.kicked) == [f"p{number}" for number in range(5, rooms.KICKED_MOST + 5)]


def test_a_host_passes_to_who_came_next_and_seats_are_freed():
    record = rooms.leave(partners(), "ann", 4)
    assert record.room.host_id == "bob"
    assert [seat.player_id for seat in record.room.seats] == ["", "", "bob", ""]
    gone = rooms.leave(record, "bob", 5)
    assert gone.room.state == ROOM_STATE_ENDED


def test_what_happens_at_another_table_is_no_matter():
    record = room_tables.start(room(), "ann", True, 3)
    what = room_tables.Happened(("ann",), over=True)
    assert room_tables.happened(record, "tbl_other", what, 4) is record
    assert room_tables.founded(record, "tbl_other", "code", "resume", 4) is record
    assert room_tables.start_failed(record, "tbl_other", "BUSY", 4) is record
    assert room_tables.funds_held(record, "tbl_other", 4) is record
    assert room_tables.happened(record, record.room.table_id, what, 4) is not record


def test_each_start_names_another_table():
    record = rooms.set_bots(room(), "ann", DIFFICULTY_EASY, None, 2)
    first = room_tables.start(record, "ann", False, 3)
    table_id = first.room.table_id
    opened = room_tables.start_failed(first, table_id, "BUSY", 4)
    second = room_tables.start(opened, "ann", False, 5)
    assert second.room.table_id not in ("", table_id)
    other = room_tables.start(room(code="BBBBBB"), "ann", True, 8)
    assert other.room.table_id not in (table_id, second.room.table_id), "the id's next room"


def test_a_swap_that_is_repeated_does_not_swap_back():
    record = partners()
    version = record.room.version
    after = rooms.swap_seats(record, "ann", 0, 1, 4, version)
    assert after.room.seats[1].player_id == "ann"
    with pytest.raises(RefusedError) as refused:
        rooms.swap_seats(after, "ann", 0, 1, 5, version)
    assert refused.value.reason is Reason.STALE_VERSION


def test_while_the_table_plays_only_who_looks_on_is_sent_away():
    record = rooms.set_bots(rooms.join(room(), B, 2), "ann", DIFFICULTY_EASY, None, 3)
    record = room_tables.start(record, "ann", False, 4)
    with pytest.raises(RefusedError):
        rooms.kick(record, "ann", "bob", 5)
    record = room_tables.founded(record, record.room.table_id, "", "", 6)
    assert [member.player_id for member in rooms.kick(record, "ann", "bob", 7).room.members] == ["ann"]
    seated_too = rooms.take_seat(rooms.join(room(), B, 2), "bob", 1, 3)
    seated_too = room_tables.start(seated_too, "ann", True, 4)
    seated_too = room_tables.founded(seated_too, seated_too.room.table_id, "", "", 5)
    with pytest.raises(RefusedError):
        rooms.kick(seated_too, "ann", "bob", 6)
