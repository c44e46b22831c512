import hashlib

import pytest

from services.game import chain
from services.game.errors import CorruptLog
from services.pb.event.v1.event_pb2 import Event, Passed
from services.pb.log.v1.log_pb2 import Commit

TABLE = "tbl_01hf7yat00e02840r40m30e209"


def commit(version=1, prev_hash=b"", **fields):
    fields = {"table_id": TABLE, "recorded_at_us": 1, "schema": 1, "rules_version": 1, **fields}
    events = fields.pop("events", [Event(passed=Passed(seat=1))])
    return Commit(version=version, prev_hash=prev_hash, events=events, **fields)


def test_a_chain_of_stored_bytes():
    first = chain.encode(commit())
    second = chain.encode(commit(2, hashlib.sha256(first).digest()))
    assert chain.commit_hash(first) == hashlib.sha256(first).digest()
    chain.check_link(None, chain.decode(first, 1), 1)
    chain.check_link(first, chain.decode(second, 2), 2)
    assert chain.encode(chain.decode(second)) == second


def test_links_to_other_bytes_or_versions_are_refused():
    first = chain.encode(commit())
    other = chain.encode(commit(recorded_at_us=2))
    second = commit(2, chain.commit_hash(first))
    with pytest.raises(CorruptLog, match="version 2: prev_hash is not") as broken:
        chain.check_link(other, second, 2)
    assert broken.value.version == 2
    with pytest.raises(CorruptLog, match="version 2 stands where 3 is due"):
        chain.check_link(first, second, 3)
    with pytest.raises(CorruptLog, match="version 1: version 2 stands"):
        chain.check_link(None, second, 1)
    with pytest.raises(CorruptLog, match="prev_hash is not"):
        chain.check_link(None, second, 2)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"table_id": ""}, "is no table id"),
        ({"table_id": "*"}, "is no table id"),
        ({"version": 0}, "version from 1"),
        ({"prev_hash": bytes(32)}, "prev_hash"),
        ({"version": 2}, "prev_hash"),
        ({"version": 2, "prev_hash": bytes(31)}, "prev_hash"),
        ({"command_id": bytes(16)}, "command_id"),
        ({"command_check": bytes(8)}, "command_id"),
        ({"command_id": bytes(16), "command_check": bytes(7)}, "command_id"),
        ({"recorded_at_us": 0}, "recorded_at_us"),
        ({"recorded_at_us": -5}, "recorded_at_us"),
        ({"schema": 0}, "schema"),
        ({"rules_version": 0}, "rules_version"),
        ({"events": []}, "at least one event"),
    ],
)
def test_malformed_commits_are_neither_stored_nor_read(fields, message):
    bad = commit(**fields)
    with pytest.raises(CorruptLog, match=message):
        chain.encode(bad)
    with pytest.raises(CorruptLog, match=message) as error:
        chain.decode(bad.SerializeToString(), 7)
    assert error.value.version == 7


@pytest.mark.parametrize("stored", [b"\xff", b"\x0a\x7f", b"\x0a\x02\xff\xfe"])
def test_bytes_that_are_no_message_are_named_by_version(stored):
    with pytest.raises(CorruptLog, match="version 9: the stored bytes are no commit"):
        chain.decode(stored, 9)
