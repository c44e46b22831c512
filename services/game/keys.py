"""The keys of a table: derived from the service's master key, or revealed by the log when a deal has ended.

Only table services hold master keys. Everybody else has a keyring without them, and opens a deal's secrets
once its keys are revealed; a seat could be handed its own key before that.
"""

import hmac
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, Self

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from services.game.errors import MasterKeyLost
from services.game.framing import frame, u64
from services.game.state import Dealt, Table
from services.pb.event.v1.event_pb2 import (
    DealScored,
    DealVoided,
    Event,
    MutinyCalled,
    Reveal,
    SeedCommitment,
    SeedCommitted,
    TableClosed,
    TableOpened,
)

KEY_SIZE: Final = 32
SERVICE: Final = 4
"""The audience that is the table service alone; audiences 0..3 are the seats."""
AUDIENCES: Final = 5
CHECK_SIZE: Final = 8
"""Bytes of a command's check."""
_DEAL_LABEL: Final = b"shengji deal key v1"
_SNAPSHOT_LABEL: Final = b"shengji snapshot key v1"
_CHECK_LABEL: Final = b"shengji command check v1"


class DealSeal(NamedTuple):
    """What a deal's keys are derived with, beside the master key: a deal's commitment names it."""

    deal: int
    """The deal, from 1."""
    salt: bytes
    """32 random bytes, fresh with every commitment."""
    key_id: str
    """The master key."""

    @classmethod
    def of(cls, commitment: SeedCommitment) -> Self:
        """The deal seal that a commitment begins."""
        return cls(commitment.deal, commitment.salt, commitment.key_id)


class Keyring:
    """The keys that one reader or writer of logs has. Immutable.

    Args:
        masters: master keys of 32 bytes by their ids; empty for everybody but table services.
        current: the id of the master key that new commitments use; empty without masters.

    Raises:
        ValueError: a master key of another size, or no master key of the current id.
    """

    __slots__ = ("_masters", "_revealed", "current")

    def __init__(self, masters: Mapping[str, bytes] | None = None, current: str = "") -> None:
        self._masters = dict(masters or {})
        self._revealed: dict[tuple[str, DealSeal, int], bytes] = {}
        self.current = current
        """The id of the master key that new commitments use."""
        if any(len(key) != KEY_SIZE for key in self._masters.values()):
            raise ValueError(f"a master key has {KEY_SIZE} bytes")
        if current and current not in self._masters:
            raise ValueError(f"there is no master key {current!r}")

    def __repr__(self) -> str:
        names = ", ".join(sorted(self._masters))
        return f"Keyring(masters: {names or 'none'}; revealed: {len(self._revealed)})"

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of the master keys."""
        return tuple(self._masters)

    def master(self, key_id: str) -> bytes:
        """A master key.

        Raises:
            MasterKeyLost: there is none of that id.
        """
        try:
            return self._masters[key_id]
        except KeyError:
            raise MasterKeyLost(key_id) from None

    def with_keys(self, table_id: str, seal: DealSeal, keys: Mapping[int, bytes]) -> "Keyring":
        """A keyring that has some of a deal's keys as well, by audience."""
        wider = Keyring(self._masters, self.current)
        wider._revealed = {
            **self._revealed,
            **{(table_id, seal, audience): key for audience, key in keys.items()},
        }
        return wider

    def deal_key(self, table_id: str, seal: DealSeal, audience: int) -> bytes | None:
        """The key of one audience of a deal, or None if this keyring cannot have it."""
        if seal.key_id in self._masters:
            return _deal_key(self._masters[seal.key_id], table_id, seal, audience)
        return self._revealed.get((table_id, seal, audience))


def deal_keys(master: bytes, table_id: str, seal: DealSeal) -> tuple[bytes, ...]:
    """The five keys of a deal, 32 bytes each: seats 0..3, then the table service."""
    return tuple(_deal_key(master, table_id, seal, audience) for audience in range(AUDIENCES))


def reveal_keys(keyring: Keyring, table_id: str, seal: DealSeal) -> tuple[bytes, ...]:
    """The five keys of a deal as a ``Reveal`` lists them.

    Raises:
        MasterKeyLost: the keyring cannot make them.
    """
    return deal_keys(keyring.master(seal.key_id), table_id, seal)


def snapshot_key(keyring: Keyring, key_id: str, table_id: str) -> bytes:
    """The key that seals a table's snapshots.

    Raises:
        MasterKeyLost: the keyring has no such master key.
    """
    return _derive(keyring.master(key_id), b"", frame(_SNAPSHOT_LABEL, table_id.encode("ascii")))


