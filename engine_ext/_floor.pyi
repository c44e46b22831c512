"""Types of the floor that `shengji bench` holds follow checks against."""

from typing import Self, final

@final
class Floor:
    """A lead as suits and pairs alone see it."""

    def __new__(cls, suit: int, size: int, pairs: int) -> Self:
        """Compile a lead.

        Args:
            suit: the printed suit led, 0..3.
            size: its cards.
            pairs: its pairs.

        Raises:
            ValueError: no such suit.
        """

    def compare(self, hand: bytes, play: bytes) -> bool:
        """Whether a play follows; hand and play as counts (54 bytes each).

        Raises:
            ValueError: a vector that is not 54 bytes.
        """
