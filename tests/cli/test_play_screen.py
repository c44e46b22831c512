"""What is shown, in both languages: every line of whole deals fits, and says what happened."""

import string
from functools import cache

import pytest

from services.bot.local import LocalBots, sides
from services.cli.play.cards import Faces
from services.cli.play.chronicle import Chronicle
from services.cli.play.model import begin, fold
from services.cli.play.screen import below, choices, invitation, listed, paragraph, room_lines
from services.cli.play.sheets import sheet_lines
from services.cli.play.texts import TEXTS, tell
from services.game.entropy import SeededEntropy
from services.game.evolve import evolve
from services.game.local import open_local
from services.game.state import Pace
from services.game.views import updates, view
from services.pb.event.v1.event_pb2 import DIFFICULTY_EASY
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_OPEN, Room
from services.rules.cards import parse_cards
from services.rules.options import RuleSet
from services.rules.presets import PRESET_NAMES, preset
from services.table.rule_sheets import sheet_to_wire

PACE = Pace(draw_ms=10, declare_ms=1000, mutiny_ms=1000, bury_ms=1000, turn_ms=1000, next_deal_ms=0)
LANGUAGES = ("en", "zh")
WIDTH = 80


@cache
def played(name, deals):
    """The table after some deals, which nobody may change."""
    table = open_local(preset(name), SeededEntropy(name), PACE)
    LocalBots(table, sides(1, 2), look_every=5).play(deals)
    return table


def told(name, language, deals=2):
    """Everything that seat 1 is shown in some deals."""
    rules, table = preset(name), played(name, deals)
    lines, state, chronicle = [], None, None
    for commit in table.commits:
        before, state = state, evolve(state, commit)
        if chronicle is None:
            game = begin(view(state, 1, commit.recorded_at_us), rules)
            names = {player: player.title() for player in ("north", "east", "south", "west")}
            chronicle = Chronicle(game, names, language)
            lines += chronicle.opening()
            continue
        for update in updates(before, commit, state, 1):
            chronicle.game = fold(chronicle.game, update)
            for event in update.events:
                lines += chronicle.tell(event)
            lines += choices(chronicle, [bytes([card]) for card in chronicle.game.hand], complete=True)
            lines += paragraph(below(chronicle, 12.4).replace("\n", " "))
        lines += chronicle.last_trick()
        again = begin(view(state, 1, commit.recorded_at_us), rules)
        lines += Chronicle(again, names, language).opening()
    return lines


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", PRESET_NAMES)
def test_every_line_fits(name, language):
    lines = told(name, language)
    assert len(lines) > 200
    for line in lines:
        assert line.cell_len <= WIDTH, line.plain


def test_a_deal_reads_well():
    plain = [line.plain for line in told("classic-2d", "en", 1)]
    assert "  You East · Right South · Partner West · Left North" in plain
    assert any(line.startswith("── Deal 1 · playing 2 · levels 2 : 2 ──") for line in plain)
    assert any("Trump is" in line and "declarer:" in line for line in plain)
    chinese = [line.plain for line in told("classic-2d", "zh", 1)]
    assert "  您 East · 下家 South · 对家 West · 上家 North" in chinese
    assert any(line.startswith("── 第 1 局 · 打 2 · 级数 2 : 2 ──") for line in chinese)
    assert not any("Trump" in line for line in chinese)


def test_trumps_come_first_and_playable_cards_are_marked():
    faces = Faces(preset("classic-2d"), 0, 1, "en")
    hand = parse_cards("S3 SA H2 D2 BJ H5 HA C9 C9 D10".replace("D10", "DT").split())
    lines = faces.hand(hand, {*parse_cards(["C9"])})
    assert [line.plain for line in lines] == [
        "  trumps  BJ ♥2 ♦2 ♥A 5",
        "  ♠ (S)   ♠A 3",
        "  ♣ (C)   ♣9 9",
        "  ♦ (D)   ♦10",
    ]
    styles = {str(span.style) for line in lines for span in line.spans}
    assert styles == {"dim", "bold green underline"}
    assert faces.text(hand).plain == "BJ ♥2 ♦2 ♥A5 ♠A3 ♣99 ♦10"


