"""The judge (RULES §11): one JSON case a line in, one JSON answer a line out. Pure and total.

``judge_line`` answers whatever it is given; only a blank line has no answer. The checks of a case come in
this order, and the first that fails is the answer: the line is a JSON object; ``id``; ``preset``; ``kind``;
then the fields of the kind in the order of the tables below, each for its own form, its cards and its copies;
then what they must be together (one suit, equal numbers).

=======  ====================================================  =====================================
kind     fields                                                result
=======  ====================================================  =====================================
shape    level trump cards                                     components
follow   level trump lead hand play                            legal, reason, owed
throw    level trump lead others                               played, or refused
trick    level trump plays                                     winner, points
kitty    level trump plays kitty                               multiplier
score    attackers_points                                      declarers_up, attackers_up,
                                                               attackers_take_over
declare  level first_deal declarer kitty declarations hands    accepted, trump, declarer
=======  ====================================================  =====================================
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from engine_ext.codes import Verdict
from services.rules import scoring
from services.rules.cards import CARD_TEXTS, SEATS, card_texts, counts_of, points, trump_text
from services.rules.declaring import Deal, Declarations, Refusal, judge_pass, judge_showing, settle
from services.rules.joker_backed import judge_counter
from services.rules.judge_fields import SYSTEMS, Case, CaseError, System, bad_input, seat_field, text_field
from services.rules.options import Declaring
from services.rules.reasons import Reason

Result = dict[str, object]

_REASONS: Final = tuple(verdict.name.lower() for verdict in Verdict)
"""A verdict's reason by its number."""


def judge_lines(lines: Iterable[str]) -> Iterator[str]:
    """The answers to lines, in order; blank lines are skipped."""
    for line in lines:
        answer = judge_line(line)
        if answer is not None:
            yield answer


def judge_line(line: str) -> str | None:
    """The answer to one line, without a line break; ``None`` for a blank line."""
    if not line or line.isspace():
        return None
    case_id: object = None
    try:
        case = _read(line)
        case_id = _id_of(case)
        return _write({"id": case_id, "result": judge_case(case)})
    except CaseError as error:
        return _write({"id": case_id, "error": {"code": error.code.value, "message": error.text}})


def judge_case(case: Case) -> Result:
    """The result of a case that has been read.

    Raises:
        CaseError: it makes no sense.
    """
    preset = text_field(case, "preset")
    system = SYSTEMS.get(preset)
    if system is None:
        raise CaseError(Reason.UNKNOWN_PRESET, preset=repr(preset[:60]))
    return judge_with(system, case)


def judge_with(system: System, case: Case) -> Result:
    """The result of a case under any rule set; the case names no preset.

    Raises:
        CaseError: it makes no sense.
    """
    kind = text_field(case, "kind")
    judge = _KINDS.get(kind)
    if judge is None:
        raise CaseError(Reason.UNKNOWN_KIND, kind=repr(kind[:60]))
    return judge(system, case)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_decode: Final = json.JSONDecoder(parse_constant=_refuse_constant).decode
_write: Final = json.JSONEncoder().encode


def _read(line: str) -> dict[str, Any]:
    try:
        case = _decode(line)
    except (ValueError, RecursionError):
        raise bad_input("line", "must be a JSON object") from None
    if type(case) is not dict:
        raise bad_input("line", "must be a JSON object")
    return case


def _id_of(case: Case) -> object:
    """The id, which may be missing, text or a number that JSON can print."""
    case_id = case.get("id")
    if case_id is None or isinstance(case_id, str | int):
        return case_id
    if isinstance(case_id, float) and math.isfinite(case_id):
        return case_id
    raise bad_input("id", "must be text or a number")


def _shape(system: System, case: Case) -> Result:
    order = system.order(case)
    cards = system.some_cards("cards", case.get("cards"))
    order.require_one_suit(cards)
    return {"components": [f"{c.width}x{c.length}" for c in order.engine.shape(cards)]}


def _follow(system: System, case: Case) -> Result:
    order = system.order(case)
    cards = system.some_cards("lead", case.get("lead"))
    hand = system.cards("hand", case.get("hand"))
    play = system.cards("play", case.get("play"))
    order.require_one_suit(cards)
    lead = order.lead(cards)
    verdict = lead.check_cards(hand, play)
    if verdict == Verdict.OK:
        return {"legal": True}
    answer: Result = {"legal": False, "reason": _REASONS[verdict]}
    if verdict == Verdict.MUST_FOLLOW_SHAPE:
        owed = lead.owed(counts_of(hand))
        answer["owed"] = [[f"{width}x{length}" for width, length in groups] for groups in owed]
    return answer


