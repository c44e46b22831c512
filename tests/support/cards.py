"""Cards by name (RULES §1): rank by rank as people write them, apart from the parser of the services."""

SUITS = "SHCD"
RANKS = "23456789TJQKA"
JOKERS = {"LJ": 52, "BJ": 53}
NAMES = [suit + rank for suit in SUITS for rank in RANKS] + list(JOKERS)
TRUMPS = {"S": 0, "H": 1, "C": 2, "D": 3, "B": 0, "R": 1, "NT": 4}


def card(name):
    return NAMES.index(name)


def cards(names):
    """Cards from a list of names, or from a string of names divided by spaces."""
    return bytes(card(name) for name in (names.split() if isinstance(names, str) else names))


def names(indices):
    return [NAMES[index] for index in indices]


def counts(indices):
    vector = [0] * 54
    for index in indices:
        vector[index] += 1
    return bytes(vector)


def expand(vector):
    """Counts as ascending indices."""
    return bytes(index for index, count in enumerate(vector) for _ in range(count))


def order(rules, level, trump):
    """An order by names: ``order(rules, "T", "S")``."""
    return rules.order(RANKS.index(level), TRUMPS[trump])
