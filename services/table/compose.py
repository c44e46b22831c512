"""From a command to the commit that records it: the pure middle of the table service, without any waiting."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from services.game import chain, commands
from services.game.commands import Command, OpenTable, Refusal
from services.game.decide import decide, kind_of
from services.game.entropy import Entropy, SeededEntropy, SystemEntropy
from services.game.evolve import evolve
from services.game.facts import Facts
from services.game.ids import Kind
from services.game.keys import DealSeal, Keyring, reveal_in, seal_of
from services.game.seal import has_secrets, seal_events
from services.game.state import Table
from services.pb.log.v1.log_pb2 import Actor, Commit
from services.pb.table.v1.reason_pb2 import Owed, OwedComponent, OwedGroup
from services.rules.options import RULES_VERSION
from services.shell.errors import RefusedError

_SYSTEM: Final = SystemEntropy()


class Composed(NamedTuple):
    """A commit that is ready to be appended."""

    commit: Commit
    """With its secrets in the clear."""
    payload: bytes
    """As it is stored, sealed."""
    kind: Kind
    after: Table


class Identified(NamedTuple):
    """A client's command with what makes it repeatable."""

    command: commands.PlayerCommand
    command_id: bytes
    """16 bytes."""
    check: bytes
    """8 bytes."""


def compose(
    state: Table | None,
    head: bytes,
    command: Command,
    now_us: int,
    keyring: Keyring,
    identified: Identified | None = None,
) -> Composed | Refusal:
    """Decide a command and make the commit of it.

    Args:
        state: the table; None before it is founded.
        head: the SHA-256 of its last commit's stored bytes.
        command: what is asked.
        now_us: the clock, microseconds of Unix time.
        keyring: has the master keys.
        identified: the client's id and check of the command; None for the server's own.

    Raises:
        SecretsUnknown, MasterKeyLost: a key is missing.
    """
    if isinstance(command, OpenTable):
        table_id, version, insecure = command.table_id, 1, command.insecure_entropy
    elif state is not None:
        table_id, version = state.table_id, state.version + 1
        insecure = state.founding.insecure_entropy
        now_us = max(now_us, state.recorded_at_us)
    else:
        raise ValueError("only OpenTable comes before the first commit")
    entropy: Entropy = SeededEntropy(insecure).for_commit(table_id, version) if insecure else _SYSTEM
    decision = decide(state, command, Facts(now_us, entropy, keyring.current))
    if isinstance(decision, Refusal):
        return decision
    commit = Commit(
        table_id=table_id,
        version=version,
        prev_hash=head,
        command_id=identified.command_id if identified else b"",
        command_check=identified.check if identified else b"",
        actor=_actor(state, identified),
        recorded_at_us=now_us,
        schema=chain.SCHEMA,
        rules_version=RULES_VERSION,
        events=decision,
        previous_d=0 if state is None else state.newest_d,
    )
    after = evolve(state, commit)
    stored = commit
    if has_secrets(decision):
        stored = _sealed(commit, after, seal_of(state), keyring, entropy)
    return Composed(commit, chain.encode(stored), kind_of(decision), after)


def _sealed(
    commit: Commit, after: Table, current: DealSeal | None, keyring: Keyring, entropy: Entropy
) -> Commit:
    """A commit as it is stored."""
    sealed = seal_events(
        commit.events,
        table_id=commit.table_id,
        current=current,
        keyring=keyring,
        entropy=entropy,
        sealed_declarations=after.rules.sealed,
    )
    stored = Commit()
    stored.CopyFrom(commit)
    del stored.events[:]
    stored.events.extend(sealed)
    for told, kept in zip(commit.events, sealed, strict=True):
        reveal, revealed = reveal_in(told), reveal_in(kept)
        if reveal is not None and revealed is not None:
            # Sealing has added the deal's keys, and every replica tells its watchers the same.
            reveal.CopyFrom(revealed)
    return stored


def _actor(state: Table | None, identified: Identified | None) -> Actor | None:
    """Who acts, as a commit records it; None for the server."""
    if identified is None:
        return None
    player_id = identified.command.player_id
    return Actor(player_id=player_id, seat=None if state is None else state.seat_of(player_id))


def canonical(command: commands.PlayerCommand, founding: bytes = b"") -> bytes:
    """The bytes of a command that its check is made of: all it says, but nothing of clock, trace or token.

    Cards count as a set: the same cards in another order are the same command. A founding is what its request
    said, since what defaults come to may change between two versions of the service.
    """
    player = command.player_id.encode()
    match command:
        case commands.Play() | commands.BuryCards() | commands.TakeCounter():
            said = command.version.to_bytes(8, "big") + bytes(sorted(command.cards))
        case commands.Declare():
            said = bytes(sorted(command.cards))
        case commands.Ready():
            said = command.client_seed
        case commands.Sit():
            said = bytes((command.seat, command.difficulty))
        case commands.CallMutiny():
            said = command.version.to_bytes(8, "big")
        case commands.SetAutoPlay():
            said = bytes((command.on,))
        case commands.Leave() | commands.Pass() | commands.EndUnfunded():
            said = b""
        case OpenTable():
            said = founding
    # No name and no player id holds a zero byte.
    return b"%s\0%s\0%s" % (type(command).__name__.encode(), player, said)


def refused(refusal: Refusal) -> RefusedError:
    """A decision's refusal as the caller is told it; what a follow owed goes along as `Owed`."""
    detail: Mapping[str, object] = refusal.detail
    shapes = detail.get("shapes")
    if not isinstance(shapes, tuple):
        return RefusedError(refusal.reason, detail)
    owed = Owed(
        components=[
            OwedComponent(groups=[OwedGroup(width=width, length=length) for width, length in component])
            for component in shapes
        ]
    )
    told = {name: value for name, value in detail.items() if name != "shapes"}
    return RefusedError(refusal.reason, told, attachment=owed)
