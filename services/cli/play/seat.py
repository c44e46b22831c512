"""A player at a table: what comes is folded and told, what is typed becomes a command."""

import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from rich.text import Text

from services.cli.play.account import Account, Refused
from services.cli.play.chronicle import Chronicle
from services.cli.play.model import DEALT, Game, Unknown, begin, fold
from services.cli.play.offers import declarations
from services.cli.play.screen import below, choices, declaring, listed, paragraph
from services.cli.play.sheets import sheet_lines
from services.cli.play.texts import tell
from services.cli.play.words import Word
from services.game.wire import cards_from_wire, cards_to_wire, rules_from_wire
from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1.view_pb2 import (
    PHASE_BURY,
    PHASE_CLOSED,
    PHASE_COUNTER,
    PHASE_DECLARING,
    PHASE_OVER,
    PHASE_SCORED,
    PHASE_SEATING,
    PHASE_TRICKS,
    TableView,
    Update,
)

_BETWEEN: Final = (PHASE_SEATING, PHASE_SCORED)
_IN_MATCH: Final = DEALT | {PHASE_SCORED}
"""The phases in which a seat can be handed over to the server."""


class Seat:
    """One table, from this player's side.

    Attributes:
        table_id: which.
        game: the table as it is known; None before the first snapshot.
        over: the match has ended, or this player's part in it.
        auto: the server plays for the player, or shall from the first deal on.
    """

    def __init__(
        self,
        account: Account,
        table_id: str,
        names: Mapping[str, str],
        show: Callable[[Iterable[Text]], None],
    ) -> None:
        self.table_id = table_id
        self.game: Game | None = None
        self.over = False
        self.auto = False
        self._account = account
        self._names = names
        self._show = show
        self._chronicle: Chronicle | None = None
        self._plays: list[bytes] = []
        self._complete = True
        self._accepted = 0
        """The version of this player's last command; until it is seen, nothing more is to be decided."""
        self._shown: tuple[object, ...] = ()
        """What the last choices shown were for."""
        self._handed_over = False
        """What was asked of the server last: to play, or not to."""
        self._ahead_ms = 0.0
        """How far the server's clock is ahead of ours."""

    # ----------------------------------------------------------------------------------------- what comes in

    async def told(self, message: pb.WatchResponse) -> None:
        """One message of the watch.

        Raises:
            Refused: the rules or a view could not be had.
        """
        if message.HasField("snapshot"):
            await self._begin(message.snapshot)
        elif message.HasField("update"):
            await self._update(message.update)
        elif message.HasField("heartbeat"):
            self._ahead_ms = message.heartbeat.server_now_ms - time.time() * 1000

    async def _begin(self, view: TableView) -> None:
        if self.game is None:
            request = pb.GetRulesRequest(table_id=self.table_id)
            rules = rules_from_wire((await self._account.call(self._account.table.GetRules, request)).rules)
        else:
            rules = self.game.rules
        self.game = begin(view, rules)
        self._ahead_ms = view.server_now_ms - time.time() * 1000
        self._chronicle = Chronicle(self.game, self._names, self._account.language)
        self._show(self._chronicle.opening())
        self._shown = ()
        if view.phase in (PHASE_OVER, PHASE_CLOSED):
            self._show(self._chronicle.result())
            self.over = True
        elif view.seats[self.game.me].auto_play and not self.auto:
            self.auto = self._handed_over = True
            self._tell("auto_me_on")

    async def _update(self, update: Update) -> None:
        if self.game is None or self._chronicle is None or update.version < self.game.view.version:
            return
        self._ahead_ms = update.server_now_ms - time.time() * 1000
        try:
            self.game = fold(self.game, update)
        except Unknown:  # a newer server: its view says what became of it
            request = pb.GetViewRequest(table_id=self.table_id, min_version=update.version)
            await self._begin((await self._account.call(self._account.table.GetView, request)).view)
            return
        self._chronicle.game = self.game
        for event in update.events:
            mine = event.HasField("auto_play_set") and event.auto_play_set.seat == self.game.me
            if not (mine and event.auto_play_set.on == self.auto):  # else it was said when it was asked for
                self._show(self._chronicle.tell(event))
            if mine:
                self.auto = self._handed_over = event.auto_play_set.on
            if event.HasField("seat_left") and event.seat_left.escaped:
                self.over = self.over or event.seat_left.seat == self.game.me
            self.over = self.over or event.HasField("match_ended") or event.HasField("table_closed")

    async def look(self) -> None:
        """Show what there is to decide, once; or let the server decide, where it shall play.

        Raises:
            Refused: the service would not say what may be played.
        """
        game = self.game
        if game is None or self.over or self._chronicle is None:
            return
        if self.auto and not self._handed_over and game.view.phase in _IN_MATCH:
            self._handed_over = True
            await self._send("SetAutoPlay", on=True)
        decision = self._decision(game)
        if decision == self._shown:
            return
        asked = game.view.phase == PHASE_TRICKS and game.my_turn and not self.auto
        if asked and not await self._ask_plays(game):
            return
        self._shown = decision
        if self.asks() and game.view.phase == PHASE_SEATING:  # who came to play is ready
            await self._send("Ready", client_seed=os.urandom(16))
        elif self.auto:
            return
        elif game.view.phase != PHASE_DECLARING or decision[1:] != (False, ()):
            self._show(choices(self._chronicle, self._plays, complete=self._complete))

    def _decision(self, game: Game) -> tuple[object, ...]:
        """What is to be decided now: equal while nothing new is to be shown."""
        view = game.view
        if not game.my_turn or view.version < self._accepted:
            return self._shown if game.my_turn else ()
        if view.phase == PHASE_DECLARING:
            return view.deal, game.all_drawn, tuple(declarations(game))
        if view.phase in _BETWEEN:
            return view.phase, view.deal
        return view.turn_version, view.phase, self.auto

    async def _ask_plays(self, game: Game) -> bool:
        request = pb.LegalPlaysRequest(table_id=self.table_id, cap=256)
        answer = await self._account.call(self._account.table.LegalPlays, request)
        if not answer.plays or answer.version < game.view.turn_version:
            return False  # the table has moved on, or this replica has not: an update follows
        self._plays = [cards_from_wire(play.cards) for play in answer.plays]
        self._complete = answer.complete
        return True

    async def set_auto(self, on: bool) -> None:
        """Let the server play, or no longer.

        Raises:
            Refused: the connection is lost for good.
        """
        self.auto = on
        self._shown = ()  # what is to be decided now, is to be looked at again
        if not on and self._handed_over:
            self._handed_over = False
            await self._send("SetAutoPlay", on=False)

    def asks(self) -> bool:
        """Whether the table waits for this player, as far as is known."""
        game = self.game
        if game is None or self.over or not game.my_turn or game.view.version < self._accepted:
            return False
        return game.view.phase != PHASE_DECLARING or game.all_drawn

    def below(self) -> str:
        """The line below the prompt."""
        if self.game is None or self._chronicle is None:
            return ""
        deadline = self.game.view.deadline_ms
        left = (deadline - self._ahead_ms) / 1000 - time.time() if deadline else None
        return below(self._chronicle, left)

    # --------------------------------------------------------------------------------------- what is typed

    async def act(self, word: Word) -> None:
        """Do what was typed; a refusal is explained.

        Raises:
            Refused: the connection is lost for good.
        """
        game = self.game
        if game is None or self._chronicle is None:
            return
        language = self._account.language
        match word.verb:
            case "hand":
                hand = declaring(self._chronicle) if game.view.phase == PHASE_DECLARING else None
                self._show(hand or self._chronicle.faces.hand(game.hand))
            case "last":
                self._show(self._chronicle.last_trick())
            case "more":
                self._show(listed(self._chronicle.faces, self._plays))
            case "rules":
                request = pb.GetRulesRequest(table_id=self.table_id, language=language)
                answer = await self._account.call(self._account.table.GetRules, request)
                self._show(sheet_lines(answer.sheet))
            case _:
                await self._command(game, word)

    async def _command(self, game: Game, word: Word) -> None:
        phase, verb, cards = game.view.phase, word.verb, word.cards
        if verb == "number" and phase == PHASE_TRICKS:
            if not 1 <= word.number <= len(self._plays):
                self._tell("no_such_play", number=word.number)
                return
            verb, cards = "cards", self._plays[word.number - 1]
        wire = cards_to_wire(cards)
        match verb, phase:
            case (("enter" | "ready"), _) if phase in _BETWEEN:
                await self._send("Ready", client_seed=os.urandom(16))
            case "enter", _:
                self._show(choices(self._chronicle, self._plays, complete=self._complete))  # type: ignore[arg-type]
            case "pass", _:
                await self._send("Pass")
            case "mutiny", _:
                await self._send("CallMutiny")
            case ("declare", _) | ("cards", _) if phase == PHASE_DECLARING:
                await self._send("Declare", cards=wire)
            case (("counter" | "cards"), _) if phase == PHASE_COUNTER:
                await self._send("Counter", cards=wire)
            case (("bury" | "cards"), _) if phase == PHASE_BURY:
                await self._send("Bury", cards=wire)
            case "cards", _:
                await self._send("Play", cards=wire)
            case _:
                self._tell("not_now")

    def _tell(self, key: str, **values: object) -> None:
        self._show(paragraph(tell(self._account.language, key, **values)))

    async def leave(self) -> None:
        """Leave the table for good; in mid-match it is an escape.

        Raises:
            Refused: it could not be.
        """
        await self._call("Leave")
        self.over = True

    async def _send(self, method: str, **fields: Any) -> None:
        """One command; a refusal is explained and changes nothing."""
        try:
            self._accepted = (await self._call(method, **fields)).receipt.version
        except Refused as refused:
            if not refused.reason:
                raise
            if method == "SetAutoPlay" and refused.reason == "ALREADY_DONE":
                return
            self._show(refusal(refused, self._account.language))
            self._shown = () if refused.reason == "STALE_VERSION" else self._shown

    async def _call(self, method: str, **fields: Any) -> Any:
        assert self.game is not None, "commands follow a snapshot"
        context = pb.CommandContext(
            table_id=self.table_id, command_id=str(uuid.uuid4()), version=self.game.view.version
        )
        request = getattr(pb, f"{method}Request")(context=context, **fields)
        return await self._account.call(getattr(self._account.table, method), request)


def refusal(refused: Refused, language: Any) -> list[Text]:
    """Why something was refused, and what was owed, for a person."""
    lines = paragraph(refused.text)
    if refused.owed and refused.owed not in refused.text:
        lines += paragraph(tell(language, "owed", owed=refused.owed))
    return [Text("  ✗").append_text(line[1:]) for line in lines[:1]] + lines[1:]
