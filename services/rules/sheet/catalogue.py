"""What each preset is and where it comes from: for people to choose by, and the README's table.

Only the two texts of a preset are written by hand; decks, declaring, multiplier and match end are read from
its options.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from services.rules.options import (
    Declaring,
    FirstDeclarer,
    MatchEnd,
    Multiplier,
    RuleSet,
    Window,
)
from services.rules.presets import PRESETS
from services.rules.sheet.said import Said, listed
from services.rules.shown import Language

SOURCES: Final[Mapping[str, Said]] = {
    "000": Said("讲一到四副牌各种打法的网页", "a page on games with one to four decks"),
    "001": Said(
        "一到三副牌、发完牌再亮主的规则", "rules for one to three decks, trump declared after the deal"
    ),
    "002": Said("闭牌规则，附 001 的另一版本", "rules of “closed” play, with another version of 001"),
    "003": Said("两副牌的比赛规则", "tournament rules for two decks"),
    "004": Said("四副牌、底牌十二张的规则", "rules for four decks with a kitty of twelve"),
}
"""The five documents by their short names."""


class Note(NamedTuple):
    """What a preset is.

    Attributes:
        what: in a few words.
        source: the document that it follows, and where in it.
    """

    what: Said
    source: Said


def _note(zh: str, en: str, source_zh: str, source_en: str = "") -> Note:
    return Note(Said(zh, en), Said(source_zh, source_en or source_zh))


NOTES: Final[Mapping[str, Note]] = {
    "classic-1d": _note(
        "一副牌打百分，分数段减半", "one deck, the two-deck game with its scores halved", "000 §3.2.1"
    ),
    "classic-1d-2c": _note(
        "一副牌，只分红黑两色", "one deck in two colours, so that pairs exist", "000 §3.2.2"
    ),
    "classic-2d": _note(
        "两副牌的经典打法：双升、80 分",
        "the classic game: two decks, 80 points",
        "000 §3.1 及另一份抄本",
        "000 §3.1 and its second copy",
    ),
    "classic-2d-fixed2": _note("经典两副牌，2 为常主", "the classic game with permanent twos", "000 §3.1"),
    "classic-3d": _note(
        "三副牌，有三张和连三张", "three decks, with triples and tractors of them", "000 §3.3"
    ),
    "classic-4d": _note(
        "四副牌不留底，暗叫，2 为常主",
        "four decks without a kitty, sealed declaring, permanent twos",
        "000 §3.4",
    ),
    "basic-1d": _note("一副牌，发完再亮，后翻为准", "one deck, the last flip after the deal wins", "001"),
    "basic-1d-power": _note(
        "同 basic-1d，抠底按张数乘方",
        "basic-1d with the kitty multiplied by powers of two",
        "002 后文",
        "002, its later text",
    ),
    "basic-2d": _note("两副牌，发完再亮，后翻为准", "two decks, the last flip after the deal wins", "001"),
    "basic-2d-power": _note(
        "同 basic-2d，抠底按张数乘方",
        "basic-2d with the kitty multiplied by powers of two",
        "002 后文",
        "002, its later text",
    ),
    "basic-3d": _note("三副牌，发完再亮，张数多者反", "three decks, declared after the deal, rising", "001"),
    "closed-1d": _note("闭牌，一副牌", "closed play with one deck", "002"),
    "closed-2d": _note("闭牌，两副牌", "closed play with two decks", "002"),
    "closed-3d": _note("闭牌，三副牌，至少亮一对", "closed play with three decks, a pair to declare", "002"),
    "closed-4d": _note(
        "闭牌，四副牌，没有拖拉机和甩牌", "closed play with four decks, no tractors, no throws", "002"
    ),
    "tournament-2d": _note(
        "两副牌比赛规则：配王报主、炒底、暴动",
        "two decks by tournament rules: jokers back declarations, re-bury counters, mutiny",
        "003",
    ),
    "bigkitty-4d": _note(
        "四副牌，底牌十二张，同牌不拆，逃跑罚分",
        "four decks, a kitty of twelve, groups stay together, leaving costs",
        "004",
    ),
}
"""Every preset's note."""


def facts(rules: RuleSet) -> tuple[tuple[Said, Said], ...]:
    """What tells rule sets apart at a glance, as (name, value)."""
    return (
        (Said("牌", "decks"), Said(f"{rules.decks} 副", str(rules.decks))),
        (Said("每人+底牌", "cards + kitty"), Said(*[f"{rules.hand_size}+{rules.kitty}"] * 2)),
        (Said("亮主", "declaring"), _declaring(rules)),
        (Said("抠底", "multiplier"), _MULTIPLIERS[rules.multiplier]),
        (Said("胜负", "match"), _match(rules)),
    )


def _declaring(rules: RuleSet) -> Said:
    if rules.declaring is Declaring.JOKER_BACKED:
        return Said("级牌配王", "a level card with its joker")
    when = {
        Window.DURING_DEAL: Said("摸牌时", "while drawing"),
        Window.AFTER_DEAL: Said("发完后", "after the deal"),
    }[rules.window]
    who = {
        FirstDeclarer.FIRST: Said("先亮者坐庄", "first one is declarer"),
        FirstDeclarer.LAST: Said("定主者坐庄", "last one is declarer"),
    }[rules.first_declarer]
    return listed([when, who], zh="，")


_MULTIPLIERS: Final[Mapping[Multiplier, Said]] = {
    Multiplier.POWER: Said("张数乘方", "powers of two"),
    Multiplier.TITANIC: Said("连三张 2×3ⁿ，连对 2×2ⁿ", "2×3ⁿ, 2×2ⁿ for tractors"),
    Multiplier.CLOSED: Said("按牌型 2 到 16 倍", "2 to 16 by shape"),
    Multiplier.PAIRS: Said("连对每对 4 倍", "4 for each pair of a tractor"),
    Multiplier.LAST_TRICK: Said("末轮分乘张数", "the last trick by its cards"),
}


def _match(rules: RuleSet) -> Said:
    end = {
        MatchEnd.REACH_ACE: Said("先到 A", "reach A"),
        MatchEnd.PASS_ACE: Said("打过 A", "pass A"),
        MatchEnd.LOOP: Said("循环", "levels in a loop"),
    }[rules.match_end]
    return listed([end, Said(f"{rules.deals} 局", f"{rules.deals} deals")], zh="，") if rules.deals else end


def markdown(language: Language) -> str:
    """The table of presets as Markdown, for the README."""
    first = facts(next(iter(PRESETS.values())))
    names = [
        Said("预设", "preset"),
        Said("是什么", "what it is"),
        Said("来源", "from"),
        *(name for name, _ in first),
    ]
    lines = [[name.tell(language) for name in names], ["---"] * len(names)]
    for name, rules in PRESETS.items():
        note = NOTES[name]
        cells = [note.what, note.source, *(value for _, value in facts(rules))]
        lines.append([f"`{name}`", *(cell.tell(language) for cell in cells)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"
