"""Between the codes of the rules (``engine_ext.codes``) and the numbers of the protos.

- A card 0..53 is 1..54 on the wire.
- A level 0..12 (2..A) is 2..14.
- A trump 0..3 is 1..4, no-trump 4 is 5; with two colours BLACK 0 is 6 and RED 1 is 7.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from engine_ext.codes import CARDS, NO_TRUMP
from services.game.errors import BadInput
from services.game.state import Pace
from services.pb.card.v1.card_pb2 import Card, Rank, Trump
from services.pb.event.v1 import event_pb2 as pb
from services.rules.cards import RANKS
from services.rules.options import RULES_VERSION, RuleSet

_TO_WIRE: Final = tuple(Card.ValueType(card + 1) for card in range(CARDS))
_FROM_WIRE: Final = bytes(max(0, number - 1) for number in range(256))


def cards_to_wire(cards: bytes) -> list[Card.ValueType]:
    """Card indices as wire numbers, in the order given."""
    return [_TO_WIRE[card] for card in cards]


def cards_from_wire(numbers: Sequence[int], field: str = "cards") -> bytes:
    """Wire numbers from outside as card indices, in the order given.

    Raises:
        BadInput: one of them is no card.
    """
    for number in numbers:
        if not 1 <= number <= CARDS:
            raise BadInput(field, f"{number} is no card")
    return stored_cards(numbers)


def stored_cards(numbers: Sequence[int]) -> bytes:
    """Wire numbers of a recorded event as card indices; they are known to be cards."""
    return bytes(numbers[:]).translate(_FROM_WIRE)


def level_to_wire(level: int) -> Rank.ValueType:
    """A level 0..12 as a wire rank."""
    return Rank.ValueType(level + 2)


def level_from_wire(number: int) -> int:
    """A wire rank as a level.

    Raises:
        BadInput: no rank.
    """
    if not 2 <= number < 2 + RANKS:
        raise BadInput("level", f"{number} is no rank")
    return number - 2


def trump_to_wire(trump: int, *, two_colour: bool) -> Trump.ValueType:
    """A trump as its wire number."""
    if trump == NO_TRUMP:
        return Trump.TRUMP_NO_TRUMP
    return Trump.ValueType(trump + (6 if two_colour else 1))


def trump_from_wire(number: int) -> int:
    """A wire trump as the engine's number.

    Raises:
        BadInput: no trump.
    """
    if 1 <= number <= 5:
        return number - 1
    if number in (Trump.TRUMP_BLACK, Trump.TRUMP_RED):
        return number - Trump.TRUMP_BLACK
    raise BadInput("trump", f"{number} is no trump")


def pace_to_wire(pace: Pace) -> pb.Pace:
    """A pace as its message."""
    return pb.Pace(**{name: getattr(pace, name) for name in Pace.__slots__})


def pace_from_wire(message: pb.Pace) -> Pace:
    """The pace that a message holds; ``decide`` checks its ranges when a table is founded."""
    return Pace(**{name: getattr(message, name) for name in Pace.__slots__})


def canonical_json(value: object) -> str:
    """The one JSON text of an option's value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def rules_to_wire(rules: RuleSet) -> pb.RuleSet:
    """A rule set with every option, in the order of their names."""
    return pb.RuleSet.FromString(stored_rules(rules))


@lru_cache(maxsize=256)
def stored_rules(rules: RuleSet) -> bytes:
    """The serialised message of a rule set."""
    options = rules.to_json()
    preset = str(options.pop("preset"))
    written = [pb.RuleOption(name=name, value=canonical_json(options[name])) for name in sorted(options)]
    message = pb.RuleSet(preset=preset, rules_version=RULES_VERSION, options=written)
    return message.SerializeToString(deterministic=True)


def rules_from_wire(message: pb.RuleSet) -> RuleSet:
    """The rule set that ``rules_to_wire`` wrote; equal messages give one shared object.

    Raises:
        RuleError: an option that is missing, unknown, or has no such value.
        ValueError: a value that is no JSON.
    """
    return rules_from_stored(message.SerializeToString(deterministic=True))


@lru_cache(maxsize=256)
def rules_from_stored(stored: bytes) -> RuleSet:
    """As ``rules_from_wire``, from the serialised message."""
    message = pb.RuleSet.FromString(stored)
    options: dict[str, object] = {option.name: json.loads(option.value) for option in message.options}
    return RuleSet.from_json({"preset": message.preset, **options})
