"""Who plays, and every call made in their name: tokens kept fresh, lost answers asked for again."""

import asyncio
import time
import uuid
from collections.abc import Callable
from typing import Any, Final

import grpc
from google.rpc.error_details_pb2 import ErrorInfo, LocalizedMessage, RetryInfo
from google.rpc.status_pb2 import Status

from services.cli.play.profile import Profile
from services.pb.lobby.v1.match_service_pb2_grpc import MatchServiceStub
from services.pb.lobby.v1.player_service_pb2 import (
    Device,
    Guest,
    Player,
    RefreshRequest,
    SetNameRequest,
    SignInRequest,
    Tokens,
)
from services.pb.lobby.v1.player_service_pb2_grpc import PlayerServiceStub
from services.pb.lobby.v1.presence_service_pb2 import RenewRequest
from services.pb.lobby.v1.presence_service_pb2_grpc import PresenceServiceStub
from services.pb.lobby.v1.room_service_pb2_grpc import RoomServiceStub
from services.pb.table.v1.reason_pb2 import Owed
from services.pb.table.v1.table_service_pb2 import RenewWatchRequest
from services.pb.table.v1.table_service_pb2_grpc import TableServiceStub
from services.rules.shown import Language, owed_text

_DETAILS: Final = "grpc-status-details-bin"
_TIMEOUT_S: Final = 10.0
_PATIENCE_S: Final = 60.0
"""How long a call is repeated while nobody answers."""
_FIRST_PATIENCE_S: Final = 2.0
"""How long it is before anybody has ever answered: there may be no house at all."""
_AHEAD_S: Final = 180.0
"""How long before its end an access token is replaced."""
_LEAST_S: Final = 20.0
"""Between two refreshes, whatever the clocks say."""
_NOBODY: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})
_AGAIN: Final = _NOBODY | {grpc.StatusCode.RESOURCE_EXHAUSTED}
_AGAIN_TRIES: Final = 20
"""Half seconds until the lobby has heard of the match's end."""


class Refused(Exception):
    """A call that was refused.

    Attributes:
        code: the status code.
        reason: ErrorInfo's reason, empty without.
        text: for a person, in the language asked for.
        owed: what a follow owed; empty without.
        unanswered: nobody answered at all, as far as is known.
    """

    def __init__(self, error: grpc.aio.AioRpcError, language: Language = "en") -> None:
        self.code = error.code()
        self.reason, self.text, self.owed = "", error.details() or self.code.name, ""
        self.details: dict[str, str] = {}
        self.retry_s = 0.0
        self.unanswered = self.code in _NOBODY
        for key, value in error.trailing_metadata() or ():
            if key == _DETAILS and isinstance(value, bytes):
                self._read(Status.FromString(value), language)
        super().__init__(self.text)

    def _read(self, status: Status, language: Language) -> None:
        for detail in status.details:
            info, text, owed, retry = ErrorInfo(), LocalizedMessage(), Owed(), RetryInfo()
            if detail.Unpack(info):
                self.reason, self.details = info.reason, dict(info.metadata)
            elif detail.Unpack(text):
                self.text = text.message
            elif detail.Unpack(retry):
                self.retry_s = retry.retry_delay.ToTimedelta().total_seconds()
            elif detail.Unpack(owed):
                groups = [group for component in owed.components for group in component.groups]
                self.owed = owed_text([(group.width, group.length) for group in groups], language)


