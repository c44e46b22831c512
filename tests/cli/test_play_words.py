"""What a person may type."""

import pytest

from services.cli.play.rooms import member_named
from services.cli.play.words import VERBS, Mistyped, NoSuchName, Word, read
from services.pb.lobby.v1.room_pb2 import Room
from services.rules.cards import CARD_TEXTS, card_texts, parse_cards


@pytest.mark.parametrize(
    ("line", "cards"),
    [
        ("S7 S7", "S7 S7"),
        ("s7s7", "S7 S7"),
        ("s77", "S7 S7"),
        ("♥10 h10", "HT HT"),
        ("HTT", "HT HT"),
        ("h1010", "HT HT"),
        ("BJ LJ", "BJ LJ"),
        ("bjbj", "BJ BJ"),
        ("大王 小王", "BJ LJ"),
        ("黑桃", None),
        ("黑7 红K", "S7 HK"),
        ("SJ", "SJ"),
        ("sjbj", "SJ BJ"),
        ("DAKQ", "DA DK DQ"),
        ("S7,S7，C2", "S7 S7 C2"),
    ],
)
def test_cards(line, cards):
    if cards is None:
        with pytest.raises(Mistyped):
            read(line)
    else:
        assert read(line) == Word("cards", parse_cards(cards.split()))


@pytest.mark.parametrize("text", CARD_TEXTS)
def test_every_card_is_read_as_it_is_written(text):
    for line in (text, text.lower(), f"d {text}", f"b {text}{text}"):
        assert set(card_texts(read(line).cards)) == {text}


def test_commands():
    assert read("") == Word("enter")
    assert read("  ") == Word("enter")
    assert read("3") == Word("number", number=3)
    assert read("d S2 S2") == Word("declare", parse_cards(["S2", "S2"]))
    assert read("亮 黑2") == Word("declare", parse_cards(["S2"]))
    assert read("swap 1 2") == Word("swap", rest=("1", "2"))
    assert read("KICK Old Wang") == Word("kick", rest=("Old", "Wang"))
    assert read("过") == read("p") == Word("pass")
    assert set(VERBS) == {verb.lower() for verb in VERBS}


@pytest.mark.parametrize("line", ["X9", "S1", "S", "7S", "b S7 x", "foo bar", "S7 8", "JB", "３", "7" * 5000])
def test_what_means_nothing_is_said_to(line):
    with pytest.raises(Mistyped):
        read(line)


def test_no_command_is_also_a_card():
    for verb in VERBS:
        with pytest.raises(Mistyped):
            read(f"{verb}S7" if verb != "s" else "zS7")


def test_members_by_name():
    room = Room()
    for player_id, name in (("a", "Ann"), ("b", "Anna"), ("c", "Bo")):
        room.members.add(player_id=player_id, name=name)
    assert member_named(room, "ann") == "a"
    assert member_named(room, "anna") == "b"
    assert member_named(room, "b") == "c"
    for name in ("an", "x", ""):
        with pytest.raises(NoSuchName):
            member_named(room, name)
