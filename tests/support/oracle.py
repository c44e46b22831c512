"""RULES §2–§6 by brute force: for tiny hands, straight from the text, on card names.

It knows nothing of kinds, runs or counts: a component is any set of physical cards that the text calls one,
and every way to lay cards into components is tried. Only the printed ladders come from outside.
"""

from functools import cached_property
from itertools import chain, combinations, combinations_with_replacement, product

from engine_ext.codes import Adjacency, ForcedComponent, Overruff, Preference, ThrowPolicy
from support.cards import NAMES, RANKS

COLOURS = {"S": "B", "C": "B", "H": "R", "D": "R"}


class Oracle:
    """One deal: the options of a rule set as the engine takes them, a level like "T", a trump like "S"."""

    def __init__(self, options, level, trump):
        self.options = options
        self.level = level
        self.trump = trump
        self._owed = {}

    # §2: order of cards

    def printed(self, name):
        """The printed suit, or the colour."""
        return COLOURS[name[0]] if self.options["two_colour"] else name[0]

    def suit(self, name):
        if name in ("LJ", "BJ") or name[1] == self.level or self.printed(name) == self.trump:
            return "TRUMP"
        if name[1] == "2" and self.options["permanent_twos"]:
            return "TRUMP"
        return self.printed(name)

    def value(self, name):
        """The higher value beats the lower inside one suit; equal ones are equal."""
        main = self.trump == "NT" or (name not in ("LJ", "BJ") and self.printed(name) == self.trump)
        if name == "BJ":
            return 1000
        if name == "LJ":
            return 900
        if name[1] == self.level:
            return 800 if main else 700
        if name[1] == "2" and self.options["permanent_twos"]:
            return 600 if main else 500
        return RANKS.index(name[1])

    def identical(self, one, other):
        if one in ("LJ", "BJ") or other in ("LJ", "BJ"):
            return one == other
        return self.printed(one) == self.printed(other) and one[1] == other[1]

    @cached_property
    def values(self):
        suits = {}
        for name in NAMES:
            suits.setdefault(self.suit(name), set()).add(self.value(name))
        return suits

    def neighbours(self, low, high):
        """Whether two cards of one suit stand in adjacent tiers."""
        bottom, top = self.value(low), self.value(high)
        between = [v for v in self.values[self.suit(low)] if bottom < v < top]
        if high == "LJ" and not self.options["level_joker_adjacent"]:
            return False
        if self.options["level_gap"] and bottom < RANKS.index(self.level) < top < len(RANKS):
            return False
        return bottom < top and not between

    # §3: shapes

    def component(self, names):
        """(width, length, top) of cards of one suit that form one component, else None."""
        piles = []
        for name in names:
            pile = next((pile for pile in piles if self.identical(pile[0], name)), None)
            if pile is None:
                piles.append([name])
            else:
                pile.append(name)
        width = len(piles[0])
        if any(len(pile) != width for pile in piles):
            return None
        if len(piles) == 1:
            return width, 1, (self.value(names[0]), 0)
        if width == 1 or not self.options["tractors"]:
            return None
        tops = [pile[0] for pile in piles]
        by_print = self.options["adjacency"] == Adjacency.PRINTED_RANK and self.suit(names[0]) == "TRUMP"
        top = self.printed_top(tops) if by_print else self.tier_top(tops)
        return top and (width, len(piles), top)

    def tier_top(self, names):
        names = sorted(names, key=self.value)
        if all(self.neighbours(names[i], names[i + 1]) for i in range(len(names) - 1)):
            return self.value(names[-1]), 0
        return None

    def printed_top(self, names):
        """D3."""
        if set(names) <= {"LJ", "BJ"}:
            return 99, 0
        if {"LJ", "BJ"} & set(names) or len({self.printed(name) for name in names}) > 1:
            return None
        best = None
        for ace in (1, 14):
            ranks = sorted(ace if name[1] == "A" else RANKS.index(name[1]) + 2 for name in names)
            if ranks == list(range(ranks[0], ranks[0] + len(ranks))):
                best = ranks[-1], int(self.printed(names[0]) == self.trump)
        return best

    def shape(self, names):
        """Components as (width, length, top, names), larger first: of all ways to join groups the best."""
        piles = []
        for name in sorted(names, key=NAMES.index):
            pile = next((pile for pile in piles if self.identical(pile[0], name)), None)
            if pile is None:
                piles.append([name])
            else:
                pile.append(name)
        ways = []
        for way in partitions(piles):
            joined = [list(chain(*part)) for part in way]
            parts = [(self.component(part), part) for part in joined]
            if all(found for found, _ in parts):
                ways.append(sorted(parts, key=self.cutting_key))
        best = min(ways, key=lambda parts: [self.cutting_key(part) for part in parts])
        best.sort(key=lambda part: (*larger(part[0][:2]), [-v for v in part[0][2]], self.place(part[1])))
        return [(*found, sorted(cards, key=NAMES.index)) for found, cards in best]

    def cutting_key(self, part):
        """Longest first, ties to the wider, then to the higher, then by suit order."""
        (width, length, top), cards = part
        return -length, -width, [-v for v in top], self.place(cards)

    def place(self, cards):
        """Suit order, from the top of a component down."""
        return [NAMES.index(name) for name in sorted(cards, key=lambda n: (-self.value(n), NAMES.index(n)))]

    # §4: throws

    def beats_alone(self, hand, found):
        """Whether some cards of a hand beat a component led alone."""
        width, length, top = found
        for own in combinations(hand, width * length):
            other = self.component(own)
            if other and other[:2] == (width, length) and other[2] > top:
                return True
            if other and self.options["wider_beats"] and length > 1 and other[0] > width:
                return True
        return False

    def throw(self, names, others):
        """("refused", reason) or the sorted cards that stand, and which others beat something."""
        if len({self.suit(name) for name in names}) > 1:
            return "mixed_suits", set()
        suit = self.suit(names[0])
        parts = self.shape(names)
        hands = [[name for name in hand if self.suit(name) == suit] for hand in others]
        if len(parts) == 1:
            return sorted(names), set()
        policy, void = self.options["throws"], not any(hands)
        if (
            policy == ThrowPolicy.NONE
            or (policy == ThrowPolicy.ONLY_WHEN_OTHERS_VOID and not void)
            or (policy == ThrowPolicy.NOT_WHEN_OTHERS_VOID and void)
        ):
            return "throw_not_allowed", set()
        beaten = [part for part in parts if any(self.beats_alone(hand, part[:3]) for hand in hands)]
        if not beaten:
            return sorted(names), set()
        forced = self.options["forced_component"]
        choice = parts if forced == ForcedComponent.LOWEST else beaten

        def lowest(part):
            top_card = self.top_card(part)
            fewest = len(part[3]) if forced == ForcedComponent.SMALLEST else 0
            return fewest, self.value(top_card), len(part[3]), NAMES.index(top_card)

        played = min(choice, key=lowest)
        blocked = [played] if played in beaten else beaten
        blockers = {i for i in range(3) if any(self.beats_alone(hands[i], part[:3]) for part in blocked)}
        return sorted(played[3]), blockers

    def top_card(self, part):
        """The card on top; in an AA22 by printed rank that is the two."""
        _, length, top, cards = part
        by_print = self.options["adjacency"] == Adjacency.PRINTED_RANK and self.suit(cards[0]) == "TRUMP"
        if by_print and length > 1 and top[0] < 99:
            return next(name for name in cards if RANKS.index(name[1]) + 2 == top[0])
        return max(cards, key=lambda name: (self.value(name), -NAMES.index(name)))

    # §5: following

    def ladder(self, size):
        if size in self.options["ladders"]:
            return self.options["ladders"][size]
        width, length = size
        shapes = list(product(range(2, width + 1), range(1, length + 1)))
        shapes.sort(key=larger if self.options["preference"] == Preference.TRACTORS_FIRST else wider)
        shapes.append((1, 1))
        rows = set()
        for how_many in range(1, width * length + 1):
            for groups in combinations_with_replacement(range(len(shapes)), how_many):
                if sum(shapes[g][0] * shapes[g][1] for g in groups) == width * length:
                    rows.add(groups)
        return [[tuple(shapes[g] for g in groups if shapes[g] != (1, 1))] for groups in sorted(rows)]

    def groupings(self, names):
        """Every way to lay some cards into disjoint groups of width 2 and more."""
        if not names:
            yield []
            return
        first, *rest = names
        yield from self.groupings(rest)
        for count in range(1, len(rest) + 1):
            for picked in combinations(range(len(rest)), count):
                group = [first, *(rest[i] for i in picked)]
                found = self.component(group)
                if found and found[0] > 1:
                    left = [name for i, name in enumerate(rest) if i not in picked]
                    for others in self.groupings(left):
                        yield [(found[:2], group), *others]

    def vector(self, lead, names, *, whole):
        """The best vector of steps, by trying all vectors in order on all groupings."""
        sizes = [part[:2] for part in self.shape(lead)]
        ladders = [self.ladder(size) for size in sizes]
        # Groups of the same sizes made of equally wide piles are as good as each other.
        piles = {name: sum(self.identical(name, other) for other in names) for name in names}
        groupings = {
            tuple(sorted((size, max(piles[name] for name in group)) for size, group in way))
            for way in self.groupings(names)
        }
        for vector in product(*(range(len(ladder)) for ladder in ladders)):
            for choice in product(*(ladder[i] for ladder, i in zip(ladders, vector, strict=True))):
                limits = [width if whole else 9 for width, _ in sizes]
                wanted = [
                    (group, limit) for groups, limit in zip(choice, limits, strict=True) for group in groups
                ]
                if any(assignable(wanted, list(way)) for way in groupings):
                    return vector
        raise AssertionError("the last step asks for nothing")

    def owed(self, lead, own):
        """The vector that a hand owes, remembered, since a hand is asked about several plays."""
        asked = tuple(lead), tuple(own)
        if asked not in self._owed:
            self._owed[asked] = self.vector(lead, own, whole=self.options["keep_groups_whole"])
        return self._owed[asked]

    def verdict(self, lead, hand, play):
        """The reason, or "ok"."""
        if len(play) != len(lead):
            return "wrong_count"
        if any(play.count(name) > hand.count(name) for name in play):
            return "not_in_hand"
        suit = self.suit(lead[0])
        own = [name for name in hand if self.suit(name) == suit]
        laid = [name for name in play if self.suit(name) == suit]
        if len(laid) < min(len(own), len(lead)):
            return "must_follow_suit"
        if len(own) > len(lead) and self.vector(lead, laid, whole=False) > self.owed(lead, own):
            return "must_follow_shape"
        return "ok"

    # §6: winning

    def answer(self, lead, play):
        """A value to compare plays by, None for a discard."""
        suits = {self.suit(name) for name in play}
        if suits not in ({self.suit(lead[0])}, {"TRUMP"}):
            return None
        sizes = [part[:2] for part in self.shape(lead)]
        values = [(sizes[0][0], top) for top in self.cuts(list(play), sizes)]
        if values and len(sizes) > 1 and self.options["overruff"] == Overruff.HIGHEST_CARD:
            values = [(0, (max(self.value(name) for name in play), 0))]
        if self.options["wider_beats"] and len(sizes) == 1 and sizes[0][1] > 1:
            found = self.component(play)
            if found and found[0] > sizes[0][0]:
                values.append((found[0], found[2]))
        return max(((suits == {"TRUMP"}, *value) for value in values), default=None)

    def cuts(self, play, sizes):
        """The tops of the first component in every way to cut a play into components of these sizes."""

        def rest_fits(left, sizes):
            if not sizes:
                return not left
            return any(rest_fits(rest, sizes[1:]) for _, rest in self.picks(play, left, sizes[0]))

        for top, left in self.picks(play, play, sizes[0]):
            if rest_fits(left, sizes[1:]):
                yield top

    def picks(self, play, left, size):
        """Ways to pick a component of a size out of what is left of a play, D28 applied."""
        seen = set()
        for picked in combinations(range(len(left)), size[0] * size[1]):
            group = [left[i] for i in picked]
            if tuple(group) in seen:
                continue
            seen.add(tuple(group))
            found = self.component(group)
            if not found or found[:2] != size:
                continue
            whole = all(sum(self.identical(name, other) for other in play) == size[0] for name in group)
            if self.options["groups_stay_together"] and size[0] > 1 and not whole:
                continue
            yield found[2], [name for i, name in enumerate(left) if i not in picked]

    def winner(self, plays):
        best, winner = self.answer(plays[0], plays[0]), 0
        for index, play in enumerate(plays[1:], 1):
            answer = self.answer(plays[0], play)
            if answer is not None and answer > best:
                best, winner = answer, index
        return winner


def larger(size):
    """A sorting key, larger first: tractors before groups, wider before narrower, longer before shorter."""
    width, length = size
    return length == 1, -width, -length


def wider(size):
    """A sorting key, wider first, then longer."""
    return -size[0], -size[1]


def assignable(wanted, groups):
    """Whether every wanted (size, widest pile that may be broken) finds a group of its own."""
    if not wanted:
        return True
    (size, limit), *rest = wanted
    return any(
        size == have and pile <= limit and assignable(rest, groups[:i] + groups[i + 1 :])
        for i, (have, pile) in enumerate(groups)
    )


def partitions(items):
    """All set partitions."""
    if not items:
        yield []
        return
    first, *rest = items
    for parts in partitions(rest):
        yield [[first], *parts]
        for i, part in enumerate(parts):
            yield [*parts[:i], [first, *part], *parts[i + 1 :]]
