"""What a rule sheet is made of: texts that exist in Chinese and English, and the parts that hold them.

A text is always both languages side by side, so that a translation can be wrong but never missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from services.rules.shown import Language, cards_text

LANGUAGES: Final[tuple[Language, ...]] = ("zh", "en")


class Said(NamedTuple):
    """A text in both languages."""

    zh: str
    en: str

    def tell(self, language: Language) -> str:
        """The text in one language."""
        return self.zh if language == "zh" else self.en


class Hand(NamedTuple):
    """Cards of an example.

    Attributes:
        label: whose or what they are; empty texts where that is plain.
        cards: their texts (RULES §1), in the order shown.
    """

    label: Said
    cards: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example, judged by the engine.

    Attributes:
        setting: the level and trump that it holds for.
        hands: the cards, as shown.
        said: what comes of them.
        case: the case as the judge takes it, without a preset.
        result: what the judge answered.
    """

    setting: Said
    hands: tuple[Hand, ...]
    said: Said
    case: Mapping[str, object]
    result: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One statement, with what it introduces.

    Attributes:
        said: the statement.
        steps: an ordered list under it.
        table: a table under it; the first row is the heading.
    """

    said: Said
    steps: tuple[Said, ...] = ()
    table: tuple[tuple[Said, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """One subject of a sheet.

    Attributes:
        key: its name in code, the same in every sheet.
        title: its heading.
        paragraphs: what the rules are.
        examples: how they work.
    """

    key: str
    title: Said
    paragraphs: tuple[Paragraph, ...]
    examples: tuple[Example, ...] = ()


NOTHING: Final = Said("", "")


def plain(zh: str, en: str) -> Paragraph:
    """A paragraph that is one statement."""
    return Paragraph(Said(zh, en))


def run_on(*texts: Said | None) -> Said:
    """Sentences one after another; ``None`` is left out."""
    told = [text for text in texts if text is not None]
    return Said("".join(text.zh for text in told), " ".join(text.en for text in told))


def listed(texts: list[Said] | tuple[Said, ...], zh: str = "、", en: str = ", ") -> Said:
    """Texts as a list in one line."""
    return Said(zh.join(text.zh for text in texts), en.join(text.en for text in texts))


def times(count: int, singular: str, plural: str = "") -> str:
    """An English count: ``1 card``, ``2 cards``."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def cards_said(cards: tuple[str, ...] | list[str]) -> Said:
    """Cards for a reader in both languages."""
    return Said(cards_text(cards, "zh"), cards_text(cards, "en"))