class Account:
    """A signed-in player with stubs of every service.

    Attributes:
        player: who it is, once signed in.
        language: of refusals.
    """

    def __init__(
        self, lobby: grpc.aio.Channel, table: grpc.aio.Channel, profile: Profile, language: Language
    ) -> None:
        self.players: Any = PlayerServiceStub(lobby)
        self.rooms: Any = RoomServiceStub(lobby)
        self.matches: Any = MatchServiceStub(lobby)
        self.presence: Any = PresenceServiceStub(lobby)
        self.table: Any = TableServiceStub(table)
        self.language: Language = language
        self.player = Player()
        self.on_trouble: Callable[[bool], None] = lambda lost: None
        """Told True when answers stop coming, False when they come again."""
        self._profile = profile
        self._tokens = Tokens()
        self._refreshing = asyncio.Lock()
        self._answered = False

    @property
    def guest(self) -> bool:
        """Whether nothing of this player is kept."""
        return self._profile.path is None

    async def sign_in(self, name: str = "") -> bool:
        """Sign in by the refresh token, else by the device, else as a guest.

        Returns:
            Whether the player was founded by this call.

        Raises:
            Refused: none of it was accepted.
        """
        founded = False
        if not (self._profile.refresh_token and await self._refreshed()):
            founded = await self._sign_in_anew(name)
        if not founded:
            from services.pb.lobby.v1.player_service_pb2 import GetPlayerRequest  # noqa: PLC0415

            self.player = (await self.call(self.players.GetPlayer, GetPlayerRequest())).player
        if name and self.player.name != name:
            self.player = (await self.call(self.players.SetName, SetNameRequest(name=name))).player
        return founded

    async def _sign_in_anew(self, name: str) -> bool:
        request = SignInRequest(name=name)
        if self._profile.path is None:
            request.guest.CopyFrom(Guest())
        else:
            self._profile.save()  # the secret must be known before the lobby knows it
            request.device.CopyFrom(
                Device(device_id=self._profile.device_id, secret=self._profile.secret_bytes)
            )
        answer = await self._patiently(self.players.SignIn, request, signed=False)
        self.player = answer.player
        self._take(answer.tokens)
        return bool(answer.founded)

    def _take(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._profile.refresh_token, self._profile.request_id = tokens.refresh_token, ""
        self._profile.save()

    async def _refreshed(self) -> bool:
        """Get new tokens for the refresh token; False when it is good for nothing any more."""
        profile = self._profile
        if not profile.request_id:
            profile.request_id = str(uuid.uuid4())
            profile.save()
        request = RefreshRequest(refresh_token=profile.refresh_token, request_id=profile.request_id)
        try:
            answer = await self._patiently(self.players.Refresh, request, signed=False)
        except Refused as refused:
            if refused.code is not grpc.StatusCode.UNAUTHENTICATED:
                raise
            profile.refresh_token = profile.request_id = ""
            return False
        self._take(answer.tokens)
        return True

    async def renewed(self, stale: str) -> None:
        """Replace an access token that is no longer good; several callers at once do it once.

        Raises:
            Refused: the player cannot sign in any more.
        """
        async with self._refreshing:
            if self._tokens.access_token == stale and not await self._refreshed():
                await self._sign_in_anew("")

    async def keep_fresh(self) -> None:
        """Replace the access token before it ends, and let the open streams live on with it; for ever."""
        while True:
            left = self._tokens.access_expires_at_ms / 1000 - time.time()
            await asyncio.sleep(max(_LEAST_S, left - _AHEAD_S))
            try:
                await self.renewed(self._tokens.access_token)
                await self.call(self.presence.Renew, RenewRequest())
                await self.call(self.table.RenewWatch, RenewWatchRequest())
            except Refused:
                continue  # the streams say it when it matters

    @property
    def token(self) -> str:
        """The present access token."""
        return self._tokens.access_token

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What a signed call carries."""
        return (("authorization", f"Bearer {self.token}"), ("accept-language", self.language))

    async def call_after_match(self, method: Any, request: Any) -> Any:
        """A call about the room after a match, of whose end the lobby may not have heard yet."""
        for _ in range(_AGAIN_TRIES):
            try:
                return await self.call(method, request)
            except Refused as refused:
                if refused.reason != "WRONG_PHASE":
                    raise
            await asyncio.sleep(0.5)
        return await self.call(method, request)

    async def call(self, method: Any, request: Any) -> Any:
        """One signed call; it is repeated while nobody answers, so commands must carry an id.

        Raises:
            Refused: the answer is no, or none came for a minute.
        """
        stale = self.token
        try:
            return await self._patiently(method, request)
        except Refused as refused:
            if refused.code is not grpc.StatusCode.UNAUTHENTICATED:
                raise
        await self.renewed(stale)
        return await self._patiently(method, request)

    async def _patiently(self, method: Any, request: Any, *, signed: bool = True) -> Any:
        began, pause, troubled = time.monotonic(), 0.2, False
        while True:
            metadata = self.metadata() if signed else (("accept-language", self.language),)
            try:
                answer = await method(request, metadata=metadata, timeout=_TIMEOUT_S)
            except grpc.aio.AioRpcError as error:
                refused = Refused(error, self.language)
                self._answered = self._answered or refused.code not in _NOBODY
                patience = _PATIENCE_S if self._answered else _FIRST_PATIENCE_S
                spent = time.monotonic() - began
                if refused.code not in _AGAIN or spent > patience:
                    raise refused from None
                if refused.code is grpc.StatusCode.RESOURCE_EXHAUSTED and refused.retry_s > 5:
                    raise refused from None
                if not troubled and spent > 1:
                    troubled = True
                    self.on_trouble(True)
                await asyncio.sleep(max(pause, refused.retry_s))
                pause = min(2.0, pause * 1.6)
                continue
            self._answered = True
            if troubled:
                self.on_trouble(False)
            return answer
