"""Ids of tables and commands, and the places of a table in the log: partition, stream, subjects.

A table id is the only outside text that ever becomes part of a subject, and a subject with ``*`` or ``.`` in
it would address other tables. So there is one constructor, it accepts one form, and every function here runs
it.
"""

import hashlib
import re
from typing import Final, Literal, NamedTuple, Self
from uuid import UUID

from services.game.errors import BadId
from services.game.framing import frame

Kind = Literal["m", "d"]
"""Which of a table's two subjects a commit goes to.

``d``: it ends a deal, moves money, seats or closes; ``m``: anything else.
"""
KINDS: Final[tuple[Kind, Kind]] = ("m", "d")
D_EVENTS: Final = frozenset(
    {
        "table_opened",
        "seat_taken",
        "seat_left",
        "seed_committed",
        "deal_scored",
        "deal_voided",
        "mutiny_called",
        "match_ended",
        "table_closed",
    }
)
"""Kinds of events whose commit is of kind ``d``, whatever else is in it."""
PARTITIONS: Final = 256
"""Virtual partitions, fixed for ever: they stand in subjects."""
STREAMS: Final = 4
"""Log streams; partition p is kept by stream p mod 4."""

SERVICE_PREFIX: Final = "svc:"
"""How the names of services begin that call the table service: ``svc:lobby``, ``svc:ledger``."""

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_VALUES: Final = {letter: value for value, letter in enumerate(_ALPHABET)}
_ID: Final = re.compile(r"[0-7][0-9a-hjkmnp-tv-z]{25}", re.ASCII)
_UUID: Final = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}", re.ASCII
)
_TABLE_LABEL: Final = b"shengji table id v1"
_STORED: Final = "sj.v1.table"
_LIVE: Final = "sj.v1.live"


class TableId(str):
    """``tbl_`` and 26 characters: a UUIDv7 in Crockford's base 32, lower case, the top two of 130 bits zero.

    Ids are ordered by the time of their making. They are names, never a permission.

    Raises:
        BadId: any other text.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """The id that a text is; see the class."""
        if isinstance(text, cls):
            return text
        if not isinstance(text, str) or not is_id("tbl", text):
            raise BadId("table id", str(text))
        return super().__new__(cls, text)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The table id that a text is.

        Raises:
            BadId: it is none.
        """
        return cls(text)

    @classmethod
    def new(cls, now_ms: int, random: bytes) -> Self:
        """A new id.

        Args:
            now_ms: Unix time in milliseconds, 48 bits.
            random: 10 random bytes; 74 of their bits are used.

        Raises:
            ValueError: an argument out of range.
        """
        return cls(new_id("tbl", now_ms, random))


def new_id(prefix: str, now_ms: int, random: bytes) -> str:
    """A new id of any kind: ``prefix_`` and a UUIDv7 in 26 characters, as ``TableId`` has it.

    Args:
        prefix: what it names, such as "ply" or "rom".
        now_ms: Unix time in milliseconds, 48 bits.
        random: 10 random bytes; 74 of their bits are used.

    Raises:
        ValueError: an argument out of range.
    """
    if len(random) != 10 or not 0 <= now_ms < 1 << 48:
        raise ValueError("an id takes 48 bits of time and 10 random bytes")
    noise = int.from_bytes(random, "big")
    high, low = noise >> 62 & 0xFFF, noise & (1 << 62) - 1
    number = now_ms << 80 | 7 << 76 | high << 64 | 0b10 << 62 | low
    return f"{prefix}_" + "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def is_id(prefix: str, text: str) -> bool:
    """Whether a text is an id of a kind, by its form."""
    letters = text.removeprefix(f"{prefix}_")
    return letters != text and _ID.fullmatch(letters) is not None and _is_uuid7(_number(letters))


def _number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number << 5 | _VALUES[letter]
    return number


def _is_uuid7(number: int) -> bool:
    return number >> 76 & 0xF == 7 and number >> 62 & 0b11 == 0b10


def bot_id(table_id: str, seat: int) -> str:
    """The player id of the bot that a founder puts on a seat."""
    return f"bot:{table_id.removeprefix('tbl_')}:{seat}"


