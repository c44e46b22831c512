"""RULES §9 once more, written from its text alone and in the plainest way: what everybody owns in the end.

It takes the commits of all tables one after another, each table's in order. Nobody sits at two tables with
stakes at once.
"""

from collections import Counter, defaultdict


class Oracle:
    """Chips by owner: players by their names, the rest as "grants", "fees", "bots", "operator <name>"."""

    def __init__(self, grant):
        self.grant = grant
        self.chips = Counter()
        self.seen = set()
        self.tables = {}
        self.deals = defaultdict(list)

    def meet(self, seat):
        if seat.player_id and not seat.difficulty and seat.player_id not in self.seen:
            self.seen.add(seat.player_id)
            self.chips[seat.player_id] += self.grant
            self.chips["grants"] -= self.grant

    def owner(self, table, seat):
        name, bot = table["seats"][seat]
        return "bots" if bot else name

    def house(self, table):
        operator = table["opened"].operator
        return f"operator {operator}" if operator else "fees"

    def pay(self, table, seat, owed, to, rest=None):
        """A seat pays what it owes, or all it has; ``to`` are the seats that share it, the lower first."""
        owner = self.owner(table, seat)
        paid = owed if owner == "bots" else min(owed, self.chips[owner])
        shared = paid if rest is None else min(paid, rest)
        self.chips[owner] -= paid
        gains = [0] * 4
        for place, other in enumerate(sorted(to)):
            gains[other] = shared // len(to) + (place < shared % len(to))
            self.chips[self.owner(table, other)] += gains[other]
            table["won"][other] += gains[other]
        self.chips[self.house(table)] += paid - shared
        table["won"][seat] -= paid
        return gains

    def take(self, commit):
        table = self.tables.setdefault(commit.table_id, {"won": [0] * 4, "seats": {}})
        for event in commit.events:
            kind = event.WhichOneof("kind")
            if kind in {"table_opened", "seat_taken", "seat_left", "deal_scored", "match_ended"}:
                getattr(self, kind)(table, getattr(event, kind))
        if any(event.HasField("deal_scored") for event in commit.events):
            self.deals[commit.table_id].append(table["won"])
            table["won"] = [0] * 4

    def table_opened(self, table, opened):
        table["opened"] = opened
        table["options"] = {option.name: option.value for option in opened.rules.options}
        for seat in opened.seats:
            table["seats"][seat.seat] = seat.player_id, bool(seat.difficulty)
            self.meet(seat)

    def seat_taken(self, table, taken):
        table["seats"][taken.seat.seat] = taken.seat.player_id, bool(taken.seat.difficulty)
        self.meet(taken.seat)

    def seat_left(self, table, left):
        stake = table["opened"].stake
        if left.escaped and stake and table["options"]["escape_fee"] == "true":
            self.pay(table, left.seat, 8 * stake, {0, 1, 2, 3} - {left.seat}, rest=3 * stake)

    def deal_scored(self, table, scored):
        stake = table["opened"].stake
        quarters = int(table["options"]["failed_throw_quarters"])
        for seat, times in enumerate(scored.failed_throws):
            self.pay(table, seat, times * 2 * quarters * (stake // 4), {(seat + 1) % 4, (seat + 3) % 4})
        winners = {0, 2} if scored.winning_side == 0 else {1, 3}
        # The pot is shared as a whole, so that one odd chip of each loser is no odd chip.
        pot = 0
        for seat in {0, 1, 2, 3} - winners:
            owner, owed = self.owner(table, seat), stake * max(1, scored.nominal_levels)
            paid = owed if owner == "bots" else min(owed, self.chips[owner])
            self.chips[owner] -= paid
            table["won"][seat] -= paid
            pot += paid
        for seat, part in zip(sorted(winners), (pot - pot // 2, pot // 2), strict=True):
            rake = part * table["opened"].rake_permille // 1000
            self.chips[self.owner(table, seat)] += part - rake
            self.chips[self.house(table)] += rake
            table["won"][seat] += part - rake

    def match_ended(self, table, ended):
        prize = table["opened"].prize
        if prize and ended.HasField("winning_side"):
            self.chips[self.house(table)] -= prize
            for seat, part in zip(
                (ended.winning_side, ended.winning_side + 2), (prize - prize // 2, prize // 2), strict=True
            ):
                self.chips[self.owner(table, seat)] += part


def totals(balances):
    """Balances of accounts, added up by owner as the oracle does; zeros left out."""
    chips = Counter()
    for account, balance in balances.items():
        kind, _, name = account.partition(":")
        owner = name if kind in {"available", "held", "house"} else f"operator {name}"
        chips[owner] += balance
    return {owner: amount for owner, amount in chips.items() if amount}


def expected(messages, grant):
    """What everybody owns after these messages, and the deals' results."""
    oracle = Oracle(grant)
    for message in messages:
        oracle.take(message.commit)
    return {owner: amount for owner, amount in oracle.chips.items() if amount}, oracle
