"""The rules of play in plain Python: the readable specification of the compiled core.

It offers the classes of ``engine_ext._core`` (see ``_core.pyi`` for what each method promises) as a direct
reading of RULES §2–§6 and the multipliers of §8, correct before fast, and shares no code with the core, so
that the two can be held against each other. Where to find a rule:

======================================  ==================
order of cards, adjacency (§2)          ``tiers``
components, "larger" (§3)               ``shapes``
throws (§4)                             ``throws``
ladders (§5)                            ``ladders``
what a hand owes, legal follows (§5)    ``follows``
winning a trick (§6), multipliers (§8)  ``tricks``
======================================  ==================
"""

from engine_ext.reference.follows import Lead
from engine_ext.reference.listings import Listing
from engine_ext.reference.order import Order
from engine_ext.reference.rules import Rules
from engine_ext.reference.shapes import Component
from engine_ext.reference.throws import Throw

__all__ = ["Component", "Lead", "Listing", "Order", "Rules", "Throw"]