def is_service(player_id: str) -> bool:
    """Whether a caller is a service and no player."""
    return player_id.startswith(SERVICE_PREFIX)


class CommandId(bytes):
    """A client's id of one command: the 16 bytes of a UUID, as a commit keeps them.

    Raises:
        BadId: not 16 bytes.
    """

    __slots__ = ()

    def __new__(cls, raw: bytes) -> Self:
        """The id that 16 bytes are; see the class."""
        if len(raw) != 16:
            raise BadId("command id", raw.hex())
        return super().__new__(cls, raw)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The command id of a UUID's text, 8-4-4-4-12 hexadecimal digits of either case and nothing else.

        Raises:
            BadId: any other text.
        """
        if not _UUID.fullmatch(text):
            raise BadId("command id", text)
        return cls(bytes.fromhex(text.replace("-", "")))

    @property
    def text(self) -> str:
        """The UUID in lower case."""
        return str(UUID(bytes=bytes(self)))


def table_id_of(player_id: str, command_id: bytes) -> TableId:
    """The id of the table that a caller founds by a command: the same for the same command.

    Its time is that of the command id where that is a UUIDv7, else it is made up like the rest.
    """
    digest = hashlib.sha256(frame(_TABLE_LABEL, player_id.encode(), command_id)).digest()
    time = command_id[:6] if command_id[6] >> 4 == 7 else digest[10:16]
    return TableId.new(int.from_bytes(time, "big"), digest[:10])


def partition(table_id: str) -> int:
    """The partition 0..255 of a table: the first byte of SHA-256 of its id.

    Raises:
        BadId: no table id.
    """
    return hashlib.sha256(TableId(table_id).encode("ascii")).digest()[0]


def subject(table_id: str, kind: Kind) -> str:
    """The subject that a commit of the table is stored under.

    Raises:
        BadId: no table id.
    """
    return _subject(_STORED, table_id, kind)


def every_subject(table_id: str) -> str:
    """The wildcard over a table's stored commits, of both kinds.

    Raises:
        BadId: no table id.
    """
    return _subject(_STORED, table_id, "*")


def live_subject(table_id: str, kind: Kind) -> str:
    """The subject that a stored commit is republished to.

    Raises:
        BadId: no table id.
    """
    return _subject(_LIVE, table_id, kind)


def every_live_subject(table_id: str) -> str:
    """The wildcard over a table's republished commits, of both kinds.

    Raises:
        BadId: no table id.
    """
    return _subject(_LIVE, table_id, "*")


def _subject(root: str, table_id: str, kind: str) -> str:
    return f"{root}.{partition(table_id):02x}.{table_id}.{kind}"


class Place(NamedTuple):
    """What a subject names."""

    table_id: TableId
    kind: Kind
    live: bool
    """A republished commit, not the stored one."""


def parse_subject(text: str) -> Place:
    """The table and kind that a stored or live subject names.

    Raises:
        BadId: not a subject that the functions above make.
    """
    for root, live in ((_STORED, False), (_LIVE, True)):
        for kind in KINDS:
            if text.startswith(root + ".") and text.endswith("." + kind):
                table_id = TableId(text[len(root) + 4 : -2])
                if text == _subject(root, table_id, kind):
                    return Place(table_id, kind, live)
    raise BadId("subject of a table", text)


def stream_name(table_id: str) -> str:
    """The stream that keeps a table: ``SJ_TABLES_0`` … ``SJ_TABLES_3``.

    Raises:
        BadId: no table id.
    """
    return f"SJ_TABLES_{partition(table_id) % STREAMS}"


def stream_subjects(stream: int) -> list[str]:
    """The subject wildcards that stream 0..3 keeps, one for each of its 64 partitions.

    Raises:
        ValueError: no such stream.
    """
    if not 0 <= stream < STREAMS:
        raise ValueError(f"there is no log stream {stream}")
    return [f"{_STORED}.{p:02x}.>" for p in range(stream, PARTITIONS, STREAMS)]
