"""In which order bots are asked while cards are drawn: round after round, each from who drew first.

Whoever looks at a table late still asks about every round in turn, so the answers are those of a punctual
look.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from services.bot.memory import Memory
from services.rules.cards import SEATS
from services.rules.declaring import asked
from services.rules.options import Window


@dataclass(slots=True)
class Rounds:
    """How far a table's draw has been decided.

    Attributes:
        deal: the deal that it is about.
        number: the round to decide next, from 1: each seat as if it had so many cards.
        place: the place in turn order, from who drew first, to ask next in that round.
    """

    deal: int = 0
    number: int = 1
    place: int = 0

    def asks(self, memory: Memory, drawn: int) -> Iterator[tuple[int, int]]:
        """The (seat, round) pairs to decide now, in order, as far as rounds have been drawn.

        Asking goes on where it stopped: a pair counts as decided when the next one is taken. After the last
        card every seat that the window waits for is asked each time.
        """
        last = memory.rules.hand_size
        if self.deal != memory.deal:
            self.deal, self.place = memory.deal, 0
            self.number = last if memory.rules.window is Window.AFTER_DEAL else 1
        while self.number < last and self.number <= drawn:
            while self.place < SEATS:
                yield (memory.first_drawer + self.place) % SEATS, self.number
                self.place += 1
            self.number, self.place = self.number + 1, 0
        if drawn >= last:
            for place in range(SEATS):
                seat = (memory.first_drawer + place) % SEATS
                if seat in asked(memory.rules, memory.dealt, memory.declarations):
                    yield seat, last
