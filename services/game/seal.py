"""Sealing: how a deal's secrets stand in a log that anybody may read, and how they are opened.

``decide`` and ``evolve`` know secrets in the clear. They are sealed at the last moment before a commit is
stored and opened at the first after it is read, here and nowhere else.

A secret is ChaCha20-Poly1305 of its padded plaintext under the deal's key of its audience (``keys``), with a
random nonce; what is authenticated with it names its place, so that no seal can stand for another.

=============================  ========  =========  =========================================
secret field                   audience  padded to  plaintext
=============================  ========  =========  =========================================
SeedCommitment.server_seed     4         32         the seed
DealStarted.hands[i]           i         64         a byte for each card, its number, as below
DealStarted.kitty              4         16         the same
Declared.cards (sealed rules)  4         8          the same
KittyTaken.cards               its seat  16         the same
Buried.cards                   its seat  16         the same
=============================  ========  =========  =========================================

Cards stand in the order of the event: those of a kitty in deck order, since rules name kitty cards by their
place; all others ascending, so that no order tells how they came. They are filled up with zeros to a multiple
of the size given. How many there are is public in every case, so the length of a seal tells nothing.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from services.game.entropy import Entropy
from services.game.errors import MasterKeyLost, SealBroken
from services.game.framing import frame, u32, u64
from services.game.keys import (
    SERVICE,
    DealSeal,
    Keyring,
    commitment_in,
    reveal_in,
    reveal_keys,
    seal_after,
    snapshot_key,
)
from services.pb.card.v1.card_pb2 import Card
from services.pb.event.v1.event_pb2 import (
    Buried,
    Cards,
    Declared,
    Event,
    KittyTaken,
    Sealed,
    SeedCommitment,
)
from services.pb.log.v1.log_pb2 import Commit, Snapshot
from services.rules.cards import SEATS

NONCE_SIZE: Final = 12
SEAL_LABEL: Final = b"shengji seal v1"
SNAPSHOT_LABEL: Final = b"shengji snapshot v1"
SNAPSHOT_UNIT: Final = 512
_LAST_CARD: Final = 54


_SECRETIVE: Final = frozenset(
    {
        *("table_opened", "seed_committed", "deal_started", "declared", "kitty_taken"),
        *("buried", "deal_scored", "deal_voided", "mutiny_called", "table_closed"),
    }
)
"""The kinds of events that may have secrets: commits without them are not copied to be opened."""


class _Secret(NamedTuple):
    """One secret of an event: where it stands in the clear, where sealed, and what it belongs to."""

    field: bytes
    """The field's name in what is authenticated."""
    audience: int
    unit: int
    """The plaintext is padded to a multiple of this."""
    clear: SeedCommitment | Cards | Declared | KittyTaken | Buried
    sealed: Sealed
    deal_seal: DealSeal | None


def has_secrets(events: Iterable[Event]) -> bool:
    """Whether any of these events is stored otherwise than it is decided."""
    return any(event.WhichOneof("kind") in _SECRETIVE for event in events)


def seal_events(
    events: Iterable[Event],
    *,
    table_id: str,
    current: DealSeal | None,
    keyring: Keyring,
    entropy: Entropy,
    sealed_declarations: bool,
) -> list[Event]:
    """The events of one commit as they are stored: secrets sealed, and the keys of a deal that ends revealed.

    Args:
        events: all of the commit, as ``decide`` made them, secrets in the clear; they are not changed.
        table_id: the table.
        current: the deal seal that counts before the commit, None before the first.
        keyring: has the master keys of the deals concerned.
        entropy: gives the nonces.
        sealed_declarations: whether the table's rules hide declarations until the window closes.

    Raises:
        MasterKeyLost: a key is missing; the deal can only be given up.
        ValueError: a secret that must be there is not.
    """
    stored = []
    for index, event in enumerate(events):
        if event.WhichOneof("kind") not in _SECRETIVE:
            stored.append(event)
            continue
        copy = _copy(event)
        _fill_reveal(copy, table_id, current, keyring)
        if sealed_declarations and copy.HasField("declared"):
            copy.declared.sealed_cards.audience = SERVICE
        for secret in _secrets(copy, current):
            _seal(secret, table_id, index, keyring, entropy)
        if copy.HasField("deal_started"):
            copy.deal_started.ClearField("hands")
        stored.append(copy)
        current = seal_after(event, current)
    return stored


