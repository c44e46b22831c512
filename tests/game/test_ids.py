import contextlib
import hashlib
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.game import ids
from services.game.errors import BadId
from services.game.ids import CommandId, TableId

new_ids = st.builds(TableId.new, st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))


def as_uuid(table_id):
    number = 0
    for letter in table_id[4:]:
        number = number * 32 + "0123456789abcdefghjkmnpqrstvwxyz".index(letter)
    return uuid.UUID(int=number)


@given(st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_a_new_id_is_a_uuid7_of_its_time_and_parses(now_ms, random):
    table_id = TableId.new(now_ms, random)
    number = as_uuid(table_id)
    assert number.version == 7
    assert number.variant == uuid.RFC_4122
    assert number.int >> 80 == now_ms
    assert TableId.parse(str(table_id)) == table_id
    assert len(table_id) == 30


def test_all_74_random_bits_count():
    def bits(random):
        return as_uuid(TableId.new(1, random.to_bytes(10, "big"))).int

    assert len({bits(1 << bit) for bit in range(74)}) == 74
    assert bits(1 << 74) == bits(0)


def test_ids_are_ordered_by_time():
    assert TableId.new(1_000, b"\xff" * 10) < TableId.new(1_001, b"\0" * 10)


@pytest.mark.parametrize(
    ("now_ms", "random"), [(-1, b"0" * 10), (1 << 48, b"0" * 10), (1, b"0" * 9), (1, b"")]
)
def test_new_refuses_what_is_out_of_range(now_ms, random):
    with pytest.raises(ValueError, match="id takes"):
        TableId.new(now_ms, random)


GOOD = str(TableId.new(1_700_000_000_000, bytes(range(10))))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        ">",
        "tbl_",
        "tbl_*",
        GOOD.upper(),
        GOOD[4:],
        GOOD[:-1],
        GOOD + "0",
        GOOD + "\n",
        GOOD + ".m",
        " " + GOOD,
        "ply_" + GOOD[4:],
        GOOD[:-1] + "u",
        GOOD[:-1] + "i",
        GOOD[:-1] + "l",
        GOOD[:-1] + "o",
        GOOD[:-1] + "ü",
        GOOD[:-1] + "٣",
        "tbl_8" + GOOD[5:],
        "tbl_" + "0" * 26,
        "tbl_" + "7" + "z" * 25,
        "tbl_" + "a" * 300,
    ],
)
def test_parse_refuses_anything_else(text):
    with pytest.raises(BadId):
        TableId.parse(text)
    for make in (ids.partition, ids.every_subject, ids.every_live_subject, ids.stream_name):
        with pytest.raises(BadId):
            make(text)
    with pytest.raises(BadId):
        ids.subject(text, "m")


@given(st.text(max_size=40))
def test_parse_takes_a_text_as_it_is_or_not_at_all(text):
    with contextlib.suppress(BadId):
        assert TableId.parse(text) == text


@given(new_ids, st.sampled_from(ids.KINDS))
def test_subjects_are_made_and_read_back(table_id, kind):
    p = hashlib.sha256(table_id.encode()).digest()[0]
    assert ids.partition(table_id) == p
    assert ids.subject(table_id, kind) == f"sj.v1.table.{p:02x}.{table_id}.{kind}"
    assert ids.live_subject(table_id, kind) == f"sj.v1.live.{p:02x}.{table_id}.{kind}"
    assert ids.every_subject(table_id) == f"sj.v1.table.{p:02x}.{table_id}.*"
    assert ids.every_live_subject(table_id) == f"sj.v1.live.{p:02x}.{table_id}.*"
    assert ids.parse_subject(ids.subject(table_id, kind)) == (table_id, kind, False)
    assert ids.parse_subject(ids.live_subject(table_id, kind)) == (table_id, kind, True)
    assert f"sj.v1.table.{p:02x}.>" in ids.stream_subjects(int(ids.stream_name(table_id)[-1]))


def test_the_four_streams_share_the_partitions():
    kept = [subject for stream in range(ids.STREAMS) for subject in ids.stream_subjects(stream)]
    assert sorted(kept) == [f"sj.v1.table.{p:02x}.>" for p in range(256)]
    with pytest.raises(ValueError, match="stream 4"):
        ids.stream_subjects(4)


def test_subjects_of_others_are_refused():
    right = ids.subject(GOOD, "m")
    wrong_partition = f"sj.v1.table.{ids.partition(GOOD) ^ 1:02x}.{GOOD}.m"
    for text in (
        wrong_partition,
        right[:-1] + "x",
        right + ".m",
        right.upper(),
        right[:-1] + "*",
        "",
        "sj.v1.table.m",
    ):
        with pytest.raises(BadId):
            ids.parse_subject(text)


@given(st.uuids())
def test_command_ids_are_16_bytes_and_a_text(value):
    command_id = CommandId.parse(str(value))
    assert bytes(command_id) == value.bytes
    assert command_id.text == str(value)
    assert CommandId.parse(str(value).upper()) == command_id
    assert CommandId(value.bytes) == command_id


@pytest.mark.parametrize(
    "text",
    ["", "x" * 36, "0" * 32, "{00000000-0000-0000-0000-000000000000}", "0" * 36, "urn:uuid:" + "0" * 32],
)
def test_command_ids_take_one_form(text):
    with pytest.raises(BadId):
        CommandId.parse(text)
    with pytest.raises(BadId):
        CommandId(text.encode()[:15])


def test_a_founding_leads_to_one_table_id_for_ever():
    """Ids that were given out: a repeated founding must find its table."""
    number = bytes(range(16))
    assert ids.table_id_of("svc:lobby", number) == "tbl_0h95n4xc8xf7980tbfc6a0esa1"
    timed = bytes.fromhex("018bcfe56800700080000102030405ff")
    assert ids.table_id_of("ply_anna", timed) == "tbl_01hf7yat00favbdrcj9b45m34j"
    assert ids.table_id_of("ply_bert", timed) != ids.table_id_of("ply_anna", timed)
    assert as_uuid(ids.table_id_of("ply_anna", timed)).int >> 80 == 0x018BCFE56800
