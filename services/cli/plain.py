"""Output in encodings that lack some of its characters: those are written plainly, and end no command."""

import codecs
import io
import sys
from typing import Final

_PLAIN: Final = str.maketrans(
    {
        "♠": "S", "♥": "H", "♣": "C", "♦": "D", "█": "#", "─": "-", "–": "-", "—": "-", "…": "...", "·": "-",
        "→": "->", "×": "x", "✗": "x", "≥": ">=", "≤": "<=", "“": '"', "”": '"', "‘": "'", "’": "'",
    }
)  # fmt: skip


def make_printable() -> None:
    """Let standard output and error write whatever their encoding lacks as something that it has."""
    codecs.register_error("shengji_plain", _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="shengji_plain")


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    told = error.object[error.start : error.end].translate(_PLAIN)
    return "".join(letter if letter.isascii() else "?" for letter in told), error.end
