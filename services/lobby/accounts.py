"""Players and their ways in: guests, devices, names."""

import hmac
from hashlib import sha256
from typing import Final, NamedTuple

from services.lobby.deps import Deps
from services.lobby.player_names import checked_name, made_up_name
from services.lobby.records import (
    Change,
    atomically,
    device_key,
    digest,
    known_player,
    member_key,
    player_key,
)
from services.lobby.sessions import Sessions, is_serving
from services.lobby.slowing import WrongError, tried
from services.pb.lobby.v1 import player_service_pb2 as pb
from services.pb.lobby.v1.stored_pb2 import DeviceRecord, PlayerRecord, UserRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError, locale_of
from services.shell.tokens import is_operator

DEVICES_MOST: Final = 16
"""Devices of one player."""
_DEVICE_ID: Final = (8, 128)
_SECRET: Final = (16, 64)


class SignedIn(NamedTuple):
    """What a sign-in is answered with."""

    tokens: pb.Tokens
    player: pb.Player
    founded: bool
    """The player is new."""


class NewPlayer(NamedTuple):
    """How a player begins, if there is none yet."""

    operator: str
    """Empty for the house."""
    name: str
    """Empty for a made-up one."""
    accept_language: str = ""
    """In whose language."""
    user_id: str = ""
    """The operator's own name for the user, empty without."""


def player_shown(record: PlayerRecord) -> pb.Player:
    """A player as the player itself and its operator see it."""
    return pb.Player(
        player_id=record.player_id,
        name=record.name,
        operator=record.operator,
        guest=not record.devices and not record.user_id,
        devices=len(record.devices),
        user_id=record.user_id,
        created_at_ms=record.created_at_ms,
        muted=record.muted,
    )


async def found_player(deps: Deps, change: Change, new: NewPlayer) -> PlayerRecord:
    """Found a player as a part of a change.

    Raises:
        RefusedError: UNKNOWN_OPERATOR: there is none of that name, or it is suspended; BAD_INPUT: the name.
    """
    operator = new.operator
    if operator and not (is_operator(operator) and await is_serving(change, operator)):
        raise RefusedError(Reason.UNKNOWN_OPERATOR)
    name = checked_name(new.name) if new.name else ""
    player = PlayerRecord(
        player_id=deps.new_id("ply"),
        name=name or made_up_name(deps.random(4), locale_of(new.accept_language)),
        operator=operator,
        user_id=new.user_id,
        created_at_ms=deps.now_ms(),
    )
    await change.put(player_key(player.player_id), player)
    if operator:
        await change.put(member_key(operator, player.player_id), UserRecord(player_id=player.player_id))
    return player


