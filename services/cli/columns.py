"""Text in columns of a terminal, where a Chinese character takes two."""

import shutil
from collections.abc import Iterator
from typing import Final

from rich.cells import cell_len

_WIDEST: Final = 80
_NEVER_FIRST: Final = set("，。；：、！？）》”…,.;:!?)")
_NEVER_LAST: Final = set("（《“(")


def screen_width() -> int:
    """Cells of a line of the screen, at most 80; 80 where there is no terminal."""
    return min(_WIDEST, shutil.get_terminal_size((_WIDEST, 24)).columns)


def wrap(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Lines of at most ``width`` cells; Chinese breaks between characters, but not before punctuation.

    Args:
        text: one paragraph.
        width: cells of a line, its indent included.
        first: what the first line begins with.
        rest: what the others begin with.
    """
    lines: list[str] = []
    line, indent = first, first
    for piece in _pieces(text):
        if line != indent and cell_len(line + piece.rstrip()) > width:
            lines.append(line.rstrip())
            line = indent = rest
        line += piece.lstrip() if line == indent else piece
    return [*lines, line.rstrip()]


def pad(text: str, width: int) -> str:
    """The text with spaces up to so many cells."""
    return text + " " * max(0, width - cell_len(text))


def _pieces(text: str) -> Iterator[str]:
    """What may not be torn apart: words with the space behind them, and wide characters with their marks."""
    piece = ""
    for character in text:
        if piece and _may_part(piece[-1], character):
            yield piece
            piece = ""
        piece += character
    if piece:
        yield piece


def _may_part(left: str, right: str) -> bool:
    if right in _NEVER_FIRST or left in _NEVER_LAST or right == " ":
        return False
    return left == " " or cell_len(left) > 1 or cell_len(right) > 1
