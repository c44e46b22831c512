"""The loop: from signing in through rooms and tables, until the player goes."""

import asyncio
from collections import deque
from collections.abc import Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

from services.cli.play.account import Account, Refused
from services.cli.play.rooms import VERBS, NoSuchSeat, Wish, fulfil, member_named, obey, rules_of
from services.cli.play.screen import invitation, names_of, paragraph, room_lines
from services.cli.play.seat import Seat, refusal
from services.cli.play.streams import Happening, Line, Queue, Stayed, Trouble, Watched, WatchOver, stay, watch
from services.cli.play.talk import Talk
from services.cli.play.terminal import Terminal
from services.cli.play.texts import tell
from services.cli.play.words import Mistyped, NoSuchName, Word, read
from services.pb.lobby.v1.match_service_pb2 import CancelTicketRequest, Ticket
from services.pb.lobby.v1.presence_service_pb2 import GetWhereaboutsRequest, StayResponse, Whereabouts
from services.pb.lobby.v1.room_pb2 import Room, RoomState
from services.pb.lobby.v1.room_service_pb2 import LeaveRoomRequest, PlayAgainRequest

_ANYWHERE: Final = frozenset({"help", "say", "mute", "auto", "quit"})
_SEAT_USAGE: Final = "seat 2 · swap 1 2 · bots easy 3"
_YES_OR_NO: Final = frozenset({"yes", "no", "again", "leave", "quit"})


