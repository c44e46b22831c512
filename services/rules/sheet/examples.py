"""Worked examples as data: cards, and what to say for each answer that an engine can give.

Most come from the sources (their short names are in the comments). An example says nothing about the rules
by itself: ``worked.py`` judges it under a rule set and tells the text of the answer.
"""

from collections.abc import Mapping
from typing import Final

from services.rules.options import RuleSet, Throws
from services.rules.sheet.cases import (
    Outcome,
    Told,
    always,
    backed,
    by_level,
    by_rank,
    can_fail,
    coloured,
    cut,
    declare,
    follow,
    last_trick,
    multiplied,
    several,
    shape,
    single_throws,
    throw,
    thrown,
    throws,
    tractors,
    trick,
    twos,
)
from services.rules.sheet.said import Said

_ORDER: Final = (
    trick(
        "T",
        ["S2", "HT", "DT"],
        (
            {"winner": 1},
            Said("两张副级牌一样大，先出的乙赢。", "two equal off level cards: B was first and wins."),
        ),
    ),
    trick(
        "T",
        ["HT", "ST", "LJ"],
        (
            {"winner": 2},
            Said(
                "主级牌大过副级牌，小王又大过主级牌。",
                "the main level card beats the off one, LJ beats both.",
            ),
        ),
    ),
    trick(
        "T",
        ["SA", "H2"],
        ({"winner": 1}, Said("副 2 大过主 A。", "an off two beats the ace of trumps.")),
        when=lambda rules: rules.permanent_twos and not rules.two_colour,
    ),
    trick(
        "T",
        ["HA", "D3"],
        ({"winner": 0}, Said("♦3 也是红色，算跟了同一门。", "♦3 is red too: it follows suit and is lower.")),
        trump="B",
    ),
)

_OUT: Final = Said("10 是级牌，J 与 9 相邻", "the tens are out, so J and 9 are adjacent")
_OPEN: Final = Said("10 的位置空着，J 与 9 不相邻", "the place of the tens stays open between J and 9")
_PRINTED: Final = Said("按牌面点数相邻", "by printed rank")


def _triples(rules: RuleSet) -> bool:
    return tractors(rules) and rules.copies >= 3


_SHAPES: Final = (
    # 000 §3.1.2
    shape("T", "HKKQQ"),
    shape("T", "HJJ99", _OUT, no=_OPEN),
    shape("T", "H554433"),
    shape("T", "LJ LJ STT", Said("小王接主级牌", "little joker and main level")),
    shape("T", "STT HTT", Said("主级牌接副级牌", "main and off level")),
    shape("T", "HTT SAA", Said("副级牌接主 A", "off level and trump ace")),
    shape("T", "HTT S22", Said("副级牌接主 2", "off level and main two"), when=twos),
    shape("T", "S22 H22", Said("主 2 接副 2", "main and off two"), when=twos),
    shape("T", "BJ BJ LJ LJ", Said("大王接小王", "big and little joker")),
    shape("T", "H5533"),
    shape("T", "HTT DTT"),
    shape("T", "HAA22"),
    # 004
    cut("HAAAAKKK", ["4x1", "3x1"], Said("四张 A 加三张 K。", "a quad and a triple."), copies=4),
    cut(
        "HJJQQQ",
        ["3x1", "2x1"],
        Said("三张 Q 加一对 J，不是 JJQQ 加 Q。", "a triple and a pair, not JJQQ and Q."),
    ),
    cut("H445555", ["4x1", "2x1"], Said("四张 5 加一对 4。", "a quad and a pair."), copies=4),
    # 000 §3.4.5, 7 and 8
    shape("3", "SAAKK", Said("有花色的主牌里最大的", "the highest of suited trumps"), when=by_rank),
    shape("3", "S2233", _PRINTED, when=by_rank),
    shape("3", "H2233", _PRINTED, when=by_rank),
    shape("3", "SAA22", Said("主牌里最小的", "the lowest of the trump suit"), when=by_rank),
    # 001, 002
    shape("5", "H333444", when=_triples),
    shape(
        "5",
        "H444666",
        Said("5 是级牌，4 与 6 相邻", "the fives are out"),
        no=Said("5 的位置空着", "the place of the fives stays open"),
        when=_triples,
    ),
    shape("5", "S555 H555", Said("主级牌接副级牌", "main and off level"), when=_triples),
    shape("5", "S555 H555", trump="NT", when=_triples),
    # 000 §3.2.2
    cut("HK DK", ["2x1"], Said("一对红 K。", "a pair of red kings."), trump="B", copies=2),
    shape("T", "D7 H7 D8 H8", trump="B"),
)