def command_check(keyring: Keyring, key_id: str, table_id: str, command: bytes) -> bytes:
    """The check of a command's body that is stored beside its id, 8 bytes.

    It is keyed, because a plain hash of a bury could be found by trying all burys.

    Args:
        keyring: has the master key.
        key_id: the master key, as a rule the keyring's current one.
        table_id: the table.
        command: the decoded command in its canonical form, without clock, trace and token.

    Raises:
        MasterKeyLost: the keyring has no such master key.
    """
    mac = _check_mac(keyring.master(key_id), table_id).copy()
    mac.update(command)
    return mac.digest()[:CHECK_SIZE]


@lru_cache(maxsize=16_384)
def _check_mac(master: bytes, table_id: str) -> hmac.HMAC:
    """HMAC-SHA-256 under the key of a table's command checks; remembered, since every command needs it."""
    key = _derive(master, b"", frame(_CHECK_LABEL, table_id.encode("ascii")))
    return hmac.new(key, digestmod="sha256")


def is_same_command(keyring: Keyring, table_id: str, command: bytes, check: bytes) -> bool:
    """Whether a stored check is this command's, under whichever of the master keys it was made."""
    return any(
        hmac.compare_digest(command_check(keyring, key_id, table_id, command), check)
        for key_id in keyring.key_ids
    )


def seal_after(event: Event, current: DealSeal | None) -> DealSeal | None:
    """The deal seal that counts after an event: that of the newest commitment, None when no deal will come.

    Args:
        event: any event.
        current: the one that counted before it, None before the first event.
    """
    commitment = commitment_in(event)
    if commitment is not None:
        return DealSeal.of(commitment)
    if event.WhichOneof("kind") in ("deal_scored", "deal_voided", "mutiny_called", "table_closed"):
        return None
    return current


def seal_of(table: Table | None) -> DealSeal | None:
    """The deal seal that counts at a table as it is: of the open deal, or else of the deal to come."""
    if table is None:
        return None
    seed = table.phase.deal.seed if isinstance(table.phase, Dealt) else table.next_seed
    return None if seed is None else DealSeal(seed.deal, seed.salt, seed.key_id)


def commitment_in(event: Event) -> SeedCommitment | None:
    """The commitment that an event makes, if it makes one."""
    match event.WhichOneof("kind"):
        case "table_opened":
            holder: TableOpened | SeedCommitted | DealScored | DealVoided | MutinyCalled = event.table_opened
        case "seed_committed":
            holder = event.seed_committed
        case "deal_scored":
            holder = event.deal_scored
        case "deal_voided":
            holder = event.deal_voided
        case "mutiny_called":
            holder = event.mutiny_called
        case _:
            return None
    return holder.next_seed if holder.HasField("next_seed") else None


def reveal_in(event: Event) -> Reveal | None:
    """What an event reveals about the deal seal that counted before it, if it reveals anything."""
    match event.WhichOneof("kind"):
        case "seed_committed":
            return event.seed_committed.discarded if event.seed_committed.HasField("discarded") else None
        case "deal_scored":
            holder: DealScored | DealVoided | MutinyCalled | TableClosed = event.deal_scored
        case "deal_voided":
            holder = event.deal_voided
        case "mutiny_called":
            holder = event.mutiny_called
        case "table_closed":
            holder = event.table_closed
        case _:
            return None
    return holder.reveal if holder.HasField("reveal") else None


def reveals(events: Iterable[Event], current: DealSeal | None = None) -> Iterator[tuple[DealSeal, Reveal]]:
    """Every reveal in a run of events, each with the deal seal that it ends.

    Args:
        events: in their order, of one commit or of many.
        current: the deal seal that counted before the first of them.
    """
    for event in events:
        reveal = reveal_in(event)
        if reveal is not None and current is not None:
            yield current, reveal
        current = seal_after(event, current)


def with_revealed(
    keyring: Keyring, table_id: str, events: Iterable[Event], current: DealSeal | None = None
) -> Keyring:
    """A keyring that opens every deal whose end is among the events, as anybody may who reads a log.

    A reveal without its five keys adds nothing, and neither does a second one of the same deal seal.
    """
    for seal, reveal in reveals(events, current):
        complete = [len(key) for key in reveal.keys] == [KEY_SIZE] * AUDIENCES
        if complete and keyring.deal_key(table_id, seal, SERVICE) is None:
            keyring = keyring.with_keys(table_id, seal, dict(enumerate(reveal.keys)))
    return keyring


def _deal_key(master: bytes, table_id: str, seal: DealSeal, audience: int) -> bytes:
    info = frame(_DEAL_LABEL, table_id.encode("ascii"), u64(seal.deal), bytes([audience]))
    return _derive(master, seal.salt, info)


def _derive(master: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=KEY_SIZE, salt=salt, info=info).derive(master)
