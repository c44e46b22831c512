"""Staying signed in: families of refresh tokens, each good for one use.

A sign-in is a family: a random secret and a generation. Its tokens follow from them, so nothing that is kept
can be shown as a token, and every replica makes the same one:
``ref_<family id>.<base64url of HMAC-SHA256(secret, generation)>``.
"""

import hmac
from typing import Final, NamedTuple

from services.game.errors import BadId
from services.game.ids import CommandId, is_id, new_id
from services.lobby.deps import Deps
from services.lobby.records import Change, atomically, family_key, known_player, operator_key, player_key
from services.lobby.signing import Signer
from services.lobby.slowing import WrongError, tried
from services.pb.lobby.v1 import player_service_pb2 as pb
from services.pb.lobby.v1.stored_pb2 import FamilyRecord, OperatorRecord, PlayerRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.jwks import encode

FAMILY_S: Final = 30 * 24 * 3600
"""How long a refresh token is good if it is not used."""
SKEW_MS: Final = 5000
"""By how much replicas' clocks may differ: ending every sign-in ends what another's clock has dated so."""
GENERATIONS: Final = 10_000
"""So many used tokens of a family are known as such; older ones are just not right."""
_PREFIX: Final = "ref"


class Shown(NamedTuple):
    """A refresh token taken apart."""

    family_id: str
    """26 characters, empty when the text is no refresh token."""
    proof: str


def shown(token: str) -> Shown:
    """The parts of a refresh token."""
    head, _, proof = token.partition(".")
    return Shown(head.removeprefix(f"{_PREFIX}_"), proof) if is_id(_PREFIX, head) else Shown("", "")


def refresh_token(family_id: str, family: FamilyRecord) -> str:
    """The token of a family that is good now."""
    return f"{_PREFIX}_{family_id}.{_proof(family.secret, family.generation)}"


def generation_of(family: FamilyRecord, proof: str) -> int:
    """Which of a family's tokens is shown: the present generation, a used one, or 0 for none of them."""
    oldest = max(0, family.generation - GENERATIONS)
    given = proof.encode()
    for generation in range(family.generation, oldest, -1):
        if hmac.compare_digest(_proof(family.secret, generation).encode(), given):
            return generation
    return 0


def _proof(secret: bytes, generation: int) -> str:
    return encode(hmac.digest(secret, generation.to_bytes(8, "big"), "sha256"))


def request_id_of(text: str) -> bytes:
    """The 16 bytes of a request's id.

    Raises:
        RefusedError: BAD_ID.
    """
    try:
        return bytes(CommandId.parse(text))
    except BadId:
        raise RefusedError(Reason.BAD_ID, {"id": text}) from None


async def is_serving(change: Change, operator: str) -> bool:
    """Whether an operator is there and not suspended; the house always is."""
    if not operator:
        return True
    record = await change.get(operator_key(operator), OperatorRecord)
    return record is not None and not record.suspended


class Sessions:
    """Sign-ins of players."""

    def __init__(self, deps: Deps, signer: Signer) -> None:
        self._deps = deps
        self._signer = signer

    async def begin(self, change: Change, player: PlayerRecord) -> str:
        """Begin a sign-in as a part of a change; its refresh token, of no use until the change is made."""
        now = self._deps.now_ms()
        family_id = new_id(_PREFIX, now, self._deps.random(10)).removeprefix(f"{_PREFIX}_")
        family = FamilyRecord(
            player_id=player.player_id,
            secret=self._deps.random(32),
            generation=1,
            created_at_ms=max(now, player.signed_out_at_ms + 1),
            refreshed_at_ms=now,
        )
        await change.put(family_key(family_id), family, FAMILY_S)
        return refresh_token(family_id, family)

    def tokens(self, player: PlayerRecord, refresh: str, made_at_ms: int | None = None) -> pb.Tokens:
        """A pair: a new access token, and a refresh token made now or at a time given."""
        access = self._signer.access(player.player_id, player.operator)
        made = self._deps.now_ms() if made_at_ms is None else made_at_ms
        return pb.Tokens(
            access_token=access.token,
            access_expires_at_ms=access.expires_at_ms,
            refresh_token=refresh,
            refresh_expires_at_ms=made + FAMILY_S * 1000,
        )

    async def refresh(self, token: str, request_id: str, address: str) -> pb.Tokens:
        """New tokens for a refresh token, once; the same request again gets the same refresh token.

        Raises:
            RefusedError: SIGN_IN_FAILED: no such token, or its sign-in is over; TOKEN_REUSED: it was used,
                and now its sign-in is over; BAD_ID: the request's; RATE_LIMITED: too many wrong tries.
            Unavailable: the store cannot be used.
        """
        asked = request_id_of(request_id)
        family_id, proof = shown(token)

        async def work(change: Change) -> pb.Tokens | RefusedError:
            family, generation = await self._family(change, family_id, proof)
            if generation < family.generation:
                repeated = generation == family.generation - 1 and hmac.compare_digest(
                    family.request_id, asked
                )
                if not repeated:
                    family.revoked = True
                    await change.put(family_key(family_id), family, FAMILY_S)
                    return RefusedError(Reason.TOKEN_REUSED)
            player = await change.get(player_key(family.player_id), PlayerRecord)
            if (
                family.revoked
                or player is None
                or family.created_at_ms <= player.signed_out_at_ms
                or not await is_serving(change, player.operator)
            ):
                return RefusedError(Reason.SIGN_IN_FAILED)
            if generation == family.generation:
                family.generation += 1
                family.request_id = asked
                family.refreshed_at_ms = self._deps.now_ms()
                await change.put(family_key(family_id), family, FAMILY_S)
            return self.tokens(player, refresh_token(family_id, family), family.refreshed_at_ms)

        outcome = await tried(self._deps, "family", family_id, address, work)
        if isinstance(outcome, RefusedError):
            if outcome.reason is Reason.TOKEN_REUSED:
                self._deps.metrics.revoked_families.inc()
            raise outcome
        self._deps.metrics.sign_ins["refresh"].inc()
        return outcome

    async def end(self, player_id: str, token: str, address: str) -> None:
        """End one sign-in of a player. One that is over already, or has a token as old, is a success.

        Raises:
            RefusedError: SIGN_IN_FAILED: the token is none of the player's; RATE_LIMITED.
            Unavailable: the store cannot be used.
        """
        family_id, proof = shown(token)

        async def work(change: Change) -> None:
            family, _ = await self._family(change, family_id, proof)
            if family.player_id != player_id:
                raise WrongError
            family.revoked = True
            await change.put(family_key(family_id), family, FAMILY_S)

        await tried(self._deps, "family", family_id, address, work)

    async def end_all(self, player_id: str, operator: str | None = None) -> None:
        """End every sign-in of a player.

        Args:
            player_id: the player.
            operator: whose the player must be; None for any.

        Raises:
            RefusedError: UNKNOWN_PLAYER.
            Unavailable: the store cannot be used.
        """

        async def work(change: Change) -> None:
            player = await known_player(change, player_id, operator)
            player.signed_out_at_ms = max(player.signed_out_at_ms, self._deps.now_ms() + SKEW_MS)
            await change.put(player_key(player_id), player)

        await atomically(self._deps.store, work)

    async def _family(self, change: Change, family_id: str, proof: str) -> tuple[FamilyRecord, int]:
        """The family that a token names, and which of its tokens it is.

        Raises:
            WrongError: none.
        """
        family = await change.get(family_key(family_id), FamilyRecord) if family_id else None
        generation = generation_of(family, proof) if family is not None else 0
        if family is None or not generation:
            raise WrongError
        return family, generation