def _throw(system: System, case: Case) -> Result:
    order = system.order(case)
    lead = system.some_cards("lead", case.get("lead"))
    others = system.hands("others", case.get("others"), SEATS - 1)
    thrown = order.engine.throw(lead, others)
    if thrown.verdict != Verdict.OK:
        return {"refused": _REASONS[thrown.verdict]}
    return {"played": sorted(card_texts(thrown.played))}


def _trick(system: System, case: Case) -> Result:
    order = system.order(case)
    plays = system.plays(order, case.get("plays"))
    return {"winner": order.engine.winner(plays), "points": sum(points(play) for play in plays)}


def _kitty(system: System, case: Case) -> Result:
    order = system.order(case)
    plays = system.plays(order, case.get("plays"))
    system.cards("kitty", case.get("kitty"))
    return {"multiplier": order.engine.multiplier(plays)}


def _score(system: System, case: Case) -> Result:
    total = case.get("attackers_points")
    if type(total) is not int:
        raise bad_input("attackers_points", "must be a whole number", total)
    result = scoring.result(system.rules.level_table, total)
    return {
        "declarers_up": result.declarers_up,
        "attackers_up": result.attackers_up,
        "attackers_take_over": result.attackers_take_over,
    }


def _declare(system: System, case: Case) -> Result:
    """Declarations in order, all held; the window closes after the last.

    Seat 0 draws first on a first deal, the declarer later.
    """
    rules = system.rules
    deal = _deal(system, case)
    kitty = system.cards("kitty", case.get("kitty"))
    showings = _showings(system, case.get("declarations"))
    hands = case.get("hands")
    held = None if hands is None else system.hands("hands", hands, SEATS)
    state = Declarations()
    accepted = []
    for seat, cards in showings:
        answer = _show(system, deal, state, seat, cards)
        accepted.append(not isinstance(answer, Refusal))
        if not isinstance(answer, Refusal):
            state = answer
    settled = settle(rules, deal, state, kitty, held)
    return {
        "accepted": accepted,
        "trump": trump_text(settled.trump, two_colour=rules.two_colour),
        "declarer": settled.declarer,
        "turned": None if settled.turned is None else CARD_TEXTS[settled.turned],
    }


def _deal(system: System, case: Case) -> Deal:
    level = system.level(case)
    first_deal = case.get("first_deal")
    if type(first_deal) is not bool:
        raise bad_input("first_deal", "must be true or false", first_deal)
    declarer = case.get("declarer")
    if first_deal:
        if declarer is not None:
            raise bad_input("declarer", "must be null on a first deal", declarer)
        return Deal(level, declarer=None, first_drawer=0)
    seat = seat_field("declarer", declarer)
    return Deal(level, declarer=seat, first_drawer=seat)


def _showings(system: System, value: object) -> list[tuple[int, bytes]]:
    if type(value) is not list:
        raise bad_input("declarations", "must be a list", value)
    showings = []
    for index, entry in enumerate(value):
        field = f"declarations[{index}]"
        if type(entry) is not dict:
            raise bad_input(field, "must be an object with seat and cards", entry)
        seat = seat_field(f"{field}.seat", entry.get("seat"))
        showings.append((seat, system.cards(f"{field}.cards", entry.get("cards"))))
    return showings


def _show(system: System, deal: Deal, state: Declarations, seat: int, cards: bytes) -> Declarations | Refusal:
    """One showing; on a later deal of ``joker_backed`` as if made at the time when it could be.

    There an attacker's opening counts as made after both of the declaring side passed, and what follows an
    opening as a counter after a bury (003).
    """
    if system.rules.declaring is Declaring.JOKER_BACKED and deal.declarer is not None:
        if state.standing is not None:
            return judge_counter(system.rules, deal, state, seat, cards)
        if seat % 2 != deal.declarer % 2:
            state = _passed(_passed(state, deal.declarer), (deal.declarer + 2) % SEATS)
    return judge_showing(system.rules, deal, state, seat, cards)


def _passed(state: Declarations, seat: int) -> Declarations:
    answer = judge_pass(state, seat)
    return state if isinstance(answer, Refusal) else answer


_KINDS: Final[Mapping[str, Callable[[System, Case], Result]]] = {
    "shape": _shape,
    "follow": _follow,
    "throw": _throw,
    "trick": _trick,
    "kitty": _kitty,
    "score": _score,
    "declare": _declare,
}
