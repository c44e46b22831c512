"""The EASY bot: anything legal, with equal chances."""

from random import Random

from services.bot.actions import Bury, Counter, Declare, Pass, Play
from services.bot.counter import counters
from services.bot.declare import Drawn, known_declarations, showings
from services.bot.follows import LISTED
from services.bot.memory import Memory
from services.bot.situation import Situation
from services.rules.bury import fixed_bury, refuse_bury
from services.rules.options import RuleSet


def declare(
    memory: Memory, rules: RuleSet, drawn: Drawn, rng: Random, own: bytes = b""
) -> Declare | Pass | None:
    """Any showing or none; after the last card none is a pass. ``own``: as for ``declare.declare``."""
    state = known_declarations(memory, rules, drawn.seat, own)
    options: list[bytes | None] = [None, *showings(rules, memory, drawn, state)]
    cards = rng.choice(options)
    if cards is not None:
        return Declare(cards)
    return Pass() if drawn.complete else None


def counter(memory: Memory, rules: RuleSet, drawn: Drawn, rng: Random) -> Counter | Pass:
    """Any counter, or a pass."""
    cards = rng.choice([None, *counters(rules, memory, drawn)])
    return Pass() if cards is None else Counter(cards)


def bury(s: Situation, rng: Random) -> Bury:
    """Any cards; the server's own choice where these may not be buried."""
    cards = bytes(sorted(rng.sample(s.hand, s.rules.kitty)))
    if refuse_bury(s.rules, s.hand, cards) is not None:
        cards = fixed_bury(s.rules, s.order, s.hand)
    return Bury(cards)


def play(s: Situation, rng: Random) -> Play:
    """Any plain lead or legal follow of the engine's list."""
    counts = s.counts()
    if s.memory.trick:
        listing = s.order.lead(s.memory.trick[0][1]).follows(counts, LISTED)
    else:
        listing = s.order.leads(counts, LISTED)
    return Play(rng.choice(listing.plays))
