"""Cards and shapes as people read them, in Chinese and English: ``♥KK``, ``三连对``, ``quad``."""

import re
from collections.abc import Sequence
from typing import Final, Literal

from services.rules.cards import CARD_INDEX, RANK_LETTERS, is_joker, parse_card, rank_of, suit_of

Language = Literal["zh", "en"]
SUIT_MARKS: Final = "♠♥♣♦"
_JOKERS: Final = {"BJ": "大王", "LJ": "小王"}
_NUMBERS: Final = "零一两三四五六七八九"
_GROUPS: Final = {
    "zh": {1: "单张", 2: "对子", 3: "三张", 4: "四张"},
    "en": {1: "single", 2: "pair", 3: "triple", 4: "quad"},
}
_RUNS: Final = {2: "连对", 3: "连三张", 4: "连四张"}


def language_of(locale: str) -> Language:
    """The language of a locale or language tag: Chinese for ``zh…``, English for anything else."""
    return "zh" if locale.lower().startswith("zh") else "en"


def rank_text(rank: int) -> str:
    """A rank or level 0..12 as people write it."""
    return RANK_LETTERS[rank].replace("T", "10")


def cards_text(cards: Sequence[str], language: Language) -> str:
    """Cards for a reader: a suit's mark once for cards in a row of that suit, jokers by name."""
    told: list[str] = []
    last = ""
    for text in cards:
        card = parse_card(text)
        if is_joker(card):
            told.append((" " if told else "") + (_JOKERS[text] if language == "zh" else text))
            last = "joker"
            continue
        mark, rank = SUIT_MARKS[suit_of(card)], rank_text(rank_of(card))
        if mark != last:
            told.append((" " if told else "") + mark)
        elif "10" in {rank, told[-1]}:
            told.append(" ")
        told.append(rank)
        last = mark
    return "".join(told)


def number_text(count: int) -> str:
    """A Chinese count; from ten on in digits."""
    return _NUMBERS[count] if count < len(_NUMBERS) else f"{count} "


def group_text(width: int, language: Language) -> str:
    """The name of so many identical cards."""
    return _GROUPS[language][width]


def run_text(width: int) -> str:
    """The Chinese name of a tractor of such groups."""
    return _RUNS[width]


def shape_text(width: int, length: int, language: Language) -> str:
    """The name of a component."""
    if length == 1:
        return group_text(width, language)
    if language == "zh":
        return f"{number_text(length)}{run_text(width)}"
    return f"tractor of {length} {group_text(width, language)}s"


def owed_text(shapes: Sequence[tuple[int, int]], language: Language) -> str:
    """What a hand owes: the names of components, given as (width, length)."""
    named = [shape_text(width, length, language) for width, length in shapes]
    return "、".join(named) if language == "zh" else ", ".join(f"a {name}" for name in named)


def detail_text(name: str, value: object, language: Language) -> str:
    """A detail of a refusal for a player: cards by their marks, owed shapes by their names, else as it is."""
    text = str(value)
    if name == "card" and text in CARD_INDEX:
        return cards_text([text], language)
    if name == "owed" and re.fullmatch(r"([1-4](x\d+)?)(, [1-4](x\d+)?)*", text):
        shapes = [part.partition("x") for part in text.split(", ")]
        return owed_text([(int(width), int(length or 1)) for width, _, length in shapes], language)
    return text
