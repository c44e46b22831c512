"""A player in a room: seats, bots, guests and the start, as typed commands."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.text import Text

from services.cli.play.account import Account, Refused
from services.cli.play.sheets import sheet_lines
from services.cli.play.words import Mistyped, NoSuchName, Word
from services.pb.event.v1.event_pb2 import Difficulty, RuleOption
from services.pb.lobby.v1 import room_service_pb2 as pb
from services.pb.lobby.v1.match_service_pb2 import CreateTicketRequest, Ticket
from services.pb.lobby.v1.room_pb2 import Room, RoomPlan
from services.pb.table.v1.table_service_pb2 import GetRulesRequest

DIFFICULTIES: Final = {
    "easy": Difficulty.DIFFICULTY_EASY,
    "normal": Difficulty.DIFFICULTY_NORMAL,
}
VERBS: Final = frozenset({"start", "seat", "swap", "kick", "host", "stand", "bots", "code", "rules", "leave"})
"""What may be typed in a room."""


class NoSuchSeat(Exception):
    """A seat is none of 0 to 3, or there are too few or too many of them."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asks for.

    Attributes:
        way: "bots", "create", "join" or "match".
        preset, options, stake: what is to be played; options by name, values as JSON.
        code: of a room to join.
        bots: how strong bots are.
        bots_after_s: when bots fill a match; 0: never.
    """

    way: str = "bots"
    preset: str = "classic-2d"
    options: Sequence[tuple[str, str]] = ()
    stake: int = 0
    code: str = ""
    bots: str = "normal"
    bots_after_s: int = 0

    @property
    def plan(self) -> RoomPlan:
        """What a room plays."""
        overrides = [RuleOption(name=name, value=value) for name, value in self.options]
        return RoomPlan(preset=self.preset, overrides=overrides, stake=self.stake)


async def fulfil(account: Account, wish: Wish) -> Room | Ticket:
    """Make, join or look for what the command line asks for.

    Raises:
        Refused: it cannot be.
    """
    if wish.way == "match":
        request = CreateTicketRequest(
            request_id=str(uuid.uuid4()),
            preset=wish.preset,
            stake=wish.stake,
            bots_after_s=wish.bots_after_s,
            bots=DIFFICULTIES[wish.bots],
        )
        ticket: Ticket = (await account.call(account.matches.CreateTicket, request)).ticket
        return ticket
    if wish.way == "join":
        return await _join(account, wish.code)
    made = pb.CreateRoomRequest(request_id=str(uuid.uuid4()), plan=wish.plan)
    room: Room = (await account.call(account.rooms.CreateRoom, made)).room
    if wish.way == "bots":
        bots = pb.SetBotsRequest(room_id=room.room_id, difficulty=DIFFICULTIES[wish.bots])
        await account.call(account.rooms.SetBots, bots)
        room = await start(account, room.room_id)
    return room


async def start(account: Account, room_id: str) -> Room:
    """Begin, with bots on the seats that are free.

    Raises:
        Refused: not now, or not by this player.
    """
    request = pb.StartRoomRequest(room_id=room_id, fill_with_bots=True)
    room: Room = (await account.call(account.rooms.StartRoom, request)).room
    return room


async def _join(account: Account, code: str) -> Room:
    """Come in and take the first free seat; without one the player stands."""
    room: Room = (await account.call(account.rooms.JoinRoom, pb.JoinRoomRequest(code=code))).room
    me = account.player.player_id
    for seat in range(4):
        held = room.seats[seat]
        if any(each.player_id == me for each in room.seats):
            break
        if held.player_id or held.difficulty:
            continue
        try:
            request = pb.TakeSeatRequest(room_id=room.room_id, seat=seat)
            room = (await account.call(account.rooms.TakeSeat, request)).room
        except Refused as refused:
            if refused.reason != "SEAT_TAKEN":  # somebody was quicker
                raise
    return room


async def rules_of(account: Account, room: Room) -> list[Text]:
    """The rules that a room plays, in words.

    Raises:
        Refused: they cannot be had.
    """
    language = account.language
    request = GetRulesRequest(preset=room.plan.preset, overrides=room.plan.overrides, language=language)
    return sheet_lines((await account.call(account.table.GetRules, request)).sheet)


def member_named(room: Room, name: str) -> str:
    """The id of a member by name, in any case, as far as it must be typed.

    Raises:
        NoSuchName: nobody, or several.
    """
    wanted = name.casefold()
    exact = [member.player_id for member in room.members if member.name.casefold() == wanted]
    found = exact or [m.player_id for m in room.members if m.name.casefold().startswith(wanted)]
    if not wanted or len(found) != 1:
        raise NoSuchName(name)
    return found[0]


async def obey(account: Account, room: Room, word: Word) -> Room:
    """Do what was typed in a room; the room after it.

    Raises:
        Refused: it cannot be done.
        Mistyped: a word behind the verb means nothing.
        NoSuchSeat: the words behind the verb are no seats.
        NoSuchName: nobody is called so.
    """
    room_id, rest = room.room_id, word.rest
    rooms: Any = account.rooms
    match word.verb:
        case "start":
            return await start(account, room_id)
        case "code":
            answer = await account.call(rooms.RenewCode, pb.RenewCodeRequest(room_id=room_id))
        case "stand":
            answer = await account.call(rooms.TakeSeat, pb.TakeSeatRequest(room_id=room_id))
        case "seat":
            (seat,) = _seats(rest, 1)
            answer = await account.call(rooms.TakeSeat, pb.TakeSeatRequest(room_id=room_id, seat=seat))
        case "swap":
            first, second = _seats(rest, 2)
            request = pb.SwapSeatsRequest(room_id=room_id, first=first, second=second)
            answer = await account.call(rooms.SwapSeats, request)
        case "kick":
            request_ = pb.KickRequest(room_id=room_id, player_id=member_named(room, " ".join(rest)))
            answer = await account.call(rooms.Kick, request_)
        case "host":
            request__ = pb.HandOverRequest(room_id=room_id, player_id=member_named(room, " ".join(rest)))
            answer = await account.call(rooms.HandOver, request__)
        case "bots":
            return await _set_bots(account, room, rest)
        case _:
            raise Mistyped(word.verb)
    changed: Room = answer.room
    return changed


def _seats(words: Sequence[str], count: int) -> list[int]:
    if len(words) != count or not all(word in {"0", "1", "2", "3"} for word in words):
        raise NoSuchSeat
    return [int(word) for word in words]


async def _set_bots(account: Account, room: Room, words: Sequence[str]) -> Room:
    """Bots on the seats asked for; without a seat on all free ones, and those that sit become as strong."""
    request = _bots(room.room_id, words)
    answer = await account.call(account.rooms.SetBots, request)
    if request.difficulty and not request.HasField("seat"):
        for number, seat in enumerate(answer.room.seats):
            if seat.difficulty and seat.difficulty != request.difficulty:
                request.seat = number
                answer = await account.call(account.rooms.SetBots, request)
    changed: Room = answer.room
    return changed


def _bots(room_id: str, words: Sequence[str]) -> pb.SetBotsRequest:
    """``bots``, ``bots easy``, ``bots off``, ``bots easy 2``."""
    strength = words[0].lower() if words else "normal"
    if strength not in {*DIFFICULTIES, "off"}:
        raise Mistyped(words[0])
    request = pb.SetBotsRequest(room_id=room_id)
    if strength != "off":
        request.difficulty = DIFFICULTIES[strength]
    if len(words) > 1:
        request.seat = _seats(words[1:], 1)[0]
    return request
