"""The calls of PlayerService: request → accounts and sessions → response, and nothing else."""

from services.lobby.accounts import Accounts, NewPlayer
from services.lobby.sessions import Sessions
from services.lobby.signing import Signer
from services.pb.lobby.v1 import player_service_pb2 as pb
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.rpc import Call

OPEN_METHODS = ("SignIn", "Refresh", "GetKeys")
"""What needs no token."""


class PlayerServicer:
    """PlayerService; ``shell.rpc.Guard`` stands before it and answers what it raises."""

    def __init__(self, accounts: Accounts, sessions: Sessions, signer: Signer) -> None:
        self._accounts = accounts
        self._sessions = sessions
        self._signer = signer

    async def sign_in(self, request: pb.SignInRequest, call: Call) -> pb.SignInResponse:
        """See the proto."""
        new = NewPlayer(request.operator, request.name, call.accept_language)
        way = request.WhichOneof("way")
        if way == "guest":
            done = await self._accounts.sign_in_guest(new)
        elif way == "device":
            done = await self._accounts.sign_in_device(request.device, new, call.address)
        else:
            raise RefusedError(Reason.BAD_INPUT, {"field": "way", "detail": "is guest or device"})
        return pb.SignInResponse(tokens=done.tokens, player=done.player, founded=done.founded)

    async def refresh(self, request: pb.RefreshRequest, call: Call) -> pb.RefreshResponse:
        """See the proto."""
        tokens = await self._sessions.refresh(request.refresh_token, request.request_id, call.address)
        return pb.RefreshResponse(tokens=tokens)

    async def get_keys(self, request: pb.GetKeysRequest, call: Call) -> pb.GetKeysResponse:
        """See the proto."""
        return pb.GetKeysResponse(jwks=self._signer.key_set(), issuer=self._signer.issuer)

    async def sign_out(self, request: pb.SignOutRequest, call: Call) -> pb.SignOutResponse:
        """See the proto; who signs out everywhere need not show a refresh token."""
        if request.refresh_token or not request.everywhere:
            await self._sessions.end(call.player_id, request.refresh_token, call.address)
        if request.everywhere:
            await self._sessions.end_all(call.player_id)
        return pb.SignOutResponse()

    async def link_device(self, request: pb.LinkDeviceRequest, call: Call) -> pb.LinkDeviceResponse:
        """See the proto."""
        return pb.LinkDeviceResponse(player=await self._accounts.link_device(call.player_id, request.device))

    async def unlink_device(self, request: pb.UnlinkDeviceRequest, call: Call) -> pb.UnlinkDeviceResponse:
        """See the proto."""
        player = await self._accounts.unlink_device(call.player_id, request.device_id)
        return pb.UnlinkDeviceResponse(player=player)

    async def get_player(self, request: pb.GetPlayerRequest, call: Call) -> pb.GetPlayerResponse:
        """See the proto."""
        return pb.GetPlayerResponse(player=await self._accounts.get(call.player_id))

    async def set_name(self, request: pb.SetNameRequest, call: Call) -> pb.SetNameResponse:
        """See the proto."""
        return pb.SetNameResponse(player=await self._accounts.set_name(call.player_id, request.name))
