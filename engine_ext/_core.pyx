# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: auto_pickle=False, autotestdict=False, freethreading_compatible=True
"""The compiled engine: order, shapes, follows, throws, tricks, legal plays and whole playouts (RULES §2-§8).

How to read it. Everything below works on three notions:

* **Masks**: a set of cards as four 64-bit masks; bit i of ``k[c]`` says that there are more than c copies of
  card i.
* **Suit**: one effective suit laid out as a line of *slots*. A slot is a tier of RULES §2 (or a printed rank,
  D3); it holds one *kind* (identical cards) or, for off levels, off twos and no-trump, several. ``joined[j]``
  says that slot j is adjacent to slot j-1. A tractor is a run of joined slots that takes one kind from each
  of them.
* **Demand**: a multiset of groups and tractors. Every rule of §5 and §6 comes down to one question, which
  ``fits`` answers: can this demand be taken from these cards by disjoint groups?

Two-colour kinds are folded onto the lower of their two cards first, so that nothing else knows about colours.

The sections: C helpers, masks, order, packing, shapes, leads and ladders, following, throws, winning,
listing, playouts, and last the Python classes.
"""

from collections.abc import Sequence
from typing import NamedTuple

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

cimport cython

# ------------------------------------------------------------------------------------------------------------
# C helpers
# ------------------------------------------------------------------------------------------------------------

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    #define ONES 0x0101010101010101ULL
    #define HIGHS 0x8080808080808080ULL
    #define LOW_SUITS ((1ULL << 26) - 1)     /* S and H, the lower cards of two-colour kinds */
    #define JOKER_BITS (3ULL << 52)
    #define FOUR_SUITS (1ULL | 1ULL << 13 | 1ULL << 26 | 1ULL << 39)
    #define FIVES (FOUR_SUITS << 3)
    #define TENS (FOUR_SUITS << 8 | FOUR_SUITS << 11)     /* tens and kings: 10 points each */
    #define MANY (1ULL << 62)                /* counts of ways stop here */

    static inline int sj_bits(uint64_t x) { return __builtin_popcountll(x); }
    static inline int sj_low(uint64_t x) { return __builtin_ctzll(x); }   /* x is not 0 */

    /* Situations of a packing search that lead nowhere; entries of another stamp count for nothing. */
    typedef struct { uint64_t opens, rest[3], wanted; uint32_t place, barred, spare, stamp; } sj_dead_end;
    #define SJ_DEAD_ENDS 4096
    static _Thread_local sj_dead_end sj_dead_ends[SJ_DEAD_ENDS];
    static _Thread_local uint32_t sj_stamp;

    static uint32_t sj_new_stamp(void) {
        if (++sj_stamp == 0) {
            memset(sj_dead_ends, 0, sizeof(sj_dead_ends));
            sj_stamp = 1;
        }
        return sj_stamp;
    }
    """
    const uint64_t ONES, HIGHS, LOW_SUITS, JOKER_BITS, FIVES, TENS, MANY
    int sj_bits(uint64_t x) noexcept nogil
    int sj_low(uint64_t x) noexcept nogil
    ctypedef struct sj_dead_end:
        uint64_t opens
        uint64_t rest[3]
        uint64_t wanted
        uint32_t place
        uint32_t barred
        uint32_t spare
        uint32_t stamp
    const int SJ_DEAD_ENDS
    sj_dead_end* sj_dead_ends
    uint32_t sj_new_stamp() noexcept nogil

cdef enum:
    N_CARDS = 54
    JOKERS_FROM = 52
    N_RANKS = 13
    ACE = 12
    TRUMP_SUIT = 4      # as an effective suit, and as the trump "none"
    MAX_SLOTS = 24      # printed ranks: 14 of the trump suit, twos and levels of three others, two jokers
    MAX_KINDS = 24      # at most 21 kinds in one effective suit: 11 + 2 * 4 + 2
    MAX_COMPS = 24      # a component takes at least one kind
    MAX_TYPES = 12      # distinct tractors in a demand of at most 21 kinds
    MAX_TAKE = 85       # most cards of a lead: 21 kinds of 4
    MAX_PARTS = 64
    MAX_LENGTH = 24

# The codes of engine_ext.codes, for C.
cdef enum:
    TIERS = 0
    PRINTED_RANK = 1
    TRACTORS_FIRST = 0
    WIDTH_FIRST = 1
    THROWS_STANDARD = 0
    THROWS_ONLY_WHEN_OTHERS_VOID = 1
    THROWS_NOT_WHEN_OTHERS_VOID = 2
    THROWS_NONE = 3
    FORCED_LOWEST_BEATABLE = 0
    FORCED_LOWEST = 1
    FORCED_SMALLEST = 2
    OVERRUFF_LARGEST = 0
    OVERRUFF_HIGHEST_CARD = 1
    MULT_POWER = 0
    MULT_TITANIC = 1
    MULT_CLOSED = 2
    MULT_PAIRS = 3
    MULT_LAST_TRICK = 4
    V_OK = 0
    V_WRONG_COUNT = 1
    V_NOT_IN_HAND = 2
    V_MUST_FOLLOW_SUIT = 3
    V_MUST_FOLLOW_SHAPE = 4
    V_MIXED_SUITS = 5
    V_THROW_NOT_ALLOWED = 6
    E_TOO_MANY = -1      # more copies than the decks hold
    E_NO_CARD = -2       # an index above 53
    E_MEMORY = -3


# ------------------------------------------------------------------------------------------------------------
# Masks: sets of cards
# ------------------------------------------------------------------------------------------------------------

cdef struct Masks:
    uint64_t k[4]        # bit i of k[c]: more than c copies of card i


cdef inline uint64_t gather(uint64_t ones) noexcept nogil:
    """The lowest bits of the eight bytes as one byte; the other bits must be 0."""
    return (ones * 0x0102040810204080ULL) >> 56


cdef inline uint64_t word_of(const uint8_t* counts, int i) noexcept nogil:
    """Bytes 8i..8i+7 of a counts vector, the last two of word 6 being 0 (no byte beyond 54 is read)."""
    cdef uint64_t x
    if i < 6:
        memcpy(&x, counts + 8 * i, 8)
        return x
    memcpy(&x, counts + 46, 8)
    return x >> 16


cdef inline int masks_of_counts(const uint8_t* counts, int decks, Masks* out) noexcept nogil:
    """Masks of 54 counts; E_TOO_MANY when one is above ``decks``."""
    cdef uint64_t x, bad = 0, a = 0, b = 0, c = 0, d = 0
    cdef uint64_t above = <uint64_t> (127 - decks) * ONES
    cdef int i
    if decks == 2:
        for i in range(7):
            x = word_of(counts, i)
            bad |= x | (x + 125 * ONES)
            a |= gather((x | (x >> 1)) & ONES) << (8 * i)
            b |= gather((x >> 1) & ONES) << (8 * i)
    else:
        for i in range(7):
            x = word_of(counts, i)
            bad |= x | (x + above)
            a |= gather(((x + 127 * ONES) & HIGHS) >> 7) << (8 * i)
            if decks > 1:
                b |= gather(((x + 126 * ONES) & HIGHS) >> 7) << (8 * i)
                c |= gather(((x + 125 * ONES) & HIGHS) >> 7) << (8 * i)
                d |= gather(((x + 124 * ONES) & HIGHS) >> 7) << (8 * i)
    out.k[0] = a
    out.k[1] = b
    out.k[2] = c
    out.k[3] = d
    return E_TOO_MANY if bad & HIGHS else 0


cdef int masks_of_cards(const uint8_t* cards, Py_ssize_t n, int decks, Masks* out) noexcept nogil:
    """Masks of card indices in any order; E_NO_CARD or E_TOO_MANY for what no deck holds."""
    cdef uint8_t counts[64]
    cdef Py_ssize_t i
    if n > 4 * N_CARDS:
        return E_TOO_MANY
    memset(counts, 0, sizeof(counts))
    for i in range(n):
        if cards[i] >= N_CARDS:
            return E_NO_CARD
        counts[cards[i]] += 1
    return masks_of_counts(counts, decks, out)


cdef inline int copies(const Masks* m, int card) noexcept nogil:
    return <int> (((m.k[0] >> card) & 1) + ((m.k[1] >> card) & 1)
                  + ((m.k[2] >> card) & 1) + ((m.k[3] >> card) & 1))


cdef inline int size(const Masks* m) noexcept nogil:
    return sj_bits(m.k[0]) + sj_bits(m.k[1]) + sj_bits(m.k[2]) + sj_bits(m.k[3])


cdef inline int size_within(const Masks* m, uint64_t cards) noexcept nogil:
    return (sj_bits(m.k[0] & cards) + sj_bits(m.k[1] & cards)
            + sj_bits(m.k[2] & cards) + sj_bits(m.k[3] & cards))


cdef inline void keep_only(const Masks* m, uint64_t cards, Masks* out) noexcept nogil:
    out.k[0] = m.k[0] & cards
    out.k[1] = m.k[1] & cards
    out.k[2] = m.k[2] & cards
    out.k[3] = m.k[3] & cards


cdef inline bint holds(const Masks* hand, const Masks* part) noexcept nogil:
    return ((part.k[0] & ~hand.k[0]) | (part.k[1] & ~hand.k[1])
            | (part.k[2] & ~hand.k[2]) | (part.k[3] & ~hand.k[3])) == 0


cdef inline bint same(const Masks* a, const Masks* b) noexcept nogil:
    return ((a.k[0] ^ b.k[0]) | (a.k[1] ^ b.k[1]) | (a.k[2] ^ b.k[2]) | (a.k[3] ^ b.k[3])) == 0


cdef inline void clear(Masks* m) noexcept nogil:
    m.k[0] = m.k[1] = m.k[2] = m.k[3] = 0


cdef inline void put(Masks* m, int card) noexcept nogil:
    """Add one copy of a card."""
    cdef uint64_t bit = 1ULL << card
    m.k[3] |= m.k[2] & bit
    m.k[2] |= m.k[1] & bit
    m.k[1] |= m.k[0] & bit
    m.k[0] |= bit


cdef inline void drop(Masks* m, int card) noexcept nogil:
    """Take away one copy of a card that is there."""
    cdef uint64_t bit = 1ULL << card
    m.k[0] &= ~bit | m.k[1]
    m.k[1] &= ~bit | m.k[2]
    m.k[2] &= ~bit | m.k[3]
    m.k[3] &= ~bit


cdef inline void put_all(Masks* m, const Masks* other) noexcept nogil:
    cdef uint64_t bits
    cdef int c
    for c in range(4):
        bits = other.k[c]
        while bits:
            put(m, sj_low(bits))
            bits &= bits - 1


cdef inline void drop_all(Masks* m, const Masks* other) noexcept nogil:
    cdef uint64_t bits
    cdef int c
    for c in range(4):
        bits = other.k[c]
        while bits:
            drop(m, sj_low(bits))
            bits &= bits - 1


cdef inline int nth_bit(uint64_t bits, int n) noexcept nogil:
    """The place of the n-th set bit, counted from 0."""
    while n:
        bits &= bits - 1
        n -= 1
    return sj_low(bits)


cdef inline int points_of(const Masks* m) noexcept nogil:
    """The points of cards (RULES §1): 5 = 5, T = 10, K = 10."""
    return 5 * size_within(m, FIVES) + 10 * size_within(m, TENS)


cdef bytes bytes_of(const Masks* m):
    """The cards as ascending indices."""
    cdef bytes out = PyBytes_FromStringAndSize(NULL, size(m))
    cdef char* at = PyBytes_AS_STRING(out)
    cdef uint64_t bits = m.k[0]
    cdef int card, i
    while bits:
        card = sj_low(bits)
        bits &= bits - 1
        for i in range(copies(m, card)):
            at[0] = <char> card
            at += 1
    return out


# ------------------------------------------------------------------------------------------------------------
# Order: effective suits, tiers and slots (RULES §2)
# ------------------------------------------------------------------------------------------------------------

cdef struct RulesC:
    int decks
    int widest               # most identical cards: decks, doubled by two colours
    bint permanent_twos
    bint two_colour
    bint tractors
    bint level_joker_adjacent
    bint level_gap
    int adjacency
    int preference
    bint keep_groups_whole
    int throws
    int forced_component
    bint wider_beats
    bint groups_stay_together
    int overruff
    int multiplier
    # Printed ladders by (width, length), NULL = generic. A ladder is the number of its steps, a step the
    # number of its alternatives, an alternative the number of its groups and a (width, length) for each of
    # them.
    const uint8_t* ladder[5][MAX_LENGTH]

cdef struct Suit:
    int slots
    uint8_t kinds[MAX_SLOTS]             # kinds in a slot
    uint8_t kind[MAX_SLOTS][4]           # their (lower) card indices, ascending
    uint8_t joined[MAX_SLOTS + 1]        # adjacent to the slot before
    int16_t top[MAX_SLOTS]               # how a tractor with this top slot ranks among tractors of its shape
    uint8_t by_top[MAX_SLOTS]            # slots, higher top first
    int low_ace                          # D3: the two slots of the trump ace, which share its copies; -1 when
    int high_ace                         # there are none
    uint64_t cards                       # all cards of the suit
    uint64_t folded                      # the lower cards of its kinds
    uint32_t joins                       # bit j: joined[j]
    # Every kind, higher tier first and then in suit order.
    int n_ranked
    uint8_t ranked[MAX_KINDS]
    uint8_t ranked_slot[MAX_KINDS]
    uint8_t ranked_place[MAX_KINDS]      # which kind of the slot
    uint8_t ranked_at[MAX_SLOTS][4]      # and back
    # How to move card bits onto slot bits: runs of neighbouring cards, and slots of several kinds.
    int runs
    uint8_t run_from[MAX_SLOTS]
    uint8_t run_to[MAX_SLOTS]
    uint64_t run_mask[MAX_SLOTS]
    int shared
    uint8_t shared_slot[MAX_SLOTS]
    uint64_t shared_mask[MAX_SLOTS]

cdef struct OrderC:
    RulesC* rules
    int level
    int trump
    uint8_t suit_of[N_CARDS]
    uint8_t tier_of[N_CARDS]
    uint8_t falling[N_CARDS]             # all cards: trumps first, higher tiers first, then in suit order
    uint8_t rising[N_CARDS]              # all cards: trumps last, lower tiers first, then in suit order
    Suit suits[5]


cdef inline void fold(OrderC* o, const Masks* m, Masks* out) noexcept nogil:
    """Count kinds instead of cards: in two-colour rules C joins S and D joins H (RULES §2.1)."""
    cdef uint64_t a, b, aa, bb
    if not o.rules.two_colour:
        out[0] = m[0]
        return
    a = m.k[0] & LOW_SUITS
    b = (m.k[0] >> 26) & LOW_SUITS
    aa = m.k[1] & LOW_SUITS
    bb = (m.k[1] >> 26) & LOW_SUITS
    out.k[0] = a | b | (m.k[0] & JOKER_BITS)
    out.k[1] = aa | bb | (a & b) | (m.k[1] & JOKER_BITS)
    out.k[2] = (aa & b) | (a & bb)
    out.k[3] = aa & bb


cdef inline void kinds_in(OrderC* o, Suit* s, const Masks* m, Masks* out) noexcept nogil:
    """The kinds of one effective suit among cards."""
    cdef Masks folded
    fold(o, m, &folded)
    keep_only(&folded, s.folded, out)


cdef void add_slot(OrderC* o, int suit, int tier, bint joined, int top, int n,
                   const uint8_t* kinds) noexcept nogil:
    """Append a slot to a suit; ``kinds`` are the lower cards of its kinds."""
    cdef Suit* s = &o.suits[suit]
    cdef int j = s.slots, i, card
    s.slots += 1
    s.kinds[j] = n
    s.top[j] = top
    s.joined[j] = joined and j > 0 and o.rules.tractors
    for i in range(n):
        card = kinds[i]
        s.kind[j][i] = card
        s.folded |= 1ULL << card
        s.cards |= 1ULL << card
        o.suit_of[card] = suit
        o.tier_of[card] = tier
        if o.rules.two_colour and card < JOKERS_FROM:
            s.cards |= 1ULL << (card + 26)
            o.suit_of[card + 26] = suit
            o.tier_of[card + 26] = tier


cdef inline bint beside_lower(OrderC* o, int rank) noexcept nogil:
    """Whether an ordinary rank is adjacent to the next lower one that its suit has (RULES §2, level_gap)."""
    return not o.rules.level_gap or rank != o.level + 1


cdef int rank_tier(OrderC* o, int rank, uint8_t* kinds, bint main) noexcept nogil:
    """The kinds of one rank that are the main card (``main``) or the off cards of the trump suit."""
    cdef int suit, n = 0
    for suit in range(2 if o.rules.two_colour else 4):
        if (suit == o.trump) == main:
            kinds[n] = suit * N_RANKS + rank
            n += 1
    return n


cdef void trump_by_tiers(OrderC* o) noexcept nogil:
    """RULES §2.2: trump suit, [off twos, main two], off levels, main level, LJ, BJ, from low to high."""
    cdef uint8_t kinds[4]
    cdef int rank, tier = 0, n
    cdef bint twos_apart = o.rules.permanent_twos and o.level != 0
    cdef bint main
    if o.trump != TRUMP_SUIT:
        for rank in range(N_RANKS):
            if rank != o.level and not (twos_apart and rank == 0):
                kinds[0] = o.trump * N_RANKS + rank
                add_slot(o, TRUMP_SUIT, tier, beside_lower(o, rank), tier, 1, kinds)
                tier += 1
    for rank in range(1 - twos_apart, 2):
        for main in range(2):
            n = rank_tier(o, o.level if rank else 0, kinds, main)
            if n:
                add_slot(o, TRUMP_SUIT, tier, True, tier, n, kinds)
                tier += 1
    kinds[0] = JOKERS_FROM
    add_slot(o, TRUMP_SUIT, tier, o.rules.level_joker_adjacent, tier, 1, kinds)      # D2
    kinds[0] = JOKERS_FROM + 1
    add_slot(o, TRUMP_SUIT, tier + 1, True, tier + 1, 1, kinds)


cdef void trump_by_printed_rank(OrderC* o) noexcept nogil:
    """D3: one chain a printed suit, A below 2 and above K; tops by printed rank, then trump suit first."""
    cdef Suit* s = &o.suits[TRUMP_SUIT]
    cdef uint8_t tier_of[N_CARDS]
    cdef uint8_t kind
    cdef int place, suit, rank, last
    cdef bint main
    # The tiers are those of the ordinary order; only the slots differ.
    trump_by_tiers(o)
    memcpy(tier_of, o.tier_of, sizeof(tier_of))
    s.slots = 0
    for suit in range(2 if o.rules.two_colour else 4):
        main = suit == o.trump
        last = -2
        for place in range(14):                  # 0 is the ace below the two, 13 the ace above the king
            rank = ACE if place == 0 else place - 1
            kind = suit * N_RANKS + rank
            if not (main or rank == o.level or (rank == 0 and o.rules.permanent_twos)):
                continue
            if place == 13 and not main:         # no off-suit king can be a trump beside it
                continue
            if main and place == 0:
                s.low_ace = s.slots
            if main and place == 13:
                s.high_ace = s.slots
            add_slot(o, TRUMP_SUIT, tier_of[kind], place == last + 1, 2 * place + main, 1, &kind)
            last = place
    for place in range(2):
        kind = JOKERS_FROM + place
        add_slot(o, TRUMP_SUIT, tier_of[kind], place == 1, 1000 + place, 1, &kind)


cdef void rank_slots(OrderC* o, Suit* s) noexcept nogil:
    """Fill in what follows from the slots: orders by top and tier, and how card bits move to slot bits."""
    cdef int i, j, at, card, slot, last
    cdef uint8_t place
    for j in range(s.slots):                     # by_top: insertion sort, slots of equal top in their order
        i = j
        while i and s.top[s.by_top[i - 1]] < s.top[j]:
            s.by_top[i] = s.by_top[i - 1]
            i -= 1
        s.by_top[i] = j
        s.joins |= <uint32_t> s.joined[j] << j
        if s.kinds[j] > 1:
            s.shared_slot[s.shared] = j
            for i in range(s.kinds[j]):
                s.shared_mask[s.shared] |= 1ULL << s.kind[j][i]
            s.shared += 1
            continue
        card = s.kind[j][0]
        i = s.runs - 1
        last = sj_bits(s.run_mask[i]) if i >= 0 else 0
        if i >= 0 and card == s.run_from[i] + last and j == s.run_to[i] + last:
            s.run_mask[i] = 2 * s.run_mask[i] + 1
        else:
            s.run_from[s.runs] = card
            s.run_to[s.runs] = j
            s.run_mask[s.runs] = 1
            s.runs += 1
    for j in range(s.slots):
        if j == s.low_ace:
            continue
        for place in range(s.kinds[j]):
            card = s.kind[j][place]
            at = s.n_ranked
            while at:
                slot = s.ranked[at - 1]
                if o.tier_of[slot] > o.tier_of[card] or (o.tier_of[slot] == o.tier_of[card] and slot < card):
                    break
                s.ranked[at] = s.ranked[at - 1]
                s.ranked_slot[at] = s.ranked_slot[at - 1]
                s.ranked_place[at] = s.ranked_place[at - 1]
                at -= 1
            s.ranked[at] = card
            s.ranked_slot[at] = j
            s.ranked_place[at] = place
            s.n_ranked += 1
    for at in range(s.n_ranked):
        s.ranked_at[s.ranked_slot[at]][s.ranked_place[at]] = at
        if s.ranked_slot[at] == s.high_ace:
            s.ranked_at[s.low_ace][0] = at


cdef inline int strength(OrderC* o, int card) noexcept nogil:
    """Trumps above all other cards, then by tier."""
    return (o.suit_of[card] == TRUMP_SUIT) * 64 + o.tier_of[card]


cdef void build_order(OrderC* o, RulesC* rules, int level, int trump) noexcept nogil:
    """Lay out the five effective suits for one level and trump."""
    cdef int suit, rank, tier, i, card
    cdef uint8_t kind
    memset(o, 0, sizeof(OrderC))
    o.rules = rules
    o.level = level
    o.trump = trump
    for suit in range(5):
        o.suits[suit].low_ace = o.suits[suit].high_ace = -1
    for suit in range(2 if rules.two_colour else 4):
        if suit == trump:
            continue
        tier = 0
        for rank in range(N_RANKS):
            if rank == level or (rank == 0 and rules.permanent_twos):
                continue
            kind = suit * N_RANKS + rank
            add_slot(o, suit, tier, beside_lower(o, rank), tier, 1, &kind)
            tier += 1
    if rules.adjacency == PRINTED_RANK:
        trump_by_printed_rank(o)
    else:
        trump_by_tiers(o)
    for suit in range(5):
        rank_slots(o, &o.suits[suit])
    for card in range(N_CARDS):
        i = card
        while i and strength(o, o.falling[i - 1]) < strength(o, card):
            o.falling[i] = o.falling[i - 1]
            i -= 1
        o.falling[i] = card
        i = card
        while i and strength(o, o.rising[i - 1]) > strength(o, card):
            o.rising[i] = o.rising[i - 1]
            i -= 1
        o.rising[i] = card


# ------------------------------------------------------------------------------------------------------------
# Packing: can a multiset of groups and tractors be taken from a suit's cards by disjoint groups?
# ------------------------------------------------------------------------------------------------------------

# Single groups are counted by width and by the widest kind that they may come from. This limit is 4 (none)
# but for keep_groups_whole (the width of the lead component) and groups_stay_together (the group's own
# width).
cdef enum:
    QUADS = 0            # width 4
    TRIPLES_3 = 1        # width 3 from kinds of at most 3
    TRIPLES_4 = 2
    PAIRS_2 = 3          # width 2 from kinds of at most 2
    PAIRS_3 = 4
    PAIRS_4 = 5


cdef inline int group_class(int width, int limit) noexcept nogil:
    if width == 4:
        return QUADS
    return limit - 2 if width == 3 else limit + 1


cdef struct Demand:
    int types                            # distinct tractors, larger first
    uint8_t width[MAX_TYPES]
    uint8_t length[MAX_TYPES]
    uint8_t limit[MAX_TYPES]
    uint8_t number[MAX_TYPES]
    uint8_t group[8]                     # single groups by class
    uint8_t chosen[MAX_COMPS]            # by lead component: the alternative taken of its ladder step
    uint32_t left                        # what a known packing of the tractors leaves; 0 when none is known

cdef struct Pack:
    Suit* suit
    int8_t have[MAX_SLOTS][4]            # copies of each kind in each slot; 0 stands for 1 too
    int8_t run[5][MAX_SLOTS + 1]         # run[w][j]: slots in a row from j upwards that hold w of a kind
    int8_t reach[5][MAX_SLOTS + 1]       # the longest such run from j or above
    uint32_t rest[MAX_SLOTS + 1]         # the supply of the slots from j upwards
    uint32_t rows[MAX_SLOTS + 1]         # the same, of what tractors can use

# A supply is the number of kinds of which so many copies are left, as four bytes: four (intact), two of four,
# three (intact), two (intact).
cdef enum:
    LEFT_4 = 0x1
    LEFT_2_OF_4 = 0x100
    LEFT_3 = 0x10000
    LEFT_2 = 0x1000000


cdef inline bint groups_fit(uint64_t need, uint32_t supply) noexcept nogil:
    """Whether single groups (six bytes by class) can be taken from a supply; exact."""
    cdef int intact4 = supply & 255, half4 = (supply >> 8) & 255
    cdef int intact3 = (supply >> 16) & 255, intact2 = supply >> 24
    cdef int n, x
    # A limit rules wider kinds out, so the strictest come first, each from the least useful kind it may take.
    intact2 -= <int> (need >> (8 * PAIRS_2)) & 255
    intact3 -= <int> (need >> (8 * TRIPLES_3)) & 255
    intact4 -= <int> (need >> (8 * QUADS)) & 255
    if (intact2 | intact3 | intact4) < 0:
        return False
    n = <int> (need >> (8 * PAIRS_3)) & 255
    if n:
        x = n if n < intact2 else intact2
        intact2 -= x
        intact3 -= n - x
        if intact3 < 0:
            return False
    # Triples break threes before fours: a three gives one pair only, a four two.
    n = <int> (need >> (8 * TRIPLES_4)) & 255
    if n:
        x = n if n < intact3 else intact3
        intact3 -= x
        intact4 -= n - x
        if intact4 < 0:
            return False
    return (<int> (need >> (8 * PAIRS_4)) & 255) <= intact2 + intact3 + half4 + 2 * intact4


cdef inline uint32_t leftover(int had, int left) noexcept nogil:
    """What a kind of ``had`` copies of which ``left`` remain adds to a supply."""
    if left < 2:
        return 0
    if left == 4:
        return LEFT_4
    if left == 3:
        return LEFT_3 if had == 3 else 0
    return LEFT_2_OF_4 if had == 4 else LEFT_2


cdef inline uint32_t in_rows(Pack* p, int j, int had) noexcept nogil:
    """At most what a kind of ``had`` copies adds to the tractors that may pass through its slot."""
    cdef bint below = p.suit.joined[j] and j > 0
    if had < 2 or (p.run[2][j] < 2 and not (below and p.run[2][j - 1] > 0)):
        return 0
    if had == 2:
        return LEFT_2
    if p.run[3][j] < 2 and not (below and p.run[3][j - 1] > 0):
        return LEFT_2 if had == 3 else 2 * LEFT_2
    return LEFT_3 if had == 3 else LEFT_4


cdef void refresh(Pack* p) noexcept nogil:
    """Recompute runs and supplies after ``have`` changed."""
    cdef Suit* s = p.suit
    cdef int j, i, w, most, row
    for w in range(2, 5):
        p.run[w][s.slots] = p.reach[w][s.slots] = 0
    for j in range(s.slots - 1, -1, -1):
        most = p.have[j][0]
        for i in range(1, s.kinds[j]):
            most = p.have[j][i] if p.have[j][i] > most else most
        for w in range(2, 5):
            row = 0
            if most >= w:
                row = 1 + (p.run[w][j + 1] if s.joined[j + 1] else 0)
                if j == s.low_ace and row > N_RANKS:
                    row = N_RANKS                # a tier gives one group to a tractor: never both aces
            p.run[w][j] = row
            p.reach[w][j] = row if row > p.reach[w][j + 1] else p.reach[w][j + 1]
    p.rest[s.slots] = p.rows[s.slots] = 0
    for j in range(s.slots - 1, -1, -1):
        p.rest[j] = p.rest[j + 1]
        p.rows[j] = p.rows[j + 1]
        for i in range(s.kinds[j]):
            if j != s.low_ace:                   # counted with the other ace
                p.rest[j] += leftover(p.have[j][i], p.have[j][i])
                p.rows[j] += in_rows(p, j, p.have[j][i])
    if s.low_ace >= 0:
        i = p.have[s.low_ace][0]
        if in_rows(p, s.low_ace, i) != in_rows(p, s.high_ace, i):
            for j in range(s.high_ace + 1):      # either end may serve
                p.rows[j] += leftover(i, i) - in_rows(p, s.high_ace, i)


cdef void make_pack(Suit* s, const Masks* kinds, Pack* p) noexcept nogil:
    """Lay kinds of one suit out by slots."""
    cdef int j, i, card
    p.suit = s
    for j in range(s.slots):
        for i in range(s.kinds[j]):
            card = s.kind[j][i]
            if (kinds.k[1] >> card) & 1:
                p.have[j][i] = 2 + ((kinds.k[2] >> card) & 1) + ((kinds.k[3] >> card) & 1)
            else:
                p.have[j][i] = 0
    refresh(p)


cdef inline void take_copies(Pack* p, int j, int i, int n) noexcept nogil:
    """Take copies of a kind out of a pack (give back when n < 0); the ace of D3 is one kind in two slots."""
    cdef Suit* s = p.suit
    p.have[j][i] -= n
    if j == s.low_ace:
        p.have[s.high_ace][0] -= n
    elif j == s.high_ace:
        p.have[s.low_ace][0] -= n


cdef void demand_add(Demand* d, int width, int length, int limit, int number) noexcept nogil:
    """Add components of one shape to a demand."""
    cdef int t, u
    if length == 1:
        d.group[group_class(width, limit)] += number
        return
    d.left = 0
    for t in range(d.types):
        if d.width[t] == width and d.length[t] == length and d.limit[t] == limit:
            d.number[t] += number
            return
    # More than MAX_TYPES cannot be: thirteen distinct tractors need more kinds than a suit has.
    t = d.types
    while t and ((d.width[t - 1] << 16 | d.length[t - 1] << 8 | d.limit[t - 1])
                 < (width << 16 | length << 8 | limit)):
        d.width[t] = d.width[t - 1]
        d.length[t] = d.length[t - 1]
        d.limit[t] = d.limit[t - 1]
        d.number[t] = d.number[t - 1]
        t -= 1
    d.width[t] = width
    d.length[t] = length
    d.limit[t] = limit
    d.number[t] = number
    d.types += 1


cdef inline bint same_demand(const Demand* a, const Demand* b) noexcept nogil:
    """Equal but for the alternatives by which they came about (unused places are 0)."""
    return (a.types == b.types and memcmp(a.width, b.width, MAX_TYPES) == 0
            and memcmp(a.length, b.length, MAX_TYPES) == 0 and memcmp(a.limit, b.limit, MAX_TYPES) == 0
            and memcmp(a.number, b.number, MAX_TYPES) == 0 and memcmp(a.group, b.group, 8) == 0)


cdef inline bint is_empty(const Demand* d) noexcept nogil:
    cdef int i, n = d.types
    for i in range(6):
        n += d.group[i]
    return n == 0


# The search goes over the slots from low to high and keeps the tractors that are open: at most two pass
# through a slot of one kind, at most eight through a slot of four. Three things keep it short. What is still
# to be placed bounds it: tractors counted as loose groups must fit what is left. Dead ends are remembered, so
# that its cost is the number of distinct situations, not of placements. And only packings that are pushed
# down are looked for: a tractor whose lower neighbour slot has room for it could as well begin there, unless
# that cost the single groups something, so it is barred from beginning above such a slot.

cdef struct Search:
    Pack* pack
    const Demand* want
    int types
    uint64_t groups      # single groups wanted, six bytes by class
    bint limited         # some groups or tractors may not come from any kind
    int widest_kind      # that every tractor may come from
    uint32_t left        # the supply that is left over, once a packing is found
    int nodes
    uint32_t stamp       # of the dead ends; 0 until they are worth remembering
    sj_dead_end* dead_ends

cdef struct State:
    int slot             # the next one
    uint64_t opens       # tractors begun, a byte each: width - 1, limit - 1, slots to go; sorted
    uint64_t rest        # tractors not begun, five bits a type
    uint64_t need        # the slots that tractors have still to fill, as groups, six bytes by class
    uint32_t supply      # what the slots below leave for single groups
    uint64_t wanted      # the single groups that this does not serve, see still_wanted
    uint32_t spare
    uint32_t barred      # bit w: no tractor of width w may begin on the next slot
    int low_ace_used     # D3: copies of the ace taken below the two


cdef inline void still_wanted(const Search* c, State* s) noexcept nogil:
    """Reduce the single groups and the supply to what makes a difference from here on.

    ``wanted``: a byte each for quads, triples and pairs that the slots below do not serve; ``spare``: the
    fours that they have beside. A four serves a quad, a three a triple, a two a pair first; and what is left
    of threes, then of fours, serves pairs once nothing wider is wanted. Where kinds are limited nothing is
    reduced.
    """
    cdef int quads, triples, pairs, fours, threes, n
    s.spare = 0
    s.wanted = 0
    if c.groups == 0:
        return
    if c.limited:
        s.spare = s.supply
        s.wanted = c.groups
        return
    fours = s.supply & 255
    threes = (s.supply >> 16) & 255
    quads = <int> (c.groups >> (8 * QUADS)) & 255
    triples = <int> (c.groups >> (8 * TRIPLES_4)) & 255
    pairs = <int> (c.groups >> (8 * PAIRS_4)) & 255
    n = quads if quads < fours else fours
    quads -= n
    fours -= n
    n = triples if triples < threes else threes
    triples -= n
    threes -= n
    pairs -= <int> (s.supply >> 24) + <int> ((s.supply >> 8) & 255) + threes
    if triples == 0:
        pairs -= 2 * fours
        fours = 0
    if pairs < 0:
        pairs = 0
    n = triples + (pairs + 1) // 2
    s.spare = fours if fours < n else n
    s.wanted = quads | (triples << 8) | (pairs << 16)


cdef inline uint32_t bars(const Search* c, const State* s, int had, int left) noexcept nogil:
    """The widths that may not begin above this slot, where ``left`` of a kind's ``had`` copies stay free.

    Pushing a tractor down uses copies here and frees as many of a higher kind, which may be of any size. That
    costs the single groups wanted from here on nothing if there are none; or if the kind here gives way
    completely (a two, two of a four, a three for a triple, a four for a quad); or if what breaks is worth a
    pair and no more.
    """
    cdef uint32_t out = 0
    if left < 2 or had > c.widest_kind:
        return 0
    if s.wanted == 0:
        return (1 << (left + 1)) - 1
    if c.limited:
        return 0
    if left == 2 or s.wanted & 0xFFFF == 0 or (left == 3 and s.wanted & 0xFF00 == 0):
        out = 1 << 2
    if had == 3 and left == 3:
        out |= 1 << 3
    if left == 4:
        out |= 1 << 4
    return out


cdef inline uint64_t with_open(uint64_t opens, uint64_t track) noexcept nogil:
    """Add a track to the open ones, kept sorted."""
    cdef uint64_t lower
    cdef int shift = 0
    while ((opens >> shift) & 255) > track:
        shift += 8
    lower = opens & ((1ULL << shift) - 1)
    return lower | (track << shift) | ((opens ^ lower) << 8)


cdef inline void begin(const Demand* d, int t, State* s) noexcept nogil:
    """Begin a tractor of a type on the slot in hand."""
    s.rest -= 1ULL << (5 * t)
    s.need -= 1ULL << (8 * group_class(d.width[t], d.limit[t]))
    s.opens = with_open(s.opens, ((d.width[t] - 1) << 6) | ((d.limit[t] - 1) << 4) | (d.length[t] - 1))


cdef inline bint may_begin(const Search* c, const State* s, int t) noexcept nogil:
    """Whether a tractor of a type is left that may begin on the slot in hand."""
    cdef int width = c.want.width[t]
    return ((s.rest >> (5 * t)) & 31 != 0 and not (s.barred >> width) & 1
            and c.pack.run[width][s.slot] >= c.want.length[t])


cdef inline void rest_key(const Search* c, uint64_t rest, uint64_t* out) noexcept nogil:
    """The tractors that have not begun, sixteen bits a type: the same whatever demand they belong to."""
    cdef const Demand* d = c.want
    cdef int t, n = 0
    cdef uint64_t number
    out[0] = out[1] = out[2] = 0
    for t in range(c.types):
        number = (rest >> (5 * t)) & 31
        if number:
            number |= (d.length[t] << 5) | ((d.width[t] - 1) << 10) | ((d.limit[t] - 1) << 12)
            out[n >> 2] |= number << (16 * (n & 3))
            n += 1


cdef inline bint same_place(const sj_dead_end* a, const sj_dead_end* b) noexcept nogil:
    return (a.stamp == b.stamp and a.opens == b.opens and a.place == b.place and a.rest[0] == b.rest[0]
            and a.rest[1] == b.rest[1] and a.rest[2] == b.rest[2])


cdef inline bint is_dead(const Search* c, const sj_dead_end* known, const sj_dead_end* here) noexcept nogil:
    """Whether a known dead end shows that this one is dead too.

    Where nothing was barred it had no packing at all, so one that wants at least as much and has no more to
    spare has none. Otherwise it had none that is pushed down, and only the very same situation is dead.
    """
    if not same_place(known, here):
        return False
    if known.barred or c.limited:
        return known.barred == here.barred and known.wanted == here.wanted and known.spare == here.spare
    return (here.spare <= known.spare and here.wanted & 255 >= known.wanted & 255
            and (here.wanted >> 8) & 255 >= (known.wanted >> 8) & 255
            and here.wanted >> 16 >= known.wanted >> 16)


cdef inline sj_dead_end* dead_end_of(const Search* c, const sj_dead_end* here) noexcept nogil:
    """The first of the two entries where a situation is remembered."""
    cdef uint64_t key = here.opens * 0x9E3779B97F4A7C15ULL
    key = (key ^ (key >> 32) ^ here.rest[0]) * 0xC2B2AE3D27D4EB4FULL
    key = (key ^ (key >> 29) ^ here.rest[1] ^ (here.rest[2] << 7)) * 0x165667B19E3779F9ULL
    key = (key ^ (key >> 32) ^ here.place) * 0xBF58476D1CE4E5B9ULL
    return &c.dead_ends[(key >> 40) & (SJ_DEAD_ENDS - 2)]


cdef inline void free_ace(const Search* c, State* s) noexcept nogil:
    """Correct a supply that counted the ace of D3 as whole at its high slot."""
    cdef int have
    if s.low_ace_used:
        have = c.pack.have[c.pack.suit.high_ace][0]
        s.supply += leftover(have, have - s.low_ace_used) - leftover(have, have)


cdef inline bint cannot_fit(const Search* c, const State* s) noexcept nogil:
    """Whether the tractors, or they and the groups, need more than is left, even taken as loose groups."""
    return (not groups_fit(s.need, c.pack.rows[s.slot])
            or (c.groups != 0 and not groups_fit(s.need + c.groups, s.supply + c.pack.rest[s.slot])))


cdef bint sweep(Search* c, const State* start) noexcept nogil:
    """Place what is open and what has not begun on the slots from ``start.slot`` upwards."""
    cdef Pack* p = c.pack
    cdef Suit* suit = p.suit
    cdef State s
    cdef sj_dead_end here
    cdef sj_dead_end* dead = NULL
    cdef uint64_t track
    cdef int left, width, limit, n = 0, i
    cdef uint8_t widths[8]
    cdef uint8_t limits[8]
    cdef bint found
    if cannot_fit(c, start):
        return False
    s = start[0]
    while True:
        if s.opens == 0 and s.rest == 0:
            s.supply += p.rest[s.slot]
            if s.slot <= suit.high_ace:
                free_ace(c, &s)
            c.left = s.supply
            return groups_fit(c.groups, s.supply)
        if s.slot == suit.slots:
            return False
        if s.opens:
            if not suit.joined[s.slot]:
                return False
            break
        if p.run[2][s.slot] >= 2:
            break
        s.supply += p.rest[s.slot] - p.rest[s.slot + 1]      # no tractor can begin here
        if s.slot == suit.high_ace:
            free_ace(c, &s)
        s.barred = 0
        s.slot += 1
    if s.slot != start.slot and cannot_fit(c, &s):
        return False
    for i in range(c.types):
        if (s.rest >> (5 * i)) & 31 and p.reach[c.want.width[i]][s.slot] < c.want.length[i]:
            return False
    still_wanted(c, &s)
    c.nodes += 1
    if c.stamp == 0 and c.nodes > 32:
        c.stamp = sj_new_stamp()
    if c.stamp:
        here.stamp = c.stamp
        here.opens = s.opens
        here.place = s.slot | (s.low_ace_used << 8)
        here.barred = s.barred
        here.wanted = s.wanted
        here.spare = s.spare
        rest_key(c, s.rest, here.rest)
        dead = dead_end_of(c, &here)
        if is_dead(c, &dead[0], &here) or is_dead(c, &dead[1], &here):
            return False
    left = p.have[s.slot][0] - (s.low_ace_used if s.slot == suit.high_ace else 0)
    track = s.opens
    s.opens = 0
    while track:                                 # what is open goes on
        width = ((track >> 6) & 3) + 1
        limit = ((track >> 4) & 3) + 1
        widths[n] = width
        limits[n] = limit
        n += 1
        left -= width
        if suit.kinds[s.slot] == 1 and (left < 0 or p.have[s.slot][0] > limit):
            return False
        s.need -= 1ULL << (8 * group_class(width, limit))
        if track & 15 > 1:
            s.opens = with_open(s.opens, (track & 255) - 1)
        track >>= 8
    if suit.kinds[s.slot] == 1:
        found = sweep_one(c, &s, 0, left)
    else:
        found = sweep_many(c, &s, 0, n, widths, limits)
    if not found and dead != NULL:
        if not is_dead(c, &here, dead):          # keep what the new entry does not cover
            dead[1] = dead[0]
        dead[0] = here
    return found


cdef bint sweep_one(Search* c, const State* s, int first, int left) noexcept nogil:
    """Begin tractors on a slot of one kind of which ``left`` copies are free, then go on to the next slot."""
    cdef Suit* suit = c.pack.suit
    cdef State up
    cdef int t, have = c.pack.have[s.slot][0]
    for t in range(first, c.types):
        if c.want.width[t] <= left and have <= c.want.limit[t] and may_begin(c, s, t):
            up = s[0]
            begin(c.want, t, &up)
            if sweep_one(c, &up, t, left - c.want.width[t]):
                return True
    up = s[0]
    up.slot += 1
    up.barred = 0
    if s.slot == suit.low_ace:
        up.low_ace_used = have - left
    else:
        up.supply += leftover(have, left)
        if suit.joined[up.slot]:
            up.barred = bars(c, s, have, left)
    return sweep(c, &up)


cdef bint sweep_many(Search* c, const State* s, int first, int n, uint8_t* widths,
                     uint8_t* limits) noexcept nogil:
    """Begin tractors on a slot of several kinds, then share the n tracks out among the kinds."""
    cdef State up
    cdef int t, i
    cdef int8_t left[4]
    if n < 8:
        for t in range(first, c.types):
            if may_begin(c, s, t):
                up = s[0]
                begin(c.want, t, &up)
                widths[n] = c.want.width[t]
                limits[n] = c.want.limit[t]
                if sweep_many(c, &up, t, n + 1, widths, limits):
                    return True
    for i in range(4):
        left[i] = c.pack.have[s.slot][i] if i < c.pack.suit.kinds[s.slot] else 0
    return share_out(c, s, 0, n, widths, limits, left)


cdef bint share_out(Search* c, const State* s, int i, int n, uint8_t* widths, uint8_t* limits,
                    int8_t* left) noexcept nogil:
    """Give tracks i..n-1 a kind of the slot each (several may share a kind), then go on to the next slot."""
    cdef Pack* p = c.pack
    cdef State up
    cdef int k, e, kinds = p.suit.kinds[s.slot]
    cdef bint tried
    if i == n:
        up = s[0]
        up.slot += 1
        up.barred = 0
        for k in range(kinds):
            up.supply += leftover(p.have[s.slot][k], left[k])
            if p.suit.joined[up.slot]:
                up.barred |= bars(c, s, p.have[s.slot][k], left[k])
        return sweep(c, &up)
    for k in range(kinds):
        if left[k] < widths[i] or p.have[s.slot][k] > limits[i]:
            continue
        tried = False
        for e in range(k):
            tried |= left[e] == left[k] and p.have[s.slot][e] == p.have[s.slot][k]
        if tried:
            continue
        left[k] -= widths[i]
        if share_out(c, s, i + 1, n, widths, limits, left):
            return True
        left[k] += widths[i]
    return False


cdef bint search(Search* c, Pack* p, const Demand* d, uint32_t stamp) noexcept nogil:
    """Whether disjoint groups of a pack realise a demand; exact.

    ``c.left`` is what the tractors of the packing found leave. Searches of one pack may share dead ends by a
    stamp.
    """
    cdef State s
    cdef int t
    memcpy(&c.groups, d.group, 8)
    c.nodes = 0
    c.stamp = 0
    if d.types == 0:
        c.left = p.rest[0]
        return groups_fit(c.groups, c.left)
    c.limited = (d.group[TRIPLES_3] | d.group[PAIRS_2] | d.group[PAIRS_3]) != 0
    c.widest_kind = 4
    memset(&s, 0, sizeof(s))
    for t in range(d.types):
        if p.reach[d.width[t]][0] < d.length[t]:
            return False
        if d.limit[t] < c.widest_kind:
            c.widest_kind = d.limit[t]
            c.limited = True
        s.need += <uint64_t> (d.number[t] * d.length[t]) << (8 * group_class(d.width[t], d.limit[t]))
        s.rest |= <uint64_t> d.number[t] << (5 * t)
    c.pack = p
    c.want = d
    c.types = d.types
    c.dead_ends = sj_dead_ends
    if not c.limited:                            # else what is barred depends on the whole demand
        c.stamp = stamp
    return sweep(c, &s)


cdef bint fits(Pack* p, const Demand* d) noexcept nogil:
    """Whether disjoint groups of a pack realise a demand, wider groups broken where it helps (RULES §5)."""
    cdef Search c
    return search(&c, p, d, 0)


# ------------------------------------------------------------------------------------------------------------
# Shapes: cutting cards into components (RULES §3)
# ------------------------------------------------------------------------------------------------------------

cdef struct Comp:
    int width
    int length
    int top              # ranks components of one shape: the tier, for tractors the top of their highest slot
    int tier             # of the top card
    int first            # its lowest card index
    Masks cards

cdef struct Cut:
    int n
    Comp comps[MAX_COMPS]


cdef void add_kind(OrderC* o, const Masks* cards, int kind, Masks* out) noexcept nogil:
    """Move all copies of a kind, both colours of it, into ``out``."""
    cdef int i
    for i in range(copies(cards, kind)):
        put(out, kind)
    if o.rules.two_colour and kind < JOKERS_FROM:
        for i in range(copies(cards, kind + 26)):
            put(out, kind + 26)


cdef inline bint larger(const Comp* a, const Comp* b) noexcept nogil:
    """Component order of RULES §3, then higher top, then suit order."""
    if (a.length > 1) != (b.length > 1):
        return a.length > 1
    if a.width != b.width:
        return a.width > b.width
    if a.length != b.length:
        return a.length > b.length
    if a.top != b.top:
        return a.top > b.top
    return a.first < b.first


cdef inline void insert_comp(Cut* cut, const Comp* comp) noexcept nogil:
    cdef int i = cut.n
    while i and larger(comp, &cut.comps[i - 1]):
        cut.comps[i] = cut.comps[i - 1]
        i -= 1
    cut.comps[i] = comp[0]
    cut.n += 1


cdef int first_kind_of(OrderC* o, Suit* s, const Masks* cards, Pack* p, int j, int width) noexcept nogil:
    """Of the kinds in a slot with just ``width`` copies the one whose lowest card is first in suit order."""
    cdef int i, card, best = -1, lowest = N_CARDS
    for i in range(s.kinds[j]):
        if p.have[j][i] == width:
            card = s.kind[j][i]
            if not (cards.k[0] >> card) & 1:     # two colours: only its higher card is there
                card += 26
            if card < lowest:
                best = i
                lowest = card
    return best


cdef void cut_tractors(OrderC* o, Suit* s, const Masks* cards, Pack* p, Cut* cut) noexcept nogil:
    """Form tractors of equal groups: longest first, ties to the wider, then to the higher top (RULES §3)."""
    cdef int j, i, w, n, best, best_w, best_length, row
    cdef int8_t place[MAX_SLOTS]
    cdef Comp comp
    while True:
        best = -1
        best_w = best_length = 0
        for w in range(4, 1, -1):
            row = 0
            for j in range(s.slots):             # row: slots in a row up to j that hold exactly w of a kind
                i = 0
                while i < s.kinds[j] and p.have[j][i] != w:
                    i += 1
                if i == s.kinds[j]:
                    row = 0
                    continue
                row = row + 1 if s.joined[j] else 1
                n = row
                if n > N_RANKS and s.low_ace >= 0:
                    n = N_RANKS                  # never both aces
                if n < 2:
                    continue
                if n > best_length or (n == best_length and w == best_w and s.top[j] > s.top[best]):
                    best = j
                    best_w = w
                    best_length = n
        if best < 0:
            return
        clear(&comp.cards)
        for j in range(best - best_length + 1, best + 1):
            i = first_kind_of(o, s, cards, p, j, best_w)
            add_kind(o, cards, s.kind[j][i], &comp.cards)
            take_copies(p, j, i, best_w)
        comp.width = best_w
        comp.length = best_length
        comp.top = s.top[best]
        comp.tier = o.tier_of[s.kind[best][0]]
        comp.first = sj_low(comp.cards.k[0])
        insert_comp(cut, &comp)


cdef void cut_shape(OrderC* o, Suit* s, const Masks* cards, Cut* cut) noexcept nogil:
    """Cut cards of one effective suit into components, larger first."""
    cdef Pack p
    cdef Masks kinds
    cdef Comp comp
    cdef int i, j, k
    cut.n = 0
    kinds_in(o, s, cards, &kinds)
    make_pack(s, &kinds, &p)
    if p.reach[2][0] >= 2:
        cut_tractors(o, s, cards, &p, cut)
    for i in range(s.n_ranked):
        j = s.ranked_slot[i]
        k = s.ranked[i]
        if not (kinds.k[0] >> k) & 1 or ((kinds.k[1] >> k) & 1 and p.have[j][s.ranked_place[i]] == 0):
            continue                             # not there, or in a tractor
        comp.width = copies(&kinds, k)
        comp.length = 1
        comp.top = comp.tier = o.tier_of[k]
        clear(&comp.cards)
        add_kind(o, cards, k, &comp.cards)
        comp.first = sj_low(comp.cards.k[0])
        insert_comp(cut, &comp)


# ------------------------------------------------------------------------------------------------------------
# Leads and ladders: what a hand owes (RULES §5)
# ------------------------------------------------------------------------------------------------------------

# How a lead is checked: only the suit, pairs counted, one pair tractor (kinds of at most two), or in general.
cdef enum:
    CHECK_SUIT = 0
    CHECK_PAIRS = 1
    CHECK_TRACTOR = 2
    CHECK_LADDERS = 3

cdef struct LeadC:
    OrderC* order
    Suit* suit
    int suit_index
    int n                                # cards
    int how
    int pairs                            # CHECK_PAIRS, CHECK_TRACTOR: pairs in the lead, its tractor's too
    int comps
    uint8_t width[MAX_COMPS]
    uint8_t length[MAX_COMPS]
    const uint8_t* ladder[MAX_COMPS]     # the printed ladder, NULL for the generic one
    bint self_first                      # every ladder begins with the component's own shape
    Demand full                          # all components
    Demand answer                        # RULES §6: all but the largest, limited where groups stay together
    bint wider_beats                     # a wider single component of the same card count beats it

cdef struct Demands:                     # a list that grows
    Demand* at
    int n
    int room
    Demand few[8]

cdef struct Known:                       # about one pack, while its obligation is worked out
    Demands failed                       # demands that do not fit
    uint32_t stamp                       # of the dead ends of its searches, 0 for none yet

cdef struct Owed:
    Demands accepted                     # a play that realises one of these is legal
    Demands best                         # the hand's own best steps, the first alternatives leading
    Demand example                       # the first of these
    int step[MAX_COMPS]                  # printed ladders: the step reached
    int parts_from[MAX_COMPS + 1]        # generic ladders: which parts belong to a component
    int parts
    uint8_t part_width[MAX_PARTS]
    uint8_t part_length[MAX_PARTS]


cdef inline void demands_init(Demands* v) noexcept nogil:
    v.at = v.few
    v.n = 0
    v.room = 8


cdef inline void demands_free(Demands* v) noexcept nogil:
    if v.at != v.few:
        free(v.at)


cdef int demands_add(Demands* v, const Demand* d) noexcept nogil:
    """Append a demand unless it is there already; 1 when it was not, 0, or E_MEMORY."""
    cdef int i
    cdef Demand* grown
    for i in range(v.n):
        if same_demand(&v.at[i], d):
            return 0
    if v.n == v.room:
        grown = <Demand*> malloc(2 * v.room * sizeof(Demand))
        if grown == NULL:
            return E_MEMORY
        memcpy(grown, v.at, v.n * sizeof(Demand))
        demands_free(v)
        v.at = grown
        v.room *= 2
    v.at[v.n] = d[0]
    v.n += 1
    return 1


cdef inline int error_of(int code) noexcept nogil:
    """The error of an answer, 0 when it is none."""
    return code if code < 0 else 0


cdef int demands_set(Demands* v, const Demands* other) noexcept nogil:
    cdef int i
    v.n = 0
    for i in range(other.n):
        if demands_add(v, &other.at[i]) < 0:
            return E_MEMORY
    return 0


cdef inline const uint8_t* skip_alternative(const uint8_t* at) noexcept nogil:
    return at + 1 + 2 * at[0]


cdef inline const uint8_t* skip_step(const uint8_t* at) noexcept nogil:
    cdef int i
    cdef const uint8_t* after = at + 1
    for i in range(at[0]):
        after = skip_alternative(after)
    return after


cdef inline void add_alternative(Demand* d, const uint8_t* alternative, int limit) noexcept nogil:
    cdef int i
    for i in range(alternative[0]):
        demand_add(d, alternative[1 + 2 * i], alternative[2 + 2 * i], limit, 1)


cdef inline bint asks_wider(const uint8_t* alternative, int limit) noexcept nogil:
    """Whether an alternative asks for groups that only kinds above the limit hold."""
    cdef int i
    for i in range(alternative[0]):
        if alternative[1 + 2 * i] > limit:
            return True
    return False


cdef bint begins_with(const uint8_t* ladder, int width, int length) noexcept nogil:
    """Whether the first step of a printed ladder can be satisfied by the shape itself."""
    cdef int i
    cdef const uint8_t* at = ladder + 2
    for i in range(ladder[1]):
        if at[0] == 1 and at[1] == width and at[2] == length:
            return True
        at = skip_alternative(at)
    return False


cdef bint is_plain_pair(const uint8_t* ladder) noexcept nogil:
    """Whether a printed ladder is "2 · 1,1", which is the generic one of a pair."""
    return ladder[0] == 2 and ladder[1] == 1 and begins_with(ladder, 2, 1)


cdef void compile_lead(OrderC* o, int suit, const Cut* cut, LeadC* lead) noexcept nogil:
    """Prepare a lead whose components are known."""
    cdef RulesC* r = o.rules
    cdef int i, w, l, tractors = 0, widest = 1
    cdef bint printed = False
    lead.order = o
    lead.suit = &o.suits[suit]
    lead.suit_index = suit
    lead.n = 0
    lead.pairs = 0
    lead.comps = cut.n
    lead.self_first = True
    memset(&lead.full, 0, sizeof(Demand))
    memset(&lead.answer, 0, sizeof(Demand))
    for i in range(cut.n):
        w = cut.comps[i].width
        l = cut.comps[i].length
        lead.width[i] = w
        lead.length[i] = l
        lead.n += w * l
        lead.ladder[i] = NULL
        if w == 1:
            continue
        widest = w if w > widest else widest
        tractors += l > 1
        lead.pairs += l
        lead.ladder[i] = r.ladder[w][l]
        if lead.ladder[i] != NULL and w == 2 and l == 1 and is_plain_pair(lead.ladder[i]):
            lead.ladder[i] = NULL
        if lead.ladder[i] != NULL:
            printed = True
            lead.self_first = lead.self_first and begins_with(lead.ladder[i], w, l)
        demand_add(&lead.full, w, l, 4, 1)
        if i > 0:
            demand_add(&lead.answer, w, l, w if r.groups_stay_together else 4, 1)
    lead.wider_beats = r.wider_beats and cut.n == 1 and cut.comps[0].length > 1
    if widest == 1:
        lead.how = CHECK_SUIT
    elif printed or widest > 2:
        lead.how = CHECK_LADDERS
    elif tractors == 0:
        lead.how = CHECK_PAIRS
    elif tractors == 1 and r.widest <= 2 and lead.suit.low_ace < 0:
        lead.how = CHECK_TRACTOR
    else:
        lead.how = CHECK_LADDERS


cdef inline bint next_shape(int preference, int w, int l, int* width, int* length) noexcept nogil:
    """Go on to the next best shape of a generic ladder for a component w x l; False after the last."""
    if length[0] > 1 and (preference == WIDTH_FIRST or length[0] > 2):
        length[0] -= 1                           # shorter
    elif width[0] > 2:
        width[0] -= 1                            # narrower
        if length[0] > 1 or preference == WIDTH_FIRST:
            length[0] = l
    elif length[0] > 1:
        width[0] = w                             # tractors first: groups after the last tractor
        length[0] = 1
    else:
        return False
    return True


cdef bint contains(const Demand* a, const Demand* b) noexcept nogil:
    """Whether a demand asks for all that another asks for."""
    cdef int i, t, u = 0
    for i in range(6):
        if a.group[i] < b.group[i]:
            return False
    for t in range(b.types):                     # both are in the same order
        while u < a.types and (a.width[u] != b.width[t] or a.length[u] != b.length[t]
                               or a.limit[u] != b.limit[t]):
            u += 1
        if u == a.types or a.number[u] < b.number[t]:
            return False
    return True


cdef int fits_more(Pack* hand, Demand* d, Known* known) noexcept nogil:
    """``fits`` for a demand grown from one that fits, with the help of what is known; 1, 0 or E_MEMORY."""
    cdef Search c
    cdef int i
    cdef uint64_t groups
    memcpy(&groups, d.group, 8)
    if d.left and groups_fit(groups, d.left):
        return 1                                 # the tractors can stay where they are
    for i in range(known.failed.n):
        if contains(d, &known.failed.at[i]):
            return 0
    if search(&c, hand, d, known.stamp):
        d.left = c.left
        return 1
    if known.stamp == 0 and c.nodes > 32:
        known.stamp = sj_new_stamp()
    return error_of(demands_add(&known.failed, d))


cdef int extend(Pack* hand, const Demands* chosen, int width, int length, int limit, Known* known,
                Demands* out) noexcept nogil:
    """Those of the chosen demands that one more group can be added to; how many, or E_MEMORY."""
    cdef Demand more
    cdef int i, fit
    out.n = 0
    for i in range(chosen.n):
        more = chosen.at[i]
        demand_add(&more, width, length, limit, 1)
        fit = fits_more(hand, &more, known)
        if fit < 0 or (fit and demands_add(out, &more) < 0):
            return E_MEMORY
    return out.n


cdef int best_printed(LeadC* lead, int comp, Pack* hand, int limit, int first, Demands* chosen, Known* known,
                      Demands* out) noexcept nogil:
    """Take the best step of a printed ladder from ``first`` on that fits beside what is chosen; which it is.

    Every alternative of the step that fits is kept, since a later component may need the other one.
    """
    cdef const uint8_t* at = lead.ladder[comp] + 1
    cdef const uint8_t* alternative
    cdef Demands tried
    cdef Demand more
    cdef int step, a, i, new, found = E_MEMORY   # the last step asks for nothing, so one is found
    demands_init(&tried)
    for step in range(lead.ladder[comp][0]):
        if step >= first:
            out.n = tried.n = 0
            for i in range(chosen.n):
                alternative = at + 1
                for a in range(at[0]):
                    if not asks_wider(alternative, limit):
                        more = chosen.at[i]
                        add_alternative(&more, alternative, limit)
                        more.chosen[comp] = a
                        new = demands_add(&tried, &more)
                        if new > 0:
                            new = fits_more(hand, &more, known)
                        if new > 0:
                            new = demands_add(out, &more)
                        if new < 0:
                            demands_free(&tried)
                            return E_MEMORY
                    alternative = skip_alternative(alternative)
            if out.n:
                found = step
                break
        at = skip_step(at)
    demands_free(&tried)
    return found


cdef int owe(LeadC* lead, Pack* hand, Owed* owed) noexcept nogil:
    """A hand's obligation, the lexicographically best vector of ladder steps (RULES §5); 0 or E_MEMORY."""
    cdef RulesC* r = lead.order.rules
    cdef Demands spare
    cdef Known known
    cdef Demands* chosen = &owed.best
    cdef Demands* out = &spare
    cdef Demands* swap
    cdef Demand nothing
    cdef uint8_t dead[5][5][MAX_LENGTH]  # limit, width, length: does not fit any more
    cdef int i, left, found, limit, w, l, width, length, first, result = 0
    cdef bint more_shapes
    memset(&nothing, 0, sizeof(Demand))
    memset(dead, 0, sizeof(dead))
    demands_init(&owed.accepted)
    demands_init(chosen)
    demands_init(out)
    demands_init(&known.failed)
    known.stamp = 0
    demands_add(chosen, &nothing)
    owed.parts = 0
    for i in range(lead.comps):
        owed.parts_from[i] = owed.parts
        owed.step[i] = 0
        w = lead.width[i]
        l = lead.length[i]
        if w == 1:
            continue
        limit = w if r.keep_groups_whole else 4
        if lead.ladder[i] != NULL:
            first = owed.step[i - 1] if i > 0 and lead.ladder[i - 1] == lead.ladder[i] else 0
            found = best_printed(lead, i, hand, limit, first, chosen, &known, out)
            if found < 0:
                result = E_MEMORY
                break
            owed.step[i] = found
            swap = chosen
            chosen = out
            out = swap
            continue
        left = w * l
        width = w
        length = l
        more_shapes = True
        while more_shapes:
            while width * length <= left and not dead[limit][width][length]:
                found = extend(hand, chosen, width, length, limit, &known, out)
                if found <= 0:
                    dead[limit][width][length] = True
                    result |= found
                    break
                swap = chosen
                chosen = out
                out = swap
                left -= width * length
                owed.part_width[owed.parts] = width
                owed.part_length[owed.parts] = length
                owed.parts += 1
            more_shapes = next_shape(r.preference, w, l, &width, &length)
    for i in range(lead.comps, MAX_COMPS + 1):
        owed.parts_from[i] = owed.parts
    if result == 0 and chosen != &owed.best:
        result = demands_set(&owed.best, chosen)
    demands_free(&spare)
    demands_free(&known.failed)
    owed.example = owed.best.at[0]
    if result == 0:
        result = accept_better(lead, owed) if r.keep_groups_whole else demands_set(&owed.accepted, &owed.best)
    return result


