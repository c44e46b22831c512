"""Types of the floor that `shengji bench` holds follow checks against."""

class Floor:
    """A lead as suits and pairs alone see it."""

    def __init__(self, suit: int, size: int, pairs: int) -> None:
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
