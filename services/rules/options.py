"""The rule set of a table: every option of RULES §2-§10, its values, and how it is written down.

A rule set begins as a preset (``presets.py``) and may override single options. An impossible rule set never
exists: making one checks it (``option_checks.py``).
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Self, get_type_hints

from engine_ext import codes
from services.rules import option_checks, option_forms
from services.rules.cards import SEATS
from services.rules.ladders import engine_ladders
from services.rules.level_tables import LevelTable
from services.rules.option_forms import RuleError

if TYPE_CHECKING:
    import engine_ext

__all__ = [
    "ADDED_LATER",
    "RULES_VERSION",
    "Adjacency",
    "Declaring",
    "Fallback",
    "FirstDeclarer",
    "FirstDrawer",
    "ForcedComponent",
    "LevelTable",
    "MatchDeclares",
    "MatchEnd",
    "Multiplier",
    "Overruff",
    "Preference",
    "RuleError",
    "RuleSet",
    "ThrowBlockers",
    "Throws",
    "Window",
]

RULES_VERSION: Final = 1
"""Rises whenever a rule set of the same options would judge differently."""

ADDED_LATER: Final = frozenset(
    {"throw_blockers", "redeal_no_points", "redeal_few_trumps", "must_defend", "level_gap"}
)
"""Options that tables were recorded without: where one is absent it is off. Every new option joins them."""


class Adjacency(StrEnum):
    """Which trumps may stand side by side in a tractor."""

    TIERS = "tiers"
    """Neighbours in the order of cards (RULES §2)."""
    PRINTED_RANK = "printed_rank"
    """By printed rank inside one printed suit (D3)."""


class Preference(StrEnum):
    """The order of shapes in a generic ladder (RULES §5)."""

    TRACTORS_FIRST = "tractors_first"
    WIDTH_FIRST = "width_first"


class Throws(StrEnum):
    """When several components may be led at once (RULES §4, D5)."""

    STANDARD = "standard"
    ONLY_WHEN_OTHERS_VOID = "only_when_others_void"
    NOT_WHEN_OTHERS_VOID = "not_when_others_void"
    NONE = "none"


class ForcedComponent(StrEnum):
    """What a failed throw plays (RULES §4)."""

    LOWEST_BEATABLE = "lowest_beatable"
    LOWEST = "lowest"
    """D4."""
    SMALLEST = "smallest"
    """Of those that can be beaten: fewest cards first, then the lowest."""


class ThrowBlockers(StrEnum):
    """Whether the table is told who blocked a failed throw; no source says so."""

    HIDDEN = "hidden"
    SHOWN = "shown"
    """``CardsPlayed.blocked_by`` names at once every seat that can beat the component played; where D4 forces
    one that nobody beats, those that can beat another part of the throw."""


class Overruff(StrEnum):
    """What is compared between plays that qualify against a throw (RULES §6)."""

    LARGEST_COMPONENT = "largest_component"
    HIGHEST_CARD = "highest_card"
    """D29."""


class Multiplier(StrEnum):
    """How the last trick multiplies (RULES §8)."""

    POWER = "power"
    TITANIC = "titanic"
    CLOSED = "closed"
    PAIRS = "pairs"
    LAST_TRICK = "last_trick"


class Declaring(StrEnum):
    """The policy of declaring (RULES §7)."""

    LEVEL_CARDS = "level_cards"
    JOKER_BACKED = "joker_backed"


class Window(StrEnum):
    """When declarations are taken (RULES §7)."""

    DURING_DEAL = "during_deal"
    """While cards are drawn, and after."""
    AFTER_DEAL = "after_deal"


class FirstDeclarer(StrEnum):
    """Who becomes declarer on a first deal (D12)."""

    FIRST = "first"
    """The first seat whose declaration was accepted."""
    LAST = "last"
    """The seat whose declaration stands at the close."""


class Fallback(StrEnum):
    """Trump when nobody declared (RULES §7, D17, D34)."""

    KITTY_CARD = "kitty_card"
    NO_TRUMP = "no_trump"
    SPADES = "spades"


class MatchDeclares(StrEnum):
    """When the holder of a card identical to the turned one becomes declarer (RULES §7, D11, D17)."""

    NEVER = "never"
    FIRST_DEAL = "first_deal"
    ALWAYS = "always"


class FirstDrawer(StrEnum):
    """Who draws first on later deals; on a first deal it is a random seat (D18)."""

    DECLARER = "declarer"
    RANDOM = "random"


class MatchEnd(StrEnum):
    """How a match is won (RULES §8)."""

    REACH_ACE = "reach_ace"
    """A side whose level reaches or would pass A wins at once (000)."""
    PASS_ACE = "pass_ace"
    """Levels stop at A; a side wins by staying in as declarers at A (D19, D35)."""
    LOOP = "loop"
    """After A comes 2; ``deals`` ends the match (003, D37)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """Every option of a table. Levels and ranks are 0..12 for 2..A here, "2".."A" in JSON.

    Attributes:
        preset: the preset that it began from.
        decks: decks of 54 cards, 1..4.
        kitty: cards left undealt, 0 for none.
        permanent_twos: all twos are trumps (RULES §2).
        two_colour: cards of one colour and rank are identical; trump is a colour (RULES §2).
        tractors: whether adjacent groups form tractors at all.
        adjacency: which trumps are adjacent.
        level_joker_adjacent: level cards and LJ are adjacent (off in D2).
        level_gap: the place that the level cards leave in a suit stays open: at level 7, 6 and 8 are not
            adjacent, in the trump suit and in side suits. An end of a suit (level 2 or A, or 3 with permanent
            twos) has no gap. By printed rank (D3) the level fills its place in trump, so that only side suits
            change. No source has it.
        preference: the order of the generic ladder (RULES §5).
        ladders: the table of printed ladders by name (``ladders.LADDERS``).
        keep_groups_whole: an obligation leaves wider groups whole (RULES §5, 002).
        throws: when several components may be led.
        forced_component: what a failed throw plays.
        throw_blockers: whether the table is told who blocked a failed throw.
        throw_fine_points: points per returned card against the thrower's side.
        failed_throw_quarters: quarters of the base stake, each rounded down, that a failed throw costs for
            each opponent (D6: 1).
        wider_beats: a wider component of the same card count beats a led tractor (RULES §6, classic-4d).
        groups_stay_together: to win, groups must be answered by groups of exactly that width (D28).
        overruff: what is compared against a throw.
        multiplier: how the last trick multiplies.
        declaring: the policy of declaring.
        window: when declarations are taken.
        minimum_cards: fewest level cards of a declaration.
        minimum_jokers: fewest identical jokers of a declaration; 0 = jokers are never shown.
        jokers_ranked: BJ stands over LJ at equal count.
        reinforce: the standing declarer may show more of the same card (自保).
        partner_reinforce: the partner may add identical cards (对家保).
        self_counter: the standing declarer may change suit or go to no-trump by a stronger showing (自反).
        equal_overrides: another seat's showing of equal count and kind overrides too (D20).
        sealed: others see only who declared and how many cards until the window closes.
        first_declarer: who becomes declarer on a first deal (D12).
        fallback: trump when nobody declared.
        kitty_card: the number of the kitty card that is turned, from 1; counts only with fallback kitty_card.
        match_declares: when the holder of the turned card's twin becomes declarer.
        first_drawer: who draws first on later deals.
        mutiny: an attacker whose dealt hand has under 15 points may claim a redeal (RULES §7, D10).
        redeal_no_points: any seat whose dealt hand has no points may claim a redeal, as by a mutiny. No
            source has it.
        redeal_few_trumps: any seat whose dealt hand has fewer trumps than this, when trump is first settled,
            may claim a redeal, as by a mutiny; 0 = nobody. In no-trump it does not count. No source has it.
        bury_points_max: most points that may be buried; ``None`` = no limit.
        level_table: what the attackers' points are worth.
        start_level: the level of both sides at first (D22).
        match_end: how a match is won.
        deals: a match ends after so many deals; 0 = no limit (D37).
        hook_back: ranks at which a kitty lost to level cards sends the declaring side to the start level.
        stop_levels: ranks that a side may not jump over.
        must_defend: ranks that a side leaves upwards only by staying in as declarers in a deal at that level,
            its own. No advance goes past one; what a side gains there as attackers, or in a deal at another
            level, does not move it. It counts anew whenever the side stands there again (after a hook-back,
            in a loop). No source has it.
        escape_fee: leaving in mid-match costs 8 base stakes (D15).
    """

    preset: str
    decks: int
    kitty: int
    permanent_twos: bool = False
    two_colour: bool = False
    tractors: bool = True
    adjacency: Adjacency = Adjacency.TIERS
    level_joker_adjacent: bool = True
    level_gap: bool = False
    preference: Preference = Preference.TRACTORS_FIRST
    ladders: str = "generic"
    keep_groups_whole: bool = False
    throws: Throws = Throws.STANDARD
    forced_component: ForcedComponent = ForcedComponent.LOWEST_BEATABLE
    throw_blockers: ThrowBlockers = ThrowBlockers.HIDDEN
    throw_fine_points: int = 0
    failed_throw_quarters: int = 0
    wider_beats: bool = False
    groups_stay_together: bool = False
    overruff: Overruff = Overruff.LARGEST_COMPONENT
    multiplier: Multiplier
    declaring: Declaring = Declaring.LEVEL_CARDS
    window: Window = Window.DURING_DEAL
    minimum_cards: int = 1
    minimum_jokers: int = 0
    jokers_ranked: bool = False
    reinforce: bool = True
    partner_reinforce: bool = False
    self_counter: bool = False
    equal_overrides: bool = False
    sealed: bool = False
    first_declarer: FirstDeclarer = FirstDeclarer.FIRST
    fallback: Fallback = Fallback.KITTY_CARD
    kitty_card: int = 3
    match_declares: MatchDeclares = MatchDeclares.NEVER
    first_drawer: FirstDrawer = FirstDrawer.DECLARER
    mutiny: bool = False
    redeal_no_points: bool = False
    redeal_few_trumps: int = 0
    bury_points_max: int | None = None
    level_table: LevelTable
    start_level: int = 0
    match_end: MatchEnd
    deals: int = 0
    hook_back: tuple[int, ...] = ()
    stop_levels: tuple[int, ...] = ()
    must_defend: tuple[int, ...] = ()
    escape_fee: bool = False

    def __post_init__(self) -> None:
        """Refuse an impossible rule set.

        Raises:
            RuleError: naming the option at fault.
        """
        fault = option_checks.first_fault(self)
        if fault is not None:
            raise RuleError(*fault)

    @property
    def hand_size(self) -> int:
        """Cards that each seat is dealt."""
        return (self.decks * codes.CARDS - self.kitty) // SEATS

    @property
    def copies(self) -> int:
        """Identical cards that exist of a suited card (two to a deck with two colours)."""
        return self.decks * (2 if self.two_colour else 1)

    def with_overrides(self, overrides: Mapping[str, object]) -> Self:
        """This rule set with some options replaced by values in their JSON form (``to_json``).

        ``level_table`` may also be given by the name of a printed table. Where twos become permanent (or
        cease to be) and no ``start_level`` is given, the start level follows (D22).

        Raises:
            RuleError: an unknown option, a value that it has not, or an impossible combination.
        """
        values = {name: option_forms.read(_hints(), name, value) for name, value in overrides.items()}
        if "preset" in values:
            raise RuleError("preset", "is not an option; choose it when the table is made")
        twos = values.get("permanent_twos", self.permanent_twos)
        if twos != self.permanent_twos and "start_level" not in values:
            values["start_level"] = 1 if twos else 0
        return dataclasses.replace(self, **values)

    def to_json(self) -> dict[str, object]:
        """Every option under its name as a plain JSON value, in the order of the attributes."""
        return option_forms.write(self)

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> Self:
        """The rule set that ``to_json`` wrote, now or in an earlier version.

        Raises:
            RuleError: an option that is missing or unknown, a value it has not, an impossible combination.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        for name in names:
            if name not in document and name not in ADDED_LATER:
                raise RuleError(name, "is missing")
        return cls(**{name: option_forms.read(_hints(), name, value) for name, value in document.items()})

    def engine_options(self) -> dict[str, object]:
        """The engine's share of the options, as keyword arguments of ``engine_ext.Rules``."""
        return {
            "decks": self.decks,
            "permanent_twos": self.permanent_twos,
            "two_colour": self.two_colour,
            "tractors": self.tractors,
            "level_joker_adjacent": self.level_joker_adjacent,
            "level_gap": self.level_gap,
            "adjacency": int(codes.Adjacency[self.adjacency.name]),
            "preference": int(codes.Preference[self.preference.name]),
            "ladders": engine_ladders(self.ladders),
            "keep_groups_whole": self.keep_groups_whole,
            "throws": int(codes.ThrowPolicy[self.throws.name]),
            "forced_component": int(codes.ForcedComponent[self.forced_component.name]),
            "wider_beats": self.wider_beats,
            "groups_stay_together": self.groups_stay_together,
            "overruff": int(codes.Overruff[self.overruff.name]),
            "multiplier": int(codes.Multiplier[self.multiplier.name]),
        }

    def engine(self) -> "engine_ext.Rules":
        """The engine for these rules; one for equal rule sets."""
        known = _engines.get(id(self))
        if known is None:
            if len(_engines) >= _ENGINES_KEPT:
                _engines.clear()
            known = _engines[id(self)] = (self, _engine(self))
        return known[1]


_ENGINES_KEPT: Final = 1024
_engines: "dict[int, tuple[RuleSet, engine_ext.Rules]]" = {}
"""Engines by the identity of their rule sets, which are kept with them: to hash some forty fields costs more
than to check a play."""


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(RuleSet)


@cache
def _engine(rules: RuleSet) -> "engine_ext.Rules":
    import engine_ext  # noqa: PLC0415 - options are plain data and must load without the compiled core

    return engine_ext.Rules(**rules.engine_options())  # type: ignore[arg-type]  # checked by the engine
