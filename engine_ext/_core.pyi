"""Types of the compiled core; ``engine_ext.reference`` offers the same classes in plain Python."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Self, final

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
    """Bits 0..2: which of the three other hands beats the forced component; where D4 forces one that nobody
    beats, which of them beat any part of the throw; 0 when it stands."""

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
    """What the kitty was multiplied with; 0 when it was not captured. With Multiplier.LAST_TRICK what the
    last trick's points were multiplied with, whoever won it."""
    hands: tuple[bytes, bytes, bytes, bytes]
    """The hands after the bury, cards ascending."""
    kitty: bytes
    """The buried cards, ascending."""
    plays: tuple[tuple[int, bytes], ...]
    """Every play in order as (seat, cards ascending)."""

@final
class Rules:
    """The engine's share of a rule set; equal options are equal rules. Holds no preset names.

    ``ladders`` are the printed ladders of RULES §5 as data: {(width, length): (step, ...)} from best to
    worst, a step is a tuple of alternatives, an alternative a tuple of (width, length) groups of width >= 2,
    the rest being any cards of the suit. A shape without an entry has the generic ladder of ``preference``.

    Raises:
        ValueError: an option out of range, named in the message.
    """

    decks: Final[int]
    def __new__(
        cls,
        *,
        decks: int,
        permanent_twos: bool = False,
        two_colour: bool = False,
        tractors: bool = True,
        level_joker_adjacent: bool = True,
        level_gap: bool = False,
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
    ) -> Self: ...
    def order(self, level: int, trump: int) -> Order:
        """The order of cards in one deal: level 0..12 (2..A), trump a suit 0..3 or NO_TRUMP = 4.

        Two-colour: trump 0 (BLACK: S, C), 1 (RED: H, D) or 4. Orders are cached per rules.

        Raises:
            ValueError: out of range.
        """

@final
class Order:
    """The order of cards for one level and trump (RULES §2): what beats what, and what is adjacent."""

    level: Final[int]
    trump: Final[int]
    rules: Final[Rules]
    def suit(self, card: int) -> int:
        """The effective suit 0..4 of a card index; 4 is TRUMP."""
    def tier(self, card: int) -> int:
        """The rank of a card inside its effective suit.

        Higher beats lower; equal tiers are equal cards in play.
        """
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
        """Judge a lead against the three other hands (cards, not counts), given in turn order (RULES §4).

        Raises:
            ValueError: no cards, or other than three hands.
        """
    def winner(self, plays: Sequence[bytes]) -> int:
        """The index into ``plays`` (cards, in turn order, the lead first) of the winning play (RULES §6).

        The cards laid are judged, whether or not the follows were legal.

        Raises:
            ValueError: no plays, plays of unequal length, or a lead of mixed suits.
        """
    def multiplier(self, plays: Sequence[bytes]) -> int:
        """The multiplier of RULES §8 for the last trick.

        Decided by the components of its winning play (D21).
        """
    def points(self, cards: bytes) -> int:
        """The points of cards: 5, 10, 10 for each 5, ten, king."""
    def leads(self, hand: bytes, cap: int = 64) -> Listing:
        """Plain leads (one component) of a hand given as counts. Never a throw.

        Larger first (component order of RULES §3), then trumps before side suits, then the higher top, then
        in suit order; a list that the cap cuts lacks the last of that order.

        Raises:
            ValueError: a hand that is no 54 counts within the decks, or a cap below 1.
        """

@final
class Lead:
    """A compiled lead."""

    cards: Final[bytes]
    suit: Final[int]
    size: Final[int]
    components: Final[tuple[Component, ...]]
    def check(self, hand: bytes, play: bytes) -> int:
        """A Verdict for a follow (RULES §5).

        Hand and play as counts (54 bytes each), the hand before the play.

        Raises:
            ValueError: a vector that is not 54 bytes, or a count above what the rules' decks hold.
        """
    def check_cards(self, hand: bytes, play: bytes) -> int:
        """The same for cards given as indices in any order."""
    def check_batch(self, hands: bytes, plays: bytes) -> bytes:
        """The same for n positions laid end to end (n * 54 bytes each): n verdict bytes."""
    def owed(self, hand: bytes) -> tuple[tuple[tuple[int, int], ...], ...]:
        """What a hand (counts) owes.

        For each component of the lead, largest first, the (width, length) groups of width >= 2 of the best
        step that it can realise: empty tuples where only cards of the suit are owed, and just ``()`` when the
        hand has no more of the suit than the lead has cards. Of alternatives that satisfy one step
        ("{a or b}") the first in the ladder's order is named.
        """
    def follows(self, hand: bytes, cap: int = 64) -> Listing:
        """Legal follows of a hand given as counts, best first (RULES §5): exact, and complete up to the cap.

        Where groups are owed: higher tractors, then higher cards first. Where cards are free to choose:
        trumps first, then higher tiers, as many copies as possible before fewer. A list that the cap cuts
        keeps both ends: of owed plays the first and the last of the order, half and half; of free choices an
        even spread over all of them, the first and the last included, after the plays that ruff in the lead's
        shape (at most half the cap). It may then be a little shorter than the cap. A hand smaller than the
        lead has no follows.

        Raises:
            ValueError: a hand that is no 54 counts within the decks, or a cap below 1.
        """

def playouts(
    rules: Rules, level: int, trump: int, count: int, seed: int, *, kitty: int = 8, cap: int = 64
) -> tuple[int, int, int]:
    """Deal and play ``count`` whole deals without returning to Python.

    Cards are dealt one at a time from seat 0 on, the last ``kitty`` are the kitty. Seat 0 is the declarer,
    takes the kitty, buries by the fixed rule of RULES §7 "Time" and leads first. The rule: cards outside
    trump without points, then those with points, then trumps without, then with points; outside trump the
    shortest suit (of the hand with the kitty) first, equal ones in suit order; then lower tiers, then in suit
    order.

    Every play is uniform over the legal list that ``Order.leads`` (plain leads only) or ``Lead.follows``
    gives for this cap, without making that list where it can be counted instead. Deal i uses stream (seed, i)
    of a counter-based generator, so deals are independent of ``count``.

    Args:
        rules: the rules to play by.
        level: 0..12.
        trump: as for ``Rules.order``.
        count: how many deals.
        seed: 0..2**64 - 1.
        kitty: cards that are not dealt.
        cap: of the legal lists.

    Returns:
        The sum of the attackers' points, how often they won the last trick, and the plays made.

    Raises:
        ValueError: a kitty that does not leave four equal hands, a cap below 1, a negative count.
    """

def playout(
    rules: Rules, level: int, trump: int, seed: int, index: int, *, kitty: int = 8, cap: int = 64
) -> Playout:
    """Deal ``index`` of the same stream, recorded whole, so that another engine can judge every play."""
