"""One table whose commits of kind `d` a test writes, folded as they come."""

from services.game.ids import TableId, partition
from services.ledger.books import available, held
from services.ledger.folding import Fold, entry
from services.pb.event.v1 import event_pb2 as pb
from services.pb.ledger.v1.ledger_service_pb2 import MatchState
from services.pb.log.v1.log_pb2 import Commit

START_US = 1_800_000_000_000_000


class Table:
    """A table of the players p0 to p3, bots where told, and the ledger that reads it.

    Args:
        fold: the ledger, by default one of its own with this grant.
    """

    def __init__(
        self,
        stake=10,
        *,
        grant=1000,
        bots=(),
        options=None,
        operator="",
        rake=0,
        prize=0,
        seated=4,
        fold=None,
        number=1,
        at_us=START_US,
        players=("p0", "p1", "p2", "p3"),
    ):
        self.fold = fold if fold is not None else Fold(grant)
        self.table_id = TableId.new(START_US // 1000 + number, bytes(10))
        self.players = players
        self.bots = bots
        self.at_us = at_us
        self.version = self.last_d = self.deal = 0
        self.log = []
        opened = pb.TableOpened(
            creator_id="host",
            stake=stake,
            operator=operator,
            rake_permille=rake,
            prize=prize,
            rules=pb.RuleSet(
                preset="classic-2d",
                options=[
                    pb.RuleOption(name=name, value=value)
                    for name, value in {"escape_fee": "false", **(options or {})}.items()
                ],
            ),
            seats=[self.seat(seat) if seat < seated else pb.Seat(seat=seat) for seat in range(4)],
        )
        self.commit(pb.Event(table_opened=opened))

    def seat(self, seat):
        return pb.Seat(
            seat=seat,
            player_id=f"bot:{seat}" if seat in self.bots else self.players[seat],
            difficulty=pb.DIFFICULTY_EASY if seat in self.bots else 0,
        )

    @property
    def last(self):
        return self.log[-1]

    @property
    def book(self):
        return self.fold.books[self.table_id]

    @property
    def deals(self):
        return [deal for table_id, deal in self.fold.deals if table_id == self.table_id]

    @property
    def won(self):
        """Of the last scored deal."""
        return list(self.deals[-1].won)

    def balances(self, account):
        return [self.fold.journal.balances.get(account(player), 0) for player in self.players]

    @property
    def available(self):
        return self.balances(available)

    @property
    def held(self):
        return self.balances(held)

    @property
    def owned(self):
        return [free + kept for free, kept in zip(self.available, self.held, strict=True)]

    def purposes(self):
        return [row[1] for row in self.fold.journal.transfers]

    def message(self, stored, sequence=None):
        return entry(partition(self.table_id) % 4, sequence or len(self.log), self.table_id, stored)

    def commit(self, *events, spoil=None):
        """Write a commit; ``spoil`` changes it before it is stored."""
        self.version += 3 if self.version else 1
        self.at_us += 1_000_000
        commit = Commit(
            table_id=self.table_id,
            version=self.version,
            recorded_at_us=self.at_us,
            events=events,
            previous_d=self.last_d,
            schema=1,
            rules_version=1,
        )
        if spoil is not None:
            spoil(commit)
        self.last_d = self.version
        self.log.append(commit.SerializeToString(deterministic=True))
        self.fold.apply(self.message(self.last), self.at_us)

    def again(self, spoil=None):
        """Deliver the newest commit again, perhaps with another content."""
        commit = Commit.FromString(self.last)
        if spoil is not None:
            spoil(commit)
        self.fold.apply(self.message(commit.SerializeToString(deterministic=True)), self.at_us)

    def sit(self, seat):
        self.commit(pb.Event(seat_taken=pb.SeatTaken(seat=self.seat(seat))))

    def leave(self, seat):
        self.commit(pb.Event(seat_left=pb.SeatLeft(seat=seat, player_id=self.players[seat])))

    def escape(self, seat):
        self.commit(pb.Event(seat_left=pb.SeatLeft(seat=seat, player_id=self.players[seat], escaped=True)))

    def score(self, side, levels=1, failed=(), spoil=None):
        self.deal += 1
        scored = pb.DealScored(
            deal=self.deal,
            attackers_points=80,
            winning_side=side,
            nominal_levels=levels,
            failed_throws=failed,
        )
        self.commit(pb.Event(deal_scored=scored), spoil=spoil)

    def void(self):
        self.deal += 1
        self.commit(pb.Event(deal_voided=pb.DealVoided(deal=self.deal)))

    def mutiny(self):
        self.deal += 1
        self.commit(pb.Event(mutiny_called=pb.MutinyCalled(deal=self.deal)))

    def end(self, side):
        ended = pb.MatchEnded(winning_side=side, advanced=[1, 2], deals=self.deal)
        self.commit(pb.Event(match_ended=ended))

    def close(self):
        over = self.book.state == MatchState.MATCH_STATE_FINISHED
        reason = pb.CLOSE_REASON_FINISHED if over else pb.CLOSE_REASON_ABANDONED
        self.commit(pb.Event(table_closed=pb.TableClosed(reason=reason)))
