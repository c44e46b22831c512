"""The users of operators: third parties sign them in, and see their own and nobody else's."""

from collections.abc import Sequence
from typing import Final

from services.game.ids import is_id
from services.lobby.accounts import NewPlayer, SignedIn, found_player, player_shown
from services.lobby.deps import Deps
from services.lobby.members import Members
from services.lobby.player_names import checked_name
from services.lobby.records import (
    Change,
    atomically,
    known_player,
    member_key,
    place_key,
    player_key,
    user_key,
)
from services.lobby.sessions import Sessions
from services.pb.lobby.v1 import player_service_pb2 as pb
from services.pb.lobby.v1.stored_pb2 import PlaceRecord, PlayerRecord, UserRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.tokens import TokenError, Verifier

USER_ID_MOST: Final = 128
PAGE: Final = 50
PAGE_MOST: Final = 100


class Users:
    """Players, as their operators deal with them."""

    def __init__(self, deps: Deps, sessions: Sessions, verifier: Verifier, members: Members) -> None:
        """Stand on the sign-ins.

        Args:
            deps: the lobby's.
            sessions: where sign-ins begin.
            verifier: of guests' access tokens, for the scope "lobby".
            members: who belongs to whom.
        """
        self._deps = deps
        self._sessions = sessions
        self._verifier = verifier
        self._members = members

    async def sign_in(self, new: NewPlayer, guest_token: str = "") -> SignedIn:
        """Sign in an operator's user; the first time founds a player, or makes a guest theirs.

        Args:
            new: the operator, its name for the user, and what others see (empty keeps what is there).
            guest_token: an access token of the guest, empty for none.

        Raises:
            RefusedError: SIGN_IN_FAILED: the guest's token proves nothing; UNKNOWN_PLAYER: it is another
                operator's; ALREADY_LINKED: the user has a player already, or that player is somebody;
                ELSEWHERE: the guest is in a room, in a search or at a table; BAD_INPUT.
            Unavailable: the store cannot be used.
        """
        user_id = new.user_id
        if not 1 <= len(user_id) <= USER_ID_MOST or not user_id.isprintable():
            detail = f"has 1 to {USER_ID_MOST} printable characters"
            raise RefusedError(Reason.BAD_INPUT, {"field": "user_id", "detail": detail})
        name = checked_name(new.name) if new.name else ""
        guest_id = self._guest(guest_token) if guest_token else ""

        async def work(change: Change) -> tuple[PlayerRecord, str, bool]:
            user = await change.get(user_key(new.operator, user_id), UserRecord)
            if guest_id:
                player = await self._take(change, new, user, guest_id)
            elif user is not None:
                player = await known_player(change, user.player_id)
            else:
                player = await found_player(self._deps, change, new)
            if user is None:
                record = UserRecord(player_id=player.player_id)
                await change.put(user_key(new.operator, user_id), record)
            if name and player.name != name:
                player.name = name
                await change.put(player_key(player.player_id), player)
            founded = user is None and not guest_id
            return player, await self._sessions.begin(change, player), founded

        player, refresh, founded = await atomically(self._deps.store, work)
        self._deps.metrics.sign_ins["user"].inc()
        return SignedIn(self._sessions.tokens(player, refresh), player_shown(player), founded)

    def _guest(self, token: str) -> str:
        try:
            return self._verifier.verify(token).player_id
        except TokenError:
            raise RefusedError(Reason.SIGN_IN_FAILED) from None

    async def _take(
        self, change: Change, new: NewPlayer, user: UserRecord | None, guest_id: str
    ) -> PlayerRecord:
        """Make a player the user's, with everything that it has; if it is already, nothing changes."""
        player = await known_player(change, guest_id)
        if player.operator not in ("", new.operator):
            raise RefusedError(Reason.UNKNOWN_PLAYER)
        if user is not None and user.player_id == guest_id:
            return player
        # A player with a device belongs to who holds it; only its own operator may add an account to it.
        somebody = player.user_id or (player.devices and not player.operator)
        if user is not None or somebody:
            raise RefusedError(Reason.ALREADY_LINKED)
        place = await change.get(place_key(guest_id), PlaceRecord)
        if place is not None:
            kind = "table" if place.table_id else "search" if place.ticket_id else "room"
            raise RefusedError(Reason.ELSEWHERE, {"place": kind})
        await change.guard(place_key(guest_id))
        player.operator = new.operator
        player.user_id = new.user_id
        await change.put(player_key(guest_id), player)
        await change.put(member_key(new.operator, guest_id), UserRecord(player_id=guest_id))
        return player

    async def get(self, operator: str, *, user_id: str = "", player_id: str = "") -> pb.Player:
        """One of an operator's players, by either name.

        Raises:
            RefusedError: UNKNOWN_PLAYER.
            Unavailable: the store cannot be used.
        """
        change = Change(self._deps.store)
        if user_id:
            user = await change.get(user_key(operator, user_id), UserRecord)
            player_id = user.player_id if user is not None else ""
        return player_shown(await known_player(change, player_id, operator))

    async def list(self, operator: str, page_size: int, page_token: str) -> tuple[Sequence[pb.Player], str]:
        """Some of an operator's players in the order of their founding, and the next page's token.

        Args:
            operator: whose.
            page_size: at most so many, 1 to 100; 0 means 50.
            page_token: of the page before, empty for the first. The token given back is empty at the end.

        Raises:
            RefusedError: BAD_INPUT.
            Unavailable: the store cannot be used.
        """
        if page_size > PAGE_MOST:
            detail = f"must be from 1 to {PAGE_MOST}"
            raise RefusedError(Reason.BAD_INPUT, {"field": "page_size", "detail": detail})
        if page_token and not is_id("ply", page_token):
            detail = "is none that a page was given with"
            raise RefusedError(Reason.BAD_INPUT, {"field": "page_token", "detail": detail})
        found, more = await self._members.after(operator, page_token, page_size or PAGE)
        change = Change(self._deps.store)
        records = [await change.get(player_key(player_id), PlayerRecord) for player_id in found]
        players = [player_shown(record) for record in records if record is not None]
        return players, found[-1] if more else ""
