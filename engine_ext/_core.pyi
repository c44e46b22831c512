"""Types of the compiled core; ``engine_ext.reference`` offers the same classes in plain Python."""

from collections.abc import Sequence
from typing import Final, NamedTuple

class Component(NamedTuple):
    """One component of a play (RULES §3)."""

    width: int
    """Identical cards in each of its groups, 1..4."""
    length: int
    """Adjacent groups, 1 for a single, pair, triple or quad."""
    cards: bytes
    """Its cards as ascending indices, width * length of them."""

class Throw(NamedTuple):
    """What becomes of an attempted lead (RULES §4)."""

    verdict: int
    """OK, MIXED_SUITS or THROW_NOT_ALLOWED."""
    played: bytes
    """The cards that stand, ascending: the whole lead, or the one component forced; empty when refused."""
    blockers: int
    """Bits 0..2: which of the three other hands beats the forced component's throw; 0 when it stands."""

class Listing(NamedTuple):
    """Legal plays, best first."""

    plays: tuple[bytes, ...]
    """Each play as ascending card indices; no play twice."""
    complete: bool
    """False when the cap cut the list."""

class Playout(NamedTuple):
    """One deal played inside the core (RULES §6, §8)."""

    attackers_points: int
    """Points in tricks won plus the kitty's points times the multiplier when captured."""
    last_winner: int
    """The seat that won the last trick."""
    multiplier: int
    """What the kitty was multiplied with; 0 when it was not captured."""
    hands: tuple[bytes, bytes, bytes, bytes]
    """The hands after the bury, cards ascending."""
    kitty: bytes
    """The buried cards, ascending."""
    plays: tuple[tuple[int, bytes], ...]
    """Every play in order as (seat, cards ascending)."""

class Rules:
    """The engine's share of a rule set; equal options are equal rules. Holds no preset names.

    ``ladders`` are the printed ladders of RULES §5 as data: {(width, length): (step, ...)} from best to worst,
    a step is a tuple of alternatives, an alternative a tuple of (width, length) groups of width >= 2, the rest
    being any cards of the suit. A shape without an entry has the generic ladder of ``preference``.

    Raises:
        ValueError: an option out of range, named in the message.
    """

    decks: Final[int]
    def __init__(
        self,
        *,
        decks: int,
        permanent_twos: bool = False,
        two_colour: bool = False,
        tractors: bool = True,
        level_joker_adjacent: bool = True,
        adjacency: int = 0,
        preference: int = 0,
        ladders: dict[tuple[int, int], tuple[tuple[tuple[tuple[int, int], ...], ...], ...]] | None = None,
        keep_groups_whole: bool = False,
        throws: int = 0,
        forced_component: int = 0,
        wider_beats: bool = False,
        groups_stay_together: bool = False,
        overruff: int = 0,
        multiplier: int = 0,
    ) -> None: ...
    def order(self, level: int, trump: int) -> Order:
        """The order of cards in one deal: level 0..12 (2..A), trump a suit 0..3 or NO_TRUMP = 4.

        Two-colour: trump 0 (BLACK: S, C), 1 (RED: H, D) or 4. Orders are cached per rules.

        Raises:
            ValueError: out of range.
        """

class Order:
    """The order of cards for one level and trump (RULES §2): what beats what, and what is adjacent."""

    level: Final[int]
    trump: Final[int]
    rules: Final[Rules]
    def suit(self, card: int) -> int:
        """The effective suit 0..4 of a card index; 4 is TRUMP."""
    def tier(self, card: int) -> int:
        """The rank of a card inside its effective suit, higher beats lower; equal tiers are equal cards in play."""
    def shape(self, cards: bytes) -> tuple[Component, ...]:
        """Cut cards of one effective suit into components, larger first (RULES §3).

        Equal components come higher top first, then in suit order.

        Raises:
            ValueError: no cards, or more than one effective suit.
        """
    def lead(self, cards: bytes) -> Lead:
        """Compile a lead, so that many follows can be checked against it.

        Raises:
            ValueError: no cards, or more than one effective suit.
        """
    def throw(self, cards: bytes, others: Sequence[bytes]) -> Throw:
        """Judge a lead against the three other hands (cards, not counts), given in turn order (RULES §4)."""
    def winner(self, plays: Sequence[bytes]) -> int:
        """The index into ``plays`` (cards, in turn order, the lead first) of the winning play (RULES §6).

        The cards laid are judged, whether or not the follows were legal.

        Raises:
            ValueError: no plays, plays of unequal length, or a lead of mixed suits.
        """
    def multiplier(self, plays: Sequence[bytes]) -> int:
        """The multiplier of RULES §8 for the last trick, decided by the components of its winning play (D21)."""
    def points(self, cards: bytes) -> int:
        """The points of cards: 5, 10, 10 for each 5, ten, king."""
    def leads(self, hand: bytes, cap: int = 64) -> Listing:
        """Plain leads (one component) of a hand given as counts, larger and higher first. Never a throw."""

class Lead:
    """A compiled lead."""

    cards: Final[bytes]
    suit: Final[int]
    size: Final[int]
    components: Final[tuple[Component, ...]]
    def check(self, hand: bytes, play: bytes) -> int:
        """A Verdict for a follow; hand and play as counts (54 bytes each), the hand before the play (RULES §5).

        Raises:
            ValueError: a vector that is not 54 bytes, or a count above what the rules' decks hold.
        """
    def check_cards(self, hand: bytes, play: bytes) -> int:
        """The same for cards given as indices in any order."""
    def check_batch(self, hands: bytes, plays: bytes) -> bytes:
        """The same for n positions laid end to end (n * 54 bytes each): n verdict bytes."""
    def owed(self, hand: bytes) -> tuple[tuple[tuple[int, int], ...], ...]:
        """What a hand (counts) owes: for each component of the lead, largest first, the (width, length) groups of

        width >= 2 of the best step that it can realise; empty tuples where only cards of the suit are owed, and
        an empty tuple for all when the hand has no more of the suit than the lead has cards.
        """
    def follows(self, hand: bytes, cap: int = 64) -> Listing:
        """Legal follows of a hand given as counts, best first (RULES §5). Complete below the cap, exact always."""

def playouts(
    rules: Rules, level: int, trump: int, count: int, seed: int, *, kitty: int = 8, cap: int = 64
) -> tuple[int, int, int]:
    """Deal and play ``count`` whole deals without returning to Python.

    Seat 0 is the declarer, takes the kitty, buries by the fixed rule of RULES §7 "Time", leads first; every play
    is uniform over the capped legal list. Returns (sum of the attackers' points, kitty captures, plays made).
    Deal i uses stream (seed, i) of a counter-based generator, so deals are independent of ``count``.
    """

def playout(rules: Rules, level: int, trump: int, seed: int, index: int, *, kitty: int = 8, cap: int = 64) -> Playout:
    """Deal ``index`` of the same stream, recorded whole, so that another engine can judge every play."""
