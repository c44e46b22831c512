"""What is shown when the player is to do something: hand and choices, the line below, the room. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.text import Text

from services.cli.columns import screen_width, wrap
from services.cli.play import offers
from services.cli.play.cards import Faces
from services.cli.play.chronicle import Chronicle, heading
from services.cli.play.model import DEALT, Game
from services.cli.play.texts import tell
from services.pb.event.v1.event_pb2 import Difficulty
from services.pb.lobby.v1.room_pb2 import Room, RoomState
from services.pb.table.v1.view_pb2 import (
    PHASE_BURY,
    PHASE_COUNTER,
    PHASE_DECLARING,
    PHASE_MUTINY,
    PHASE_SCORED,
    PHASE_SEATING,
    PHASE_TRICKS,
)
from services.rules.cards import card_text
from services.rules.shown import Language

LISTED: Final = 9
"""Plays shown at once; `more` lists all."""


def paragraph(text: str) -> list[Text]:
    """A text in lines of the screen."""
    return [Text(line) for line in wrap(text, screen_width(), "  ", "  ")]


def choices(chronicle: Chronicle, plays: Sequence[bytes], *, complete: bool) -> list[Text]:
    """What the player holds and may do now; empty when nothing."""
    game, faces, language = chronicle.game, chronicle.faces, chronicle.language
    if not game.my_turn:
        return []
    match game.view.phase:
        case phase if phase in {PHASE_SEATING, PHASE_SCORED}:
            return paragraph(tell(language, "to_ready"))
        case phase if phase == PHASE_DECLARING:
            return declaring(chronicle)
        case phase if phase == PHASE_MUTINY:
            return [*faces.hand(game.hand), *paragraph(tell(language, "to_mutiny"))]
        case phase if phase == PHASE_COUNTER:
            told = typed(offers.counters(game), "c") or tell(language, "nothing")
            return [*faces.hand(game.hand), *paragraph(tell(language, "to_counter", offers=told))]
        case phase if phase == PHASE_BURY:
            note = tell(language, "to_bury", count=game.rules.kitty)
            return [*faces.hand(game.hand), *paragraph(note)]
        case phase if phase == PHASE_TRICKS:
            return _turn(game, faces, plays, complete=complete)
        case _:
            return []


def declaring(chronicle: Chronicle) -> list[Text]:
    """The hand as far as it is drawn, and what may be declared with it."""
    game, language = chronicle.game, chronicle.language
    lines = list(chronicle.faces.hand(game.hand))
    may = typed(offers.declarations(game), "d")
    if may:
        lines += paragraph(tell(language, "may_declare", offers=may))
    if game.all_drawn:
        lines += paragraph(tell(language, "to_declare"))
    return lines


def typed(showings: Sequence[bytes], verb: str) -> str:
    """Showings as they are to be typed."""
    return " · ".join(f"{verb} {' '.join(card_text(card) for card in cards)}" for cards in showings)


def _turn(game: Game, faces: Faces, plays: Sequence[bytes], *, complete: bool) -> list[Text]:
    language = faces.language
    playable = {card for play in plays for card in play} if plays else None
    lines = [*faces.hand(game.hand, playable)]
    lines += paragraph(tell(language, "to_follow" if game.view.trick else "to_lead"))
    lines += listed(faces, plays[:LISTED])
    if len(plays) > LISTED:
        lines += paragraph(tell(language, "more_plays", count=len(plays) - LISTED))
    elif plays and not complete:
        lines += paragraph(tell(language, "plays_cut"))
    return lines


def listed(faces: Faces, plays: Sequence[bytes]) -> list[Text]:
    """Plays with their numbers, several in a line."""
    lines = [Text(" ")]
    for number, play in enumerate(plays, 1):
        item = Text().append(f" {number} ", "dim").append_text(faces.text(play)).append("  ")
        if lines[-1].cell_len + item.cell_len > screen_width() and lines[-1].cell_len > 1:
            lines.append(Text(" "))
        lines[-1].append_text(item)
    for line in lines:
        line.rstrip()
    return lines if plays else []


def below(chronicle: Chronicle, seconds: float | None) -> str:
    """The line below what is typed: trump, points, whose turn, the clock; the hand while it is drawn."""
    game, language = chronicle.game, chronicle.language
    view = game.view
    told = []
    if view.trump:
        told.append(chronicle.faces.trump_text())
    if view.phase in DEALT and view.trump:
        told.append(tell(language, "attackers", points=view.attackers_points))
    if view.phase == PHASE_DECLARING and not game.all_drawn:
        hand = "\n".join(line.plain for line in chronicle.faces.hand(game.hand))
        return f"{hand}\n {view.drawn}/{game.rules.hand_size}"
    if view.to_act:
        told.append(
            tell(
                language,
                "turn_of",
                who=tell(language, "comma").join(chronicle.named(seat) for seat in view.to_act),
            )
        )
    if seconds is not None and view.to_act:
        told.append(tell(language, "clock", seconds=max(0, round(seconds))))
    return " " + " · ".join(told)


# ------------------------------------------------------------------------------------------------- the room


_WIDE: Final = {
    "A": "01110 10001 11111 10001 10001", "B": "11110 10001 11110 10001 11110",
    "C": "01111 10000 10000 10000 01111", "D": "11110 10001 10001 10001 11110",
    "E": "11111 10000 11110 10000 11111", "F": "11111 10000 11110 10000 10000",
    "G": "01111 10000 10011 10001 01111", "H": "10001 10001 11111 10001 10001",
    "I": "11111 00100 00100 00100 11111", "J": "00111 00010 00010 10010 01100",
    "K": "10010 10100 11000 10100 10010", "L": "10000 10000 10000 10000 11111",
    "M": "10001 11011 10101 10001 10001", "N": "10001 11001 10101 10011 10001",
    "O": "01110 10001 10001 10001 01110", "P": "11110 10001 11110 10000 10000",
    "Q": "01110 10001 10101 10010 01101", "R": "11110 10001 11110 10010 10001",
    "S": "01111 10000 01110 00001 11110", "T": "11111 00100 00100 00100 00100",
    "U": "10001 10001 10001 10001 01110", "V": "10001 10001 10001 01010 00100",
    "W": "10001 10001 10101 11011 10001", "X": "10001 01010 00100 01010 10001",
    "Y": "10001 01010 00100 00100 00100", "Z": "11111 00010 00100 01000 11111",
    "0": "01110 10011 10101 11001 01110", "1": "00100 01100 00100 00100 01110",
    "2": "11110 00001 01110 10000 11111", "3": "11110 00001 01110 00001 11110",
    "4": "10010 10010 11111 00010 00010", "5": "11111 10000 11110 00001 11110",
    "6": "01110 10000 11110 10001 01110", "7": "11111 00010 00100 01000 01000",
    "8": "01110 10001 01110 10001 01110", "9": "01110 10001 01111 00001 01110",
}  # fmt: skip
"""Letters and digits of five by five blocks, row by row."""


def large(code: str) -> list[Text]:
    """A code in large letters."""
    glyphs = [_WIDE[letter].split() for letter in code.upper() if letter in _WIDE]
    rows = ("  ".join(glyph[row] for glyph in glyphs) for row in range(5))
    return [Text("    " + row.replace("1", "█").replace("0", " "), style="bold") for row in rows]


def invitation(room: Room, language: Language) -> list[Text]:
    """The room's code, large, and what to do with it."""
    return [
        Text(""),
        *large(room.code),
        Text(""),
        Text(f"    {room.code}", style="bold"),
        *paragraph(tell(language, "invite", code=room.code)),
    ]


