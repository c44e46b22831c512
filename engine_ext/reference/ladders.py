"""Ladders: the shapes that answer a lead component, from best to worst (RULES §5)."""

from collections.abc import Iterator
from functools import cache
from itertools import product

from engine_ext.codes import Preference
from engine_ext.reference.shapes import Size, largeness

Groups = tuple[Size, ...]
"""A multiset of groups of width 2 and more; the rest is any cards of the suit."""
Step = tuple[Groups, ...]
"""One step: any of these multisets satisfies it."""
Ladder = tuple[Step, ...]


@cache
def generic_ladder(size: Size, preference: Preference) -> Ladder:
    """The ladder of a component for which no source prints one.

    All multisets of shapes no wider and no longer than the component within its cards, in lexicographic order
    of the preference. A single is the worst shape of all, so a multiset follows those that begin like it.
    """
    width, length = size
    shapes = list(product(range(2, width + 1), range(1, length + 1)))
    if preference == Preference.TRACTORS_FIRST:
        shapes.sort(key=largeness, reverse=True)
    else:
        shapes.sort(reverse=True)
    return tuple((groups,) for groups in _multisets(shapes, width * length))


def _multisets(shapes: list[Size], cards: int) -> Iterator[Groups]:
    """All multisets of the shapes with at most so many cards, in lexicographic order of the shapes."""
    for index, (width, length) in enumerate(shapes):
        if width * length <= cards:
            for rest in _multisets(shapes[index:], cards - width * length):
                yield ((width, length), *rest)
    yield ()
