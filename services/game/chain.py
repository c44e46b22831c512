"""The stored form of a commit and the hash chain that binds a table's commits to each other.

A chain is made over stored bytes exactly as they were read: protobuf has more than one encoding of a message,
so nothing here ever hashes a message that it encoded anew, and nothing that matters lives outside these
bytes.
"""

import hashlib
from functools import lru_cache
from typing import Final

from google.protobuf.message import DecodeError

from services.game.errors import BadId, CorruptLog
from services.game.ids import TableId
from services.pb.log.v1.log_pb2 import Commit

SCHEMA: Final = 1
"""The version of the stored format that this code writes (``Commit.schema``)."""
HASH_SIZE: Final = 32


def commit_hash(stored: bytes) -> bytes:
    """SHA-256 of a commit's stored bytes: ``prev_hash`` of the next commit, or the head of the log."""
    return hashlib.sha256(stored).digest()


def encode(commit: Commit) -> bytes:
    """The bytes to store.

    Raises:
        CorruptLog: it is not a well-formed commit, so it must not be stored.
    """
    check_form(commit)
    return commit.SerializeToString(deterministic=True)


def decode(stored: bytes, expected_version: int = 0) -> Commit:
    """The commit that stored bytes hold.

    Args:
        stored: one message of the log.
        expected_version: named in the error when the bytes are no commit at all.

    Raises:
        CorruptLog: the bytes are no well-formed commit.
    """
    try:
        commit = Commit.FromString(stored)
    except DecodeError:
        raise CorruptLog(expected_version, "the stored bytes are no commit") from None
    check_form(commit, expected_version)
    return commit


def check_form(commit: Commit, expected_version: int = 0) -> None:
    """Checks what every commit must have by itself.

    Raises:
        CorruptLog: a field is missing or has a wrong size.
    """
    version = commit.version
    named = expected_version or version
    try:
        _known_form(commit.table_id)
    except BadId as error:
        raise CorruptLog(named, str(error)) from None
    if version < 1:
        raise CorruptLog(named, "a commit has a version from 1")
    if len(commit.prev_hash) != (0 if version == 1 else HASH_SIZE):
        raise CorruptLog(named, "prev_hash has a wrong size")
    if (len(commit.command_id), len(commit.command_check)) not in ((0, 0), (16, 8)):
        raise CorruptLog(named, "command_id and command_check have a wrong size")
    if commit.recorded_at_us <= 0 or commit.schema < 1 or commit.rules_version < 1:
        raise CorruptLog(named, "recorded_at_us, schema or rules_version is missing")
    if not commit.events:
        raise CorruptLog(named, "a commit has at least one event")


@lru_cache(maxsize=16_384)
def _known_form(table_id: str) -> TableId:
    """The table id; remembered, since every commit of a table has the same."""
    return TableId(table_id)


def check_link(previous: bytes | None, commit: Commit, expected_version: int) -> None:
    """Checks that a commit is the next one after the stored bytes of the previous.

    Args:
        previous: the previous commit's stored bytes, None before version 1.
        commit: a decoded commit.
        expected_version: the previous version and one.

    Raises:
        CorruptLog: it is not that version, or follows another commit.
    """
    if commit.version != expected_version:
        raise CorruptLog(expected_version, f"version {commit.version} stands where {expected_version} is due")
    if commit.prev_hash != (b"" if previous is None else commit_hash(previous)):
        raise CorruptLog(expected_version, "prev_hash is not the hash of the previous commit")
