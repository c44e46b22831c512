"""What a bot does: the one entrance to the policy.

A choice is a pure function of what the seat is shown (a view), of the public history (a memory) and, for
EASY, of a generator seeded from table, version, seat and round: any process that serves the bot makes the
same choice.
"""

from random import Random
from typing import Final

from services.bot import easy
from services.bot.actions import Action, Bury, CallMutiny, Counter, Declare, Pass, Play, Ready, TakeBack
from services.bot.bury import bury
from services.bot.counter import counter, wants_redeal
from services.bot.declare import Drawn, declare
from services.bot.follow import follow
from services.bot.lead import lead
from services.bot.memory import Memory
from services.bot.situation import Situation
from services.game.wire import stored_cards
from services.pb.event.v1.event_pb2 import Difficulty
from services.pb.table.v1.view_pb2 import Phase, TableView
from services.rules import mutiny
from services.rules.declaring import asked
from services.rules.options import RuleSet, Window

STRONGER_THAN_RULES: Final = (Difficulty.DIFFICULTY_HARD, Difficulty.DIFFICULTY_MASTER)
"""Difficulties that NORMAL answers for now; the service counts them as fall-backs."""


def choose(
    view: TableView,
    rules: RuleSet,
    memory: Memory,
    difficulty: int,
    drawn: int | None = None,
) -> Action | None:
    """What the seat of a view does now.

    Args:
        view: the table as the seat is shown it.
        rules: the table's rules.
        memory: the public events up to the view's version.
        difficulty: ``event.v1.Difficulty``.
        drawn: while cards are drawn, decide as if only so many were (the first ones); ``None`` = all shown.

    Returns:
        The action, or ``None`` when there is nothing to do.
    """
    seat = view.my_seat
    mine = view.seats[seat]
    if mine.escaped:
        return None
    if mine.auto_play:
        return TakeBack()
    easily = difficulty == Difficulty.DIFFICULTY_EASY
    if view.phase in (Phase.PHASE_SEATING, Phase.PHASE_SCORED):
        return None if mine.ready else Ready()
    if view.phase == Phase.PHASE_DECLARING:
        return _declare(view, rules, memory, easily, drawn)
    if seat not in view.to_act:
        return None
    if view.phase == Phase.PHASE_MUTINY:
        return _on_mutiny(view, rules, memory, easily)
    if view.phase == Phase.PHASE_COUNTER:
        return _on_counter(view, rules, memory, easily)
    if view.phase == Phase.PHASE_BURY:
        s = situation(view, rules, memory)
        return easy.bury(s, _generator(view)) if easily else Bury(bury(s))
    if view.phase == Phase.PHASE_TRICKS:
        s = situation(view, rules, memory)
        return easy.play(s, _generator(view)) if easily else _play(s)
    return None


def situation(view: TableView, rules: RuleSet, memory: Memory) -> Situation:
    """A view and its memory as the policy reads them, once trump is settled."""
    assert memory.order is not None, "trump is settled before the bury"
    burying = view.phase == Phase.PHASE_BURY
    return Situation(
        rules=rules,
        order=memory.order,
        memory=memory,
        seat=view.my_seat,
        hand=bytes(sorted(stored_cards(view.hand))),
        buried=b"" if burying else stored_cards(view.kitty),
        sizes=[seat.hand_size for seat in view.seats],
        kitty_size=view.kitty_size,
    )


def _declare(
    view: TableView, rules: RuleSet, memory: Memory, easily: bool, drawn: int | None
) -> Action | None:
    seat = view.my_seat
    count = view.drawn if drawn is None else min(drawn, view.drawn)
    complete = count >= rules.hand_size
    if seat not in asked(rules, memory.dealt, memory.declarations):
        return None
    if rules.window is Window.AFTER_DEAL and not complete:
        return None
    has = Drawn(seat, stored_cards(view.hand)[:count], complete)
    own = stored_cards(view.standing.cards) if view.HasField("standing") else b""
    if easily:
        return easy.declare(memory, rules, has, _generator(view, count), own)
    cards = declare(memory, rules, has, own)
    if cards is not None:
        return Declare(cards)
    return Pass() if complete else None


def _on_mutiny(view: TableView, rules: RuleSet, memory: Memory, easily: bool) -> Action:
    seat, hand = view.my_seat, stored_cards(view.hand)
    assert memory.order is not None, "trump is settled before a mutiny"
    if not mutiny.may_call(rules, memory.order, view.declarer, seat, hand):
        return Pass()
    wanted = _generator(view).random() < 0.5 if easily else wants_redeal(memory, rules, hand)
    return CallMutiny() if wanted else Pass()


def _on_counter(view: TableView, rules: RuleSet, memory: Memory, easily: bool) -> Action:
    has = Drawn(view.my_seat, stored_cards(view.hand), complete=True)
    if easily:
        return easy.counter(memory, rules, has, _generator(view))
    cards = counter(memory, rules, has)
    return Pass() if cards is None else Counter(cards)


def _generator(view: TableView, drawn: int = 0) -> Random:
    """The generator of one choice of EASY; alike in every process."""
    return Random(f"{view.table_id}/{view.version}/{view.my_seat}/{drawn}")


def _play(s: Situation) -> Play:
    trick = s.memory.trick
    return Play(follow(s, s.order.lead(trick[0][1])) if trick else lead(s))
