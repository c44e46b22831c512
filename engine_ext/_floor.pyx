# cython: language_level=3, boundscheck=False, wraparound=False
# cython: auto_pickle=False, autotestdict=False, freethreading_compatible=True
"""The floor of a follow check: what any call costs that looks at a hand and a play at all.

Only `shengji bench` uses it. It knows one printed suit without trumps, levels or tractors: the play's cards must be in
the hand, of the suit as far as the hand has it, in pairs as far as the lead had pairs and the hand has them.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t

cdef enum:
    N_CARDS = 54
    RANKS = 13


@cython.final
cdef class Floor:
    """A lead as suits and pairs alone see it."""

    cdef int suit, size, pairs

    def __cinit__(self, int suit, int size, int pairs):
        if not 0 <= suit < 4:
            raise ValueError("a suit is 0 to 3")
        self.suit = suit
        self.size = size
        self.pairs = pairs

    def compare(self, bytes hand not None, bytes play not None):
        """Whether a play follows; hand and play as counts."""
        cdef const uint8_t* held = <const uint8_t*> PyBytes_AS_STRING(hand)
        cdef const uint8_t* laid = <const uint8_t*> PyBytes_AS_STRING(play)
        cdef uint8_t missing = 0, suited = 0, followed = 0, owed = 0, kept = 0, laid_all = 0
        cdef int i
        if PyBytes_GET_SIZE(hand) != N_CARDS or PyBytes_GET_SIZE(play) != N_CARDS:
            raise ValueError("hand and play are 54 counts each")
        for i in range(N_CARDS):
            missing |= laid[i] > held[i]
            laid_all += laid[i]
        held += self.suit * RANKS
        laid += self.suit * RANKS
        for i in range(RANKS):
            suited += held[i]
            followed += laid[i]
            owed += held[i] > 1
            kept += laid[i] > 1
        if missing or laid_all != self.size:
            return False
        return followed >= min(suited, self.size) and kept >= min(owed, self.pairs)
