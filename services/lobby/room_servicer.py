"""The calls of RoomService: each change is one atomic change of a room, its members' places and its code."""

import hashlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from services.game.errors import BadId
from services.game.framing import frame
from services.game.ids import CommandId, is_id, new_id
from services.lobby import room_tables, rooms
from services.lobby.deps import Deps
from services.lobby.records import Change, atomically, code_key, known_player, room_key
from services.lobby.room_checks import Person, check_member, is_member, seated
from services.lobby.room_codes import WrongCodes, free_code, read_code
from services.lobby.room_lists import RoomLists
from services.lobby.room_plans import checked_plan, checked_visibility
from services.lobby.room_saving import check_nowhere, read_place, save_room
from services.lobby.room_views import Online, as_seen
from services.pb.lobby.v1 import room_service_pb2 as pb
from services.pb.lobby.v1.room_pb2 import VISIBILITY_PUBLIC, Room
from services.pb.lobby.v1.stored_pb2 import CodeRecord, RoomRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.rpc import Call, Write

_ROOM_LABEL: Final = b"shengji room id v1"
T = TypeVar("T")
Decide = Callable[[RoomRecord], RoomRecord]


class RoomServicer:
    """RoomService; ``shell.rpc.Guard`` stands before it and answers what it raises."""

    def __init__(
        self, deps: Deps, lists: RoomLists, presence: Online, wrong_codes: WrongCodes | None = None
    ) -> None:
        self._deps = deps
        self._lists = lists
        self._presence = presence
        self._wrong_codes = wrong_codes or WrongCodes()

    def drain(self) -> None:
        """End all streams: another replica serves them."""
        self._lists.drain()

    # ---------------------------------------------------------------------------------- coming and going

    async def create_room(self, request: pb.CreateRoomRequest, call: Call) -> pb.CreateRoomResponse:
        """See the proto."""
        request_id = _request_id(request.request_id)
        room_id = room_id_of(call.player_id, request_id)
        plan, visibility = checked_plan(request.plan), checked_visibility(request.visibility)

        async def work(change: Change) -> RoomRecord:
            await read_place(change, call.player_id)
            there = await change.get(room_key(room_id), RoomRecord)
            if there is not None:
                check_member(there, call.player_id)
                return there
            host = await self._person(change, call)
            await check_nowhere(change, host.player_id, room_id)
            made = rooms.create(
                room_id,
                host,
                plan,
                visibility,
                await free_code(change, self._deps.random),
                operator=call.operator,
                request_id=request_id,
                stand=request.stand,
                now_ms=self._deps.now_ms(),
            )
            await self._check_funds(None, made)
            await save_room(change, None, made)
            return made

        return pb.CreateRoomResponse(room=self._seen(await self._atomically(work), call))

    async def join_room(self, request: pb.JoinRoomRequest, call: Call) -> pb.JoinRoomResponse:
        """See the proto."""
        by_code = request.WhichOneof("which") != "room_id"
        if by_code:
            self._wrong_codes.take(call.player_id, call.address)

        async def work(change: Change) -> RoomRecord:
            await read_place(change, call.player_id)
            find = self._by_code if by_code else self._public
            before = await find(change, request, call)
            after = rooms.join(before, await self._person(change, call), self._deps.now_ms())
            await save_room(change, before, after)
            return after

        wrong = False
        try:
            joined = await self._atomically(work)
        except RefusedError as refused:
            wrong = refused.reason is Reason.UNKNOWN_CODE
            raise
        finally:
            if by_code and not wrong:
                self._wrong_codes.give_back(call.player_id, call.address)
        return pb.JoinRoomResponse(room=self._seen(joined, call))

    async def _by_code(self, change: Change, request: pb.JoinRoomRequest, call: Call) -> RoomRecord:
        code = read_code(request.code)
        there = await change.get(code_key(code), CodeRecord) if code is not None else None
        record = await change.get(room_key(there.room_id), RoomRecord) if there is not None else None
        if record is None or record.operator != call.operator or record.room.code != code:
            raise RefusedError(Reason.UNKNOWN_CODE)
        return record

    async def _public(self, change: Change, request: pb.JoinRoomRequest, call: Call) -> RoomRecord:
        record = await _room(change, request.room_id, call)
        if record.room.visibility != VISIBILITY_PUBLIC and not is_member(record.room, call.player_id):
            raise RefusedError(Reason.UNKNOWN_ROOM)
        return record

    async def leave_room(self, request: pb.LeaveRoomRequest, call: Call) -> pb.LeaveRoomResponse:
        """See the proto; nobody is in a room that has ended."""
        _check_id(request.room_id)

        async def work(change: Change) -> bool:
            before = await change.get(room_key(request.room_id), RoomRecord)
            if before is None:
                return False
            after = rooms.leave(before, call.player_id, self._deps.now_ms())
            await save_room(change, before, after)
            return after is not before and not after.room.members

        if await self._atomically(work):
            self._deps.metrics.ended_rooms["left"].inc()
        return pb.LeaveRoomResponse()

    # --------------------------------------------------------------------------------- changes of a room

    async def take_seat(self, request: pb.TakeSeatRequest, call: Call) -> pb.TakeSeatResponse:
        """See the proto."""
        seat = request.seat if request.HasField("seat") else None
        room = await self._change(
            request.room_id,
            call,
            lambda record: rooms.take_seat(record, call.player_id, seat, self._deps.now_ms()),
        )
        return pb.TakeSeatResponse(room=room)

    async def swap_seats(self, request: pb.SwapSeatsRequest, call: Call) -> pb.SwapSeatsResponse:
        """See the proto."""
        first, second = request.first, request.second
        room = await self._change(
            request.room_id,
            call,
            lambda record: rooms.swap_seats(
                record, call.player_id, first, second, self._deps.now_ms(), request.version
            ),
        )
        return pb.SwapSeatsResponse(room=room)

    async def set_bots(self, request: pb.SetBotsRequest, call: Call) -> pb.SetBotsResponse:
        """See the proto."""
        seat = request.seat if request.HasField("seat") else None
        room = await self._change(
            request.room_id,
            call,
            lambda record: rooms.set_bots(
                record, call.player_id, request.difficulty, seat, self._deps.now_ms()
            ),
        )
        return pb.SetBotsResponse(room=room)

    async def set_plan(self, request: pb.SetPlanRequest, call: Call) -> pb.SetPlanResponse:
        """See the proto."""
        plan, visibility = checked_plan(request.plan), checked_visibility(request.visibility)
        room = await self._change(
            request.room_id,
            call,
            lambda record: rooms.set_plan(record, call.player_id, plan, visibility, self._deps.now_ms()),
        )
        return pb.SetPlanResponse(room=room)

    async def kick(self, request: pb.KickRequest, call: Call) -> pb.KickResponse:
        """See the proto."""
        room = await self._change(
            request.room_id,
            call,
            lambda record: rooms.kick(record, call.player_id, request.player_id, self._deps.now_ms()),
        )
        return pb.KickResponse(room=room)

    async def hand_over(self, request: pb.HandOverRequest, call: Call) -> pb.HandOverResponse:
        """See the proto."""
        room = await self._change(
            request.room_id,
            call,
            lambda record: rooms.hand_over(record, call.player_id, request.player_id, self._deps.now_ms()),
        )
        return pb.HandOverResponse(room=room)

    async def renew_code(self, request: pb.RenewCodeRequest, call: Call) -> pb.RenewCodeResponse:
        """See the proto."""
        _check_id(request.room_id)

        async def work(change: Change) -> RoomRecord:
            before = await _room(change, request.room_id, call)
            code = await free_code(change, self._deps.random)
            after = rooms.renew_code(before, call.player_id, code, self._deps.now_ms())
            await save_room(change, before, after)
            return after

        return pb.RenewCodeResponse(room=self._seen(await self._atomically(work), call))

    async def start_room(self, request: pb.StartRoomRequest, call: Call) -> pb.StartRoomResponse:
        """See the proto."""
        fill = request.fill_with_bots
        room = await self._change(
            request.room_id,
            call,
            lambda record: room_tables.start(record, call.player_id, fill, self._deps.now_ms()),
        )
        return pb.StartRoomResponse(room=room)

    async def play_again(self, request: pb.PlayAgainRequest, call: Call) -> pb.PlayAgainResponse:
        """See the proto."""
        again = request.again
        room = await self._change(
            request.room_id,
            call,
            lambda record: room_tables.play_again(record, call.player_id, again, self._deps.now_ms()),
        )
        return pb.PlayAgainResponse(room=room)

    async def _change(self, room_id: str, call: Call, decide: Decide) -> Room:
        """Change a room as a pure function decides; who newly risks chips must have them."""
        _check_id(room_id)

        async def work(change: Change) -> RoomRecord:
            before = await _room(change, room_id, call)
            after = decide(before)
            await self._check_funds(before, after)
            await save_room(change, before, after)
            return after

        return self._seen(await self._atomically(work), call)

    # ------------------------------------------------------------------------------------------- looking

    async def get_room(self, request: pb.GetRoomRequest, call: Call) -> pb.GetRoomResponse:
        """See the proto."""
        _check_id(request.room_id)
        record = await _room(Change(self._deps.store), request.room_id, call)
        check_member(record, call.player_id)
        return pb.GetRoomResponse(room=self._seen(record, call))

    async def list_rooms(self, request: pb.ListRoomsRequest, call: Call) -> pb.ListRoomsResponse:
        """See the proto."""
        return self._lists.page(request, call.operator)

    async def watch_rooms(self, request: pb.WatchRoomsRequest, call: Call, write: Write) -> None:
        """See the proto."""
        await self._lists.watch(request, call, write)

    # ----------------------------------------------------------------------------------------- in common

    async def _atomically(self, work: Callable[[Change], Awaitable[T]]) -> T:
        return await atomically(self._deps.store, work)

    def _seen(self, record: RoomRecord, call: Call) -> Room:
        return as_seen(record, call.player_id, self._presence)

    async def _person(self, change: Change, call: Call) -> Person:
        """The caller, with the name that others see; unknown with another operator since the token."""
        player = await known_player(change, call.player_id, call.operator)
        return Person(player.player_id, player.name)

    async def _check_funds(self, before: RoomRecord | None, after: RoomRecord) -> None:
        """Ask whether those can pay who would newly have to, or more than before."""
        room = after.room
        paid_for: Iterable[str] = ()
        if before is not None and before.room.plan.stake >= room.plan.stake:
            paid_for = seated(before.room)
        asked = sorted(seated(room).keys() - paid_for)
        if room.plan.stake and asked:
            await self._deps.funds.check(asked, room.plan.stake)


def room_id_of(player_id: str, request_id: bytes) -> str:
    """The id of the room that a caller makes by a request: the same for the same request."""
    digest = hashlib.sha256(frame(_ROOM_LABEL, player_id.encode(), request_id)).digest()
    return new_id("rom", int.from_bytes(digest[10:16], "big"), digest[:10])


async def _room(change: Change, room_id: str, call: Call) -> RoomRecord:
    """A room of the caller's operator.

    Raises:
        RefusedError: UNKNOWN_ROOM, or BAD_ID.
        Unavailable: the store cannot be read.
    """
    _check_id(room_id)
    record = await change.get(room_key(room_id), RoomRecord)
    if record is None or record.operator != call.operator:
        raise RefusedError(Reason.UNKNOWN_ROOM)
    return record


def _check_id(room_id: str) -> None:
    if not is_id("rom", room_id):
        raise RefusedError(Reason.BAD_ID, {"id": room_id})


def _request_id(text: str) -> bytes:
    try:
        return CommandId.parse(text)
    except BadId:
        raise RefusedError(Reason.BAD_ID, {"id": text}) from None
