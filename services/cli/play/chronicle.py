"""What happens at a table, line by line, as a seated player reads it. Pure: events in, lines out."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from rich.cells import cell_len
from rich.text import Text

from services.cli.columns import screen_width
from services.cli.play.cards import Faces
from services.cli.play.model import Game
from services.cli.play.texts import tell
from services.game.wire import cards_from_wire, level_from_wire, trump_from_wire
from services.pb.event.v1 import event_pb2 as pb
from services.pb.event.v1.event_pb2 import CloseReason, Difficulty
from services.rules.shown import Language, rank_text

PLACES: Final = ("you", "right", "partner", "left")
"""Seats as seen from the player, in turn order: anticlockwise, so the next one sits to the right."""
_NAME_WIDTH: Final = 14
"""Cells of the column of names, unless one at the table is longer."""


def who(game: Game, names: Mapping[str, str], seat: int, language: Language) -> str:
    """What a seat is called: "you", a person by name, a bot by its place."""
    place = tell(language, PLACES[(seat - game.me) % 4])
    held = game.view.seats[seat]
    if seat == game.me:
        return place
    if held.difficulty != Difficulty.DIFFICULTY_UNSPECIFIED:
        return tell(language, "bot", place=place)
    return names.get(held.player_id, "") or place


def heading(title: str) -> Text:
    """A line across the screen with a title."""
    return Text(f"── {title} " + "─" * max(0, screen_width() - cell_len(title) - 4), style="cyan")


class Chronicle:
    """Tells the events of one table.

    Attributes:
        game: the table as it is after the events that are told.
        faces: how its cards look now.
    """

    def __init__(self, game: Game, names: Mapping[str, str], language: Language) -> None:
        self.game = game
        self.language: Language = language
        self._names = names
        self._last_level = game.level
        self.faces = Faces(game.rules, game.level, game.trump, language)

    def tell(self, event: pb.Event) -> list[Text]:
        """The lines of an event; many events have none."""
        kind = str(event.WhichOneof("kind"))
        teller: Callable[[Any], list[Text]] | None = getattr(self, f"_on_{kind}", None)
        return [] if teller is None else teller(getattr(event, kind))

    def opening(self) -> list[Text]:
        """Who sits where, and how the deal stands: for who has just come."""
        view = self.game.view
        lines = [heading(self._say("table_title", preset=view.preset))]
        seats = [self._labelled((self.game.me + place) % 4) for place in range(4)]
        lines.append(Text("  " + " · ".join(seats)))
        if view.level:
            lines += self._deal_heading(view.deal, view.level, view.levels)
            if view.trump:
                lines.append(
                    self._line("trump_is", trump=self.faces.trump_text(), who=self.named(view.declarer))
                )
            elif view.HasField("standing"):
                lines += self._on_declared(view.standing)
        for play in view.trick:
            lines.append(self._play_line(play.seat, self.faces.text(cards_from_wire(play.cards))))
        return lines

    def last_trick(self) -> list[Text]:
        """The trick before the present one."""
        view = self.game.view
        if not view.last_trick:
            return [self._line("no_last")]
        return [
            self._play_line(
                play.seat, self.faces.text(cards_from_wire(play.cards)), play.seat == view.last_winner
            )
            for play in view.last_trick
        ]

    def who(self, seat: int) -> str:
        """What a seat is called."""
        return who(self.game, self._names, seat, self.language)

    def named(self, seat: int) -> str:
        """What a seat is called within a sentence."""
        return self._say("you_within") if seat == self.game.me else self.who(seat)

    def _labelled(self, seat: int) -> str:
        place, name = tell(self.language, PLACES[(seat - self.game.me) % 4]), self.who(seat)
        if seat == self.game.me:
            name = self._names.get(self.game.view.seats[seat].player_id, "")
        return f"{place} {name}".strip() if name != place and place not in name else name

    def _say(self, key: str, **values: object) -> str:
        return tell(self.language, key, **values)

    def _line(self, key: str, style: str = "", **values: object) -> Text:
        return Text("  " + self._say(key, **values), style=style)

    def _with_cards(self, key: str, numbers: Any, style: str = "", **values: object) -> Text:
        """A line with cards in it, in their own colours."""
        before, _, after = self._say(key, cards="\0", **values).partition("\0")
        line = Text("  ").append(before, style).append_text(self.faces.text(cards_from_wire(numbers)))
        return line.append(after, style)

    def _levels(self, levels: Any) -> dict[str, str]:
        side = self.game.me % 2
        ours, theirs = (rank_text(level_from_wire(levels[each])) for each in (side, 1 - side))
        return {"ours": ours, "theirs": theirs}

    def _deal_heading(self, deal: int, level: int, levels: Any) -> list[Text]:
        title = self._say(
            "deal_title", deal=deal, level=rank_text(level_from_wire(level)), **self._levels(levels)
        )
        return [Text(""), heading(title)]

    def _play_line(self, seat: int, cards: Text, winner: bool = False) -> Text:
        line = Text(f"  {'→' if winner else ' '} ")
        line.append(self.who(seat), "reverse" if seat == self.game.me else "bold")
        line.append(" " * (self._name_width() - cell_len(self.who(seat))))
        return line.append_text(cards)

    def _name_width(self) -> int:
        return max(_NAME_WIDTH, *(cell_len(self.who(seat)) + 1 for seat in range(len(PLACES))))

    # One method an event that a player wants to read.

    def _on_seat_left(self, event: pb.SeatLeft) -> list[Text]:
        return [self._line("escaped" if event.escaped else "left_seat", who=self.named(event.seat))]

    def _on_deal_started(self, event: pb.DealStarted) -> list[Text]:
        self._last_level = level_from_wire(event.level)
        self.faces = Faces(self.game.rules, self._last_level, None, self.language)
        lines = self._deal_heading(event.deal, event.level, event.levels)
        if event.HasField("declarer"):
            lines.append(self._line("holder", who=self.named(event.declarer)))
        return [*lines, self._line("draw_first", who=self.named(event.first_drawer))]

    def _on_declared(self, event: pb.Declared) -> list[Text]:
        if not event.cards:
            return [self._line("declared_sealed", who=self.named(event.seat), count=event.count)]
        return [self._with_cards("declared", event.cards, "bold", who=self.named(event.seat))]

    def _on_declaring_closed(self, event: pb.DeclaringClosed) -> list[Text]:
        lines = [self._with_cards("declared", each.cards, who=self.named(each.seat)) for each in event.opened]
        self.faces = Faces(self.game.rules, self._last_level, trump_from_wire(event.trump), self.language)
        if event.turned_card:
            card = self.faces.text(cards_from_wire([event.turned_card])).plain
            lines.append(self._line("turned", place=event.turned_place, card=card))
        who_declares = self.named(event.declarer)
        return [*lines, self._line("trump_is", "bold", trump=self.faces.trump_text(), who=who_declares)]

    def _on_kitty_taken(self, event: pb.KittyTaken) -> list[Text]:
        line = self._line("kitty_taken", who=self.named(event.seat))
        if event.cards:
            line.append(self._say("colon")).append_text(self.faces.text(cards_from_wire(event.cards)))
        return [line]

    def _on_buried(self, event: pb.Buried) -> list[Text]:
        line = self._line("buried", who=self.named(event.seat))
        if event.cards:
            line.append(self._say("colon")).append_text(self.faces.text(cards_from_wire(event.cards)))
        return [line, Text("")]

    def _on_mutiny_called(self, event: pb.MutinyCalled) -> list[Text]:
        return [self._with_cards("mutinied", event.cards, "bold", who=self.named(event.seat))]

    def _on_countered(self, event: pb.Countered) -> list[Text]:
        self.faces = Faces(self.game.rules, self._last_level, trump_from_wire(event.trump), self.language)
        trump = self.faces.trump_text()
        return [self._with_cards("countered", event.cards, "bold", who=self.named(event.seat), trump=trump)]

    def _on_turn_expired(self, event: pb.TurnExpired) -> list[Text]:
        if self.game.view.seats[event.seat].auto_play:
            return []  # the server's own turns end so
        return [self._line("expired", "italic", who=self.named(event.seat))]

    def _on_auto_play_set(self, event: pb.AutoPlaySet) -> list[Text]:
        if event.seat == self.game.me:
            key = "auto_me_off" if not event.on else "auto_me_on" if event.by_player else "auto_me_away"
            return [self._line(key, "italic")]
        return [self._line("auto_on" if event.on else "auto_off", "italic", who=self.named(event.seat))]

    def _on_time_given(self, _: pb.TimeGiven) -> list[Text]:
        return [self._line("time_given", "italic")]

    def _on_throw_refused(self, event: pb.ThrowRefused) -> list[Text]:
        return [self._with_cards("throw_refused", event.cards, "italic", who=self.named(event.seat))]

    def _on_cards_played(self, event: pb.CardsPlayed) -> list[Text]:
        shown = self.faces.text(cards_from_wire(event.cards))
        if event.attempted:
            attempted = self.faces.text(cards_from_wire(event.attempted)).plain
            told = [self._say("throw_failed", cards=attempted)]
            if event.blocked_by:
                names = self._say("comma").join(self.named(seat) for seat in event.blocked_by)
                told.append(self._say("blocked_by", who=names))
            shown.append(self._say("remark", told=self._say("comma").join(told)), "italic")
        return [self._play_line(event.seat, shown)]

    def _on_trick_taken(self, event: pb.TrickTaken) -> list[Text]:
        told = self._say(
            "trick_won", who=self.named(event.seat), points=event.points, total=event.attackers_points
        )
        return [Text(f"  → {told}", style="dim"), Text("")]

    def _on_deal_scored(self, event: pb.DealScored) -> list[Text]:
        lines = []
        if event.kitty:
            line = self._with_cards("kitty_points", event.kitty, points=event.kitty_points)
            if event.multiplier:
                line.append(" " + self._say("kitty_times", multiplier=event.multiplier))
            lines.append(line)
        ours = event.winning_side == self.game.me % 2
        gain = self._say("gain_up", levels=event.nominal_levels) if event.nominal_levels else ""
        told = self._line(
            "scored",
            "bold",
            points=event.attackers_points,
            side=self._say("our_side" if ours else "their_side"),
            gain=gain or self._say("gain_takes"),
            **self._levels(event.levels),
        )
        return [*lines, told]

    def _on_deal_voided(self, _: pb.DealVoided) -> list[Text]:
        return [self._line("voided", "bold")]

    def _on_match_ended(self, event: pb.MatchEnded) -> list[Text]:
        return [Text(""), self._line(self._result_key(event), "bold")]

    def _result_key(self, event: pb.MatchEnded) -> str:
        if not event.HasField("winning_side"):
            return "match_drawn"
        return "match_won" if event.winning_side == self.game.me % 2 else "match_lost"

    def result(self) -> list[Text]:
        """How the match ended, for who has just come to a table that is over."""
        return self._on_match_ended(self.game.view.result) if self.game.view.HasField("result") else []

    def _on_table_closed(self, event: pb.TableClosed) -> list[Text]:
        name = CloseReason.Name(event.reason).removeprefix("CLOSE_REASON_").lower()
        return [self._line("closed", why=self._say(f"close_{name}"))]
