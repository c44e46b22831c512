"""Numbers of the wire and codes of the rules, both ways."""

import pytest

from engine_ext.codes import CARDS
from services.game import wire
from services.game.errors import BadInput
from services.game.state import Pace
from services.pb.card.v1.card_pb2 import Card, Rank, Trump
from services.rules.cards import CARD_TEXTS, RANK_LETTERS
from services.rules.presets import PRESET_NAMES, preset


def test_every_card_has_the_wire_name_of_its_text():
    for index, text in enumerate(CARD_TEXTS):
        assert Card.Name(wire.cards_to_wire(bytes([index]))[0]) == f"CARD_{text}"


def test_cards_go_there_and_back_in_their_order():
    cards = bytes(reversed(range(CARDS)))
    assert wire.cards_from_wire(wire.cards_to_wire(cards)) == cards
    assert wire.stored_cards(wire.cards_to_wire(cards)) == cards


@pytest.mark.parametrize("number", [0, -1, CARDS + 1, 255, 256, 10**9])
def test_what_is_no_card_is_refused(number):
    with pytest.raises(BadInput) as error:
        wire.cards_from_wire([1, number], "cards")
    assert error.value.field == "cards"


def test_levels_are_ranks():
    for level, letter in enumerate(RANK_LETTERS):
        assert Rank.Name(wire.level_to_wire(level)) == f"RANK_{letter}"
        assert wire.level_from_wire(wire.level_to_wire(level)) == level


@pytest.mark.parametrize("number", [0, 1, 15])
def test_what_is_no_level_is_refused(number):
    with pytest.raises(BadInput):
        wire.level_from_wire(number)


@pytest.mark.parametrize(
    ("trump", "two_colour", "name"),
    [
        (0, False, "SPADES"),
        (1, False, "HEARTS"),
        (2, False, "CLUBS"),
        (3, False, "DIAMONDS"),
        (4, False, "NO_TRUMP"),
        (0, True, "BLACK"),
        (1, True, "RED"),
        (4, True, "NO_TRUMP"),
    ],
)
def test_trumps(trump, two_colour, name):
    number = wire.trump_to_wire(trump, two_colour=two_colour)
    assert Trump.Name(number) == f"TRUMP_{name}"
    assert wire.trump_from_wire(number) == trump


@pytest.mark.parametrize("number", [0, 8])
def test_what_is_no_trump_is_refused(number):
    with pytest.raises(BadInput):
        wire.trump_from_wire(number)


def test_a_pace_goes_there_and_back():
    pace = Pace(1, 2, 3, 4, 5, 6, 7)
    assert wire.pace_from_wire(wire.pace_to_wire(pace)) == pace


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_rules_go_there_and_back_and_are_shared(name):
    rules = preset(name)
    message = wire.rules_to_wire(rules)
    assert wire.rules_from_wire(message) == rules
    assert wire.rules_from_wire(message) is wire.rules_from_wire(wire.rules_to_wire(rules))
    assert [option.name for option in message.options] == sorted(option.name for option in message.options)
