"""A rule sheet, as ``GetRules`` sends it, in lines of the screen. Pure."""

from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from services.cli.columns import pad, screen_width, wrap
from services.game.wire import cards_from_wire
from services.pb.table.v1.rule_sheet_pb2 import RuleExample, RuleParagraph, RuleSheet
from services.rules.cards import card_texts
from services.rules.shown import Language, cards_text, language_of


def sheet_lines(sheet: RuleSheet) -> list[Text]:
    """The whole sheet."""
    return [Text(line, style="bold" if title else "") for title, line in _lines(sheet)]


def _lines(sheet: RuleSheet) -> Iterator[tuple[bool, str]]:
    language = language_of(sheet.language)
    for number, section in enumerate(sheet.sections, 1):
        yield False, ""
        yield True, f"{number}. {section.title}"
        for paragraph in section.paragraphs:
            yield from ((False, line) for line in _paragraph(paragraph))
        for example in section.examples:
            yield from ((False, line) for line in _example(example, language))


def _paragraph(paragraph: RuleParagraph) -> Iterator[str]:
    yield from wrap(paragraph.text, screen_width(), "  ", "  ")
    for number, step in enumerate(paragraph.steps, 1):
        yield from wrap(step, screen_width(), f"    {number:>2}. ", " " * 8)
    column = max((cell_len(row.cells[0]) for row in paragraph.table), default=0)
    for row in paragraph.table:
        yield from wrap(
            "  ".join(row.cells[1:]), screen_width(), f"    {pad(row.cells[0], column)}  ", "      "
        )


def _example(example: RuleExample, language: Language) -> list[str]:
    hands = [
        f"{hand.label} {cards_text(card_texts(cards_from_wire(hand.cards)), language)}".strip()
        for hand in example.hands
    ]
    told = f"({example.setting}) {('；' if language == 'zh' else '; ').join(hands)} → {example.text}"
    return wrap(told, screen_width(), "    · ", "      ")
