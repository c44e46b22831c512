"""Everything that a decision takes from outside: time and randomness."""

from dataclasses import dataclass

from services.game.entropy import Entropy


@dataclass(frozen=True, slots=True)
class Facts:
    """What is not determined by the table's history.

    Attributes:
        now_us: microseconds of Unix time, never less than the table's ``recorded_at_us``: whoever makes the
            facts takes the larger of the clock and that. It becomes the commit's ``recorded_at_us``.
        entropy: where seeds come from. A decision that commits to a new deal draws 32 bytes for the server
            seed, then 32 for the salt; no other decision draws.
        key_id: the master key that new deals are sealed under.
    """

    now_us: int
    entropy: Entropy
    key_id: str