_THROWS: Final = (
    # 000 §3.1.4
    throw("H98844", "HJ", when=can_fail),
    throw("H98844", "HQQ", when=can_fail),
    throw("H98844", "H55", when=can_fail),
    throw("H98844", "H336", when=can_fail),
    # 004
    throw("H98888444", "HJ", when=can_fail),
    throw("H98888444", "HQQQQ", when=can_fail),
    throw("H98888444", "H555", when=can_fail),
    # where there are singles only
    throw("HAKJ", "HQ3", when=single_throws),
    throw("HAKJ", "H93", when=single_throws),
    # 000 §3.4.4 (D5)
    throw("HAK", "H3", "C4", when=throws),
    throw("H95", "C3", "C4", when=lambda rules: throws(rules) and rules.throws is not Throws.STANDARD),
)

_MAY: Final = Said("可以。", "allowed.")
_MAY_KEEP: Final = Said("可以：更宽的组不必拆。", "allowed: a wider group may stay whole.")
_MUST_SUIT: Final = Said("不行：手里的红桃必须跟出。", "refused: the heart must be played.")
_MUST_PAIR: Final = Said("不行：有对子必须跟对子。", "refused: a pair is held and owed.")
_MUST_BREAK: Final = Said("不行：三张要拆出一对来跟。", "refused: the triple must give a pair.")
_MUST_TRACTOR: Final = Said("不行：有拖拉机必须跟拖拉机。", "refused: a tractor is held and owed.")
_MUST_BETTER: Final = Said("不行：还有更好的牌型要跟。", "refused: a better shape is held and owed.")

_FOLLOWS: Final = (
    follow("HK", "H5 S3 C4", "S3", yes=_MAY, no=_MUST_SUIT, when=always),
    follow("HKQ", "H5 S3 C4", "H5 C4", yes=_MAY, no=_MUST_SUIT, when=single_throws),
    follow("HKK", "H5 S33 C4", "H5 C4", yes=_MAY, no=_MUST_SUIT),
    follow("HKK", "H9953", "H53", yes=_MAY, no=_MUST_PAIR),
    follow("HKKQQ", "H9988553", "H9955", yes=_MAY, no=_MUST_TRACTOR, when=tractors),
    follow(
        "HKKQQ",
        "H99875",
        "H9987",
        yes=Said("可以：没有拖拉机，先跟对子。", "allowed: there is no tractor, so the pair."),
        no=_MUST_BETTER,
        when=tractors,
    ),
    follow("HKK", "H99953", "H53", yes=_MAY_KEEP, no=_MUST_BREAK, when=several(3)),
    # 000 §3.3.3, 001
    follow("HKKK", "H99543", "H543", yes=_MAY, no=_MUST_BETTER, when=several(3)),
    follow("HKKK", "H999953", "H953", yes=_MAY_KEEP, no=_MUST_BETTER, when=several(4)),
    # 000 §3.2.2
    follow("HK DK", "H9 D9 H5 D3", "H5 D3", yes=_MAY, no=_MUST_PAIR, trump="B", when=coloured),
    # 000 §3.4.5, 6
    follow(
        "H7788",
        "HAAAA3344",
        "HAAAA",
        yes=Said("可以：四张可以代替两连对。", "allowed: a quad may stand for two pairs in a row."),
        no=_MUST_TRACTOR,
        when=lambda rules: tractors(rules) and rules.copies >= 4,
    ),
)

_RUFFED: Final[tuple[Outcome, ...]] = (
    ({"winner": 1}, Said("乙毙住。", "B ruffs.")),
    ({"winner": 0}, Said("乙的牌型不够，只是垫牌；甲赢。", "B has not the shape: a discard, A wins.")),
)
_OVERRUFFED: Final[tuple[Outcome, ...]] = (
    ({"winner": 2}, Said("乙毙，丙盖毙。", "B ruffs, C overruffs.")),
    ({"winner": 1}, Said("乙毙，丙盖不过。", "B ruffs, C does not overruff.")),
)