cdef int accept_better(LeadC* lead, Owed* owed) noexcept nogil:
    """Under keep_groups_whole: every demand that is the owed vector, or just better than it at one component.

    The hand's obligation left wide groups out; the play is measured with its groups breakable, so it may
    reach a better vector than the one owed. A play has a vector at least as good iff it realises one of
    these.
    """
    cdef RulesC* r = lead.order.rules
    cdef Demands* same_so_far = &owed.best
    cdef Demands grown
    cdef Demand nothing, more
    cdef const uint8_t* at
    cdef int i, m, part, end, k, width, length, left, result = 0
    cdef bint more_shapes
    memset(&nothing, 0, sizeof(Demand))
    same_so_far.n = 0
    demands_add(same_so_far, &nothing)
    demands_init(&grown)
    for i in range(lead.comps):
        if lead.width[i] == 1:
            continue
        if lead.ladder[i] != NULL:
            at = lead.ladder[i] + 1
            for k in range(owed.step[i]):
                result |= add_step(same_so_far, at, &owed.accepted)
                at = skip_step(at)
            grown.n = 0
            result |= add_step(same_so_far, at, &grown)
            result |= demands_set(same_so_far, &grown)
            continue
        end = owed.parts_from[i + 1]
        for m in range(same_so_far.n):
            left = lead.width[i] * lead.length[i]
            for part in range(owed.parts_from[i], end + 1):
                width = lead.width[i]
                length = lead.length[i]
                more_shapes = True
                while more_shapes:
                    if part < end and width == owed.part_width[part] and length == owed.part_length[part]:
                        break
                    if width * length <= left:
                        more = same_so_far.at[m]
                        demand_add(&more, width, length, 4, 1)
                        result |= error_of(demands_add(&owed.accepted, &more))
                    more_shapes = next_shape(r.preference, lead.width[i], lead.length[i], &width, &length)
                if part < end:
                    demand_add(&same_so_far.at[m], owed.part_width[part], owed.part_length[part], 4, 1)
                    left -= owed.part_width[part] * owed.part_length[part]
    for m in range(same_so_far.n):
        result |= error_of(demands_add(&owed.accepted, &same_so_far.at[m]))
    demands_free(&grown)
    return result


