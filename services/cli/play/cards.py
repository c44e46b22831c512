"""Cards as the terminal shows them: sorted by what beats what, grouped by effective suit. Pure."""

from collections.abc import Collection
from itertools import groupby
from typing import Final

from rich.text import Text

from engine_ext.codes import LITTLE_JOKER, NO_TRUMP, TRUMP
from services.cli.columns import screen_width
from services.cli.play.texts import tell
from services.rules.cards import RANK_LETTERS, SUIT_LETTERS, card_text
from services.rules.options import RuleSet
from services.rules.shown import SUIT_MARKS, Language, cards_text

_STYLES: Final = ("bold", "bold red", "bold green", "bold blue")
_JOKER_STYLE: Final = "bold magenta"
_LABEL: Final = 8
_SUIT_NAMES: Final = ("spades", "hearts", "clubs", "diamonds")
_COLOUR_NAMES: Final = ("black", "red")


class Faces:
    """How the cards of a deal look and lie, by its level and trump; without a trump as if there were none."""

    def __init__(self, rules: RuleSet, level: int, trump: int | None, language: Language) -> None:
        self._rules = rules
        self._trump = trump
        self._level = level
        self._order = rules.engine().order(level, NO_TRUMP if trump is None else trump)
        self.language: Language = language

    def trump_text(self) -> str:
        """What is trump, in words."""
        if self._trump is None:
            return "?"
        if self._trump == NO_TRUMP:
            return tell(self.language, "no_trump")
        names = _COLOUR_NAMES if self._rules.two_colour else _SUIT_NAMES
        return tell(self.language, names[self._trump])

    def sorted(self, cards: bytes) -> bytes:
        """Trumps first, then suit by suit, high cards first."""

        def place(card: int) -> tuple[bool, int, int, int]:
            suit = self._order.suit(card)
            return suit != TRUMP, suit, -self._order.tier(card), card

        ordered = list(cards)
        ordered.sort(key=place)
        return bytes(ordered)

    def text(self, cards: bytes) -> Text:
        """Cards in a row; the suit's mark again where a level card ends, or trumps do: ``♠2 ♠73``."""
        text = Text()
        for (style, _, _), run in groupby(self.sorted(cards), key=self._kind):
            told = cards_text([card_text(card) for card in run], self.language)
            text.append(" " if text else "")
            text.append(told, style)
        return text

    def _kind(self, card: int) -> tuple[str, int, bool]:
        """What cards that may share a mark have in common."""
        rank = card % 13
        permanent = rank == self._level or (rank == 0 and self._rules.permanent_twos)
        return _style(card), self._order.suit(card), permanent and card < LITTLE_JOKER

    def hand(self, cards: bytes, playable: Collection[int] | None = None) -> list[Text]:
        """A hand, one line (or more) for each effective suit.

        Args:
            cards: the hand.
            playable: cards that occur in some legal play; they are underlined and the others dimmed. None
                marks nothing.
        """
        lines = []
        for suit, group in groupby(self.sorted(cards), key=self._order.suit):
            lines += self._suit_lines(suit, bytes(group), playable)
        return lines

    def _suit_lines(self, suit: int, cards: bytes, playable: Collection[int] | None) -> list[Text]:
        lines = [self._label(suit)]
        last = -1
        for card in cards:
            told = _short(card, last, self.language)
            if lines[-1].cell_len + len(told) + 2 > screen_width():
                lines.append(Text(" " * (_LABEL + 2)))
                told = _short(card, -1, self.language)
            lines[-1].append(" ")
            lines[-1].append(told, _marked(card, playable))
            last = card
        return lines

    def _label(self, suit: int) -> Text:
        if suit == TRUMP:
            label = Text("  " + tell(self.language, "trumps"))
        elif self._rules.two_colour:
            label = Text("  " + tell(self.language, _COLOUR_NAMES[suit]))
        else:
            label = Text(f"  {SUIT_MARKS[suit]} ({SUIT_LETTERS[suit]})")
        label.pad_right(max(0, _LABEL + 1 - label.cell_len))
        return label


def _style(card: int) -> str:
    return _JOKER_STYLE if card >= LITTLE_JOKER else _STYLES[card // 13]


def _marked(card: int, playable: Collection[int] | None) -> str:
    if playable is None:
        return _style(card)
    return f"{_style(card)} underline" if card in playable else "dim"


def _short(card: int, last: int, language: Language) -> str:
    """A card behind another one: the suit's mark only where it changes."""
    if card >= LITTLE_JOKER:
        return cards_text([card_text(card)], language)
    rank = RANK_LETTERS[card % 13].replace("T", "10")
    return rank if 0 <= last < LITTLE_JOKER and last // 13 == card // 13 else SUIT_MARKS[card // 13] + rank
