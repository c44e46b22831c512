"""The archive: logs of closed tables, verified before they are stored, in files apart from the database.

One file a table, ``<partition>/<table>-<head>.sja``, where head is the hash of the log's last commit, which
binds all commits before it. A file is 8 bytes of name and version, a zlib stream, and the SHA-256 of both;
the stream holds each commit's stored bytes behind their length as 4 bytes, big-endian.
"""

import contextlib
import hashlib
import os
import re
import secrets
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from services.game import chain
from services.game.errors import CorruptLog
from services.game.ids import TableId, is_id, partition
from services.game.verify import read_chain, verify
from services.shell.log_store import PAYLOAD_MAX

MAGIC: Final = b"SJARCH01"
_LENGTH: Final = 4
_CHECK: Final = 32
_LEVEL: Final = 6
_UNPACKED_MOST: Final = 1 << 30
_NAME: Final = re.compile(r"(tbl_[0-9a-z]{26})-([0-9a-f]{64})\.sja")


class ArchiveDamaged(Exception):
    """A file of the archive that is not what was stored."""


class Kept(NamedTuple):
    """A log in the archive."""

    place: str
    """Its file, below the archive's folder."""
    head: bytes
    """The hash of its last commit."""
    commits: int
    size: int
    """Bytes of the file."""


class Archive:
    """A folder of logs; any number of processes may write and read it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, table_id: str, commits: Sequence[bytes]) -> Kept:
        """Store a log that was verified, durably and whole or not at all; again it changes nothing.

        Args:
            table_id: the table.
            commits: the stored bytes of its commits, from version 1 on.

        Raises:
            ArchiveDamaged: what was written reads differently.
            OSError: it cannot be written.
        """
        head = chain.commit_hash(commits[-1])
        place = place_of(table_id, head)
        path = self.folder / place
        if not path.exists():
            _make_folder(path.parent)
            scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
            try:
                with scratch.open("xb") as file:
                    file.write(pack(commits))
                    file.flush()
                    os.fsync(file.fileno())
                scratch.replace(path)
            finally:
                scratch.unlink(missing_ok=True)
            _sync(path.parent)
        if self.read(place) != list(commits):
            raise ArchiveDamaged(f"{place} does not read as it was written")
        return Kept(place, head, len(commits), path.stat().st_size)

    def read(self, place: str) -> list[bytes]:
        """The commits of a file, in order: the bytes that were stored, bound to each other and to its name.

        Raises:
            ArchiveDamaged: it is missing, or is not what was stored.
        """
        named = _named(place.rpartition("/")[2])
        if named is None or place != place_of(*named):
            raise ArchiveDamaged(f"{place} is no archive's name")
        table_id, head = named
        try:
            commits = unpack((self.folder / place).read_bytes())
        except OSError as error:
            raise ArchiveDamaged(f"{place} cannot be read: {error.strerror}") from None
        except ArchiveDamaged as error:
            raise ArchiveDamaged(f"{place}: {error}") from None
        try:
            read_chain(table_id, commits, head)
        except CorruptLog as error:
            raise ArchiveDamaged(f"{place}: version {error.version}: {error.detail}") from None
        return commits

    def find(self, table_id: str) -> str | None:
        """The file of a table, if it is archived.

        Raises:
            BadId: no table id.
        """
        folder = _folder_of(TableId.parse(table_id))
        with contextlib.suppress(FileNotFoundError):
            for name in sorted(os.listdir(self.folder / folder)):
                if name.startswith(f"{table_id}-") and _named(name) is not None:
                    return f"{folder}/{name}"
        return None

    def tables(self) -> list[str]:
        """All archived tables, in the order of their founding."""
        names = (_named(path.name) for path in self.folder.glob("??/*.sja"))
        return sorted({named[0] for named in names if named is not None})


def place_of(table_id: str, head: bytes) -> str:
    """Where a log that ends with a commit of this hash is kept, below the archive's folder."""
    return f"{_folder_of(table_id)}/{table_id}-{head.hex()}.sja"


def _named(name: str) -> tuple[TableId, bytes] | None:
    """The table and the head that a file's name tells; None for any other name."""
    named = _NAME.fullmatch(name)
    if named is None or not is_id("tbl", named[1]):
        return None
    return TableId(named[1]), bytes.fromhex(named[2])


def _folder_of(table_id: str) -> str:
    return f"{partition(table_id):02x}"


def pack(commits: Sequence[bytes]) -> bytes:
    """A file's bytes."""
    framed = b"".join(len(stored).to_bytes(_LENGTH, "big") + stored for stored in commits)
    content = MAGIC + zlib.compress(framed, _LEVEL)
    return content + hashlib.sha256(content).digest()


def unpack(packed: bytes) -> list[bytes]:
    """The commits that ``pack`` was given.

    Raises:
        ArchiveDamaged: the bytes are not what it made.
    """
    content, check = packed[:-_CHECK], packed[-_CHECK:]
    if not content.startswith(MAGIC):
        raise ArchiveDamaged("this is no archive of a known version")
    if hashlib.sha256(content).digest() != check:
        raise ArchiveDamaged("its bytes have changed")
    unpacking = zlib.decompressobj()
    try:
        framed = unpacking.decompress(content[len(MAGIC) :], _UNPACKED_MOST)
    except zlib.error:
        raise ArchiveDamaged("it cannot be unpacked") from None
    if not unpacking.eof or unpacking.unused_data:
        raise ArchiveDamaged("it cannot be unpacked")
    commits, at = list[bytes](), 0
    while at < len(framed):
        size = int.from_bytes(framed[at : at + _LENGTH], "big")
        at += _LENGTH
        if not 0 < size <= PAYLOAD_MAX or at + size > len(framed):
            raise ArchiveDamaged("a commit has an impossible length")
        commits.append(framed[at : at + size])
        at += size
    if not commits:
        raise ArchiveDamaged("it holds no commit")
    return commits


def fault_in(table_id: str, commits: Sequence[bytes], settled: Mapping[int, bytes]) -> str:
    """Why a closed table's log cannot be archived; empty when nothing is wrong with it.

    Args:
        table_id: the table.
        commits: the stored bytes of its commits, from version 1 on.
        settled: the hashes of commits as they were settled, by version; the last one closes the table.
    """
    last = max(settled)
    if len(commits) != last:
        return f"it has {len(commits)} commits where {last} are due"
    for version, digest in sorted(settled.items()):
        if chain.commit_hash(commits[version - 1]) != digest:
            return f"version {version} is not the commit that was settled"
    report = verify(table_id, commits, settled[last])
    if report.problem is not None:
        return f"version {report.problem.version}: {report.problem.what}"
    return "" if report.closed else "it does not end with the table's closing"


def _make_folder(folder: Path) -> None:
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing:
        _sync(made.parent)


def _sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