cdef int add_step(const Demands* so_far, const uint8_t* step, Demands* out) noexcept nogil:
    """Append every demand so far with every alternative of a printed step."""
    cdef const uint8_t* alternative
    cdef Demand more
    cdef int m, a
    for m in range(so_far.n):
        alternative = step + 1
        for a in range(step[0]):
            more = so_far.at[m]
            add_alternative(&more, alternative, 4)
            if demands_add(out, &more) < 0:
                return E_MEMORY
            alternative = skip_alternative(alternative)
    return 0


cdef inline void owed_free(Owed* owed) noexcept nogil:
    demands_free(&owed.accepted)
    demands_free(&owed.best)


# ------------------------------------------------------------------------------------------------------------
# Following (RULES §5)
# ------------------------------------------------------------------------------------------------------------

cdef inline uint32_t slots_of(Suit* s, uint64_t cards) noexcept nogil:
    """Bit j: slot j has a kind among ``cards``."""
    cdef uint32_t out = 0
    cdef int i
    for i in range(s.runs):
        out |= <uint32_t> ((cards >> s.run_from[i]) & s.run_mask[i]) << s.run_to[i]
    for i in range(s.shared):
        out |= <uint32_t> ((cards & s.shared_mask[i]) != 0) << s.shared_slot[i]
    return out


