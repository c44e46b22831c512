"""Sealed snapshots of tables, and the subject that they are kept under."""

from typing import Final

from services.bench.filler import Message
from services.game import chain, snapshot
from services.game.entropy import SystemEntropy
from services.game.evolve import FOLD_VERSION
from services.game.keys import Keyring
from services.game.seal import seal_snapshot
from services.game.state import Table
from services.shell.broker import SNAPSHOT_BUCKET

_ENTROPY: Final = SystemEntropy()


def snapshot_message(state: Table, head: bytes, sequence: int, keyring: Keyring) -> Message:
    """The snapshot of a table as the service's own bucket holds it.

    Args:
        state: the table.
        head: the stored bytes of its last commit.
        sequence: where that stands in its stream.
        keyring: seals it.
    """
    sealed = seal_snapshot(
        snapshot.pack(state),
        table_id=state.table_id,
        version=state.version,
        commit_hash=chain.commit_hash(head),
        fold_version=FOLD_VERSION,
        stream_sequence=sequence,
        keyring=keyring,
        entropy=_ENTROPY,
    )
    value = state.version.to_bytes(8, "big") + sealed.SerializeToString()
    return Message(f"$KV.{SNAPSHOT_BUCKET}.{state.table_id}", value)