class Loop:
    """One run of the program."""

    def __init__(self, account: Account, terminal: Terminal, queue: Queue, profile: str) -> None:
        self._account = account
        self._terminal = terminal
        self._queue = queue
        self._profile = profile
        self._talk = Talk(account)
        self._lines: deque[str] = deque()
        self._no_more_lines = False
        self._room: Room | None = None
        self._room_shown: tuple[object, ...] = ()
        self._ticket_id, self._waiting = "", 0
        self._seat: Seat | None = None
        self._watching: asyncio.Task[None] | None = None
        self._finished: set[str] = set()
        self._names: dict[str, str] = {}
        self._asked: str = ""
        """The yes-or-no question that is open: "again", "quit" or none."""
        self._auto = self._lost = self._done = False
        terminal.below = self._below
        account.on_trouble = lambda lost: queue.put_nowait(Trouble(lost))

    async def run(self, wish: Wish, name: str) -> None:
        """Play until the player goes or nothing is left to follow.

        Raises:
            Refused: signing in, or what the command line asks for, is refused; or nobody answers.
        """
        founded = await self._account.sign_in(name)
        key = "guest" if self._account.guest else "founded" if founded else "signed_in"
        self._say(key, name=self._account.player.name, profile=self._profile)
        presence = self._account.presence
        answer = await self._account.call(presence.GetWhereabouts, GetWhereaboutsRequest())
        begun = self._resume(answer.whereabouts)
        fresh, here = self._account.keep_fresh(), stay(self._account, self._queue)
        async with self._background(fresh), self._background(here):
            if not begun:
                self._arrive(await fulfil(self._account, wish))
                if wish.way == "create" and self._room is not None:
                    self._terminal.show(invitation(self._room, self._account.language))
            async with self._terminal.reading():
                await self._look()
                while not self._done:
                    await self._happened(await self._queue.get())
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    def _resume(self, where: Whereabouts) -> bool:
        """Go on where the player was; False when they were nowhere."""
        if where.table_id:
            self._say("resumed_table")
        elif where.ticket_id:
            self._say("resumed_ticket")
        elif where.room_id:
            self._say("resumed_room")
            if where.room.code and where.room.state == RoomState.ROOM_STATE_OPEN:
                self._terminal.show(invitation(where.room, self._account.language))
        else:
            return False
        self._locate(where)
        return True

    def _arrive(self, at: Room | Ticket) -> None:
        if isinstance(at, Room):
            self._enter(at)
        else:
            self._ticket_id, self._waiting = at.ticket_id, at.waiting
            self._say("searching", waiting=at.waiting)
            self._say("bots_after" if at.bots_after_s else "no_bots_after", seconds=at.bots_after_s)

    @asynccontextmanager
    async def _background(self, work: Coroutine[Any, Any, None]) -> Any:
        task = asyncio.create_task(work)
        task.add_done_callback(self._background_ended)
        try:
            yield
        finally:
            ended = task.done()
            task.cancel()
            (outcome,) = await asyncio.gather(task, return_exceptions=True)
        if ended and isinstance(outcome, BaseException):
            raise outcome

    def _background_ended(self, task: asyncio.Task[None]) -> None:
        """Without its streams a player is not there: end the loop, so that what went wrong is said."""
        if not task.cancelled() and task.exception() is not None:
            self._done = True
            self._queue.put_nowait(Line(""))

    # ------------------------------------------------------------------------------------- what happens

    async def _happened(self, happening: Happening) -> None:
        match happening:
            case Line(None):
                self._no_more_lines = True
                if self._terminal.interactive:
                    self._stop()
            case Line(str() as text):
                self._lines.append(text)
            case Trouble(lost) if lost != self._lost:
                self._lost = lost
                self._say("lost" if lost else "back")
            case Stayed(message):
                await self._stayed(message)
            case Watched(table_id, message) if self._seat is not None and table_id == self._seat.table_id:
                was_over = self._seat.over
                await self._seat.told(message)
                if self._seat.over and not was_over:
                    self._table_over()
            case WatchOver(table_id, refused) if self._seat is not None and table_id == self._seat.table_id:
                if refused is not None:
                    self._terminal.show(refusal(refused, self._account.language))
                if not self._seat.over or table_id not in self._finished:
                    self._table_over()
        await self._look()

    async def _look(self) -> None:
        """Once all that has come is known: show what is to be decided, and take what was typed."""
        if self._seat is not None and self._queue.empty() and not self._asked:
            try:
                await self._seat.look()
            except Refused as refused:
                self._terminal.show(refusal(refused, self._account.language))
        while self._lines and not self._done and (self._terminal.interactive or self._takes(self._lines[0])):
            await self._typed(self._lines.popleft())
        if self._no_more_lines and not self._terminal.interactive and self._idle():
            self._stop()  # what is left of the input, if anything, is for a place that nobody will come to

    async def _stayed(self, message: StayResponse) -> None:
        match message.WhichOneof("content"):
            case "whereabouts":
                self._locate(message.whereabouts)
            case "room":
                self._enter(message.room)
            case "room_gone":
                self._gone(message.room_gone)
            case "said":
                speaker = self._names.get(message.said.player_id, "?")
                self._terminal.show(await self._talk.heard(message.said, speaker))
            case "ticket":
                self._ticket_id = message.ticket.ticket_id
                if self._waiting != message.ticket.waiting:
                    self._waiting = message.ticket.waiting
                    self._say("searching", waiting=self._waiting)

    def _locate(self, where: Whereabouts) -> None:
        """Where the player is, as the lobby says."""
        if self._ticket_id and not where.ticket_id and where.room_id:
            self._say("found")
        self._ticket_id = where.ticket_id
        if where.HasField("room"):
            self._enter(where.room)
        if where.table_id and where.table_version:
            self._sit(where.table_id)

    def _enter(self, room: Room) -> None:
        """The room as it is now."""
        known = self._room
        if known is not None and room.room_id == known.room_id and room.version < known.version:
            return
        self._room = room
        self._names.update(names_of(room))
        if room.state == RoomState.ROOM_STATE_ENDED:
            self._gone(room.room_id)
            return
        if room.state == RoomState.ROOM_STATE_PLAYING:
            self._sit(room.table_id)
        elif room.state == RoomState.ROOM_STATE_AFTER and (self._seat is None or self._seat.over):
            me = self._account.player.player_id
            if not any(member.again for member in room.members if member.player_id == me):
                self._ask_again()
        elif room.state == RoomState.ROOM_STATE_OPEN:
            self._show_room(room)
        elif room.state == RoomState.ROOM_STATE_STARTING and self._room_shown != ("starting", room.table_id):
            self._room_shown = ("starting", room.table_id)
            self._asked = ""
            self._say("starting")

    def _show_room(self, room: Room) -> None:
        shown = (str(room.seats), str(room.members), room.host_id, room.code, room.failed)
        if shown == self._room_shown:
            return
        if self._room_shown and room.code != self._room_shown[3:4][0]:
            self._terminal.show(invitation(room, self._account.language))
        explained = self._room_shown[2:3] != (room.host_id,)
        self._room_shown = shown
        me, language = self._account.player.player_id, self._account.language
        self._terminal.show(room_lines(room, me, language, explained=explained))
        if room.failed:
            self._say("start_failed", reason=room.failed)

    def _gone(self, room_id: str) -> None:
        if self._room is None or room_id != self._room.room_id:
            return
        ended = self._room.state in (RoomState.ROOM_STATE_ENDED, RoomState.ROOM_STATE_AFTER)
        self._say("room_ended" if ended else "kicked")
        self._room = None
        if self._seat is None or self._seat.over:
            self._done = True

    def _sit(self, table_id: str) -> None:
        """Begin to follow a table."""
        if table_id in self._finished or (self._seat is not None and self._seat.table_id == table_id):
            return
        if self._watching is not None:
            self._watching.cancel()
        self._seat = Seat(self._account, table_id, self._names, self._terminal.show)
        self._seat.auto = self._auto
        self._asked = ""
        self._watching = asyncio.create_task(watch(self._account, self._queue, table_id))
        self._watching.add_done_callback(self._background_ended)

    def _table_over(self) -> None:
        assert self._seat is not None, "a table that is over was followed"
        self._finished.add(self._seat.table_id)
        if self._room is None:
            self._done = True
        else:
            self._ask_again()

    def _ask_again(self) -> None:
        if self._asked != "again":
            self._asked = "again"
            self._say("ask_again")

    # --------------------------------------------------------------------------------------- what is typed

    def _takes(self, line: str) -> bool:
        """Whether a piped line is for where the player is now; else it waits for its time."""
        try:
            word = read(line)
        except Mistyped:
            return True
        if self._asked:
            return word.verb in _YES_OR_NO or word.verb in _ANYWHERE
        if word.verb in _ANYWHERE:
            return True
        if self._seat is not None and not self._seat.over:
            return word.verb not in VERBS and self._seat.asks()
        return word.verb in VERBS and self._room is not None and self._room.state == RoomState.ROOM_STATE_OPEN

    def _idle(self) -> bool:
        """Whether nothing would go on without a word from the player."""
        if self._asked:
            return True
        if self._seat is not None and not self._seat.over:
            return self._seat.asks() and not self._seat.auto
        return self._room is not None and self._room.state == RoomState.ROOM_STATE_OPEN and self._am_host

    @property
    def _am_host(self) -> bool:
        return self._room is not None and self._room.host_id == self._account.player.player_id

    async def _typed(self, line: str) -> None:
        try:
            word = read(line)
            if self._asked and word.verb in _YES_OR_NO:
                await self._answered(word)
            elif word.verb in _ANYWHERE:
                await self._anywhere(word)
            elif self._seat is not None and not self._seat.over:
                await self._seat.act(word)
                await self._seat.look()
            elif self._room is not None and word.verb == "leave":
                await self._go()
            elif self._room is not None and word.verb in VERBS:
                await self._in_room(self._room, word)
            elif word.verb != "enter":
                self._say("search_help" if self._ticket_id else "not_now")
        except Mistyped as wrong:
            self._say("mistyped", text=str(wrong))
        except NoSuchSeat:
            self._say("no_seat", usage=_SEAT_USAGE)
        except NoSuchName as wrong:
            self._say("no_member", name=str(wrong))
        except Refused as refused:
            self._terminal.show(refusal(refused, self._account.language))

    async def _in_room(self, room: Room, word: Word) -> None:
        if word.verb == "rules":
            self._terminal.show(await rules_of(self._account, room))
            return
        after = await obey(self._account, room, word)
        if after.version == room.version:
            self._room_shown = (
                *self._room_shown[:4],
                None,
            )  # nothing has changed; what was asked for is shown again
        self._enter(after)

    async def _anywhere(self, word: Word) -> None:
        told = " ".join(word.rest)
        match word.verb:
            case "help":
                self._say(self._help_key())
            case "auto":
                self._auto = not (self._auto if self._seat is None else self._seat.auto)
                self._say("auto_me_on" if self._auto else "auto_me_off")
                if self._seat is not None:
                    await self._seat.set_auto(self._auto)
                await self._look()
            case "say":
                self._terminal.show(await self._talk.say(told))
            case "mute" if self._room is not None:
                player_id = member_named(self._room, told)
                self._terminal.show(await self._talk.mute(player_id, self._names[player_id]))
            case "quit" if self._seat is not None and not self._seat.over:
                self._asked = "quit"
                self._say("quit_escape")
            case "quit":
                await self._go()
            case _:
                self._say("not_now")

    def _help_key(self) -> str:
        if self._seat is not None and not self._seat.over:
            return "help"
        if self._ticket_id:
            return "search_help"
        if self._room is None:
            return "help"
        return "host_help" if self._am_host else "room_help"

    async def _answered(self, word: Word) -> None:
        """An answer to the question that is open."""
        question, self._asked = self._asked, ""
        yes = word.verb in {"yes", "again"}
        if question == "quit":
            if yes and self._seat is not None:
                await self._seat.leave()
                self._say("left_table")
                self._done = True
        elif yes:
            await self._play_again()
        else:
            await self._go()

    async def _play_again(self) -> None:
        assert self._room is not None, "the question is asked in a room"
        request = PlayAgainRequest(room_id=self._room.room_id, again=True)
        room = (await self._account.call_after_match(self._account.rooms.PlayAgain, request)).room
        if room.state == RoomState.ROOM_STATE_AFTER:
            self._say("wait_again")
            self._room = room
        else:
            self._enter(room)

    async def _go(self) -> None:
        """Leave the search or the room, and end."""
        if self._ticket_id:
            cancel = self._account.matches.CancelTicket
            await self._account.call(cancel, CancelTicketRequest(ticket_id=self._ticket_id))
        elif self._room is not None:
            await self._account.call_after_match(
                self._account.rooms.LeaveRoom, LeaveRoomRequest(room_id=self._room.room_id)
            )
        self._say("bye")
        self._done = True

    def _stop(self) -> None:
        self._say("leaving_guest" if self._account.guest else "leaving")
        self._done = True

    def _say(self, key: str, **values: object) -> None:
        self._terminal.show(paragraph(tell(self._account.language, key, **values)))

    def _below(self) -> str:
        if self._seat is not None and not self._seat.over:
            return self._seat.below()
        return f" {self._room.code}" if self._room is not None else ""