cdef inline bint is_crowded(Suit* s, uint64_t cards) noexcept nogil:
    """Whether a slot has several kinds among ``cards``, so that two tractors may pass through it."""
    cdef int i
    cdef uint64_t shared
    for i in range(s.shared):
        shared = cards & s.shared_mask[i]
        if shared & (shared - 1):
            return True
    return False


cdef inline bint has_run(uint32_t slots, uint32_t joins, int length) noexcept nogil:
    """Whether so many joined slots in a row are set."""
    cdef uint32_t row = slots
    while row and length > 1:
        row = (row << 1) & slots & joins
        length -= 1
    return row != 0


cdef uint64_t pair_parts(uint32_t slots, uint32_t joins, int length) noexcept nogil:
    """The tractors that the ladder of a pair tractor takes from rows that are all shorter, longest first.

    Rows are disjoint, so the best multiset is the longest rows in turn, the last cut to what is left of the
    lead. Four bits a part, the longest in front.
    """
    cdef uint64_t rows = 0, parts = 0
    cdef uint32_t starts = slots & ~((slots << 1) & joins)
    cdef int at, n, left = length
    while starts:
        at = sj_low(starts)
        starts &= starts - 1
        n = 1
        while (slots >> (at + n)) & (joins >> (at + n)) & 1:
            n += 1
        if n > 1:
            rows += 1ULL << (4 * n)
    n = length
    while left > 1 and rows:
        while (rows >> (4 * n)) & 15 == 0:
            n -= 1
        rows -= 1ULL << (4 * n)
        parts = (parts << 4) | (n if n < left else left)
        left -= n
    return parts


