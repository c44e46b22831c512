"""The rules of a table as a person would read them, in Chinese and English, made from a rule set's options.

``sheet(rules)`` is the whole of it: sections in the order in which a game is learnt. Each is a function of
the options alone, never of a preset's name, in the module of its subject; its texts are ``Said`` in both
languages, its examples are judged by the engine (``worked.py``). ``catalogue.py`` says what each preset is.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from services.rules.options import RuleSet
from services.rules.sheet import declaring, order, playing, scoring
from services.rules.sheet.said import LANGUAGES, Example, Hand, Paragraph, Said, Section
from services.rules.shown import Language

__all__ = ["LANGUAGES", "Example", "Hand", "Language", "Paragraph", "Said", "Section", "sheet"]

_SECTIONS: Final[tuple[Callable[[RuleSet], Section], ...]] = (
    order.players,
    order.order,
    order.shapes,
    declaring.declaring,
    declaring.bury,
    playing.leading,
    playing.following,
    playing.winning,
    scoring.kitty,
    scoring.levels,
    scoring.match,
    scoring.stakes,
    scoring.time,
)


@lru_cache(maxsize=256)
def sheet(rules: RuleSet) -> tuple[Section, ...]:
    """The rules in words, section by section; both languages at once."""
    return tuple(section(rules) for section in _SECTIONS)
