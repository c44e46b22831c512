"""The fields of a judge's case: read into codes, or refused by name."""

from collections.abc import Mapping
from operator import eq
from typing import TYPE_CHECKING, Any, Final

from engine_ext.codes import CARDS
from services.rules.cards import (
    CARD_INDEX,
    CARD_TEXTS,
    LEVEL_INDEX,
    SEATS,
    TRUMP_INDEX,
    TRUMP_INDEX_TWO_COLOUR,
)
from services.rules.options import RuleSet
from services.rules.presets import PRESETS
from services.rules.reasons import Reason, message

if TYPE_CHECKING:
    import engine_ext

Case = Mapping[str, Any]
"""A case as it was read from JSON."""

_LEADS_KEPT: Final = 4096
_SHOWN: Final = 60
"""Characters of a wrong value that a message repeats."""


class CaseError(Exception):
    """A case that makes no sense.

    Attributes:
        code: the error code of the answer.
        text: its message.
    """

    def __init__(self, code: Reason, **details: object) -> None:
        self.code = code
        self.text = message(code, "en", **details)
        super().__init__(self.text)


class OrderOf:
    """One order of cards with what the judge keeps for it."""

    def __init__(self, order: "engine_ext.Order") -> None:
        self.engine = order
        self._suits = bytes(order.suit(card) for card in range(CARDS)).ljust(256, b"\xff")
        self._leads: dict[bytes, engine_ext.Lead] = {}

    def require_one_suit(self, cards: bytes) -> None:
        """Refuse cards of more than one effective suit.

        Raises:
            CaseError: ``mixed_suits``.
        """
        if len(set(cards.translate(self._suits))) > 1:
            raise CaseError(Reason.MIXED_SUITS)

    def lead(self, cards: bytes) -> "engine_ext.Lead":
        """The compiled lead of cards of one suit."""
        found = self._leads.get(cards)
        if found is None:
            if len(self._leads) >= _LEADS_KEPT:
                self._leads.clear()
            found = self._leads[cards] = self.engine.lead(cards)
        return found


class System:
    """A preset with its orders of cards."""

    def __init__(self, rules: RuleSet) -> None:
        self.rules = rules
        self._trumps = TRUMP_INDEX_TWO_COLOUR if rules.two_colour else TRUMP_INDEX
        self._orders: dict[tuple[int, int], OrderOf] = {}

    def level(self, case: Case) -> int:
        """The level of a case.

        Raises:
            CaseError: ``bad_input`` for ``level``.
        """
        text = case.get("level")
        if type(text) is not str or text not in LEVEL_INDEX:
            raise bad_input("level", "must be a level 2 to A", text)
        return LEVEL_INDEX[text]

    def order(self, case: Case) -> OrderOf:
        """The order of cards for the level and trump of a case.

        Raises:
            CaseError: ``bad_input`` for ``level`` or ``trump``.
        """
        level = self.level(case)
        text = case.get("trump")
        if type(text) is not str or text not in self._trumps:
            raise bad_input("trump", f"must be one of {', '.join(self._trumps)}", text)
        trump = self._trumps[text]
        found = self._orders.get((level, trump))
        if found is None:
            found = self._orders[level, trump] = OrderOf(self.rules.engine().order(level, trump))
        return found

    def cards(self, field: str, value: object) -> bytes:
        """A list of cards as indices in the order given; it may be empty.

        Raises:
            CaseError: ``bad_input`` for no list, ``bad_card``, ``too_many_copies``.
        """
        if type(value) is not list:
            raise bad_input(field, "must be a list of cards", value)
        try:
            cards = bytes(map(CARD_INDEX.__getitem__, value))
        except (KeyError, TypeError):
            wrong = next(text for text in value if type(text) is not str or text not in CARD_INDEX)
            raise CaseError(Reason.BAD_CARD, card=_shown(wrong)) from None
        self._refuse_copies(cards)
        return cards

    def some_cards(self, field: str, value: object) -> bytes:
        """A list of at least one card (see ``cards``).

        Raises:
            CaseError: as ``cards``, and ``bad_input`` for an empty list.
        """
        cards = self.cards(field, value)
        if not cards:
            raise bad_input(field, "must not be empty", value)
        return cards

    def hands(self, field: str, value: object, count: int) -> list[bytes]:
        """So many lists of cards.

        Raises:
            CaseError: ``bad_input`` for another number of lists; as ``cards`` for each.
        """
        if type(value) is not list or len(value) != count:
            raise bad_input(field, f"must be {count} lists of cards", value)
        return [self.cards(f"{field}[{index}]", cards) for index, cards in enumerate(value)]

    def plays(self, order: OrderOf, value: object) -> list[bytes]:
        """The four plays of a trick, the lead first, of one length and the lead of one suit.

        Raises:
            CaseError: ``bad_input`` for ``plays``, ``mixed_suits``; as ``cards`` for each.
        """
        plays = self.hands("plays", value, SEATS)
        size = len(plays[0])
        if not size or any(len(play) != size for play in plays):
            raise bad_input("plays", "must have the same number of cards, at least one", value)
        order.require_one_suit(plays[0])
        return plays

    def _refuse_copies(self, cards: bytes) -> None:
        decks = self.rules.decks
        if len(cards) <= decks:
            return
        ordered = sorted(cards)
        # In ascending order a card with too many copies meets itself again after so many places.
        if True in map(eq, ordered, ordered[decks:]):
            many = next(card for card in cards if cards.count(card) > decks)
            raise CaseError(Reason.TOO_MANY_COPIES, card=repr(CARD_TEXTS[many]))


SYSTEMS: Final[Mapping[str, System]] = {name: System(rules) for name, rules in PRESETS.items()}
"""Every preset's system, its orders filled as cases ask for them."""


def bad_input(field: str, detail: str, value: object = None) -> CaseError:
    """The error for a field that is missing, of the wrong kind or out of range."""
    seen = "" if value is None else f", not {_shown(value)}"
    return CaseError(Reason.BAD_INPUT, field=field, detail=detail + seen)


def text_field(case: Case, field: str) -> str:
    """A field that must be text.

    Raises:
        CaseError: ``bad_input``.
    """
    value = case.get(field)
    if type(value) is not str:
        raise bad_input(field, "must be text", value)
    return value


def seat_field(field: str, value: object) -> int:
    """A seat 0 to 3.

    Raises:
        CaseError: ``bad_input``.
    """
    if type(value) is not int or not 0 <= value < SEATS:
        raise bad_input(field, "must be a seat 0 to 3", value)
    return value


def _shown(value: object) -> str:
    """A wrong value, cut short; containers only by their kind."""
    if isinstance(value, str | bool | float):
        return repr(value)[:_SHOWN]
    if isinstance(value, int):
        return "such a number"
    return f"a {type(value).__name__}"