cdef int check_ladders(LeadC* lead, const Masks* hand, const Masks* play) noexcept nogil:
    """The general answer for a hand with more of the suit than the lead has, from the ladders themselves."""
    cdef Masks kinds
    cdef Pack held, laid
    cdef Owed owed
    cdef int i, verdict = V_MUST_FOLLOW_SHAPE
    kinds_in(lead.order, lead.suit, play, &kinds)
    make_pack(lead.suit, &kinds, &laid)
    if lead.self_first and fits(&laid, &lead.full):
        return V_OK                              # every component followed in kind: nothing is better
    kinds_in(lead.order, lead.suit, hand, &kinds)
    make_pack(lead.suit, &kinds, &held)
    if owe(lead, &held, &owed) < 0:
        verdict = E_MEMORY
    else:
        for i in range(owed.accepted.n):
            if fits(&laid, &owed.accepted.at[i]):
                verdict = V_OK
                break
    owed_free(&owed)
    return verdict


cdef inline int check_shape(LeadC* lead, const Masks* hand, const Masks* play) noexcept nogil:
    """Whether n cards of the suit follow the shape as well as a longer holding allows."""
    cdef Suit* s = lead.suit
    cdef Masks held, laid
    cdef uint32_t held_slots, laid_slots
    cdef int pairs, length
    if lead.how == CHECK_SUIT:
        return V_OK
    if lead.how == CHECK_LADDERS:
        return check_ladders(lead, hand, play)
    kinds_in(lead.order, s, hand, &held)
    kinds_in(lead.order, s, play, &laid)
    if lead.order.rules.keep_groups_whole:
        pairs = sj_bits(held.k[1] & ~held.k[2])
    else:
        pairs = sj_bits(held.k[1]) + sj_bits(held.k[3])
    if pairs > lead.pairs:
        pairs = lead.pairs
    if sj_bits(laid.k[1]) + sj_bits(laid.k[3]) < pairs:
        return V_MUST_FOLLOW_SHAPE
    if lead.how == CHECK_PAIRS or pairs < 2:
        return V_OK
    length = lead.length[0]
    held_slots = slots_of(s, held.k[1])
    laid_slots = slots_of(s, laid.k[1])
    if has_run(laid_slots, s.joins, length):
        return V_OK
    if has_run(held_slots, s.joins, length):
        return V_MUST_FOLLOW_SHAPE
    if not has_run(held_slots, s.joins, 2):
        return V_OK
    if is_crowded(s, held.k[1]):
        return check_ladders(lead, hand, play)
    if pair_parts(laid_slots, s.joins, length) != pair_parts(held_slots, s.joins, length):
        return V_MUST_FOLLOW_SHAPE
    return V_OK


cdef inline int check_masks(LeadC* lead, const Masks* hand, const Masks* play) noexcept nogil:
    """A verdict for a follow; the reasons in the order of ``Verdict``."""
    cdef int held, laid
    if size(play) != lead.n:
        return V_WRONG_COUNT
    if not holds(hand, play):
        return V_NOT_IN_HAND
    held = size_within(hand, lead.suit.cards)
    laid = size_within(play, lead.suit.cards)
    if held <= lead.n:
        return V_OK if laid == held else V_MUST_FOLLOW_SUIT
    if laid < lead.n:
        return V_MUST_FOLLOW_SUIT
    return check_shape(lead, hand, play)


cdef inline int check_counts(LeadC* lead, const uint8_t* hand, const uint8_t* play) noexcept nogil:
    cdef Masks held, laid
    cdef int decks = lead.order.rules.decks
    if (masks_of_counts(hand, decks, &held) | masks_of_counts(play, decks, &laid)) < 0:
        return E_TOO_MANY
    return check_masks(lead, &held, &laid)


# ------------------------------------------------------------------------------------------------------------
# Throws (RULES §4)
# ------------------------------------------------------------------------------------------------------------

cdef bint beats_component(OrderC* o, Suit* s, Pack* p, const Masks* kinds, const Comp* comp) noexcept nogil:
    """Whether a hand's cards of the suit hold something that beats a component led alone."""
    cdef int i, j, w, cards = comp.width * comp.length
    if comp.length == 1:
        for i in range(s.n_ranked):
            if o.tier_of[s.ranked[i]] <= comp.top:
                break
            if copies(kinds, s.ranked[i]) >= comp.width:
                return True
    else:
        for j in range(s.slots):
            i = j + comp.length - 1              # the top slot
            if p.run[comp.width][j] >= comp.length and s.top[i] > comp.top:
                return True
    if o.rules.wider_beats:
        for w in range(comp.width + 1, 5):
            if cards % w:
                continue
            if p.reach[w][0] >= cards // w:
                return True
    return False


cdef int forced_component(OrderC* o, const Cut* cut, const uint8_t* beaten) noexcept nogil:
    """The component that a failed throw plays: lowest top, fewer cards, suit order (``ForcedComponent``)."""
    cdef int policy = o.rules.forced_component
    cdef int i, best = -1
    cdef const Comp* a
    cdef const Comp* b
    for i in range(cut.n):
        if not beaten[i] and policy != FORCED_LOWEST:
            continue
        a = &cut.comps[i]
        if best >= 0:
            b = &cut.comps[best]
            if policy == FORCED_SMALLEST and a.width * a.length != b.width * b.length:
                if a.width * a.length > b.width * b.length:
                    continue
            elif a.tier != b.tier:
                if a.tier > b.tier:
                    continue
            elif a.width * a.length != b.width * b.length:
                if a.width * a.length > b.width * b.length:
                    continue
            elif a.first > b.first:
                continue
        best = i
    return best


cdef int judge_throw(OrderC* o, Suit* s, const Cut* cut, const Masks* others, int* forced,
                     int* blockers) noexcept nogil:
    """A verdict, and for a throw that fails the component forced (-1 when it stands) and who beats it."""
    cdef uint8_t beaten[MAX_COMPS]
    cdef Masks kinds
    cdef Pack p
    cdef int i, seat
    cdef bint others_hold = False, failed = False
    forced[0] = -1
    blockers[0] = 0
    if cut.n == 1:
        return V_OK
    for seat in range(3):
        others_hold |= (others[seat].k[0] & s.cards) != 0
    if (o.rules.throws == THROWS_NONE
            or (o.rules.throws == THROWS_ONLY_WHEN_OTHERS_VOID and others_hold)          # D5
            or (o.rules.throws == THROWS_NOT_WHEN_OTHERS_VOID and not others_hold)):
        return V_THROW_NOT_ALLOWED
    memset(beaten, 0, sizeof(beaten))
    for seat in range(3):
        kinds_in(o, s, &others[seat], &kinds)
        if kinds.k[0] == 0:
            continue
        make_pack(s, &kinds, &p)
        for i in range(cut.n):
            if beats_component(o, s, &p, &kinds, &cut.comps[i]):
                beaten[i] |= 1 << seat
                failed = True
    if failed:
        forced[0] = forced_component(o, cut, beaten)
        blockers[0] = beaten[forced[0]]
        if blockers[0] == 0:                     # D4 forces a component that nobody beats
            for i in range(cut.n):
                blockers[0] |= beaten[i]
    return V_OK


# ------------------------------------------------------------------------------------------------------------
# Winning a trick, and the multiplier (RULES §6, §8)
# ------------------------------------------------------------------------------------------------------------

cdef bint pin(Pack* p, int j, int start, int width, bint exact, const Demand* rest) noexcept nogil:
    """Whether groups of ``width`` in slots start..j can be taken so that the rest still fits."""
    cdef Suit* s = p.suit
    cdef Pack reduced
    cdef int i, e
    cdef bint tried, found
    if j < start:
        if is_empty(rest):
            return True
        reduced = p[0]
        refresh(&reduced)
        return fits(&reduced, rest)
    for i in range(s.kinds[j]):
        if p.have[j][i] < width or (exact and p.have[j][i] != width):
            continue
        tried = False
        for e in range(i):
            tried |= p.have[j][e] == p.have[j][i]
        if tried:
            continue
        take_copies(p, j, i, width)
        found = pin(p, j - 1, start, width, exact, rest)
        take_copies(p, j, i, -width)
        if found:
            return True
    return False


cdef int best_top(OrderC* o, Suit* s, const Masks* kinds, int width, int length, bint exact,
                  const Demand* rest) noexcept nogil:
    """The highest top with which a component can be cut from kinds beside the rest; -1 when it cannot."""
    cdef Pack p
    cdef int i, j, start, k
    if width == 1:                               # then the rest is singles too
        for i in range(s.n_ranked):
            if (kinds.k[0] >> s.ranked[i]) & 1:
                return o.tier_of[s.ranked[i]]
        return -1
    make_pack(s, kinds, &p)
    if length == 1:
        for i in range(s.n_ranked):
            j = s.ranked_slot[i]
            k = p.have[j][s.ranked_place[i]]
            if k < width or (exact and k != width):
                continue
            take_copies(&p, j, s.ranked_place[i], width)
            if pin(&p, -1, 0, width, exact, rest):
                return o.tier_of[s.ranked[i]]
            take_copies(&p, j, s.ranked_place[i], -width)
        return -1
    if p.reach[width][0] < length:
        return -1
    for i in range(s.slots):
        j = s.by_top[i]
        start = j - length + 1
        if start >= 0 and p.run[width][start] >= length and pin(&p, j, start, width, exact, rest):
            return s.top[j]
    return -1


# A play's value orders the plays of a trick: -1 for a discard, else trump, then the answer's width, then its
# top.
cdef enum:
    VALUE_TRUMP = 1 << 24
    VALUE_WIDTH = 1 << 16