def open_events(
    events: Iterable[Event], *, table_id: str, current: DealSeal | None, keyring: Keyring, version: int = 0
) -> list[Event]:
    """The stored events of one commit with the secrets that a keyring opens; the others stay empty.

    ``DealStarted.hands`` has four entries, those of unknown hands empty.

    Args:
        events: all of the commit, as they were stored; they are not changed.
        table_id: the table.
        current: the deal seal that counts before the commit, None before the first.
        keyring: what the reader has; an empty one opens nothing.
        version: the commit's, named in errors.

    Raises:
        SealBroken: a secret is not sealed as it must be, or does not open with its key.
    """
    opened = []
    for index, event in enumerate(events):
        copy = _copy(event)
        try:
            for secret in _secrets(copy, current):
                _open(secret, table_id, index, keyring)
        except _Broken as error:
            raise SealBroken(version, f"event {index}: {error}") from None
        opened.append(copy)
        current = seal_after(event, current)
    return opened


def open_commit(commit: Commit, *, current: DealSeal | None, keyring: Keyring) -> Commit:
    """A stored commit with the secrets that a keyring opens, as ``open_events``.

    Raises:
        SealBroken: a secret is not sealed as it must be, or does not open with its key.
    """
    if not has_secrets(commit.events):
        return commit
    events = open_events(
        commit.events, table_id=commit.table_id, current=current, keyring=keyring, version=commit.version
    )
    opened = Commit()
    opened.CopyFrom(commit)
    del opened.events[:]
    opened.events.extend(events)
    return opened


def seal_snapshot(
    state: bytes,
    *,
    table_id: str,
    version: int,
    commit_hash: bytes,
    fold_version: int,
    stream_sequence: int,
    keyring: Keyring,
    entropy: Entropy,
) -> Snapshot:
    """A packed state sealed for its place in the log, under the keyring's current master key.

    Raises:
        MasterKeyLost: the keyring has no master key.
    """
    snapshot = Snapshot(
        table_id=table_id,
        version=version,
        commit_hash=commit_hash,
        fold_version=fold_version,
        stream_sequence=stream_sequence,
        nonce=entropy.bytes(NONCE_SIZE),
        key_id=keyring.current,
    )
    padded = _pad(frame(state), SNAPSHOT_UNIT)
    cipher = ChaCha20Poly1305(snapshot_key(keyring, snapshot.key_id, table_id))
    snapshot.ciphertext = cipher.encrypt(snapshot.nonce, padded, _snapshot_place(snapshot))
    return snapshot


def open_snapshot(snapshot: Snapshot, keyring: Keyring) -> bytes:
    """The packed state in a snapshot. The caller checks whether the log agrees with its version and hash.

    Raises:
        MasterKeyLost: the keyring has not the master key that sealed it.
        SealBroken: it was changed, or belongs to another table or version.
    """
    key = snapshot_key(keyring, snapshot.key_id, snapshot.table_id)
    try:
        padded = _decrypt(key, snapshot.nonce, snapshot.ciphertext, _snapshot_place(snapshot))
    except InvalidTag:
        raise SealBroken(snapshot.version, "the snapshot does not open with its key") from None
    return padded[4 : 4 + int.from_bytes(padded[:4], "big")]


class _Broken(ValueError):
    """A secret or its seal is not what it must be; the message says why and holds no secret."""


def _secrets(event: Event, current: DealSeal | None) -> Iterator[_Secret]:
    """The secrets of an event: the one place that says what is secret, and from whom."""
    commitment = commitment_in(event)
    if commitment is not None:
        box = commitment.sealed_server_seed
        yield _Secret(b"server_seed", SERVICE, 32, commitment, box, DealSeal.of(commitment))
    match event.WhichOneof("kind"):
        case "deal_started":
            started = event.deal_started
            while len(started.hands) < SEATS:
                started.hands.add()
            while len(started.sealed_hands) < SEATS:
                started.sealed_hands.add()
            if len(started.hands) > SEATS or len(started.sealed_hands) > SEATS:
                raise _Broken("there are more than four hands")
            for seat, (hand, box) in enumerate(zip(started.hands, started.sealed_hands, strict=True)):
                yield _Secret(b"hand", seat, 64, hand, box, current)
            if started.kitty.cards or started.HasField("sealed_kitty"):
                yield _Secret(b"kitty", SERVICE, 16, started.kitty, started.sealed_kitty, current)
        case "declared" if event.declared.HasField("sealed_cards"):
            yield _Secret(b"declared", SERVICE, 8, event.declared, event.declared.sealed_cards, current)
        case "kitty_taken":
            taken = event.kitty_taken
            yield _Secret(b"kitty_taken", taken.seat, 16, taken, taken.sealed_cards, current)
        case "buried":
            buried = event.buried
            yield _Secret(b"buried", buried.seat, 16, buried, buried.sealed_cards, current)


