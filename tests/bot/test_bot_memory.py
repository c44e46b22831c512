"""What public events tell, and that nothing else does."""

import pytest

from services.bot.memory import Memory
from services.game.wire import cards_to_wire
from services.pb.event.v1 import event_pb2 as pb
from services.rules.cards import CARD_INDEX
from services.rules.presets import preset

HEARTS = 1
TRUMP = 4


@pytest.fixture
def memory(tell):
    memory = Memory(preset("classic-2d"))
    tell.started(memory, "2")
    tell.settled(memory, "S")
    return memory


def test_counts_what_was_played(memory, tell):
    tell.played(memory, 0, "HA HA")
    assert memory.gone[CARD_INDEX["HA"]] == 2
    assert sum(memory.gone) == 2


def test_not_following_suit_shows_a_void(memory, tell):
    tell.played(memory, 0, "H3 H3")
    tell.played(memory, 1, "H4 C5")
    assert memory.void[1][HEARTS]
    assert not memory.void[2][HEARTS]


def test_following_a_pair_with_two_cards_shows_that_there_is_no_pair(memory, tell):
    tell.played(memory, 0, "H3 H3")
    tell.played(memory, 1, "H4 H5")
    tell.played(memory, 2, "H6 H6")
    assert memory.no_pair[1][HEARTS]
    assert not memory.no_pair[2][HEARTS]


def test_following_a_single_shows_nothing_about_pairs(memory, tell):
    tell.played(memory, 0, "H3")
    tell.played(memory, 1, "H4")
    assert not memory.no_pair[1][HEARTS]


def test_a_group_that_may_be_kept_whole_is_not_ruled_out(tell):
    memory = Memory(preset("closed-3d"))
    tell.started(memory, "2")
    tell.settled(memory, "S")
    tell.played(memory, 0, "H3 H3")
    tell.played(memory, 1, "H4 H5")
    assert not memory.no_pair[1][HEARTS], "a triple need not be broken"


def test_a_failed_throw_shows_the_cards_taken_back(memory, tell):
    tell.played(memory, 0, "H9", attempted="H9 HA HK")
    assert memory.known[0][CARD_INDEX["HA"]] == 1
    assert memory.known[0][CARD_INDEX["H9"]] == 0
    tell.trick_taken(memory, 0)
    tell.played(memory, 0, "HA")
    assert memory.known[0][CARD_INDEX["HA"]] == 0


def test_a_declaration_shows_its_cards(tell):
    memory = Memory(preset("classic-2d"))
    tell.started(memory, "2")
    shown = pb.Declared(seat=3, cards=cards_to_wire(tell.cards("H2")), count=1)
    memory.observe(pb.Event(declared=shown))
    assert memory.known[3][CARD_INDEX["H2"]] == 1
    assert memory.declarations.standing.seat == 3


def test_a_sealed_declaration_shows_only_its_number(tell):
    memory = Memory(preset("classic-4d"))
    tell.started(memory, "3")
    memory.observe(pb.Event(declared=pb.Declared(seat=3, count=2)))
    assert memory.sealed_standing
    assert memory.declarations.standing.count == 2
    assert not any(memory.known[3])


def test_a_new_deal_forgets(memory, tell):
    tell.played(memory, 0, "H3")
    tell.played(memory, 1, "C4")
    tell.started(memory, "3")
    assert not any(memory.gone)
    assert not memory.void[1][HEARTS]
    assert memory.trick == []


def test_secret_fields_are_never_read(tell):
    """The same events with and without their secrets make the same memory."""
    rules = preset("classic-2d")
    told, untold = Memory(rules), Memory(rules)
    for memory, secret in ((told, True), (untold, False)):
        started = pb.DealStarted(deal=1, first_drawer=1, level=2)
        if secret:
            started.hands.add().cards.extend(cards_to_wire(tell.cards("BJ BJ")))
        memory.observe(pb.Event(deal_started=started))
        tell.settled(memory, "H", 1)
        for kind in (pb.KittyTaken, pb.Buried):
            hidden = kind(seat=1, cards=cards_to_wire(tell.cards("BJ LJ")) if secret else [])
            name = "kitty_taken" if kind is pb.KittyTaken else "buried"
            memory.observe(pb.Event(**{name: hidden}))
    assert told.known == untold.known
    assert told.gone == untold.gone