cdef int play_value(LeadC* lead, const Masks* play) noexcept nogil:
    """What a play of the lead's size is worth in the trick (RULES §6)."""
    cdef OrderC* o = lead.order
    cdef Suit* s = lead.suit
    cdef Masks kinds
    cdef Demand nothing
    cdef int base = 0, w, top
    if play.k[0] & ~s.cards:
        s = &o.suits[TRUMP_SUIT]
        if play.k[0] & ~s.cards:
            return -1
        base = VALUE_TRUMP
    kinds_in(o, s, play, &kinds)
    if lead.wider_beats:                         # 4 over 2x2, 3x2 over 2x3, 4x2 over 2x4, 4x3 over 3x4
        memset(&nothing, 0, sizeof(Demand))
        for w in range(4, lead.width[0], -1):
            if lead.n % w == 0:
                top = best_top(o, s, &kinds, w, lead.n // w, False, &nothing)
                if top >= 0:
                    return base + VALUE_WIDTH * w + top
    top = best_top(o, s, &kinds, lead.width[0], lead.length[0], o.rules.groups_stay_together, &lead.answer)
    if top < 0:
        return -1
    if o.rules.overruff == OVERRUFF_HIGHEST_CARD and lead.comps > 1:                     # D29
        w = 0
        while not (kinds.k[0] >> s.ranked[w]) & 1:
            w += 1
        top = o.tier_of[s.ranked[w]]
    return base + VALUE_WIDTH * lead.width[0] + top


cdef int win_trick(LeadC* lead, const Masks* plays, int n, int* value) noexcept nogil:
    """The index of the winning play, the earlier of equals, and its value."""
    cdef int i, v, best = 0
    value[0] = -1
    for i in range(n):
        v = play_value(lead, &plays[i])
        if v > value[0]:
            value[0] = v
            best = i
    return best


cdef int64_t answer_multiplier(RulesC* r, int comps, const uint8_t* widths,
                               const uint8_t* lengths) noexcept nogil:
    """The multiplier of RULES §8 for the components, larger first, that answer the last lead."""
    cdef int w = widths[0], l = lengths[0], i, width
    cdef int64_t power
    if r.multiplier == MULT_POWER:
        return 1 << (w * l if w * l < 6 else 6)
    if r.multiplier == MULT_CLOSED:
        return 4 << (w - 1) if l > 1 else 2 * w
    if r.multiplier == MULT_PAIRS:
        return 2 * w * l
    if r.multiplier == MULT_LAST_TRICK:
        return w * l
    for width in range(4, 1, -1):                # MULT_TITANIC: the widest, as a tractor before a group
        for i in range(comps):
            if widths[i] == width:
                if lengths[i] == 1:
                    return 2 * width
                power = 2
                for _ in range(lengths[i]):
                    power *= width
                return power
    return 2


cdef int64_t trick_multiplier(LeadC* lead, int value) noexcept nogil:
    """The multiplier that the winning play's value stands for."""
    cdef uint8_t width = (value // VALUE_WIDTH) & 255
    cdef uint8_t length = lead.n // width
    if lead.wider_beats and width > lead.width[0]:
        return answer_multiplier(lead.order.rules, 1, &width, &length)
    return answer_multiplier(lead.order.rules, lead.comps, lead.width, lead.length)


# ------------------------------------------------------------------------------------------------------------
# Listing legal plays
# ------------------------------------------------------------------------------------------------------------

cdef struct Plays:                       # a list without repeats, in the order of arrival
    Masks* at
    int n
    int room
    int32_t* table                       # hash table of index + 1
    int buckets                          # a power of two

cdef struct Choice:                      # every way to choose ``take`` cards from a pool, beside forced ones
    Masks forced
    int kinds
    uint8_t card[N_CARDS]                # the pool, higher cards first
    uint8_t most[N_CARDS]
    int take
    uint64_t ways[N_CARDS + 1][MAX_TAKE + 1]     # ways[i][f]: to take f cards from card[i] on

cdef struct Scratch:                     # what listing needs beside its answer
    Choice choice
    Owed owed
    bint owed_live
    Plays plays
    Plays ruffs
    Plays seen

cdef enum:
    PLAN_NONE = 0        # the hand is smaller than the lead
    PLAN_CHOICE = 1      # forced cards, and any others of a pool
    PLAN_OWED = 2        # groups are owed


cdef int plays_init(Plays* v) noexcept nogil:
    v.n = 0
    v.room = 64
    v.buckets = 256
    v.at = <Masks*> malloc(v.room * sizeof(Masks))
    v.table = <int32_t*> calloc(v.buckets, sizeof(int32_t))
    return 0 if v.at != NULL and v.table != NULL else E_MEMORY


cdef void plays_free(Plays* v) noexcept nogil:
    free(v.at)
    free(v.table)


cdef inline uint64_t hash_of(const Masks* m) noexcept nogil:
    cdef uint64_t h = m.k[0] * 0x9E3779B97F4A7C15ULL
    h = (h ^ (h >> 31) ^ m.k[1]) * 0xC2B2AE3D27D4EB4FULL
    h = (h ^ (h >> 29) ^ m.k[2]) * 0x165667B19E3779F9ULL
    h = (h ^ (h >> 32) ^ m.k[3]) * 0xBF58476D1CE4E5B9ULL
    return h ^ (h >> 30)


cdef inline int plays_find(const Plays* v, const Masks* m) noexcept nogil:
    """The bucket that holds a play, or the free one where it belongs."""
    cdef int at = <int> (hash_of(m) & <uint64_t> (v.buckets - 1))
    while v.table[at] and not same(&v.at[v.table[at] - 1], m):
        at = (at + 1) & (v.buckets - 1)
    return at


cdef inline bint plays_has(const Plays* v, const Masks* m) noexcept nogil:
    return v.table[plays_find(v, m)] != 0


cdef void plays_cut(Plays* v, int n) noexcept nogil:
    """Keep the first n plays."""
    cdef int i
    if v.n == 0:
        return
    v.n = n
    memset(v.table, 0, v.buckets * sizeof(int32_t))
    for i in range(n):
        v.table[plays_find(v, &v.at[i])] = i + 1


cdef int plays_add(Plays* v, const Masks* m) noexcept nogil:
    """Append a play unless it is there; 1 when added, 0 when known, E_MEMORY."""
    cdef int at = plays_find(v, m), i
    cdef Masks* grown
    cdef int32_t* table
    if v.table[at]:
        return 0
    if v.n == v.room:
        grown = <Masks*> realloc(v.at, 2 * v.room * sizeof(Masks))
        if grown == NULL:
            return E_MEMORY
        v.at = grown
        table = <int32_t*> calloc(2 * v.buckets, sizeof(int32_t))
        if table == NULL:
            return E_MEMORY
        free(v.table)
        v.table = table
        v.room *= 2
        v.buckets *= 2
        for i in range(v.n):
            v.table[plays_find(v, &v.at[i])] = i + 1
        at = plays_find(v, m)
    v.at[v.n] = m[0]
    v.n += 1
    v.table[at] = v.n
    return 1


cdef int scratch_init(Scratch* s) noexcept nogil:
    s.owed_live = False
    return plays_init(&s.plays) | plays_init(&s.ruffs) | plays_init(&s.seen)


cdef inline void scratch_drop_owed(Scratch* s) noexcept nogil:
    if s.owed_live:
        owed_free(&s.owed)
        s.owed_live = False


cdef void scratch_free(Scratch* s) noexcept nogil:
    scratch_drop_owed(s)
    plays_free(&s.plays)
    plays_free(&s.ruffs)
    plays_free(&s.seen)


# A free choice is ranked: higher cards first, as many copies as possible before fewer.

cdef uint64_t prepare_choice(OrderC* o, const Masks* pool, int take, Choice* c) noexcept nogil:
    """Count the ways to take cards from a pool; how many there are (at most MANY)."""
    cdef int i, f, x, card
    cdef uint64_t total
    c.take = take
    c.kinds = 0
    for i in range(N_CARDS):
        card = o.falling[i]
        if (pool.k[0] >> card) & 1:
            c.card[c.kinds] = card
            c.most[c.kinds] = copies(pool, card)
            c.kinds += 1
    memset(c.ways[c.kinds], 0, (take + 1) * sizeof(uint64_t))
    c.ways[c.kinds][0] = 1
    for i in range(c.kinds - 1, -1, -1):
        for f in range(take + 1):
            total = 0
            for x in range((c.most[i] if c.most[i] < f else f) + 1):
                total += c.ways[i + 1][f - x]
            c.ways[i][f] = total if total < MANY else MANY
    return c.ways[0][take]


cdef void choose(const Choice* c, uint64_t rank, Masks* out) noexcept nogil:
    """The choice of a rank, with the forced cards."""
    cdef int i, x, left = c.take
    out[0] = c.forced
    for i in range(c.kinds):
        if left == 0:
            return
        x = c.most[i] if c.most[i] < left else left
        while rank >= c.ways[i + 1][left - x]:
            rank -= c.ways[i + 1][left - x]
            x -= 1
        left -= x
        while x:
            put(out, c.card[i])
            x -= 1


cdef inline uint64_t spread(int i, int n, uint64_t total) noexcept nogil:
    """The i-th of n ranks spread evenly over ``total``, the first and the last among them."""
    cdef uint64_t step, more
    if n == 1:
        return 0
    step = (total - 1) // <uint64_t> (n - 1)
    more = (total - 1) % <uint64_t> (n - 1)
    return step * <uint64_t> i + more * <uint64_t> i // <uint64_t> (n - 1)


# Plays that owe groups: place the tractors of an accepted demand in every way, then choose the other cards in
# every way that leaves room for its single groups. Every partial choice that is followed can be completed.

cdef struct Walk:
    OrderC* order
    Suit* suit
    Masks cards                          # the hand's cards of the suit
    Masks kinds
    bint rising                          # lowest first
    int limit
    int take                             # cards beside the tractors
    Plays* out
    Plays* seen                          # placements of tractors
    uint64_t need                        # single groups
    int8_t tractor[MAX_KINDS]            # copies in tractors, by ranked kind
    int8_t loose[MAX_KINDS]              # copies beside them
    uint32_t supply[MAX_KINDS + 1]       # of the kinds not yet decided
    int cards_left[MAX_KINDS + 1]


cdef inline int ranked_in_turn(const Walk* w, int i) noexcept nogil:
    return w.suit.n_ranked - 1 - i if w.rising else i


cdef int emit(OrderC* o, const Masks* cards, const uint8_t* kinds, const int8_t* number, int n, int i,
              Masks* so_far, int limit, Plays* out) noexcept nogil:
    """Add the plays that take so many copies of kinds; a kind of two colours gives every split of them."""
    cdef Masks play
    cdef int a, b, x, y, result
    if out.n >= limit:
        return 0
    while i < n and number[i] == 0:
        i += 1
    if i == n:
        return 0 if plays_add(out, so_far) >= 0 else E_MEMORY
    a = copies(cards, kinds[i])
    b = copies(cards, kinds[i] + 26) if o.rules.two_colour and kinds[i] < JOKERS_FROM else 0
    for x in range(a if a < number[i] else number[i], -1, -1):
        if number[i] - x > b:
            break
        play = so_far[0]
        for y in range(x):
            put(&play, kinds[i])
        for y in range(number[i] - x):
            put(&play, kinds[i] + 26)
        result = emit(o, cards, kinds, number, n, i + 1, &play, limit, out)
        if result < 0:
            return result
    return 0


cdef bint groups_within(uint64_t need, uint32_t decided, uint32_t open, int cards) noexcept nogil:
    """Whether the groups can be taken from decided kinds and at most so many cards of the open ones."""
    cdef int q, t, p, quads, triples, pairs
    cdef uint64_t part
    if not groups_fit(need, decided + open):
        return False
    if groups_fit(need, decided):
        return True
    quads = <int> (need >> (8 * QUADS)) & 255
    triples = <int> (need >> (8 * TRIPLES_4)) & 255
    pairs = <int> (need >> (8 * PAIRS_4)) & 255
    for q in range(quads + 1):
        for t in range(triples + 1):
            for p in range(pairs + 1):
                if 4 * q + 3 * t + 2 * p > cards:
                    break
                part = ((<uint64_t> q << (8 * QUADS)) | (<uint64_t> t << (8 * TRIPLES_4))
                        | (<uint64_t> p << (8 * PAIRS_4)))
                if groups_fit(part, open) and groups_fit(need - part, decided):
                    return True
    return False


cdef int walk_kinds(Walk* w, int i, int left, uint32_t decided) noexcept nogil:
    """Choose the loose copies of kind i and all after it."""
    cdef Suit* s = w.suit
    cdef int8_t number[MAX_KINDS]
    cdef Masks nothing
    cdef int x, step, rank, most, k, result
    if w.out.n >= w.limit:
        return 0
    if i == s.n_ranked:
        for k in range(s.n_ranked):
            number[k] = w.tractor[k] + w.loose[k]
        clear(&nothing)
        return emit(w.order, &w.cards, s.ranked, number, s.n_ranked, 0, &nothing, w.limit, w.out)
    rank = ranked_in_turn(w, i)
    most = copies(&w.kinds, s.ranked[rank]) - w.tractor[rank]
    most = most if most < left else left
    for step in range(most + 1):
        x = step if w.rising else most - step
        if left - x > w.cards_left[i + 1]:
            continue
        if not groups_within(w.need, decided + leftover(x, x), w.supply[i + 1], left - x):
            continue
        w.loose[rank] = x
        result = walk_kinds(w, i + 1, left - x, decided + leftover(x, x))
        if result < 0:
            return result
    return 0


cdef int walk_groups(Walk* w, const Demand* d, int taken) noexcept nogil:
    """All tractors are placed: choose the other cards, unless the same placement was met before."""
    cdef Suit* s = w.suit
    cdef Masks placed
    cdef int i, k, rank, left, result
    clear(&placed)
    for i in range(s.n_ranked):
        for k in range(w.tractor[i]):
            put(&placed, s.ranked[i])
    result = plays_add(w.seen, &placed)
    if result <= 0:
        return result
    memcpy(&w.need, d.group, 8)
    w.supply[s.n_ranked] = 0
    w.cards_left[s.n_ranked] = 0
    for i in range(s.n_ranked - 1, -1, -1):
        rank = ranked_in_turn(w, i)
        left = copies(&w.kinds, s.ranked[rank]) - w.tractor[rank]
        w.supply[i] = w.supply[i + 1] + leftover(left, left)
        w.cards_left[i] = w.cards_left[i + 1] + left
    return walk_kinds(w, 0, w.take - taken, 0)


cdef int walk_pin(Walk* w, const Demand* rest, Pack* p, int j, int start, int width, int turn,
                  int taken) noexcept nogil:
    """Choose a kind in each of the slots start..j for a tractor, then place the others."""
    cdef Suit* s = w.suit
    cdef Pack reduced
    cdef int i, rank, result
    if w.out.n >= w.limit:
        return 0
    if j < start:
        reduced = p[0]
        refresh(&reduced)
        return walk_tractors(w, rest, &reduced, turn, taken) if fits(&reduced, rest) else 0
    for i in range(s.kinds[j]):
        if p.have[j][i] < width:
            continue
        rank = s.ranked_at[j][i]
        take_copies(p, j, i, width)
        w.tractor[rank] += width
        result = walk_pin(w, rest, p, j - 1, start, width, turn, taken + width)
        w.tractor[rank] -= width
        take_copies(p, j, i, -width)
        if result < 0:
            return result
    return 0


cdef int walk_tractors(Walk* w, const Demand* d, Pack* p, int first, int taken) noexcept nogil:
    """Place the largest tractor still to be placed everywhere; equal ones in one order of their tops only."""
    cdef Suit* s = w.suit
    cdef Demand rest
    cdef int t, turn, j, start, width, length, result
    cdef bint again
    if d.types == 0:
        return walk_groups(w, d, taken)
    rest = d[0]
    width = d.width[0]
    length = d.length[0]
    rest.number[0] -= 1
    again = rest.number[0] > 0
    if not again:
        rest.types -= 1
        for t in range(rest.types):
            rest.width[t] = d.width[t + 1]
            rest.length[t] = d.length[t + 1]
            rest.limit[t] = d.limit[t + 1]
            rest.number[t] = d.number[t + 1]
    for turn in range(first, s.slots):
        j = s.by_top[s.slots - 1 - turn if w.rising else turn]
        start = j - length + 1
        if start < 0 or p.run[width][start] < length:
            continue
        result = walk_pin(w, &rest, p, j, start, width, turn if again else 0, taken)
        if result < 0:
            return result
    return 0


cdef int walk_all(Walk* w, const Demands* accepted) noexcept nogil:
    """Add the plays that realise one of the accepted demands to the list until it has ``limit`` plays."""
    cdef Pack p
    cdef int i, result
    for i in range(accepted.n):
        make_pack(w.suit, &w.kinds, &p)
        plays_cut(w.seen, 0)
        memset(w.tractor, 0, sizeof(w.tractor))
        if not fits(&p, &accepted.at[accepted.n - 1 - i if w.rising else i]):
            continue
        result = walk_tractors(w, &accepted.at[accepted.n - 1 - i if w.rising else i], &p, 0, 0)
        if result < 0:
            return result
    return 0


cdef int list_owed(OrderC* o, Suit* s, const Masks* hand, int n, const Demands* accepted, int cap,
                   Plays* seen, Plays* out) noexcept nogil:
    """List the plays of n cards of a suit that realise an accepted demand; 1 complete, 0 cut, E_MEMORY.

    Higher tractors, then higher cards come first. A list cut at the cap has the first plays of that order and
    the last ones, half and half.
    """
    cdef Walk w
    cdef Masks swap
    cdef int i, half = (cap + 1) // 2
    w.order = o
    w.suit = s
    w.take = n
    w.out = out
    w.seen = seen
    w.rising = False
    w.limit = cap + 1
    keep_only(hand, s.cards, &w.cards)
    kinds_in(o, s, hand, &w.kinds)
    plays_cut(out, 0)
    if walk_all(&w, accepted) < 0:
        return E_MEMORY
    if out.n <= cap:
        return 1
    plays_cut(out, half)
    w.rising = True
    w.limit = cap
    if walk_all(&w, accepted) < 0:
        return E_MEMORY
    for i in range((out.n - half) // 2):
        swap = out.at[half + i]
        out.at[half + i] = out.at[out.n - 1 - i]
        out.at[out.n - 1 - i] = swap
    return 0


cdef int plan_follow(LeadC* lead, const Masks* hand, Scratch* s) noexcept nogil:
    """Decide what the legal follows look like, and prepare the scratch for it (RULES §5)."""
    cdef OrderC* o = lead.order
    cdef Choice* c = &s.choice
    cdef Masks pool, kinds
    cdef Pack p
    cdef Demand* d
    cdef int i, t, pairs, held
    if size(hand) < lead.n:
        return PLAN_NONE
    held = size_within(hand, lead.suit.cards)
    if held <= lead.n:                           # all of the suit, and any other cards
        keep_only(hand, lead.suit.cards, &c.forced)
        keep_only(hand, ~lead.suit.cards, &pool)
        prepare_choice(o, &pool, lead.n - held, c)
        return PLAN_CHOICE
    keep_only(hand, lead.suit.cards, &pool)
    clear(&c.forced)
    if lead.how == CHECK_SUIT:
        prepare_choice(o, &pool, lead.n, c)
        return PLAN_CHOICE
    kinds_in(o, lead.suit, hand, &kinds)
    make_pack(lead.suit, &kinds, &p)
    scratch_drop_owed(s)
    s.owed_live = True
    if owe(lead, &p, &s.owed) < 0:
        return E_MEMORY
    for i in range(s.owed.accepted.n):
        if is_empty(&s.owed.accepted.at[i]):     # any cards of the suit
            prepare_choice(o, &pool, lead.n, c)
            return PLAN_CHOICE
    if s.owed.accepted.n == 1 and kinds.k[2] == 0:
        d = &s.owed.accepted.at[0]
        pairs = d.group[PAIRS_4]
        for t in range(d.types):
            pairs += d.length[t] * d.number[t]
        if pairs == sj_bits(kinds.k[1]):         # every pair is owed: beside them there are only singles
            if o.rules.two_colour:
                kinds.k[1] |= (kinds.k[1] & LOW_SUITS) << 26
            keep_only(hand, kinds.k[1], &c.forced)
            keep_only(&pool, ~kinds.k[1], &pool)
            prepare_choice(o, &pool, lead.n - 2 * pairs, c)
            return PLAN_CHOICE
    return PLAN_OWED


cdef int list_ruffs(LeadC* lead, const Masks* hand, int cap, Scratch* s) noexcept nogil:
    """Of a void hand with more choices than the cap: its ruffs in the lead's shape, at most half the cap."""
    cdef OrderC* o = lead.order
    cdef Suit* trumps = &o.suits[TRUMP_SUIT]
    cdef Demands full
    plays_cut(&s.ruffs, 0)
    if (lead.n < 2 or cap < 2 or lead.suit_index == TRUMP_SUIT or hand.k[0] & lead.suit.cards
            or size_within(hand, trumps.cards) < lead.n):
        return 0
    demands_init(&full)
    full.at[0] = lead.full
    full.n = 1
    return list_owed(o, trumps, hand, lead.n, &full, cap // 2, &s.seen, &s.ruffs)


cdef int list_follows(LeadC* lead, const Masks* hand, int cap, Scratch* s) noexcept nogil:
    """Fill ``s.plays``; 1 complete, 0 cut at the cap, E_MEMORY. Documented at ``Lead.follows``."""
    cdef int plan = plan_follow(lead, hand, s), i, n
    cdef uint64_t total
    cdef Masks play
    plays_cut(&s.plays, 0)
    if plan < 0:
        return plan
    if plan == PLAN_NONE:
        return 1
    if plan == PLAN_OWED:
        return list_owed(lead.order, lead.suit, hand, lead.n, &s.owed.accepted, cap, &s.seen, &s.plays)
    total = s.choice.ways[0][s.choice.take]
    if total <= <uint64_t> cap:
        for i in range(<int> total):
            choose(&s.choice, i, &play)
            if plays_add(&s.plays, &play) < 0:
                return E_MEMORY
        return 1
    if list_ruffs(lead, hand, cap, s) < 0:
        return E_MEMORY
    for i in range(s.ruffs.n):
        if plays_add(&s.plays, &s.ruffs.at[i]) < 0:
            return E_MEMORY
    n = cap - s.ruffs.n
    for i in range(n):
        choose(&s.choice, spread(i, n, total), &play)
        if plays_add(&s.plays, &play) < 0:
            return E_MEMORY
    return 0


cdef int emit_tractors(OrderC* o, const Masks* hand, Suit* s, Pack* p, int j, int width, int length,
                       uint8_t* kinds, int8_t* number, int n, int limit, Plays* out) noexcept nogil:
    """Add every tractor whose next slot down from the top is j, n of its kinds being chosen."""
    cdef Masks nothing
    cdef int i, result
    if n == length:
        clear(&nothing)
        return emit(o, hand, kinds, number, n, 0, &nothing, limit, out)
    for i in range(s.kinds[j]):
        if p.have[j][i] < width:
            continue
        kinds[n] = s.kind[j][i]
        number[n] = width
        result = emit_tractors(o, hand, s, p, j - 1, width, length, kinds, number, n + 1, limit, out)
        if result < 0:
            return result
    return 0


cdef int leads_of_shape(OrderC* o, const Masks* hand, Masks* kinds, Pack* packs, int width, int length,
                        int limit, Plays* out) noexcept nogil:
    """Add the leads of one shape: trumps first, then higher tops, then in suit order."""
    cdef uint8_t chosen[MAX_SLOTS]
    cdef int8_t number[MAX_SLOTS]
    cdef Masks nothing
    cdef Suit* s
    cdef int turn, suit, j, result = 0
    clear(&nothing)
    number[0] = width
    s = &o.suits[TRUMP_SUIT]
    for turn in range(s.slots if length > 1 else s.n_ranked):
        if length == 1:
            chosen[0] = s.ranked[turn]
            if copies(&kinds[TRUMP_SUIT], chosen[0]) >= width:
                result |= emit(o, hand, chosen, number, 1, 0, &nothing, limit, out)
            continue
        j = s.by_top[turn]
        if j - length + 1 >= 0 and packs[TRUMP_SUIT].run[width][j - length + 1] >= length:
            result |= emit_tractors(o, hand, s, &packs[TRUMP_SUIT], j, width, length, chosen, number, 0,
                                    limit, out)
    for j in range(N_RANKS - 1, -1, -1):
        for suit in range(TRUMP_SUIT):
            s = &o.suits[suit]
            if j >= s.slots:
                continue
            if length == 1:
                chosen[0] = s.kind[j][0]
                if copies(&kinds[suit], chosen[0]) >= width:
                    result |= emit(o, hand, chosen, number, 1, 0, &nothing, limit, out)
            elif j - length + 1 >= 0 and packs[suit].run[width][j - length + 1] >= length:
                result |= emit_tractors(o, hand, s, &packs[suit], j, width, length, chosen, number, 0, limit,
                                        out)
    return result


cdef int list_leads(OrderC* o, const Masks* hand, int cap, Plays* out) noexcept nogil:
    """Fill the list with plain leads, larger first, then higher top; 1 complete, 0 cut, E_MEMORY."""
    cdef Masks kinds[5]
    cdef Pack packs[5]
    cdef int suit, width, length, result = 0
    cdef int longest[5]
    plays_cut(out, 0)
    memset(longest, 0, sizeof(longest))
    for suit in range(5):
        kinds_in(o, &o.suits[suit], hand, &kinds[suit])
        make_pack(&o.suits[suit], &kinds[suit], &packs[suit])
        for width in range(2, 5):
            if packs[suit].reach[width][0] > longest[width]:
                longest[width] = packs[suit].reach[width][0]
    for width in range(4, 1, -1):
        for length in range(longest[width], 1, -1):
            if out.n <= cap:
                result |= leads_of_shape(o, hand, kinds, packs, width, length, cap + 1, out)
    for width in range(4, 0, -1):
        if out.n <= cap:
            result |= leads_of_shape(o, hand, kinds, packs, width, 1, cap + 1, out)
    if result < 0:
        return E_MEMORY
    if out.n <= cap:
        return 1
    plays_cut(out, cap)
    return 0


# ------------------------------------------------------------------------------------------------------------
# Playouts: whole deals (RULES §6-§8)
# ------------------------------------------------------------------------------------------------------------

cdef struct Random:                      # counter-based: value i of a stream is a function of (stream, i)
    uint64_t stream
    uint64_t counter

cdef struct Deal:
    OrderC* order
    Masks hands[4]
    Masks start[4]                       # the hands after the bury
    Masks kitty
    int points
    int last_winner
    int64_t multiplier
    int played
    bint record
    Masks plays[4 * N_CARDS]
    uint8_t seats[4 * N_CARDS]


cdef inline uint64_t mixed(uint64_t x) noexcept nogil:
    """The finaliser of SplitMix64."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL
    return x ^ (x >> 31)


cdef inline uint64_t random_bits(Random* r) noexcept nogil:
    r.counter += 1
    return mixed(r.stream + r.counter * 0x9E3779B97F4A7C15ULL)


cdef inline uint64_t random_below(Random* r, uint64_t n) noexcept nogil:
    """Uniform in 0..n-1, n > 0, by rejection."""
    cdef uint64_t x, mask
    if n < 1ULL << 32:
        x = (random_bits(r) >> 32) * n
        if (x & 0xFFFFFFFFULL) < n:
            mask = (1ULL << 32) % n              # Lemire's bound
            while (x & 0xFFFFFFFFULL) < mask:
                x = (random_bits(r) >> 32) * n
        return x >> 32
    mask = ~0ULL
    while (mask >> 1) >= n - 1:
        mask >>= 1
    x = random_bits(r) & mask
    while x >= n:
        x = random_bits(r) & mask
    return x


cdef void two_of(uint64_t singles, uint64_t pairs, int rank, Masks* out) noexcept nogil:
    """The rank-th way to take two cards: first the pairs, then any two different cards of ``singles``."""
    cdef int n = sj_bits(pairs), card
    clear(out)
    if rank < n:
        out.k[0] = out.k[1] = 1ULL << nth_bit(pairs, rank)
        return
    rank -= n
    n = sj_bits(singles) - 1
    while rank >= n:
        singles &= singles - 1
        rank -= n
        n -= 1
    card = sj_low(singles)
    out.k[0] = (1ULL << card) | (1ULL << nth_bit(singles & (singles - 1), rank))


cdef bint pick_small_follow(LeadC* lead, const Masks* hand, int cap, Random* r, Masks* out) noexcept nogil:
    """A uniform follow of a single, or of a pair where no kind has three copies, without listing; else False.

    Where the list is complete its order does not matter to a uniform pick: cards are counted in card order.
    """
    cdef uint64_t suit = lead.suit.cards
    cdef uint64_t pool, pairs = 0
    cdef int held, n
    if lead.n == 1:
        pool = hand.k[0] & suit
        if pool == 0:
            pool = hand.k[0]
        n = sj_bits(pool)
        if n > cap or n == 0:
            return False
        clear(out)
        out.k[0] = 1ULL << nth_bit(pool, <int> random_below(r, n))
        return True
    if lead.n != 2 or lead.how != CHECK_PAIRS or lead.order.rules.two_colour or hand.k[2]:
        return False
    held = size_within(hand, suit)
    if held == 2:
        keep_only(hand, suit, out)
        return True
    if held == 1:
        keep_only(hand, suit, out)
        pool = hand.k[0] & ~suit
        n = sj_bits(pool)
        if n > cap or n == 0:
            return False
        out.k[0] |= 1ULL << nth_bit(pool, <int> random_below(r, n))
        return True
    if held > 2:
        pool = hand.k[0] & suit
        pairs = hand.k[1] & suit
        n = sj_bits(pairs)
        if n:
            if n > cap:
                return False
            clear(out)
            out.k[0] = out.k[1] = 1ULL << nth_bit(pairs, <int> random_below(r, n))
            return True
    else:
        pool = hand.k[0]
        pairs = hand.k[1]
    n = sj_bits(pool)
    n = n * (n - 1) // 2 + sj_bits(pairs)
    if n > cap or n == 0:
        return False
    two_of(pool, pairs, <int> random_below(r, n), out)
    return True


cdef int pick_follow(LeadC* lead, const Masks* hand, int cap, Random* r, Scratch* s,
                     Masks* out) noexcept nogil:
    """A uniform play of the list that ``list_follows`` makes; 0 or E_MEMORY."""
    cdef int plan, i
    cdef uint64_t total
    if pick_small_follow(lead, hand, cap, r, out):
        return 0
    plan = plan_follow(lead, hand, s)
    if plan < 0:
        return plan
    if plan == PLAN_OWED:
        if list_owed(lead.order, lead.suit, hand, lead.n, &s.owed.accepted, cap, &s.seen, &s.plays) < 0:
            return E_MEMORY
        out[0] = s.plays.at[random_below(r, s.plays.n)]
        return 0
    total = s.choice.ways[0][s.choice.take]
    if total <= <uint64_t> cap:
        choose(&s.choice, random_below(r, total), out)
        return 0
    if list_ruffs(lead, hand, cap, s) < 0:
        return E_MEMORY
    while True:                                  # a sample that is a listed ruff stands in the list once only
        i = <int> random_below(r, cap)
        if i < s.ruffs.n:
            out[0] = s.ruffs.at[i]
            return 0
        choose(&s.choice, spread(i - s.ruffs.n, cap - s.ruffs.n, total), out)
        if s.ruffs.n == 0 or not plays_has(&s.ruffs, out):
            return 0


cdef bint pick_small_lead(OrderC* o, const Masks* hand, int cap, Random* r, Masks* out) noexcept nogil:
    """A uniform plain lead where no kind has three copies and no tier two pairs in a row, without listing."""
    cdef uint32_t slots[5]
    cdef uint32_t row
    cdef Suit* s
    cdef int suit, n, singles, pairs, length, top, j, k, total
    if o.rules.widest > 2 or o.rules.two_colour or o.rules.adjacency != TIERS:
        return False
    singles = sj_bits(hand.k[0])
    pairs = sj_bits(hand.k[1])
    total = singles + pairs
    for suit in range(5):
        s = &o.suits[suit]
        slots[suit] = slots_of(s, hand.k[1] & s.cards) if pairs > 1 else 0
        row = (slots[suit] << 1) & slots[suit] & s.joins
        if row == 0:
            slots[suit] = 0
            continue
        if is_crowded(s, hand.k[1]):
            return False
        while row:
            total += sj_bits(row)
            row = (row << 1) & slots[suit] & s.joins
    if total > cap:
        return False
    n = <int> random_below(r, total)
    clear(out)
    if n < singles:
        out.k[0] = 1ULL << nth_bit(hand.k[0], n)
        return True
    n -= singles
    if n < pairs:
        out.k[0] = out.k[1] = 1ULL << nth_bit(hand.k[1], n)
        return True
    n -= pairs
    for suit in range(5):
        s = &o.suits[suit]
        length = 2
        row = (slots[suit] << 1) & slots[suit] & s.joins
        while row:
            if n < sj_bits(row):
                top = nth_bit(row, n)
                for j in range(top - length + 1, top + 1):
                    k = 0
                    while not (hand.k[1] >> s.kind[j][k]) & 1:
                        k += 1
                    out.k[0] |= 1ULL << s.kind[j][k]
                out.k[1] = out.k[0]
                return True
            n -= sj_bits(row)
            length += 1
            row = (row << 1) & slots[suit] & s.joins
    return False         # not reached


cdef int pick_lead(OrderC* o, const Masks* hand, int cap, Random* r, Scratch* s, Masks* out) noexcept nogil:
    """A uniform play of the list that ``list_leads`` makes; 0 or E_MEMORY."""
    if pick_small_lead(o, hand, cap, r, out):
        return 0
    if list_leads(o, hand, cap, &s.plays) < 0:
        return E_MEMORY
    out[0] = s.plays.at[random_below(r, s.plays.n)]
    return 0


cdef void bury(OrderC* o, Masks* hand, int n, Masks* kitty) noexcept nogil:
    """Bury by the fixed rule, see ``playouts``."""
    cdef int held[4]
    cdef uint8_t turn[4]
    cdef int i, j, suit, group, card, wanted
    cdef uint64_t with_points = FIVES | TENS
    for suit in range(4):
        held[suit] = size_within(hand, o.suits[suit].cards)
        j = suit
        while j and held[turn[j - 1]] > held[suit]:
            turn[j] = turn[j - 1]
            j -= 1
        turn[j] = suit
    clear(kitty)
    for group in range(4):                       # side cards without points, with; trumps without, with
        for i in range(4 if group < 2 else 1):
            wanted = turn[i] if group < 2 else TRUMP_SUIT
            for j in range(N_CARDS):
                card = o.rising[j]
                if o.suit_of[card] != wanted or ((with_points >> card) & 1) != <uint64_t> (group & 1):
                    continue
                while n and (hand.k[0] >> card) & 1:
                    drop(hand, card)
                    put(kitty, card)
                    n -= 1
            if n == 0:
                return


cdef void deal_out(Deal* d, int kitty, Random* r) noexcept nogil:
    """Shuffle, deal one card at a time from seat 0 on, give the kitty to seat 0 and let it bury."""
    cdef uint8_t deck[4 * N_CARDS]
    cdef uint8_t swap
    cdef int i, n = d.order.rules.decks * N_CARDS
    cdef uint64_t j
    for i in range(n):
        deck[i] = i % N_CARDS
    for i in range(n - 1, 0, -1):
        j = random_below(r, i + 1)
        swap = deck[i]
        deck[i] = deck[j]
        deck[j] = swap
    for i in range(4):
        clear(&d.hands[i])
    for i in range(n - kitty):
        put(&d.hands[i & 3], deck[i])
    for i in range(n - kitty, n):
        put(&d.hands[0], deck[i])
    bury(d.order, &d.hands[0], kitty, &d.kitty)


cdef int play_trick(Deal* d, int leader, int cap, Random* r, Scratch* s) noexcept nogil:
    """Play one trick; the seat that wins it, or E_MEMORY. The last trick captures the kitty (RULES §8)."""
    cdef OrderC* o = d.order
    cdef Masks plays[4]
    cdef LeadC lead
    cdef Cut cut
    cdef int i, seat, suit, value, points = 0, winner
    cdef bint attackers, last
    if pick_lead(o, &d.hands[leader], cap, r, s, &plays[0]) < 0:
        return E_MEMORY
    suit = o.suit_of[sj_low(plays[0].k[0])]
    i = size(&plays[0])
    if i <= 2:
        cut.n = 1
        cut.comps[0].width = i
        cut.comps[0].length = 1
    else:
        cut_shape(o, &o.suits[suit], &plays[0], &cut)
    compile_lead(o, suit, &cut, &lead)
    for i in range(4):
        seat = (leader + i) & 3
        if i > 0 and pick_follow(&lead, &d.hands[seat], cap, r, s, &plays[i]) < 0:
            return E_MEMORY
        drop_all(&d.hands[seat], &plays[i])
        points += points_of(&plays[i])
        if d.record:
            d.plays[d.played + i] = plays[i]
            d.seats[d.played + i] = seat
    d.played += 4
    winner = (leader + win_trick(&lead, plays, 4, &value)) & 3
    attackers = winner & 1
    last = d.hands[0].k[0] == 0
    if last and o.rules.multiplier == MULT_LAST_TRICK:                   # D13
        d.multiplier = trick_multiplier(&lead, value)
        d.points += <int> d.multiplier * (points if attackers else -points)
    elif attackers:
        d.points += points
        if last:
            d.multiplier = trick_multiplier(&lead, value)
            d.points += <int> (d.multiplier * points_of(&d.kitty))
    return winner


cdef int play_deal(Deal* d, uint64_t seed, uint64_t index, int kitty, int cap, Scratch* s) noexcept nogil:
    """Deal and play one whole deal; 0 or E_MEMORY."""
    cdef Random r
    cdef int i, seat = 0
    r.stream = mixed(mixed(seed) + index * 0xD1342543DE82EF95ULL)
    r.counter = 0
    d.points = 0
    d.multiplier = 0
    d.played = 0
    deal_out(d, kitty, &r)
    if d.record:
        for i in range(4):
            d.start[i] = d.hands[i]
    while d.hands[0].k[0]:
        seat = play_trick(d, seat, cap, &r, s)
        if seat < 0:
            return seat
    d.last_winner = seat
    return 0


# ------------------------------------------------------------------------------------------------------------
# The Python classes (typed and documented in _core.pyi)
# ------------------------------------------------------------------------------------------------------------

class Component(NamedTuple):
    """One component of a play (RULES §3)."""

    width: int
    length: int
    cards: bytes


class Throw(NamedTuple):
    """What becomes of an attempted lead (RULES §4)."""

    verdict: int
    played: bytes
    blockers: int


class Listing(NamedTuple):
    """Legal plays, best first."""

    plays: tuple
    complete: bool


class Playout(NamedTuple):
    """One deal played inside the core (RULES §6, §8)."""

    attackers_points: int
    last_winner: int
    multiplier: int
    hands: tuple
    kitty: bytes
    plays: tuple


cdef object MAKER = object()             # only this module makes orders and leads


cdef object refuse(int code, int decks):
    """Raise the error for a negative answer of the C functions."""
    if code == E_MEMORY:
        raise MemoryError
    if code == E_NO_CARD:
        raise ValueError("a card index is above 53")
    raise ValueError(f"more copies of a card than {decks} deck(s) hold")


cdef object refuse_length(str what):
    raise ValueError(f"{what} must be {N_CARDS} bytes of counts")


cdef int read_cards(OrderC* o, bytes cards, Masks* out) except -1:
    """Masks of card indices."""
    cdef int code
    if cards is None:
        raise TypeError("cards must be bytes")
    code = masks_of_cards(<const uint8_t*> PyBytes_AS_STRING(cards), PyBytes_GET_SIZE(cards), o.rules.decks,
                          out)
    if code < 0:
        refuse(code, o.rules.decks)
    return 0


cdef int read_counts(OrderC* o, bytes counts, Masks* out) except -1:
    """Masks of a counts vector."""
    if PyBytes_GET_SIZE(counts) != N_CARDS:
        refuse_length("hand")
    if masks_of_counts(<const uint8_t*> PyBytes_AS_STRING(counts), o.rules.decks, out) < 0:
        refuse(E_TOO_MANY, o.rules.decks)
    return 0


cdef int read_cap(int cap) except -1:
    if cap < 1:
        raise ValueError("cap must be at least 1")
    return cap


cdef int suit_of_lead(OrderC* o, const Masks* cards) noexcept nogil:
    """The effective suit of cards; -1 when there are several."""
    cdef int suit = o.suit_of[sj_low(cards.k[0])]
    return suit if cards.k[0] & ~o.suits[suit].cards == 0 else -1


cdef int read_lead(OrderC* o, bytes cards, Masks* out) except -1:
    """Masks of a lead; its effective suit."""
    cdef int suit
    read_cards(o, cards, out)
    if out.k[0] == 0:
        raise ValueError("a lead needs cards")
    suit = suit_of_lead(o, out)
    if suit < 0:
        raise ValueError("cards of more than one effective suit")
    return suit


cdef tuple components_of(const Cut* cut):
    cdef int i
    return tuple([Component(cut.comps[i].width, cut.comps[i].length, bytes_of(&cut.comps[i].cards))
                  for i in range(cut.n)])


cdef object listing_of(const Plays* plays, int complete):
    cdef int i
    return Listing(tuple([bytes_of(&plays.at[i]) for i in range(plays.n)]), complete == 1)


@cython.final
cdef class Rules:
    """The engine's share of a rule set; see the stub for the options."""

    cdef RulesC c
    cdef bytes ladder_bytes
    cdef dict orders
    cdef tuple options
    cdef readonly int decks

    def __cinit__(self, *, int decks, bint permanent_twos=False, bint two_colour=False, bint tractors=True,
                  bint level_joker_adjacent=True, bint level_gap=False, int adjacency=0, int preference=0,
                  ladders=None, bint keep_groups_whole=False, int throws=0, int forced_component=0,
                  bint wider_beats=False, bint groups_stay_together=False, int overruff=0, int multiplier=0):
        check_range("decks", decks, 1, 4)
        if two_colour and decks > 2:
            raise ValueError("two_colour: more than two decks would make kinds of more than 4 copies")
        check_range("adjacency", adjacency, 0, PRINTED_RANK)
        check_range("preference", preference, 0, WIDTH_FIRST)
        check_range("throws", throws, 0, THROWS_NONE)
        check_range("forced_component", forced_component, 0, FORCED_SMALLEST)
        check_range("overruff", overruff, 0, OVERRUFF_HIGHEST_CARD)
        check_range("multiplier", multiplier, 0, MULT_LAST_TRICK)
        self.decks = decks
        self.c.decks = decks
        self.c.widest = 2 * decks if two_colour else decks
        self.c.permanent_twos = permanent_twos
        self.c.two_colour = two_colour
        self.c.tractors = tractors
        self.c.level_joker_adjacent = level_joker_adjacent
        self.c.level_gap = level_gap
        self.c.adjacency = adjacency
        self.c.preference = preference
        self.c.keep_groups_whole = keep_groups_whole
        self.c.throws = throws
        self.c.forced_component = forced_component
        self.c.wider_beats = wider_beats
        self.c.groups_stay_together = groups_stay_together
        self.c.overruff = overruff
        self.c.multiplier = multiplier
        self.orders = {}
        self.set_ladders(dict(ladders or {}))
        self.options = (decks, permanent_twos, two_colour, tractors, level_joker_adjacent, level_gap,
                        adjacency, preference, self.ladder_bytes, keep_groups_whole, throws, forced_component,
                        wider_beats, groups_stay_together, overruff, multiplier)

    cdef int set_ladders(self, dict ladders) except -1:
        """Check the printed ladders and pack them; one that does not end in "any cards" gets that step."""
        cdef bytearray packed = bytearray()
        cdef dict starts = {}
        cdef const uint8_t* base
        for shape in sorted(ladders):
            width, length = shape
            if not (2 <= width <= 4 and 1 <= length < MAX_LENGTH):
                raise ValueError(f"ladders: no shape {width}x{length}")
            steps = [tuple(step) for step in ladders[shape]]
            if not steps or steps[len(steps) - 1] != ((),):
                steps.append(((),))
            starts[shape] = len(packed) + 2
            packed += bytes((width, length, len(steps)))
            for step in steps:
                if not 1 <= len(step) <= 8:
                    raise ValueError(f"ladders: {width}x{length} has a step of {len(step)} alternatives")
                packed.append(len(step))
                for alternative in step:
                    packed.append(len(alternative))
                    for group_width, group_length in alternative:
                        if not (2 <= group_width <= 4 and 1 <= group_length < MAX_LENGTH):
                            raise ValueError(f"ladders: no shape {group_width}x{group_length}")
                        packed += bytes((group_width, group_length))
                    if sum([w * l for w, l in alternative]) > width * length:
                        raise ValueError(f"ladders: a step of {width}x{length} has more cards than the lead")
        self.ladder_bytes = bytes(packed)
        base = <const uint8_t*> PyBytes_AS_STRING(self.ladder_bytes)
        for (width, length), start in starts.items():
            self.c.ladder[<int> width][<int> length] = base + <Py_ssize_t> start
        return 0

    def order(self, int level, int trump):
        """The order of cards for level 0..12 and trump 0..3 (two-colour: 0, 1) or 4."""
        if not 0 <= level < N_RANKS:
            raise ValueError("level must be 0..12")
        if not (0 <= trump < (2 if self.c.two_colour else 4) or trump == TRUMP_SUIT):
            raise ValueError("trump must be a suit, or 4 for no-trump")
        cdef int key = level * 8 + trump
        cdef Order order = self.orders.get(key)
        if order is None:
            order = self.orders.setdefault(key, make_order(self, level, trump))
        return order

    def __eq__(self, other):
        return isinstance(other, Rules) and self.options == (<Rules> other).options

    def __hash__(self):
        return hash(self.options)


cdef int check_range(str name, int value, int low, int high) except -1:
    if not low <= value <= high:
        raise ValueError(f"{name} must be {low}..{high}")
    return 0


cdef Order make_order(Rules rules, int level, int trump):
    cdef Order order = Order.__new__(Order, MAKER)
    order.rules = rules
    order.level = level
    order.trump = trump
    build_order(&order.c, &rules.c, level, trump)
    return order


@cython.final
cdef class Order:
    """The order of cards for one level and trump (RULES §2); made by ``Rules.order``."""

    cdef OrderC c
    cdef readonly int level
    cdef readonly int trump
    cdef readonly Rules rules

    def __cinit__(self, key=None):
        if key is not MAKER:
            raise TypeError("an Order is made by Rules.order")

    def suit(self, int card):
        """The effective suit 0..4 of a card index."""
        if not 0 <= card < N_CARDS:
            raise ValueError("a card index is 0..53")
        return self.c.suit_of[card]

    def tier(self, int card):
        """The rank of a card inside its effective suit."""
        if not 0 <= card < N_CARDS:
            raise ValueError("a card index is 0..53")
        return self.c.tier_of[card]

    def shape(self, bytes cards not None):
        """Cut cards of one effective suit into components, larger first (RULES §3)."""
        cdef Masks m
        cdef Cut cut
        cdef int suit = read_lead(&self.c, cards, &m)
        cut_shape(&self.c, &self.c.suits[suit], &m, &cut)
        return components_of(&cut)

    def lead(self, bytes cards not None):
        """Compile a lead."""
        cdef Lead lead = Lead.__new__(Lead, MAKER)
        cdef Masks m
        cdef Cut cut
        cdef int suit = read_lead(&self.c, cards, &m)
        cut_shape(&self.c, &self.c.suits[suit], &m, &cut)
        compile_lead(&self.c, suit, &cut, &lead.c)
        lead.order = self
        lead.cards = bytes_of(&m)
        lead.suit = suit
        lead.size = lead.c.n
        lead.components = components_of(&cut)
        return lead

    def throw(self, bytes cards not None, others):
        """Judge a lead against the three other hands (RULES §4)."""
        cdef Masks m
        cdef Masks held[3]
        cdef Cut cut
        cdef int suit, seat, verdict, forced, blockers
        if len(others) != 3:
            raise ValueError("a throw is judged against three other hands")
        read_cards(&self.c, cards, &m)
        if m.k[0] == 0:
            raise ValueError("a lead needs cards")
        for seat in range(3):
            read_cards(&self.c, others[seat], &held[seat])
        suit = suit_of_lead(&self.c, &m)
        if suit < 0:
            return Throw(V_MIXED_SUITS, b"", 0)
        cut_shape(&self.c, &self.c.suits[suit], &m, &cut)
        verdict = judge_throw(&self.c, &self.c.suits[suit], &cut, held, &forced, &blockers)
        if verdict != V_OK:
            return Throw(verdict, b"", 0)
        return Throw(V_OK, bytes_of(&m) if forced < 0 else bytes_of(&cut.comps[forced].cards), blockers)

    cdef int judge(self, plays, LeadC* lead, int* value) except -1:
        """The winner of a trick, its value and its compiled lead."""
        cdef Masks m
        cdef Masks best
        cdef Cut cut
        cdef int i, v, suit, winner = 0, n = len(plays)
        if n == 0:
            raise ValueError("no plays")
        for i in range(n):
            if i == 0:
                suit = read_lead(&self.c, plays[0], &m)
                cut_shape(&self.c, &self.c.suits[suit], &m, &cut)
                compile_lead(&self.c, suit, &cut, lead)
                value[0] = play_value(lead, &m)
                continue
            read_cards(&self.c, plays[i], &m)
            if size(&m) != lead.n:
                raise ValueError("plays of unequal length")
            v = play_value(lead, &m)
            if v > value[0]:
                value[0] = v
                winner = i
        return winner

    def winner(self, plays):
        """The index of the winning play, the lead being the first (RULES §6)."""
        cdef LeadC lead
        cdef int value
        return self.judge(plays, &lead, &value)

    def multiplier(self, plays):
        """The multiplier of RULES §8 for the last trick."""
        cdef LeadC lead
        cdef int value
        self.judge(plays, &lead, &value)
        return trick_multiplier(&lead, value)

    def points(self, bytes cards not None):
        """The points of cards."""
        cdef Masks m
        read_cards(&self.c, cards, &m)
        return points_of(&m)

    def leads(self, bytes hand not None, int cap=64):
        """Plain leads of a hand given as counts."""
        cdef Masks m
        cdef Plays plays
        cdef int complete
        read_counts(&self.c, hand, &m)
        read_cap(cap)
        complete = plays_init(&plays)
        try:
            if complete == 0:
                complete = list_leads(&self.c, &m, cap, &plays)
            if complete < 0:
                raise MemoryError
            return listing_of(&plays, complete)
        finally:
            plays_free(&plays)


@cython.final
cdef class Lead:
    """A compiled lead; made by ``Order.lead``."""

    cdef LeadC c
    cdef Order order                     # keeps what ``c`` points to alive
    cdef readonly bytes cards
    cdef readonly int suit
    cdef readonly int size
    cdef readonly tuple components

    def __cinit__(self, key=None):
        if key is not MAKER:
            raise TypeError("a Lead is made by Order.lead")

    def check(self, bytes hand not None, bytes play not None):
        """A Verdict for a follow; hand and play as counts."""
        cdef int verdict
        if PyBytes_GET_SIZE(hand) != N_CARDS or PyBytes_GET_SIZE(play) != N_CARDS:
            refuse_length("hand and play")
        verdict = check_counts(&self.c, <const uint8_t*> PyBytes_AS_STRING(hand),
                               <const uint8_t*> PyBytes_AS_STRING(play))
        if verdict < 0:
            refuse(verdict, self.c.order.rules.decks)
        return verdict

    def check_cards(self, bytes hand not None, bytes play not None):
        """A Verdict for a follow; hand and play as card indices."""
        cdef Masks held, laid
        cdef int verdict
        read_cards(self.c.order, hand, &held)
        read_cards(self.c.order, play, &laid)
        verdict = check_masks(&self.c, &held, &laid)
        if verdict < 0:
            refuse(verdict, self.c.order.rules.decks)
        return verdict

    def check_batch(self, bytes hands not None, bytes plays not None):
        """Verdicts for positions laid end to end."""
        cdef Py_ssize_t i, n = PyBytes_GET_SIZE(hands) // N_CARDS
        cdef const uint8_t* hand = <const uint8_t*> PyBytes_AS_STRING(hands)
        cdef const uint8_t* play = <const uint8_t*> PyBytes_AS_STRING(plays)
        cdef bytes out
        cdef char* at
        cdef int verdict = 0
        if PyBytes_GET_SIZE(hands) != n * N_CARDS or PyBytes_GET_SIZE(plays) != n * N_CARDS:
            raise ValueError(f"hands and plays must be n * {N_CARDS} bytes of counts each")
        out = PyBytes_FromStringAndSize(NULL, n)
        at = PyBytes_AS_STRING(out)
        with nogil:
            for i in range(n):
                verdict = check_counts(&self.c, hand + i * N_CARDS, play + i * N_CARDS)
                if verdict < 0:
                    break
                at[i] = <char> verdict
        if verdict < 0:
            refuse(verdict, self.c.order.rules.decks)
        return out

    def owed(self, bytes hand not None):
        """What a hand (counts) owes, component by component."""
        cdef Masks m, kinds
        cdef Pack p
        cdef Owed owed
        cdef int i, k, a
        cdef const uint8_t* at
        cdef list steps = []
        read_counts(self.c.order, hand, &m)
        if size_within(&m, self.c.suit.cards) <= self.c.n:
            return ()
        kinds_in(self.c.order, self.c.suit, &m, &kinds)
        make_pack(self.c.suit, &kinds, &p)
        try:
            if owe(&self.c, &p, &owed) < 0:
                raise MemoryError
            for i in range(self.c.comps):
                if self.c.ladder[i] == NULL:
                    steps.append(tuple([(owed.part_width[k], owed.part_length[k])
                                        for k in range(owed.parts_from[i], owed.parts_from[i + 1])]))
                    continue
                at = self.c.ladder[i] + 1
                for k in range(owed.step[i]):
                    at = skip_step(at)
                at += 1
                for a in range(owed.example.chosen[i]):
                    at = skip_alternative(at)
                steps.append(tuple([(at[1 + 2 * k], at[2 + 2 * k]) for k in range(at[0])]))
        finally:
            owed_free(&owed)
        return tuple(steps)

    def follows(self, bytes hand not None, int cap=64):
        """Legal follows of a hand given as counts."""
        cdef Masks m
        cdef Scratch* scratch
        cdef int complete
        read_counts(self.c.order, hand, &m)
        read_cap(cap)
        scratch = <Scratch*> malloc(sizeof(Scratch))
        if scratch == NULL:
            raise MemoryError
        try:
            complete = scratch_init(scratch)
            if complete == 0:
                complete = list_follows(&self.c, &m, cap, scratch)
            if complete < 0:
                raise MemoryError
            return listing_of(&scratch.plays, complete)
        finally:
            scratch_free(scratch)
            free(scratch)


cdef int run_deals(Order order, uint64_t seed, uint64_t first, uint64_t count, int kitty, int cap, Deal* d,
                   int64_t* sums) except -1:
    """Play deals first..first+count-1 and add up points, captures and plays."""
    cdef Scratch* scratch
    cdef int result
    cdef uint64_t i
    cdef int cards = order.c.rules.decks * N_CARDS
    if kitty < 0 or kitty >= cards or (cards - kitty) % 4:
        raise ValueError("kitty must leave four equal hands")
    read_cap(cap)
    scratch = <Scratch*> malloc(sizeof(Scratch))
    if scratch == NULL:
        raise MemoryError
    d.order = &order.c
    with nogil:
        result = scratch_init(scratch)
        for i in range(count):
            if result < 0:
                break
            result = play_deal(d, seed, first + i, kitty, cap, scratch)
            sums[0] += d.points
            sums[1] += d.last_winner & 1
            sums[2] += d.played
        scratch_free(scratch)
        free(scratch)
    if result < 0:
        raise MemoryError
    return 0


def playouts(Rules rules not None, int level, int trump, long long count, uint64_t seed, *, int kitty=8,
             int cap=64):
    """Deal and play ``count`` whole deals; the sums of attackers' points, kitty captures and plays."""
    cdef Deal d
    cdef int64_t sums[3]
    if count < 0:
        raise ValueError("count must not be negative")
    sums[0] = sums[1] = sums[2] = 0
    d.record = False
    run_deals(rules.order(level, trump), seed, 0, count, kitty, cap, &d, sums)
    return sums[0], sums[1], sums[2]


def playout(Rules rules not None, int level, int trump, uint64_t seed, uint64_t index, *, int kitty=8,
            int cap=64):
    """Deal ``index`` of the same stream, recorded whole."""
    cdef Deal d
    cdef int64_t sums[3]
    cdef int i
    sums[0] = sums[1] = sums[2] = 0
    d.record = True
    run_deals(rules.order(level, trump), seed, index, 1, kitty, cap, &d, sums)
    return Playout(
        d.points, d.last_winner, d.multiplier,
        tuple([bytes_of(&d.start[i]) for i in range(4)]), bytes_of(&d.kitty),
        tuple([(d.seats[i], bytes_of(&d.plays[i])) for i in range(d.played)]),
    )