def _copy(event: Event) -> Event:
    copy = Event()
    copy.CopyFrom(event)
    return copy


def _fill_reveal(event: Event, table_id: str, current: DealSeal | None, keyring: Keyring) -> None:
    """Adds the keys to a reveal. One without a seed tells that both are lost, and stays empty."""
    reveal = reveal_in(event)
    if reveal is not None and reveal.server_seed and current is not None:
        reveal.keys[:] = reveal_keys(keyring, table_id, current)


def _seal(secret: _Secret, table_id: str, index: int, keyring: Keyring, entropy: Entropy) -> None:
    """Moves a secret from the clear into its seal."""
    if secret.deal_seal is None:
        raise ValueError("nothing can be sealed before a seed is committed")
    plaintext = _read(secret)
    if not plaintext:
        raise ValueError(f"there is no {secret.field.decode()} to seal")
    key = keyring.deal_key(table_id, secret.deal_seal, secret.audience)
    if key is None:
        raise MasterKeyLost(secret.deal_seal.key_id)
    nonce = entropy.bytes(NONCE_SIZE)
    secret.sealed.audience = secret.audience
    secret.sealed.nonce = nonce
    secret.sealed.ciphertext = ChaCha20Poly1305(key).encrypt(
        nonce, _pad(plaintext, secret.unit), _place(secret, secret.deal_seal, table_id, index)
    )
    _write(secret, b"")


def _open(secret: _Secret, table_id: str, index: int, keyring: Keyring) -> None:
    """Writes a secret into the clear if its key is there."""
    name = secret.field.decode()
    if _read(secret):
        raise _Broken(f"{name} stands in the clear")
    if not secret.sealed.ciphertext:
        raise _Broken(f"{name} is not sealed")
    if secret.sealed.audience != secret.audience or secret.audience > SERVICE:
        raise _Broken(f"{name} is sealed for another audience")
    if secret.deal_seal is None:
        raise _Broken(f"no seed was committed before {name}")
    key = keyring.deal_key(table_id, secret.deal_seal, secret.audience)
    if key is None:
        return
    place = _place(secret, secret.deal_seal, table_id, index)
    try:
        plaintext = _decrypt(key, secret.sealed.nonce, secret.sealed.ciphertext, place)
    except InvalidTag:
        raise _Broken(f"{name} does not open with the key of its audience") from None
    if not isinstance(secret.clear, SeedCommitment):
        plaintext = plaintext.rstrip(b"\0")
        if not all(1 <= card <= _LAST_CARD for card in plaintext):
            raise _Broken(f"{name} holds what is no card")
    _write(secret, plaintext)


def _read(secret: _Secret) -> bytes:
    """The plaintext of a secret in the clear, not padded; empty when it is not known."""
    if isinstance(secret.clear, SeedCommitment):
        return secret.clear.server_seed
    return bytes(secret.clear.cards)


def _write(secret: _Secret, plaintext: bytes) -> None:
    if isinstance(secret.clear, SeedCommitment):
        secret.clear.server_seed = plaintext
    else:
        del secret.clear.cards[:]
        secret.clear.cards.extend(cast("Iterable[Card.ValueType]", plaintext))


def _place(secret: _Secret, deal_seal: DealSeal, table_id: str, index: int) -> bytes:
    """What is authenticated with a secret."""
    return frame(
        SEAL_LABEL,
        table_id.encode("ascii"),
        u64(deal_seal.deal),
        deal_seal.salt,
        deal_seal.key_id.encode(),
        u32(index),
        secret.field,
        bytes([secret.audience]),
    )


def _snapshot_place(snapshot: Snapshot) -> bytes:
    """What is authenticated with a snapshot: all but the stream's sequence, which is a hint."""
    return frame(
        SNAPSHOT_LABEL,
        snapshot.table_id.encode("ascii"),
        u64(snapshot.version),
        snapshot.commit_hash,
        u32(snapshot.fold_version),
        snapshot.key_id.encode(),
    )


def _pad(plaintext: bytes, unit: int) -> bytes:
    return plaintext.ljust(-(-len(plaintext) // unit) * unit, b"\0")


def _decrypt(key: bytes, nonce: bytes, ciphertext: bytes, place: bytes) -> bytes:
    """The plaintext, still padded.

    Raises:
        InvalidTag: the seal is broken.
    """
    if len(nonce) != NONCE_SIZE:
        raise InvalidTag
    return ChaCha20Poly1305(key).decrypt(nonce, ciphertext, place)
