"""The calls of OperatorService: request → users, sessions and reports → response, and nothing else."""

from services.lobby.accounts import NewPlayer
from services.lobby.reports import Reports
from services.lobby.sessions import Sessions
from services.lobby.users import Users
from services.pb.lobby.v1 import operator_service_pb2 as pb
from services.shell.rpc import Call


class OperatorServicer:
    """OperatorService; the guard stands before it, and has told ``call.operator`` by the API key."""

    def __init__(self, users: Users, sessions: Sessions, reports: Reports) -> None:
        self._users = users
        self._sessions = sessions
        self._reports = reports

    async def sign_in_user(self, request: pb.SignInUserRequest, call: Call) -> pb.SignInUserResponse:
        """See the proto."""
        new = NewPlayer(call.operator, request.name, call.accept_language, request.user_id)
        done = await self._users.sign_in(new, request.guest_access_token)
        return pb.SignInUserResponse(tokens=done.tokens, player=done.player, founded=done.founded)

    async def get_user(self, request: pb.GetUserRequest, call: Call) -> pb.GetUserResponse:
        """See the proto."""
        player = await self._users.get(call.operator, user_id=request.user_id, player_id=request.player_id)
        return pb.GetUserResponse(player=player)

    async def list_users(self, request: pb.ListUsersRequest, call: Call) -> pb.ListUsersResponse:
        """See the proto."""
        players, following = await self._users.list(call.operator, request.page_size, request.page_token)
        return pb.ListUsersResponse(players=players, next_page_token=following)

    async def sign_out_user(self, request: pb.SignOutUserRequest, call: Call) -> pb.SignOutUserResponse:
        """See the proto."""
        await self._sessions.end_all(request.player_id, call.operator)
        return pb.SignOutUserResponse()

    async def list_reports(self, request: pb.ListReportsRequest, call: Call) -> pb.ListReportsResponse:
        """See the proto."""
        page = await self._reports.list(call.operator, request.page_size, request.page_token)
        return pb.ListReportsResponse(reports=page.reports, next_page_token=page.next_page_token)