def room_lines(room: Room, me: str, language: Language, *, explained: bool = True) -> list[Text]:
    """Who is in a room and where they sit; explained: and what may be typed."""
    names = {member.player_id: member for member in room.members}
    lines = [heading(f"{tell(language, 'room')} · {room.plan.preset}"), *_plan_lines(room, language)]

    def person(player_id: str) -> str:
        member = names.get(player_id)
        marks = [tell(language, "host_mark")] if player_id == room.host_id else []
        marks += [tell(language, "you_mark")] if player_id == me else []
        marks += [] if member is None or member.online else [tell(language, "offline")]
        name = member.name if member else player_id
        return name + tell(language, "remark", told=tell(language, "comma").join(marks)) if marks else name

    for number, seat in enumerate(room.seats):
        if seat.player_id:
            told = person(seat.player_id)
        elif seat.difficulty:
            told = tell(language, "seat_bot", difficulty=difficulty_text(seat.difficulty, language))
        else:
            told = tell(language, "seat_free")
        lines.append(Text("  " + tell(language, "seat_row", seat=number, who=told)))
    seated = {seat.player_id for seat in room.seats}
    others = [person(member.player_id) for member in room.members if member.player_id not in seated]
    if others:
        lines += paragraph(tell(language, "standing_people", names=tell(language, "comma").join(others)))
    if explained and room.state == RoomState.ROOM_STATE_OPEN:
        lines += paragraph(tell(language, "partners"))
        lines += paragraph(tell(language, "host_help" if room.host_id == me else "room_help"))
    return lines


def _plan_lines(room: Room, language: Language) -> list[Text]:
    """What is played for, and by which rules other than the preset's."""
    lines = []
    if room.plan.overrides:
        options = " · ".join(f"{option.name}={option.value}" for option in room.plan.overrides)
        lines += paragraph(tell(language, "plan_options", options=options))
    if room.plan.stake:
        lines += paragraph(tell(language, "plan_stake", stake=room.plan.stake))
    return lines


def difficulty_text(difficulty: int, language: Language) -> str:
    """How strong a bot is, in words."""
    name = Difficulty.Name(Difficulty.ValueType(difficulty)).removeprefix("DIFFICULTY_").lower()
    return tell(language, name)


def names_of(room: Room) -> Mapping[str, str]:
    """Players of a room by their ids."""
    return {member.player_id: member.name for member in room.members}
