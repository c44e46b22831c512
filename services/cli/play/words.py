"""What a person types at a table or in a room. Pure: a line becomes a ``Word``, or a ``Mistyped``."""

import re
from typing import Final, NamedTuple

from services.rules.cards import CARD_INDEX

_SUITS: Final = {"♠": "S", "♥": "H", "♣": "C", "♦": "D", "黑": "S", "红": "H", "梅": "C", "方": "D"}
_JOKERS: Final = {"大王": "BJ", "小王": "LJ", "RJ": "BJ"}
_CARDS: Final = re.compile(r"(?:[SHCD](?:10|[2-9TJQKA])+|LJ|BJ)+")
_PIECE: Final = re.compile(r"LJ|BJ|[SHCD](?:10|[2-9TJQKA])+")
_RANK: Final = re.compile(r"10|[2-9TJQKA]")

VERBS: Final = {
    "?": "help", "help": "help", "帮助": "help",
    "h": "hand", "hand": "hand", "手牌": "hand",
    "rules": "rules", "规则": "rules",
    "last": "last", "l": "last", "上轮": "last",
    "more": "more", "plays": "more", "更多": "more",
    "auto": "auto", "托管": "auto",
    "say": "say", "说": "say",
    "mute": "mute", "静音": "mute",
    "quit": "quit", "q": "quit", "exit": "quit", "退出": "quit",
    "d": "declare", "declare": "declare", "亮": "declare", "反": "declare",
    "p": "pass", "pass": "pass", "过": "pass", "不": "pass",
    "b": "bury", "bury": "bury", "扣": "bury",
    "c": "counter", "counter": "counter",
    "m": "mutiny", "mutiny": "mutiny", "重发": "mutiny",
    "ready": "ready", "r": "ready", "准备": "ready",
    "start": "start", "开始": "start",
    "swap": "swap", "换": "swap",
    "kick": "kick", "踢": "kick",
    "host": "host", "房主": "host",
    "seat": "seat", "sit": "seat", "坐": "seat",
    "stand": "stand", "站": "stand",
    "bots": "bots", "电脑": "bots",
    "code": "code", "邀请码": "code",
    "again": "again", "再来": "again",
    "leave": "leave", "离开": "leave",
    "y": "yes", "yes": "yes", "是": "yes",
    "n": "no", "no": "no", "否": "no",
}  # fmt: skip
"""What may be typed → what is meant."""

_DIGITS_MOST: Final = 9
"""Of a number; a longer one names nothing, and Python will not read it at any length."""
_WITH_CARDS: Final = frozenset({"declare", "bury", "counter"})


class Word(NamedTuple):
    """What is meant: a verb of ``VERBS``, ``cards``, ``number``, or ``enter`` for an empty line."""

    verb: str
    cards: bytes = b""
    number: int = 0
    rest: tuple[str, ...] = ()
    """Other words behind the verb, as typed."""


class Mistyped(Exception):
    """A line that means nothing; the text is the part that was not understood."""


class NoSuchName(Exception):
    """Nobody here is called so, or several are."""


def read(line: str) -> Word:
    """What a line means.

    Raises:
        Mistyped: neither a command nor cards.
    """
    words = line.replace("，", " ").replace(",", " ").split()
    if not words:
        return Word("enter")
    verb = VERBS.get(words[0].lower())
    if verb is None:
        if len(words) == 1 and len(words[0]) <= _DIGITS_MOST and words[0].isascii() and words[0].isdigit():
            return Word("number", number=int(words[0]))
        return Word("cards", read_cards(words))
    if verb in _WITH_CARDS:
        return Word(verb, read_cards(words[1:]))
    return Word(verb, rest=tuple(words[1:]))


def read_cards(words: list[str]) -> bytes:
    """Cards as people write them: ``S7 S7``, ``s77``, ``♥10``, ``BJ``, ``大王``; their indices, as typed.

    Raises:
        Mistyped: a word that is no card.
    """
    return b"".join(_cards_of(word) for word in words)


def _cards_of(word: str) -> bytes:
    plain = word.upper()
    for written, meant in (*_SUITS.items(), *_JOKERS.items()):
        plain = plain.replace(written, meant)
    if not _CARDS.fullmatch(plain):
        raise Mistyped(word)
    cards = bytearray()
    for piece in _PIECE.findall(plain):
        if piece in CARD_INDEX and piece[1] == "J" and piece[0] in "LB":
            cards.append(CARD_INDEX[piece])
            continue
        for rank in _RANK.findall(piece[1:]):
            cards.append(CARD_INDEX[piece[0] + ("T" if rank == "10" else rank)])
    return bytes(cards)
