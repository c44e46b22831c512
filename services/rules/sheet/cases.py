"""How worked examples are written: a judge's case, what to say for each answer, and when to tell it."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Final, NamedTuple

from engine_ext.codes import MAX_WIDTH
from services.rules.cards import SEATS
from services.rules.options import Adjacency, Declaring, Multiplier, RuleSet, Throws
from services.rules.sheet.said import NOTHING, Said

Case = Mapping[str, Any]
Outcome = tuple[Mapping[str, Any], Said]
"""(fields that the judge's answer must have, what is told then)."""
When = Callable[[RuleSet], bool]


class Told(NamedTuple):
    """One example.

    Attributes:
        case: a judge's case without a preset.
        outcomes: tried in order; ``{played}``, ``{multiplier}``, … in a text are the answer's.
        when: whether it is worth telling under a rule set. What the decks or suits cannot hold need not be
            left out by it: the judge refuses such cards.
    """

    case: Case
    outcomes: tuple[Outcome, ...]
    when: When


# ------------------------------------------------------------------------------------- when to tell something


def always(_: RuleSet) -> bool:
    """Under all rules."""
    return True


def several(copies: int) -> When:
    """Where so many identical cards exist."""
    return lambda rules: rules.copies >= copies


def paired(rules: RuleSet) -> bool:
    """Where there are pairs."""
    return rules.copies > 1


def coloured(rules: RuleSet) -> bool:
    """Where there are two colours instead of suits."""
    return rules.two_colour


def tractors(rules: RuleSet) -> bool:
    """Where there are tractors."""
    return rules.tractors and rules.copies > 1


def by_rank(rules: RuleSet) -> bool:
    """Where trump tractors go by printed rank (D3)."""
    return tractors(rules) and rules.adjacency is Adjacency.PRINTED_RANK


def twos(rules: RuleSet) -> bool:
    """Where permanent twos stand in tractors."""
    return tractors(rules) and rules.permanent_twos


def throws(rules: RuleSet) -> bool:
    """Where throws exist."""
    return rules.throws is not Throws.NONE


def can_fail(rules: RuleSet) -> bool:
    """Where a throw may be tried that fails."""
    return rules.throws in {Throws.STANDARD, Throws.NOT_WHEN_OTHERS_VOID}


def thrown(rules: RuleSet) -> bool:
    """Where groups can be thrown."""
    return throws(rules) and rules.copies > 1


def single_throws(rules: RuleSet) -> bool:
    """Where only singles can be thrown."""
    return throws(rules) and rules.copies == 1


def multiplied(copies: int, *, tractor: bool = False, throw: bool = False) -> When:
    """Where the last trick multiplies something, and such a lead can be."""

    def when(rules: RuleSet) -> bool:
        counts = bool(rules.kitty) or rules.multiplier is Multiplier.LAST_TRICK
        possible = (rules.tractors or not tractor) and (throws(rules) or not throw)
        return counts and rules.copies >= copies and possible

    return when


def by_level(copies: int, jokers: int = 0) -> When:
    """Where level cards declare, and so many identical cards and jokers exist."""
    return lambda rules: (
        rules.declaring is Declaring.LEVEL_CARDS and rules.copies >= copies and rules.decks >= jokers
    )


def backed(rules: RuleSet) -> bool:
    """Where jokers back declarations."""
    return rules.declaring is Declaring.JOKER_BACKED


# ------------------------------------------------------------------------------------------ kinds of examples


def cards_from(text: str) -> list[str]:
    """Cards from ``"HKKQQ LJ"``: a suit letter and its ranks, or a joker."""
    told: list[str] = []
    for word in text.split():
        told += [word] if word in {"LJ", "BJ"} else [word[0] + rank for rank in word[1:]]
    return told


def shape(
    level: str,
    cards: str,
    yes: Said = NOTHING,
    *,
    no: Said = NOTHING,
    trump: str = "S",
    when: When = tractors,
) -> Told:
    """Groups of which one may ask whether they are a tractor; ``yes`` and ``no`` say why (not)."""
    told = cards_from(cards)
    why = Said(f"拖拉机{yes.zh and '：'}{yes.zh}。", f"a tractor{yes.en and ': '}{yes.en}.")
    why_not = Said(f"不是拖拉机{no.zh and '：'}{no.zh}。", f"no tractor{no.en and ': '}{no.en}.")
    one: list[Outcome] = [
        ({"components": [f"{width}x{len(told) // width}"]}, why)
        for width in range(2, MAX_WIDTH + 1)
        if len(told) % width == 0
    ]
    case = {"kind": "shape", "level": level, "trump": trump, "cards": told}
    return Told(case, (*one, ({}, why_not)), when)


def cut(cards: str, components: list[str], said: Said, *, trump: str = "S", copies: int = 3) -> Told:
    """Cards that are cut in the same way wherever they exist."""
    case = {"kind": "shape", "level": "T", "trump": trump, "cards": cards_from(cards)}
    return Told(case, (({"components": components}, said),), several(copies))


def throw(lead: str, *others: str, when: When) -> Told:
    """A throw of hearts; the hands of the next player and of the partner may be given."""
    cards = cards_from(lead)
    hands = [cards_from(hand) for hand in others]
    case: dict[str, object] = {"kind": "throw", "level": "T", "trump": "S", "lead": cards}
    case["others"] = [*hands, [], [], []][: SEATS - 1]
    outcomes: tuple[Outcome, ...] = (
        ({"refused": "throw_not_allowed"}, Said("现在不许甩。", "not allowed now.")),
        ({"played": sorted(cards)}, Said("成立，全部打出。", "stands: all of it is played.")),
        ({}, Said("失败，只出 {played}。", "fails: {played} is played.")),
    )
    return Told(case, outcomes, when)


def follow(
    lead: str, hand: str, play: str, *, yes: Said, no: Said, trump: str = "S", when: When = paired
) -> Told:
    """A follow that may or may not be legal."""
    case: dict[str, object] = {"kind": "follow", "level": "T", "trump": trump}
    case |= {"lead": cards_from(lead), "hand": cards_from(hand), "play": cards_from(play)}
    return Told(case, (({"legal": True}, yes), ({"legal": False}, no)), when)


def trick(level: str, plays: list[str], *outcomes: Outcome, trump: str = "S", when: When = always) -> Told:
    """Plays from the lead on; the seats not named discard cards of a suit that matters to nobody."""
    return Told({"kind": "trick", **_laid(level, plays, trump)}, outcomes, when)


def last_trick(lead: str, *, when: When) -> Told:
    """A last trick that its lead wins, and the multiplier of the kitty."""
    said = Said("{multiplier} 倍。", "times {multiplier}.")
    return Told({"kind": "kitty", **_laid("2", [lead], "NT"), "kitty": []}, (({}, said),), when)


def _laid(level: str, plays: list[str], trump: str) -> dict[str, object]:
    laid = [cards_from(play) for play in plays]
    idle = cards_from("D346789JQA" if trump == "B" else "C346789JQA")[: len(laid[0])]
    full = [*laid, *[idle] * (SEATS - len(laid))]
    return {"level": level, "trump": trump, "plays": full, "shown": len(laid)}


_SETTLED: Final = Said("{trump}，{declarer}坐庄。", "{trump}, {declarer} is declarer.")


def declare(level: str, *showings: tuple[int, str], when: When) -> Told:
    """Showings in turn on a first deal; the text says which of them count."""
    shown = [{"seat": seat, "cards": cards_from(cards)} for seat, cards in showings]
    case: dict[str, object] = {"kind": "declare", "level": level, "first_deal": True, "declarer": None}
    case |= {"kitty": [], "declarations": shown}
    outcomes: list[Outcome] = []
    for accepted in product((True, False), repeat=len(shown)):
        refused = [number for number, good in enumerate(accepted) if not good]
        outcomes.append(({"accepted": list(accepted)}, _refused_said(refused, len(shown))))
    return Told(case, tuple(outcomes), when)


def _refused_said(refused: list[int], of: int) -> Said:
    if not refused:
        return _SETTLED
    if len(refused) == of:
        return Said("不算亮主。" if of == 1 else "都不算亮主。", "that declares nothing.")
    numbers = [str(number + 1) for number in refused]
    zh, en = "、".join(numbers), " and ".join(numbers)
    does = "does" if len(refused) == 1 else "do"
    return Said(f"第 {zh} 次不算；{_SETTLED.zh}", f"no. {en} {does} not count; {_SETTLED.en}")
