"""Positions on purpose: hands and plays built around the steps of a ladder, in corners of the order of cards.

Cards dealt at random hardly ever owe a tractor. Here a lead shape and a step are chosen, the groups of the
step are laid into a few neighbouring tiers (around the level's gap, the ace and two ends, the level tiers and
jokers), noise is laid over them, and plays are made near the border between legal and not. Everything comes
from a seeded ``random.Random``; the twin's runs are only used to find places, never to tell what is right.
"""

from dataclasses import dataclass

from engine_ext.codes import BIG_JOKER, CARDS, LITTLE_JOKER, NO_TRUMP, TRUMP


@dataclass
class Deal:
    """An order of cards with the places of one suit that positions are built from."""

    rules: object
    order: object
    suit: int
    lead: object = None
    """The lead made last, compiled."""

    def __post_init__(self):
        suit_order = self.order.suits[self.suit]
        self.kinds = [kind.cards for kind in suit_order.kinds]
        self.runs = suit_order.runs
        self.copies = [len(cards) * self.rules.decks for cards in self.kinds]


def random_order(rng, rules):
    return rules.order(rng.randrange(13), rng.choice((0, 1, NO_TRUMP) if rules.two_colour else range(5)))


def random_deal(rng, rules):
    """A deal with one of its suits, trump as often as all side suits together."""
    order = random_order(rng, rules)
    sides = [suit for suit in order.suits if suit != TRUMP]
    return Deal(rules, order, TRUMP if rng.random() < 0.5 or not sides else rng.choice(sides))


def window(rng, deal, wide):
    """A stretch of neighbouring kinds: somewhere, or at the top (aces, level tiers, jokers) or the bottom."""
    last = max(len(deal.kinds) - wide, 0)
    start = rng.choice((0, last, rng.randint(0, last), rng.randint(0, last)))
    return range(start, min(start + wide, len(deal.kinds)))


def lay(rng, deal, sizes, inside, limit=None, *, apart=False):
    """Lay groups of the sizes on runs; counts of kinds, or None if there is no room.

    Args:
        rng: the dice.
        deal: the suit.
        sizes: width and length of each group.
        inside: the kinds that may be used.
        limit: the most cards of each kind, if it is not what the decks hold.
        apart: whether groups keep a kind's distance, so that they do not join into longer ones.
    """
    held = [0] * len(deal.kinds)
    top = limit or deal.copies
    for width, length in sizes:
        runs = deal.runs.get(length, ())
        for _ in range(20 if apart else 12):
            if not runs:
                return None
            run = rng.choice(runs).kinds
            if apart and any(held[p] or held[max(p - 1, 0)] or held[min(p + 1, len(held) - 1)] for p in run):
                continue
            if all(place in inside and held[place] + width <= top[place] for place in run):
                for place in run:
                    held[place] += width
                break
        else:
            return None
    return held


def cards_of(rng, deal, held):
    """Counts of kinds as cards; in the two-colour rule any of the identical ones."""
    cards = []
    for kind, count in zip(deal.kinds, held, strict=True):
        if len(kind) == 1:
            cards += kind * count
        elif count:
            cards += rng.sample(list(kind) * deal.rules.decks, count)
    return bytes(sorted(cards))


def held_of(deal, cards):
    return [sum(card in kind for card in cards) for kind in deal.kinds]


def make_lead(rng, deal, sizes):
    """A lead of just these component sizes (as the order cuts it), or None."""
    for _ in range(8):
        held = lay(rng, deal, sizes, window(rng, deal, rng.choice((4, 6, 13, 99))))
        if held is None:
            continue
        cards = cards_of(rng, deal, held)
        deal.lead = deal.order.lead(cards)
        if [(c.width, c.length) for c in deal.lead.components] == list(sizes):
            return cards
    return None


def suited_lead(rng, rules, sizes):
    """A deal and a lead of these sizes in it; None if the suit or the dice do not allow one."""
    for _ in range(6):
        deal = random_deal(rng, rules)
        lead = make_lead(rng, deal, sizes) if all(length in deal.runs for _, length in sizes) else None
        if lead is not None:
            return deal, lead
    return None


