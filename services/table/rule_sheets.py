"""Rule sheets as messages: the words are ``services.rules.sheet``'s."""

from functools import lru_cache

from services.game.wire import cards_to_wire
from services.pb.table.v1 import rule_sheet_pb2 as pb
from services.rules.cards import parse_cards
from services.rules.options import RuleSet
from services.rules.sheet import Example, Language, Paragraph, Section, sheet
from services.shell.errors import locale_of
from services.table.requests import bad


def language_of(asked: str, accept_language: str) -> Language:
    """The language of a sheet: the one asked for, else that of the header.

    Raises:
        RefusedError: BAD_INPUT for a language that no sheet has.
    """
    if not asked:
        return "zh" if locale_of(accept_language) == "zh" else "en"
    tag = asked.lower().replace("_", "-").partition("-")[0]
    if tag == "zh":
        return "zh"
    if tag == "en":
        return "en"
    raise bad("language", "must be zh or en")


@lru_cache(maxsize=256)
def sheet_to_wire(rules: RuleSet, language: Language) -> pb.RuleSheet:
    """The sheet of a rule set in one language; not to be changed by who gets it."""
    return pb.RuleSheet(language=language, sections=[_section(part, language) for part in sheet(rules)])


def _section(section: Section, language: Language) -> pb.RuleSection:
    return pb.RuleSection(
        key=section.key,
        title=section.title.tell(language),
        paragraphs=[_paragraph(paragraph, language) for paragraph in section.paragraphs],
        examples=[_example(example, language) for example in section.examples],
    )


def _paragraph(paragraph: Paragraph, language: Language) -> pb.RuleParagraph:
    return pb.RuleParagraph(
        text=paragraph.said.tell(language),
        steps=[step.tell(language) for step in paragraph.steps],
        table=[pb.RuleRow(cells=[cell.tell(language) for cell in row]) for row in paragraph.table],
    )


def _example(example: Example, language: Language) -> pb.RuleExample:
    return pb.RuleExample(
        setting=example.setting.tell(language),
        hands=[
            pb.RuleHand(label=hand.label.tell(language), cards=cards_to_wire(parse_cards(hand.cards)))
            for hand in example.hands
        ],
        text=example.said.tell(language),
    )