def test_cards_of_two_suits_are_told_apart():
    hearts = Faces(preset("classic-2d"), 0, 1, "en")
    assert hearts.text(parse_cards(["S2", "S7", "S3"])).plain == "♠2 ♠73"
    assert hearts.text(parse_cards(["H2", "H9"])).plain == "♥2 ♥9"


def test_lines_are_as_wide_as_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    faces = Faces(preset("classic-2d"), 0, 1, "en")
    plays = [parse_cards([card, card]) for card in ("S3", "S4", "S5", "SA", "C9", "D9", "H9")]
    assert len(listed(faces, plays)) == 2
    assert max(line.cell_len for line in [*listed(faces, plays), *paragraph(tell("en", "help"))]) <= 40


def test_long_names_keep_their_column():
    rules = preset("classic-2d")
    table = open_local(rules, SeededEntropy("x"), PACE)
    state = evolve(None, table.commits[0])
    long = "Brave Heron 247 and Co."
    chronicle = Chronicle(begin(view(state, 1, 0), rules), {"west": long, "south": "S"}, "en")
    lines = [chronicle._play_line(seat, faces_text("SA")).plain for seat in range(4)]
    assert len({line.index("♠A") for line in lines}) == 1
    assert any(f"{long} ♠A" in line for line in lines)


def faces_text(card):
    return Faces(preset("classic-2d"), 0, 1, "en").text(parse_cards([card]))


def test_chinese_keeps_a_space_to_latin_names():
    assert tell("zh", "kitty_taken", who="Bo") == "Bo 拿底牌"
    assert tell("zh", "kitty_taken", who="小明") == "小明拿底牌"
    assert tell("zh", "signed_in", name="小明2号") == "已登录：小明2号。"


def test_plays_are_numbered():
    faces = Faces(preset("classic-2d"), 0, 1, "en")
    lines = listed(faces, [parse_cards(["S3", "S3"]), parse_cards(["SA", "SA"])])
    assert [line.plain for line in lines] == ["  1 ♠33   2 ♠AA"]


def test_every_text_has_the_same_places_in_both_languages():
    for key, texts in TEXTS.items():
        places = [{field for _, field, _, _ in string.Formatter().parse(text) if field} for text in texts]
        assert places[0] == places[1], key
        values = dict.fromkeys(places[0], "x")
        assert tell("zh", key, **values) != "" != tell("en", key, **values)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_room(language):
    room = Room(room_id="r", state=ROOM_STATE_OPEN, code="AB3DE9", host_id="a")
    room.plan.preset = "classic-2d"
    for player_id, name in (("a", "安娜"), ("b", "Bo"), ("c", "Cid")):
        room.members.add(player_id=player_id, name=name, online=player_id != "b")
    for player_id, difficulty in (("a", 0), ("", DIFFICULTY_EASY), ("b", 0), ("", 0)):
        room.seats.add(player_id=player_id, difficulty=difficulty)
    lines = [*room_lines(room, "a", language), *invitation(room, language)]
    assert all(line.cell_len <= WIDTH for line in lines)
    plain = "\n".join(line.plain for line in lines)
    if language == "en":
        assert "seat 0  安娜 (host, you)" in plain
        assert "seat 1  bot, easy" in plain
        assert "seat 2  Bo (offline)" in plain
        assert "seat 3  (free)" in plain
        assert "without a seat: Cid" in plain
    else:
        assert "0 号座  安娜（房主、您）" in plain
    assert "shengji play --join AB3DE9" in plain


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_rules_of_a_table(language):
    lines = sheet_lines(sheet_to_wire(preset("classic-2d"), language))
    assert len(lines) > 50
    assert all(line.cell_len <= WIDTH for line in lines)
    assert isinstance(preset("classic-2d"), RuleSet)