def make_hand(rng, deal, groups, size):
    """A hand that holds the groups and noise; ``size`` is the number of cards of the lead."""
    apart = rng.random() < 0.6
    held = lay(
        rng, deal, groups, window(rng, deal, rng.choice((13, 99) if apart else (4, 6, 8, 13))), apart=apart
    )
    if held is None:
        held = lay(rng, deal, groups, range(len(deal.kinds)))
    if held is None:
        return None
    target = (
        size + rng.choice((-1, 0, 1, 1, 2, 2, 3, 4, 6)) if rng.random() < 0.9 else rng.randint(0, size + 9)
    )
    noise = rng.choice(("clean", "clean", "clean", "pile", "wild"))
    free = sum(deal.copies) - sum(held)
    while sum(held) < target and free > 0:
        places = [p for p, count in enumerate(held) if count < deal.copies[p]]
        if noise == "clean":
            places = [p for p in places if not held[p]] or places
        elif noise == "pile":
            places = [p for p in places if held[p]] or places
        held[rng.choice(places)] += 1
        free -= 1
    return cards_of(rng, deal, held) + bytes(off_suit(rng, deal, rng.randint(0, 4)))


def off_suit(rng, deal, count):
    """Distinct cards of other suits."""
    others = [card for card in range(CARDS) if deal.order.suit(card) != deal.suit]
    return rng.sample(others, min(count, len(others)))


def make_plays(rng, deal, lead, hand, owed, count):
    """Plays around the border: most follow suit, half keep the groups owed, some break rules bluntly."""
    size = len(lead)
    own = [card for card in hand if deal.order.suit(card) == deal.suit]
    rest = [card for card in hand if deal.order.suit(card) != deal.suit]
    groups = [group for part in owed for group in part]
    held = held_of(deal, own)
    plays = []
    for _ in range(count):
        if len(own) <= size:
            play = [*own, *rng.sample(rest, min(size - len(own), len(rest)))]
        else:
            play = keep_groups(rng, deal, own, held, some_groups(rng, groups), size)
        if plays and len(own) > size and rng.random() < 0.25:
            play = swap(rng, rng.choice(plays), own)
        plays.append(bytes(play))
    plays[0] = spoil(rng, hand, plays[0])
    return plays


def some_groups(rng, groups):
    """The groups owed, or all but one, or one broken to a narrower or shorter one, or none."""
    what = rng.choice(("all", "all", "all", "all", "less", "less", "broken", "none"))
    if what == "all" or not groups:
        return groups
    if what == "none":
        return []
    lost = rng.randrange(len(groups))
    left = groups[:lost] + groups[lost + 1 :]
    width, length = groups[lost]
    if what == "less" or width * length <= 2:
        return left
    narrower = (
        (width - 1, length) if width > 2 and (length == 1 or rng.random() < 0.5) else (width, length - 1)
    )
    return [*left, narrower] if narrower[1] else left


def keep_groups(rng, deal, own, held, groups, size):
    """Cards of the suit that hold the groups, filled up at random."""
    laid = lay(rng, deal, groups, range(len(held)), limit=held) if groups else None
    if laid is None:
        return rng.sample(own, size)
    play, left = [], list(own)
    for kind, count in zip(deal.kinds, laid, strict=True):
        for card in [card for card in left if card in kind][:count] if count else ():
            play.append(card)
            left.remove(card)
    return play + rng.sample(left, size - len(play))


def swap(rng, play, own):
    """One card of a play exchanged for another of the suit."""
    play, left = list(play), list(own)
    for card in play:
        if card in left:
            left.remove(card)
    if left and play:
        play[rng.randrange(len(play))] = rng.choice(left)
    return play


def spoil(rng, hand, play):
    """A play that may break one of the plain rules: its count, its suit, or that the hand holds it."""
    play = list(play)
    what = rng.random()
    if what < 0.1:
        return bytes(play[:-1])
    if what < 0.2 and play:
        play[0] = rng.randrange(CARDS)
    elif what < 0.5 and len(hand) >= len(play):
        return bytes(rng.sample(list(hand), len(play)))
    return bytes(card for card in play if play.count(card) <= 1 or hand.count(card) >= play.count(card))


