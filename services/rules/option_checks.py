"""Which combinations of options are impossible (RULES §10, last paragraph), told by the option's name."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from engine_ext.codes import CARDS, MAX_WIDTH
from services.rules.cards import ACE, SEATS
from services.rules.ladders import LADDERS

if TYPE_CHECKING:
    from services.rules.options import RuleSet

Fault = tuple[str, str]
"""(option, what is wrong)."""

_RANGES: Final = {
    "decks": (1, 4),
    "throw_fine_points": (0, 100),
    "failed_throw_quarters": (0, 4),
    "kitty_card": (0, 4 * CARDS),
    "deals": (0, 1000),
    "start_level": (0, ACE),
}
# Five, ten and king in four suits: the point cards of a deck, of which the four fives are the cheapest.
_POINT_CARDS: Final = 12
_FIVES: Final = 4
# Of a deck: two jokers, the trump suit or colour, and the level cards outside it.
_TRUMPS_OF_A_SUIT: Final = 2 + 13 + 3
_TRUMPS_OF_A_COLOUR: Final = 2 + 26 + 2


def first_fault(rules: "RuleSet") -> Fault | None:
    """The first fault of a rule set, in a fixed order; ``None`` when it can be played."""
    return next(_faults(rules), None)


def _faults(rules: "RuleSet") -> Iterator[Fault]:
    yield from _out_of_range(rules)
    yield from _cards(rules)
    yield from _declaring(rules)
    yield from _scoring(rules)


def _out_of_range(rules: "RuleSet") -> Iterator[Fault]:
    for option, (low, high) in _RANGES.items():
        if not low <= getattr(rules, option) <= high:
            yield option, f"must be from {low} to {high}"
    for option in ("hook_back", "stop_levels", "must_defend"):
        if any(not 0 <= rank <= ACE for rank in getattr(rules, option)):
            yield option, "must be ranks 2 to A"
    if rules.ladders not in LADDERS:
        yield "ladders", f"must be one of {', '.join(LADDERS)}"


def _cards(rules: "RuleSet") -> Iterator[Fault]:
    cards = rules.decks * CARDS
    if not 0 <= rules.kitty <= cards - SEATS:
        yield "kitty", f"must be from 0 to {cards - SEATS}"
    if (cards - rules.kitty) % SEATS:
        yield "kitty", f"{cards - rules.kitty} dealt cards do not make equal hands"
    if rules.copies > MAX_WIDTH:
        yield "two_colour", f"makes {rules.copies} identical cards, at most {MAX_WIDTH} are played"
    if rules.two_colour and rules.adjacency == "printed_rank":
        yield "two_colour", "has no printed suits to order trumps by (adjacency printed_rank)"
    if not rules.tractors and rules.multiplier in {"power", "titanic", "pairs"}:
        yield "multiplier", f"{rules.multiplier} counts tractors, and there are none; use closed"
    if rules.multiplier == "last_trick" and rules.kitty:
        yield "multiplier", "last_trick is for deals without a kitty"
    yield from _bury(rules)
    yield from _redeal(rules)


def _bury(rules: "RuleSet") -> Iterator[Fault]:
    if rules.bury_points_max is None:
        return
    if rules.bury_points_max < 0:
        yield "bury_points_max", "must not be negative"
    # A declarer may hold every point card: what then must be buried for want of others?
    forced = max(0, _POINT_CARDS * rules.decks - rules.hand_size)
    fives = min(forced, _FIVES * rules.decks)
    if rules.bury_points_max < 5 * fives + 10 * (forced - fives):
        yield "bury_points_max", "a hand full of points could not be buried from"


def _redeal(rules: "RuleSet") -> Iterator[Fault]:
    # The fewest trumps of a deal with a trump suit are shared by four: were more asked for than an equal
    # share, or than a hand has cards, somebody could claim a redeal in every such deal.
    trumps = rules.decks * (_TRUMPS_OF_A_COLOUR if rules.two_colour else _TRUMPS_OF_A_SUIT)
    most = min(trumps // SEATS, rules.hand_size)
    if not 0 <= rules.redeal_few_trumps <= most:
        yield "redeal_few_trumps", f"must be from 0 (nobody) to {most}, or no deal would ever stand"


def _declaring(rules: "RuleSet") -> Iterator[Fault]:
    if rules.declaring == "joker_backed" and rules.decks != 2:
        yield "declaring", "joker_backed needs two decks"
    if rules.declaring == "joker_backed" and rules.two_colour:
        yield "declaring", "joker_backed needs suits, not two colours"
    if rules.declaring == "joker_backed" and rules.sealed:
        yield "sealed", "joker_backed shows to all what a counter must beat"
    if not 1 <= rules.minimum_cards <= rules.copies:
        yield "minimum_cards", f"must be from 1 to the {rules.copies} identical cards of the decks"
    if not 0 <= rules.minimum_jokers <= rules.decks:
        yield "minimum_jokers", f"must be from 0 (never shown) to the {rules.decks} of the decks"
    if rules.fallback == "kitty_card" and not 1 <= rules.kitty_card <= rules.kitty:
        yield "kitty_card", f"there is no card {rules.kitty_card} in a kitty of {rules.kitty}"


def _scoring(rules: "RuleSet") -> Iterator[Fault]:
    for option in ("hook_back", "must_defend"):
        if ACE in getattr(rules, option) and rules.match_end == "reach_ace":
            yield option, "nobody plays at A when reaching it wins (reach_ace)"
    if rules.start_level == ACE and rules.match_end == "reach_ace":
        yield "start_level", "A is already won when reaching it wins (reach_ace)"
    if rules.match_end == "loop" and not rules.deals:
        yield "deals", "loop never ends by itself and needs a number of deals"
