"""Positions by readable card texts."""

from collections.abc import Callable, Sequence

import pytest

from services.bot.memory import Memory
from services.bot.situation import Situation
from services.game.wire import cards_to_wire, level_to_wire, trump_to_wire
from services.pb.event.v1 import event_pb2 as pb
from services.rules.cards import SEATS, parse_cards, parse_level, parse_trump
from services.rules.presets import preset


def cards(text: str) -> bytes:
    return parse_cards(text.split())


def started(memory: Memory, level: str, first_drawer: int = 0, holder: int | None = 0) -> None:
    deal = pb.DealStarted(deal=1, first_drawer=first_drawer, level=level_to_wire(parse_level(level)))
    if holder is not None:
        deal.declarer = holder
    memory.observe(pb.Event(deal_started=deal))


def settled(memory: Memory, trump: str, declarer: int = 0) -> None:
    two_colour = memory.rules.two_colour
    wire = trump_to_wire(parse_trump(trump, two_colour=two_colour), two_colour=two_colour)
    memory.observe(pb.Event(declaring_closed=pb.DeclaringClosed(trump=wire, declarer=declarer)))


def played(memory: Memory, seat: int, text: str, attempted: str = "") -> None:
    play = pb.CardsPlayed(
        seat=seat, cards=cards_to_wire(cards(text)), attempted=cards_to_wire(cards(attempted))
    )
    memory.observe(pb.Event(cards_played=play))


def trick_taken(memory: Memory, seat: int) -> None:
    memory.observe(pb.Event(trick_taken=pb.TrickTaken(seat=seat)))


def situation_of(
    hand: str,
    *,
    trick: Sequence[tuple[int, str]] = (),
    tricks: Sequence[Sequence[tuple[int, str]]] = (),
    name: str = "classic-2d",
    level: str = "2",
    trump: str = "S",
    seat: int = 0,
    declarer: int = 0,
    buried: str = "",
    size: int | None = None,
) -> Situation:
    """What ``seat`` sees: finished tricks (each a list of plays), the open trick, its own hand.

    The others hold as many cards as ``size``, by default as many as the hand, one more or less as they have
    played.
    """
    rules = preset(name)
    memory = Memory(rules)
    started(memory, level)
    settled(memory, trump, declarer)
    for plays in tricks:
        for player, text in plays:
            played(memory, player, text)
        trick_taken(memory, 0)
    for player, text in trick:
        played(memory, player, text)
    held = cards(hand)
    count = len(held) if size is None else size
    sizes = [count] * SEATS
    for player, text in trick:
        sizes[player] -= len(text.split())
    assert memory.order is not None
    return Situation(
        rules=rules,
        order=memory.order,
        memory=memory,
        seat=seat,
        hand=bytes(sorted(held)),
        buried=cards(buried),
        sizes=sizes,
        kitty_size=rules.kitty,
    )


@pytest.fixture
def scene() -> Callable[..., Situation]:
    return situation_of


@pytest.fixture
def tell() -> type:
    """Ways to tell a memory what happened."""

    class Tell:
        cards = staticmethod(cards)
        started = staticmethod(started)
        settled = staticmethod(settled)
        played = staticmethod(played)
        trick_taken = staticmethod(trick_taken)

    return Tell