def make_follow(rng, rules, sizes, step):
    """(deal, lead, hand) with a lead of these sizes and a hand built for one step of its first component."""
    made = suited_lead(rng, rules, sizes)
    if made is None:
        return None
    deal, lead = made
    ladders = [rules.ladder(size) for size in sizes]
    picked = [ladders[0][step], *(rng.choice(ladder) for ladder in ladders[1:])]
    groups = [group for alternatives in picked for group in rng.choice(alternatives)]
    groups.sort(key=lambda size: -size[0] * size[1])
    hand = make_hand(rng, deal, groups, len(lead))
    return None if hand is None else (deal, lead, hand)


def make_trick(rng, rules, sizes):
    """Four plays: a lead of these sizes; followers answer in suit or ruff, truly or nearly, or discard."""
    made = suited_lead(rng, rules, sizes)
    if made is None:
        return None
    deal, lead = made
    trumps = Deal(rules, deal.order, TRUMP)
    plays = [lead]
    for _ in range(3):
        where = trumps if rng.random() < 0.6 else deal
        plays.append(make_answer(rng, where, sizes, len(lead)))
    return deal, plays


def make_answer(rng, deal, sizes, size):
    """Cards of one suit that may or may not be cut into the sizes."""
    wanted = list(sizes)
    change = rng.random()
    if change < 0.2:
        # something wider or longer in place of the largest
        width, length = wanted[0]
        cards = width * length
        wanted[0] = rng.choice([(w, cards // w) for w in range(2, 5) if cards % w == 0] or [(1, 1)])
    elif change < 0.35 and len(wanted) > 1:
        # two components moved together
        a, b = rng.sample(range(len(wanted)), 2)
        joined = (wanted[a][0], wanted[a][1] + wanted[b][1])
        if wanted[a][0] == wanted[b][0] > 1:
            wanted = [size for i, size in enumerate(wanted) if i not in (a, b)] + [joined]
        else:
            wide = sum(wanted[i][0] for i in (a, b) if wanted[i][1] == 1)
            if wanted[a][1] == wanted[b][1] == 1 and wide <= 4:
                wanted = [size for i, size in enumerate(wanted) if i not in (a, b)] + [(wide, 1)]
    elif change < 0.45:
        wanted = []
    held = lay(rng, deal, wanted, window(rng, deal, rng.choice((5, 8, 99)))) or [0] * len(deal.kinds)
    while sum(held) < size:
        places = [p for p, count in enumerate(held) if count < deal.copies[p]]
        if not places:
            break
        held[rng.choice(places)] += 1
    play = list(cards_of(rng, deal, held))
    if len(play) < size:
        play = play + off_suit(rng, deal, size - len(play))
    if rng.random() < 0.15:
        others = [card for card in range(CARDS) if play.count(card) < deal.rules.decks]
        play[rng.randrange(len(play))] = rng.choice(others)
    rng.shuffle(play)
    return bytes(play[:size]) if len(play) >= size else bytes(rng.sample(range(CARDS), size))


def make_throw(rng, rules, sizes):
    """A lead of several components and three hands that hold things about as high as its components."""
    made = suited_lead(rng, rules, sizes)
    if made is None:
        return None
    deal, lead = made
    others = []
    void = rng.random() < 0.3
    for _ in range(3):
        held = [0] * len(deal.kinds)
        if not void and rng.random() < 0.7:
            width, length = rng.choice(sizes)
            wider = min(width + 1, 4)
            group = rng.choice(((width, length), (wider, length), (width, length + 1), (4, 1), (1, 1)))
            held = lay(rng, deal, [group], range(len(held))) or held
            for _ in range(rng.randint(0, 4)):
                place = rng.randrange(len(held))
                held[place] = min(held[place] + 1, deal.copies[place])
        others.append(cards_of(rng, deal, held) + bytes(off_suit(rng, deal, rng.randint(0, 3))))
    if rng.random() < 0.05:
        lead = bytes([*lead[:-1], *off_suit(rng, deal, 1)])
    return deal, lead, others


def corner(order, card):
    """Where a card stands, for reports: joker, level, ace, two, next to the level, or elsewhere."""
    if card in (LITTLE_JOKER, BIG_JOKER):
        return "joker"
    rank = card % 13
    if rank == order.level:
        return "level"
    return {12: "ace", 0: "two"}.get(rank, "gap" if abs(rank - order.level) == 1 else "middle")
