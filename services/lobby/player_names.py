"""Players' names: what one may be, and made-up ones for guests."""

import unicodedata
from typing import Final

from services.rules.reasons import Reason
from services.shell.errors import RefusedError

NAME_MOST: Final = 24
"""Characters of a name."""
_GIVEN_MOST: Final = 4 * NAME_MOST
"""Characters of a name as it comes: composing them takes the square of their number."""
MARKS_MOST: Final = 2
"""Combining marks on one letter; more grow over the neighbours' lines."""
_INVISIBLE: Final = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f\u00ad")
"""Letters and symbols without ink, or that vanish, beside the categories refused as a whole."""
_WIDE: Final = frozenset("\ufdfa\ufdfb\ufdfd\u2e3a\u2e3b\U00012031\U0001242b\ua9c4\U000122d9")
"""One character as wide as a word or a line."""
_EMOJI_STYLE: Final = "\ufe0f"
"""Shows the symbol before it in colours; behind anything else it is not seen."""
_STYLES: Final = frozenset(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
"""Choose between forms of the character before them, without ink of their own."""
_ALIKE: Final = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")
"""Scripts with letters that look the same; a name keeps to one of them."""


def checked_name(text: str, field: str = "name") -> str:
    """A name in its composed form (NFC), if people can read it and tell it from others.

    Raises:
        RefusedError: BAD_INPUT, which says why not.
    """
    name = unicodedata.normalize("NFC", text[: _GIVEN_MOST + 1])
    why = _fault(name) if len(text) <= _GIVEN_MOST else f"has 1 to {NAME_MOST} characters"
    if why:
        raise RefusedError(Reason.BAD_INPUT, {"field": field, "detail": why})
    return name


def _fault(name: str) -> str:
    if not 1 <= len(name) <= NAME_MOST:
        return f"has 1 to {NAME_MOST} characters"
    if name != name.strip() or "  " in name:
        return "has no space at either end, and no two in a row"
    marks = 0
    scripts: set[str] = set()
    for before, letter in zip(" " + name, name, strict=False):
        category = unicodedata.category(letter)
        marks = marks + 1 if category[0] == "M" and letter != _EMOJI_STYLE else 0
        styles_nothing = letter != _EMOJI_STYLE or unicodedata.category(before)[0] not in "NS"
        unseen = letter in _INVISIBLE or (letter in _STYLES and styles_nothing)
        if category[0] == "C" or (category[0] == "Z" and letter != " ") or unseen:
            return "has no control characters and nothing invisible"
        if marks > MARKS_MOST or letter in _WIDE:
            return "has no characters that cover others"
        if category[0] == "L":
            scripts.update(script for script in _ALIKE if unicodedata.name(letter, "").startswith(script))
    if unicodedata.category(name[0])[0] == "M":
        return "begins with a letter, digit or symbol"
    if not any(unicodedata.category(letter)[0] in "LNS" for letter in name):
        return "has a letter, digit or symbol"
    return "keeps to one of the scripts that look alike" if len(scripts) > 1 else ""


_ENGLISH: Final = (
    "Quiet Merry Swift Clever Gentle Sunny Brave Lucky Patient Silver Misty Golden Bright Calm Humble",
    "Heron Panda Otter Crane Tiger Magpie Carp Fox Lynx Sparrow Deer Owl Badger Swallow Turtle Hare",
)
_CHINESE: Final = (
    "悠闲 快乐 机灵 温和 幸运 勇敢 安静 好奇 从容 晴朗 谦虚 明亮 金色 银色 耐心",
    "白鹭 熊猫 水獭 丹顶鹤 老虎 喜鹊 锦鲤 狐狸 猞猁 麻雀 小鹿 猫头鹰 獾 燕子 海龟 野兔",
)


def made_up_name(noise: bytes, language: str) -> str:
    """A guest's first name, such as ``Quiet Heron 417`` or ``悠闲白鹭417``.

    Args:
        noise: 4 random bytes.
        language: "zh", else English.
    """
    number = int.from_bytes(noise, "big")
    manners, animals = (words.split() for words in (_CHINESE if language == "zh" else _ENGLISH))
    number, manner = divmod(number, len(manners))
    number, animal = divmod(number, len(animals))
    gap = "" if language == "zh" else " "
    return f"{manners[manner]}{gap}{animals[animal]}{gap}{number % 900 + 100}"
