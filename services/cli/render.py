"""A match as a person enjoys reading it: hands, declarations, tricks, points and levels, at 80 columns.

The printer takes events with their secrets open (from a log with its keys, or put together from four seats'
streams) and writes lines; it asks no clock, so that equal matches print equal text.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from engine_ext import Order
from engine_ext.codes import BIG_JOKER, LITTLE_JOKER, NO_TRUMP, TRUMP
from services.game.wire import cards_from_wire, level_from_wire, trump_from_wire
from services.pb.event.v1.event_pb2 import (
    Buried,
    CardsPlayed,
    Countered,
    DealScored,
    DealStarted,
    DealVoided,
    Declared,
    DeclaringClosed,
    Event,
    KittyTaken,
    MatchEnded,
    MutinyCalled,
    TimeGiven,
    TrickTaken,
    TurnExpired,
)
from services.rules.cards import RANK_LETTERS
from services.rules.options import RuleSet

SEAT_NAMES: Final = ("West", "South", "East", "North")
"""Seats 0..3 (左下右上); turn order is anticlockwise."""
SIDE_NAMES: Final = ("West–East", "South–North")
SUIT_MARKS: Final = "♠♥♣♦"
SUIT_STYLES: Final = ("bold", "bold red", "bold green", "bold blue")
TRUMP_NAMES: Final = ("spades ♠", "hearts ♥", "clubs ♣", "diamonds ♦", "no-trump")
COLOUR_NAMES: Final = {0: "black ♠♣", 1: "red ♥♦", NO_TRUMP: "no-trump"}
_WIDE_PLAY: Final = 3
"""Plays of more cards than this get lines of their own."""

_PLAY_WIDTH: Final = 13


def level_text(level: int) -> str:
    """A level 0..12 as people write it."""
    return RANK_LETTERS[level].replace("T", "10")


class MatchPrinter:
    """Prints one match, event by event."""

    def __init__(self, console: Console, rules: RuleSet, players: Sequence[str]) -> None:
        self._console = console
        self._rules = rules
        self._players = players
        self._hands: list[bytearray] = [bytearray() for _ in SEAT_NAMES]
        self._order: Order | None = None
        self._level = 0
        self._declarer: int | None = None
        self._trick: list[tuple[int, bytes, bytes, Sequence[int]]] = []
        self._tricks = 0
        self._kitty = b""
        self.scores: list[DealScored] = []
        """Every deal scored so far."""
        self.result: MatchEnded | None = None
        """The match's result, once it is there."""

    def heading(self, table_id: str) -> None:
        """Print who plays what, where."""
        self._line(Text(f"升级 Shengji · {self._rules.preset} · {table_id}", style="bold"))
        for side, name in enumerate(SIDE_NAMES):
            seats = " and ".join(f"{SEAT_NAMES[s]} ({self._players[s]})" for s in (side, side + 2))
            self._line(Text(f"  {name}: {seats}"))
        self._line(Text("  BJ, LJ: big, little joker; → taker of the trick +points (attackers' total)"))

    def draw(self, seat: int, cards: bytes) -> None:
        """Take note of cards that a seat drew."""
        self._hands[seat] += cards

    def events(self, events: Iterable[Event]) -> None:
        """Print events in order."""
        for event in events:
            kind = str(event.WhichOneof("kind"))
            printer = getattr(self, f"_on_{kind}", None)
            if printer is not None:
                printer(getattr(event, kind))

    def summary(self) -> None:
        """Print a table of the deals and the result."""
        self._rule("Summary")
        for score in self.scores:
            side = SIDE_NAMES[score.winning_side]
            captured = f" (kitty {score.kitty_points} × {score.multiplier})" if score.multiplier else ""
            gain = f"+{score.nominal_levels}" if score.nominal_levels else "take over"
            levels = " : ".join(level_text(level_from_wire(level)) for level in score.levels)
            self._line(
                Text(f"  deal {score.deal:>2}  attackers {score.attackers_points:>3}{captured:<16}")
                + Text(f"  {side:<11} {gain:<10}", style="bold")
                + Text(f" levels {levels}")
            )
        if self.result is None:
            self._line(Text("  The match goes on."))
        elif self.result.HasField("winning_side"):
            self._line(Text(f"  {SIDE_NAMES[self.result.winning_side]} win the match.", style="bold"))
        else:
            self._line(Text("  The match is a draw.", style="bold"))

    # One method an event that a reader wants to see.

    def _on_deal_started(self, event: DealStarted) -> None:
        self._order, self._declarer, self._trick, self._tricks, self._kitty = None, None, [], 0, b""
        self._level = level_from_wire(event.level)
        for seat, hand in enumerate(self._hands):
            hand[:] = cards_from_wire(event.hands[seat].cards) if event.hands else b""
        levels = " : ".join(level_text(level_from_wire(level)) for level in event.levels)
        self._rule(f"Deal {event.deal} · playing {level_text(self._level)} · levels {levels}")
        if event.HasField("declarer"):
            self._declarer = event.declarer
            self._line(Text(f"  {SEAT_NAMES[event.declarer]} holds the declarer's place."))

    def _on_declared(self, event: Declared) -> None:
        seat, cards = event.seat, cards_from_wire(event.cards)
        shown = self._cards(cards) if cards else Text(f"{event.count} cards, sealed")
        self._line(Text(f"  {SEAT_NAMES[seat]} declares ") + shown)

    def _on_declaring_closed(self, event: DeclaringClosed) -> None:
        trump = trump_from_wire(event.trump)
        self._order = self._rules.engine().order(self._level, trump)
        self._declarer = event.declarer
        line = Text(f"  Trump is {self._trump_name(trump)}", style="bold")
        line.append(f"; {SEAT_NAMES[event.declarer]} is declarer.")
        if event.turned_card:
            line.append(f" Nobody declared: kitty card {event.turned_place} is ")
            line.append(self._cards(cards_from_wire([event.turned_card])))
            line.append(".")
        self._line(line)
        for seat in range(len(SEAT_NAMES)):
            self._hand(seat)

    def _on_kitty_taken(self, event: KittyTaken) -> None:
        cards = cards_from_wire(event.cards)
        self._hands[event.seat] += cards
        self._line(Text(f"  {SEAT_NAMES[event.seat]} takes ") + self._cards(self._sorted(cards)))

    def _on_buried(self, event: Buried) -> None:
        self._kitty = cards_from_wire(event.cards)
        self._remove(event.seat, self._kitty)
        self._line(Text(f"  {SEAT_NAMES[event.seat]} buries ") + self._cards(self._sorted(self._kitty)))

    def _on_mutiny_called(self, event: MutinyCalled) -> None:
        shown = self._cards(self._sorted(cards_from_wire(event.cards)))
        self._line(Text(f"  {SEAT_NAMES[event.seat]} claims a redeal and shows ", style="bold") + shown)
        self._line(Text(f"  The deal is void; {SEAT_NAMES[event.declarer]} is dealt another as declarer."))

    def _on_countered(self, event: Countered) -> None:
        trump = trump_from_wire(event.trump)
        self._order = self._rules.engine().order(self._level, trump)
        shown = self._cards(cards_from_wire(event.cards))
        line = Text(f"  {SEAT_NAMES[event.seat]} counters with ", style="bold") + shown
        self._line(line + Text(f"; trump is {self._trump_name(trump)}.", style="bold"))

    def _on_turn_expired(self, event: TurnExpired) -> None:
        self._line(Text(f"  {SEAT_NAMES[event.seat]} ran out of time.", style="italic"))

    def _on_time_given(self, event: TimeGiven) -> None:
        self._line(Text("  The server was away and gives the time back.", style="italic"))

    def _on_cards_played(self, event: CardsPlayed) -> None:
        cards = cards_from_wire(event.cards)
        self._remove(event.seat, cards)
        self._trick.append((event.seat, cards, cards_from_wire(event.attempted), event.blocked_by))

    def _on_trick_taken(self, event: TrickTaken) -> None:
        self._tricks += 1
        head = Text(f"{self._tricks:>3} ", style="dim")
        tail = Text(f" {SEAT_NAMES[event.seat]}", style="bold")
        if event.points:
            tail.append(f" +{event.points}")
        tail.append(f"  ({event.attackers_points})", style="dim")
        wide = max(len(cards) for _, cards, _, _ in self._trick) > _WIDE_PLAY
        line = head
        for seat, cards, attempted, blocked_by in self._trick:
            shown = Text(f"{SEAT_NAMES[seat][0]} ", style="reverse" if seat == event.seat else "dim")
            shown.append(self._cards(self._sorted(cards)))
            if attempted:
                shown.append(" (throw of ")
                shown.append(self._cards(self._sorted(attempted)))
                blockers = " and ".join(SEAT_NAMES[blocker] for blocker in blocked_by)
                shown.append(f" failed, blocked by {blockers})" if blockers else " failed)")
            if wide or attempted:
                self._line(line + shown)
                line = Text("    ")
            else:
                shown.pad_right(max(1, _PLAY_WIDTH - shown.cell_len))
                line = line + shown
        self._line(line + Text("→") + tail)
        self._trick = []

    def _on_deal_scored(self, event: DealScored) -> None:
        self.scores.append(event)
        if event.kitty:
            shown = self._cards(self._sorted(cards_from_wire(event.kitty)))
            note = (
                f" × {event.multiplier} for the attackers" if event.multiplier else " stay with the declarers"
            )
            self._line(Text("  Kitty ") + shown + Text(f": {event.kitty_points} points{note}"))
        gain = f"advance {event.nominal_levels}" if event.nominal_levels else "take over"
        levels = " : ".join(level_text(level_from_wire(level)) for level in event.levels)
        self._line(
            Text(
                f"  Attackers {event.attackers_points}: {SIDE_NAMES[event.winning_side]} {gain}.",
                style="bold",
            )
            + Text(f" Levels {levels}.")
        )

    def _on_deal_voided(self, event: DealVoided) -> None:
        self._line(Text("  The deal is void.", style="bold"))

    def _on_match_ended(self, event: MatchEnded) -> None:
        self.result = event

    # How things look.

    def _line(self, text: Text) -> None:
        self._console.print(text, overflow="fold", highlight=False)

    def _rule(self, title: str) -> None:
        width = min(self._console.width, 80)
        self._line(Text(""))
        self._line(Text(f"── {title} ".ljust(width, "─"), style="cyan"))

    def _trump_name(self, trump: int) -> str:
        names = COLOUR_NAMES if self._rules.two_colour else dict(enumerate(TRUMP_NAMES))
        return names[trump]

    def _hand(self, seat: int) -> None:
        """One seat's hand, a group a suit, trumps first."""
        assert self._order is not None
        self._hands[seat][:] = self._sorted(bytes(self._hands[seat]))
        line = Text(f"  {SEAT_NAMES[seat]:<6}")
        last: tuple[int, int] | None = None
        for card in self._hands[seat]:
            group = (self._order.suit(card), card // 13)
            if group[0] == TRUMP and not self._is_plain(card):
                line.append(self._cards(bytes([card])))
                line.append(" ")
                group = (TRUMP, -1)
            elif group == last:
                line.append(" " if "10" in {_rank(card), line.plain[-2:]} else "")
                line.append(_rank(card), SUIT_STYLES[card // 13])
            else:
                line.append("" if last in {None, (TRUMP, -1)} else " ")
                line.append(self._cards(bytes([card])))
            last = group
        self._line(line)

    def _is_plain(self, card: int) -> bool:
        """Neither a joker nor a level card nor a permanent two."""
        rank = card % 13
        return card < LITTLE_JOKER and rank != self._level and (rank != 0 or not self._rules.permanent_twos)

    def _sorted(self, cards: bytes) -> bytes:
        """Cards by effective suit (trumps first) and falling rank."""
        order = self._order
        if order is None:
            return bytes(sorted(cards))

        def place(card: int) -> tuple[bool, int, int, int]:
            suit = order.suit(card)
            return suit != TRUMP, suit, -order.tier(card), card

        ordered = list(cards)
        ordered.sort(key=place)
        return bytes(ordered)

    def _cards(self, cards: bytes) -> Text:
        """Cards with their suit marks, equal ones run together."""
        text = Text()
        for card in cards:
            if card >= LITTLE_JOKER:
                text.append("BJ" if card == BIG_JOKER else "LJ", style="bold magenta")
            else:
                text.append(SUIT_MARKS[card // 13] + _rank(card), style=SUIT_STYLES[card // 13])
        return text

    def _remove(self, seat: int, cards: bytes) -> None:
        for card in cards:
            if card in self._hands[seat]:
                self._hands[seat].remove(card)


def _rank(card: int) -> str:
    return RANK_LETTERS[card % 13].replace("T", "10")
