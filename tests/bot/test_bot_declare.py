"""Declaring, one principle a test."""

import pytest

from services.bot.declare import Drawn, declare, reach
from services.bot.memory import Memory
from services.game.wire import cards_to_wire
from services.pb.event.v1 import event_pb2 as pb
from services.rules.cards import card_texts
from services.rules.presets import preset

LONG_SPADES = "S2 S3 S4 S6 S7 S8 S9 SJ SQ SA H4 H7 C5 C9 D6 D8"
SHORT_SPADES = "S2 S3 H4 H5 H7 H9 HQ HK C5 C6 C9 CK D6 D8 DJ DQ DA"


@pytest.fixture
def table(tell):
    def make(name="classic-2d", level="2", holder=0, standing=None):
        rules = preset(name)
        memory = Memory(rules)
        tell.started(memory, level, holder=holder)
        if standing is not None:
            seat, text = standing
            shown = pb.Declared(seat=seat, cards=cards_to_wire(tell.cards(text)), count=len(text.split()))
            memory.observe(pb.Event(declared=shown))
        return memory

    return make


def shows(memory, tell, hand, *, seat=0, complete=False):
    found = declare(memory, memory.rules, Drawn(seat, tell.cards(hand), complete))
    return found and " ".join(card_texts(found))


def test_declares_a_long_suit(table, tell):
    assert shows(table(), tell, LONG_SPADES) == "S2"


def test_does_not_declare_a_short_suit(table, tell):
    assert shows(table(), tell, SHORT_SPADES) is None


def test_is_less_choosy_after_the_last_card_and_for_the_kitty(table, tell):
    hand = "S2 S3 S6 S9 SJ H4 H7 HQ HK C5 C6 C9 D6 D8 DJ"
    assert shows(table(), tell, hand) is None
    assert shows(table(holder=None), tell, hand) == "S2"
    assert shows(table(), tell, hand, complete=True) == "S2"


def test_shows_a_pair_at_once_when_it_is_sure(table, tell):
    assert shows(table(), tell, "S2 " + LONG_SPADES) == "S2 S2"


def test_counters_an_opponent_with_a_much_better_suit(table, tell):
    assert shows(table(standing=(1, "H2")), tell, "S2 " + LONG_SPADES) == "S2 S2"


def test_leaves_the_partner_alone(table, tell):
    hand = "S2 S2 S3 S4 S6 S7 S8 H4 H7 C5 C9 D6 D8"
    assert shows(table(standing=(2, "H2")), tell, hand) is None
    assert shows(table(standing=(1, "H2")), tell, hand) == "S2 S2"


def test_reinforces_its_own_long_suit(table, tell):
    assert shows(table(standing=(0, "S2")), tell, "S2 " + LONG_SPADES) == "S2 S2"


def test_does_not_repeat_what_stands(table, tell):
    assert shows(table(standing=(0, "S2")), tell, LONG_SPADES) is None


def test_waits_until_enough_of_the_suit_has_been_drawn(table, tell):
    """The first level card opens once enough of the suit has come, and not before."""
    memory = table()
    drawn = ["H4", "C5", "S2", "D6", "H7", "D8", "C9", "S3", "S4", "S6", "S7", "S8", "S9", "SJ"]
    answers = [shows(memory, tell, " ".join(drawn[:count])) for count in range(1, 15)]
    opened = answers.index("S2")
    assert 3 <= opened < 13
    assert set(answers[opened:]) == {"S2"}


def test_more_trumps_reach_farther():
    rules = preset("classic-2d")
    spades = bytes(range(1, 9))
    hearts = bytes(range(14, 22))
    assert reach(rules, 0, 0, spades) > 1.2
    assert reach(rules, 0, 0, hearts) < 0.8


def test_a_hand_of_no_cards_is_average():
    assert reach(preset("classic-2d"), 0, 0, b"") == pytest.approx(1.0)


def test_opens_with_a_joker_where_the_rules_ask_for_one(table, tell):
    memory = table("tournament-2d", holder=None)
    assert shows(memory, tell, LONG_SPADES) is None, "a level card alone declares nothing"
    assert shows(memory, tell, "LJ " + LONG_SPADES) == "S2 LJ"