class Accounts:
    """Players, as they themselves deal with them."""

    def __init__(self, deps: Deps, sessions: Sessions) -> None:
        self._deps = deps
        self._sessions = sessions

    async def sign_in_guest(self, new: NewPlayer) -> SignedIn:
        """Found a player, and sign in as it.

        Raises:
            RefusedError: UNKNOWN_OPERATOR or BAD_INPUT.
            Unavailable: the store cannot be used; a player may have been founded that nobody is.
        """

        async def work(change: Change) -> tuple[PlayerRecord, str]:
            player = await found_player(self._deps, change, new)
            return player, await self._sessions.begin(change, player)

        player, refresh = await atomically(self._deps.store, work)
        self._deps.metrics.sign_ins["guest"].inc()
        return SignedIn(self._sessions.tokens(player, refresh), player_shown(player), True)

    async def sign_in_device(self, device: pb.Device, new: NewPlayer, address: str) -> SignedIn:
        """Sign in as the player of a device; one not seen before founds a player.

        Raises:
            RefusedError: SIGN_IN_FAILED: another secret is the right one, or the player's operator is
                suspended; RATE_LIMITED: too many wrong tries; UNKNOWN_OPERATOR or BAD_INPUT.
            Unavailable: the store cannot be used.
        """
        secret_hash = _secret_hash(device)
        key = device_key(device.device_id)

        async def work(change: Change) -> tuple[PlayerRecord, str, bool]:
            known = await change.get(key, DeviceRecord)
            if known is None:
                player = await found_player(self._deps, change, new)
                player.devices.append(digest(device.device_id))
                await change.put(player_key(player.player_id), player)
                await change.put(key, DeviceRecord(player_id=player.player_id, secret_hash=secret_hash))
            else:
                if not hmac.compare_digest(known.secret_hash, secret_hash):
                    raise WrongError
                player = await known_player(change, known.player_id)
                if not await is_serving(change, player.operator):
                    raise RefusedError(Reason.SIGN_IN_FAILED)
                await change.guard(key)
            return player, await self._sessions.begin(change, player), known is None

        player, refresh, founded = await tried(self._deps, "device", device.device_id, address, work)
        self._deps.metrics.sign_ins["device"].inc()
        return SignedIn(self._sessions.tokens(player, refresh), player_shown(player), founded)

    async def link_device(self, player_id: str, device: pb.Device) -> pb.Player:
        """Let a device sign in as a player; a linked one gets the new secret.

        Raises:
            RefusedError: ALREADY_LINKED: it is another player's; TOO_LARGE: beyond 16 devices; BAD_INPUT;
                UNKNOWN_PLAYER.
            Unavailable: the store cannot be used.
        """
        secret_hash = _secret_hash(device)
        key, name = device_key(device.device_id), digest(device.device_id)

        async def work(change: Change) -> PlayerRecord:
            player = await known_player(change, player_id)
            known = await change.get(key, DeviceRecord)
            if known is not None and known.player_id != player_id:
                raise RefusedError(Reason.ALREADY_LINKED)
            if name not in player.devices:
                if len(player.devices) >= DEVICES_MOST:
                    raise RefusedError(Reason.TOO_LARGE)
                player.devices.append(name)
            await change.put(player_key(player_id), player)
            await change.put(key, DeviceRecord(player_id=player_id, secret_hash=secret_hash))
            return player

        return player_shown(await atomically(self._deps.store, work))

    async def unlink_device(self, player_id: str, device_id: str) -> pb.Player:
        """Take a device's right to sign in as a player. One that has none is a success.

        Raises:
            RefusedError: LAST_WAY_IN: the player has no other device and no operator's account; BAD_INPUT;
                UNKNOWN_PLAYER.
            Unavailable: the store cannot be used.
        """
        _check_device_id(device_id)

        async def work(change: Change) -> PlayerRecord:
            player = await known_player(change, player_id)
            if digest(device_id) not in player.devices:
                return player
            if len(player.devices) == 1 and not player.user_id:
                raise RefusedError(Reason.LAST_WAY_IN)
            player.devices.remove(digest(device_id))
            await change.put(player_key(player_id), player)
            await change.drop(device_key(device_id))
            return player

        return player_shown(await atomically(self._deps.store, work))

    async def get(self, player_id: str) -> pb.Player:
        """A player.

        Raises:
            RefusedError: UNKNOWN_PLAYER.
            Unavailable: the store cannot be used.
        """
        return player_shown(await known_player(Change(self._deps.store), player_id))

    async def set_name(self, player_id: str, name: str) -> pb.Player:
        """Change a player's name.

        Raises:
            RefusedError: BAD_INPUT, which says why; UNKNOWN_PLAYER.
            Unavailable: the store cannot be used.
        """
        checked = checked_name(name)

        async def work(change: Change) -> PlayerRecord:
            player = await known_player(change, player_id)
            player.name = checked
            await change.put(player_key(player_id), player)
            return player

        return player_shown(await atomically(self._deps.store, work))


def _secret_hash(device: pb.Device) -> bytes:
    """SHA-256 of a device's secret: enough, since secrets are random and not made up by people."""
    _check_device_id(device.device_id)
    least, most = _SECRET
    if not least <= len(device.secret) <= most:
        raise RefusedError(Reason.BAD_INPUT, {"field": "secret", "detail": f"has {least} to {most} bytes"})
    return sha256(device.secret).digest()


def _check_device_id(device_id: str) -> None:
    least, most = _DEVICE_ID
    if not least <= len(device_id) <= most or not device_id.isprintable() or " " in device_id:
        detail = f"has {least} to {most} printable characters without spaces"
        raise RefusedError(Reason.BAD_INPUT, {"field": "device_id", "detail": detail})