_TRICKS: Final = (
    # 000 §3.1.4
    trick("T", ["HAK5544", "S998872"], *_RUFFED, when=thrown),
    trick("T", ["HAA5544", "S998872"], *_RUFFED, when=thrown),
    trick("T", ["H544", "S977", "S884"], *_OVERRUFFED, when=thrown),
    trick("T", ["H567", "S977", "S884"], *_OVERRUFFED, when=thrown),
    # 002 (D29)
    trick("T", ["HAKK", "S993", "S88A"], *_OVERRUFFED, when=thrown),
    # 000 §3.2.2
    trick("T", ["H4 D4", "S9 C9"], *_RUFFED, trump="B", when=coloured),
    trick("T", ["H4 D4", "S9 CJ"], *_RUFFED, trump="B", when=coloured),
    # singles
    trick("T", ["HAK", "S93", "S84"], *_OVERRUFFED, when=single_throws),
    trick("T", ["HA", "S3", "S9"], *_OVERRUFFED, when=lambda rules: rules.copies == 1),
    # 001 牌的大小
    trick(
        "T",
        ["HKK", "S99", "SAQ"],
        ({"winner": 1}, Said("丙没有对子，只是垫牌；乙毙。", "C has no pair, a discard; B ruffs.")),
        when=several(2),
    ),
    # 004 (D28)
    trick("T", ["H44558", "SJJQQQ"], *_RUFFED, when=lambda rules: thrown(rules) and tractors(rules)),
    trick("T", ["H448", "SQQQ"], *_RUFFED, when=thrown),
    # 000 §3.4.4
    trick(
        "3",
        ["H7788", "HAAAA"],
        ({"winner": 1}, Said("四张压过同张数的两连对。", "the quad beats a tractor of as many cards.")),
        ({"winner": 0}, Said("四张压不过两连对。", "a quad does not beat a tractor.")),
        when=tractors,
    ),
    trick(
        "3",
        ["H778899", "HJJJQQQ"],
        (
            {"winner": 1},
            Said("两连三张压过同张数的三连对。", "two triples in a row beat three pairs in a row."),
        ),
        (
            {"winner": 0},
            Said("两连三张压不过三连对。", "two triples in a row do not beat three pairs in a row."),
        ),
        when=tractors,
    ),
)

_KITTIES: Final = (
    # 000 §3.3.5, 001, 002 抠底
    last_trick("HK", when=multiplied(1)),
    last_trick("H4 D4", when=lambda rules: coloured(rules) and multiplied(2)(rules)),
    last_trick("H44", when=multiplied(2)),
    last_trick("H555", when=multiplied(3)),
    last_trick("H5555", when=multiplied(4)),
    last_trick("H4455", when=multiplied(2, tractor=True)),
    last_trick("H445566", when=multiplied(2, tractor=True)),
    last_trick("H444555", when=multiplied(3, tractor=True)),
    last_trick("HAKQJ", when=multiplied(1, throw=True)),
    last_trick("HAAJJ", when=multiplied(2, throw=True)),
    last_trick("HAKQJT9877", when=multiplied(2, throw=True)),
)

_DECLARES: Final = (
    declare("T", (0, "HT"), (1, "DT"), when=by_level(1)),
    declare("T", (0, "HT"), (1, "DTT"), when=by_level(2)),
    declare("T", (0, "HTT"), (1, "LJ LJ"), when=by_level(2, 2)),
    declare("T", (0, "HTT"), (1, "DTTT"), when=by_level(3)),
    declare("T", (0, "LJ LJ"), (1, "BJ BJ"), when=by_level(1, 2)),
    declare("T", (0, "HT"), (0, "HTT"), (1, "DTT"), when=by_level(2)),
    declare("T", (0, "HT"), (2, "HT"), (1, "DTT"), when=by_level(2)),
    declare("T", (0, "HT"), (0, "DTT"), when=by_level(2)),
    declare("T", (0, "HT"), (1, "BJ"), when=by_level(1)),
    # 000 §3.2.2
    declare("T", (0, "HT"), (1, "ST CT"), when=lambda rules: coloured(rules) and by_level(2)(rules)),
    # 003
    declare("2", (0, "H2 BJ"), when=backed),
    declare("2", (0, "H2 LJ"), when=backed),
    declare("2", (0, "S2 LJ"), (1, "D22 BJ"), when=backed),
    declare("2", (0, "S22 LJ"), (1, "D22 BJ"), (3, "BJ BJ"), when=backed),
)

EXAMPLES: Final[Mapping[str, tuple[Told, ...]]] = {
    "order": _ORDER,
    "shapes": _SHAPES,
    "declaring": _DECLARES,
    "throws": _THROWS,
    "following": _FOLLOWS,
    "winning": _TRICKS,
    "kitty": _KITTIES,
}
"""The examples by the section that tells them."""
