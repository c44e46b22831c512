"""`shengji rules`: what the rules of a preset are, in words; or what presets there are."""

import json
import os
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

import click
from rich.cells import cell_len

from services.cli.columns import pad, screen_width, wrap
from services.cli.option_table import option_lines
from services.rules.option_forms import RuleError
from services.rules.options import RuleSet
from services.rules.presets import PRESETS, UnknownPreset, preset
from services.rules.reasons import Reason, message
from services.rules.sheet import LANGUAGES, Example, Language, Paragraph, Said, Section, sheet
from services.rules.sheet.catalogue import NOTES, SOURCES, facts
from services.rules.shown import cards_text, language_of

_INDENT: Final = "  "


@click.command(short_help="Print the rules of a preset in words, or list the presets.")
@click.argument("name", metavar="[PRESET]", required=False)
@click.option("--lang", type=click.Choice(LANGUAGES), default=None, help="Language [that of LC_ALL or LANG].")
@click.option(
    "--option",
    "options",
    metavar="NAME=JSON",
    multiple=True,
    help="Change a rule, such as permanent_twos=true; may be given again.",
)
@click.option("--options", "table", is_flag=True, help="List every option, what it may be and what it means.")
def rules(name: str | None, lang: Language | None, options: tuple[str, ...], table: bool) -> None:
    """Print the rules of a preset, with single options changed; without PRESET, list the presets.

    The text is made from the rules themselves, and its examples are judged by the engine. What --option
    takes, here and in `shengji play`, --options lists.
    """
    language = lang or locale_language(os.environ)
    if name is None:
        if options:
            raise click.UsageError("--option needs a PRESET")
        if table:
            raise click.UsageError("--options needs a PRESET")
        lines = _presets(language)
    elif table:
        lines = option_lines(_chosen(name, options, language), screen_width())
    else:
        lines = _sheet(name, _chosen(name, options, language), language)
    click.echo("\n".join(lines))


def locale_language(environment: Mapping[str, str]) -> Language:
    """The language of a locale's environment; English unless it names Chinese."""
    named = (environment.get(variable, "") for variable in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return language_of(next(filter(None, named), ""))


def _chosen(name: str, options: tuple[str, ...], language: Language) -> RuleSet:
    try:
        chosen = preset(name)
    except UnknownPreset:
        raise click.BadParameter(message(Reason.UNKNOWN_PRESET, language, preset=name)) from None
    values: dict[str, object] = {}
    for option in options:
        key, equals, text = option.partition("=")
        if not equals:
            raise click.BadParameter(f"{option!r} is not NAME=JSON", param_hint="--option")
        try:
            values[key] = json.loads(text)
        except ValueError:
            values[key] = text  # plain words are meant as strings: match_end=pass_ace
    try:
        return chosen.with_overrides(values)
    except RuleError as error:
        known = error.option in chosen.to_json()
        reason = Reason.BAD_OPTION if known else Reason.UNKNOWN_OPTION
        raise click.BadParameter(
            message(reason, language, option=error.option, detail=error.message),
            param_hint="--option",
        ) from None


# --------------------------------------------------------------------------------------------- the presets


def _presets(language: Language) -> Iterator[str]:
    yield from wrap(
        Said(
            "预设的规则；`shengji rules 预设名` 给出全文。",
            "The presets; `shengji rules PRESET` tells the whole of one.",
        ).tell(language),
        screen_width(),
    )
    column = max(map(len, PRESETS)) + 2
    for name, chosen in PRESETS.items():
        note = NOTES[name]
        yield ""
        yield from wrap(note.what.tell(language), screen_width(), pad(name, column), " " * column)
        told = [f"{what.tell(language)} {value.tell(language)}" for what, value in facts(chosen)]
        told.append(f"{Said('来源', 'from').tell(language)} {note.source.tell(language)}")
        yield from wrap(" · ".join(told), screen_width(), " " * column, " " * column)
    yield ""
    yield Said("来源：", "Sources:").tell(language)
    for name, source in SOURCES.items():
        yield from wrap(source.tell(language), screen_width(), f"{_INDENT}{name}  ", " " * 7)


# ----------------------------------------------------------------------------------------------- one sheet


def _sheet(name: str, chosen: RuleSet, language: Language) -> Iterator[str]:
    what = NOTES[name].what.tell(language)
    yield from wrap(f"{name} · {what}", screen_width())
    changed = _changed(chosen)
    if changed:
        yield from wrap(changed, screen_width(), _INDENT, _INDENT)
    for number, section in enumerate(sheet(chosen), 1):
        yield ""
        yield from wrap(f"{number}. {section.title.tell(language)}", screen_width())
        yield from _section(section, language)


def _changed(chosen: RuleSet) -> str:
    """The options that differ from the preset, as they may be given."""
    before, after = PRESETS[chosen.preset].to_json(), chosen.to_json()
    return " ".join(f"{name}={json.dumps(after[name])}" for name in after if after[name] != before[name])


def _section(section: Section, language: Language) -> Iterator[str]:
    for paragraph in section.paragraphs:
        yield from _paragraph(paragraph, language)
    if section.examples:
        yield ""
    for setting, examples in groupby(section.examples, key=lambda example: example.setting):
        heading = Said(f"例（{setting.zh}）：", f"Examples ({setting.en}):")
        yield from wrap(heading.tell(language), screen_width(), _INDENT, _INDENT)
        for example in examples:
            yield from wrap(_example(example, language), screen_width(), "    ", "      ")


def _paragraph(paragraph: Paragraph, language: Language) -> Iterator[str]:
    yield from wrap(paragraph.said.tell(language), screen_width(), _INDENT, _INDENT)
    for number, step in enumerate(paragraph.steps, 1):
        yield from wrap(step.tell(language), screen_width(), f"    {number:>2}. ", " " * 8)
    for left, right in _rows(paragraph, language):
        yield from wrap(right, screen_width(), f"    {left}  ", "    ")


def _rows(paragraph: Paragraph, language: Language) -> list[tuple[str, str]]:
    told = [[cell.tell(language) for cell in row] for row in paragraph.table]
    if not told:
        return []
    column = max(cell_len(row[0]) for row in told)
    return [(pad(row[0], column), "  ".join(row[1:])) for row in told]


def _example(example: Example, language: Language) -> str:
    hands = (
        f"{hand.label.tell(language)} {cards_text(hand.cards, language)}".strip() for hand in example.hands
    )
    return f"{Said('；', '; ').tell(language).join(hands)} → {example.said.tell(language)}"
