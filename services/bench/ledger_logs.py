"""Logs of kind `d` as many tables would write them, no card being played: for the ledger's bench and tests.

A world has people who sit down at tables, play deals whose results are drawn, escape, and go on to the next
table. Commits have the events, the sizes and the hashes' lengths of real ones; only what no reader of this
kind of commits looks at (cards, keys) is noise.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from services.game.ids import STREAMS, TableId, partition
from services.pb.card.v1.card_pb2 import Card, Rank
from services.pb.event.v1 import event_pb2 as pb
from services.pb.log.v1.log_pb2 import Commit

START_US: Final = 1_800_000_000_000_000
STAKES: Final = (0, 1, 7, 50, 333)
_SECOND: Final = 1_000_000


class Message(NamedTuple):
    """One message of a log stream."""

    stream: int
    sequence: int
    table_id: str
    stored: bytes
    commit: Commit


@dataclass(kw_only=True)
class Mix:
    """What happens in a world, as shares of 1 where nothing else is said.

    Attributes:
        people: how many there are.
        name: what their ids begin with.
        stakes: base stakes to choose from.
        deals: most deals of a match.
        bots: seats that are a bot's.
        options: tables with rake, prize, operator, fines and escape fees, each for itself.
        escapes: deals in or after which somebody escapes.
        redeals: deals that are not scored.
        broken: matches that are broken off.
        seated: tables that are founded with their four seats taken; at others people sit down one by one.
        hurried: people who sit down at a table while they still play elsewhere.
        parallel: tables open at once.
        noise: whether commits have the size of real ones.
    """

    people: int = 24
    name: str = "ply"
    stakes: tuple[int, ...] = STAKES
    deals: int = 8
    bots: float = 0.1
    options: float = 0.3
    escapes: float = 0.05
    redeals: float = 0.1
    broken: float = 0.1
    seated: float = 0.6
    hurried: float = 0.0
    parallel: int = 5
    noise: bool = False


@dataclass
class _Open:
    """A table that is open."""

    table_id: TableId
    stream: int
    seats: list[pb.Seat]
    stake: int
    deals_left: int
    scored: int = 0
    version: int = 0
    last_d: int = 0
    ended: int = 0
    over: bool = False
    playing: bool = False
    escaped: set[int] = field(default_factory=set)

    def free_seats(self) -> list[int]:
        """Seats that nobody has."""
        return [seat.seat for seat in self.seats if not seat.player_id]


class World:
    """A house full of tables, of which one commit at a time comes."""

    def __init__(self, rng: Random, mix: Mix) -> None:
        self._rng = rng
        self._mix = mix
        self._now_us = START_US
        self._people = [f"{mix.name}_{number:04d}" for number in range(mix.people)]
        self._tables: list[_Open] = []
        self._sequences = [0] * STREAMS
        self._playing: set[str] = set()

    def messages(self, deals: int) -> list[Message]:
        """Messages in the order of their recording, until so many deals are scored and all tables closed."""
        return list(self._messages(deals))

    def _messages(self, deals: int) -> Iterator[Message]:
        scored = 0
        while scored < deals or self._tables:
            if scored < deals and len(self._tables) < self._mix.parallel and len(self._free()) >= 4:
                yield self._found()
            if not self._tables:
                continue
            table = self._rng.choice(self._tables)
            message = self._step(table, ending=scored >= deals)
            scored += any(event.HasField("deal_scored") for event in message.commit.events)
            yield message

    def _free(self) -> list[str]:
        """People who may sit down; the hurried ones do not wait for their match's end."""
        hurried = self._rng.random() < self._mix.hurried
        return self._people if hurried else [player for player in self._people if player not in self._playing]

    def _found(self) -> Message:
        rng, mix = self._rng, self._mix
        table_id = TableId.new(self._now_us // 1000, rng.randbytes(10))
        stake = rng.choice(mix.stakes)
        seats = [pb.Seat(seat=seat) for seat in range(4)]
        for seat in seats:
            if rng.random() < mix.bots:
                seat.player_id, seat.difficulty = f"bot:{seat.seat}", pb.DIFFICULTY_NORMAL
        table = _Open(table_id, partition(table_id) % STREAMS, seats, stake, rng.randint(1, mix.deals))
        free = self._free()
        if rng.random() < mix.seated and len(free) >= 4:
            people = rng.sample(free, 4)
            for free_seat in table.free_seats():
                self._sit(table, free_seat, people[free_seat])
        options = {"failed_throw_quarters": "1" if self._has() else "0"}
        options["escape_fee"] = "true" if self._has() else "false"
        opened = pb.TableOpened(
            creator_id="ply_host",
            stake=stake,
            seats=seats,
            rules=pb.RuleSet(
                preset=rng.choice(["classic-2d", "tournament-2d"]),
                options=[pb.RuleOption(name=name, value=value) for name, value in options.items()],
            ),
            rake_permille=rng.choice([1, 25, 300]) if self._has() else 0,
            prize=rng.choice([1, 101]) if self._has() else 0,
            operator="acme" if self._has() else "",
        )
        self._tables.append(table)
        return self._commit(table, pb.Event(table_opened=opened))

    def _has(self) -> bool:
        return self._rng.random() < self._mix.options

    def _sit(self, table: _Open, seat: int, player: str) -> None:
        table.seats[seat].player_id = player
        self._playing.add(player)

    def _step(self, table: _Open, *, ending: bool) -> Message:
        """The next thing that happens at a table."""
        if table.over:
            return self._close(table)
        if not table.playing:
            return self._gather(table, ending=ending)
        rng, mix = self._rng, self._mix
        people = [seat.seat for seat in table.seats if not seat.difficulty and seat.seat not in table.escaped]
        escaping = people and rng.random() < mix.escapes
        if escaping and rng.random() < 0.5:
            return self._commit(table, self._escape(table, rng.choice(people)))
        if ending or rng.random() < mix.broken / mix.deals:
            return self._close(table)
        table.ended += 1
        if rng.random() < mix.redeals:
            voided = pb.DealVoided(deal=table.ended)
            called = pb.MutinyCalled(deal=table.ended)
            void = rng.random() < 0.5
            return self._commit(
                table, pb.Event(deal_voided=voided) if void else pb.Event(mutiny_called=called)
            )
        events = self._scored(table)
        if escaping:
            events.append(self._escape(table, rng.choice(people)))
        table.scored += 1
        table.deals_left -= 1
        if not table.deals_left:
            events.append(self._ended(table))
        return self._commit(table, *events)

    def _gather(self, table: _Open, *, ending: bool) -> Message:
        """People come and go before the match."""
        rng, empty = self._rng, table.free_seats()
        people = [seat for seat in table.seats if seat.player_id and not seat.difficulty]
        if ending or (people and len(people) == 1 and rng.random() < 0.05):
            return self._close(table)
        if people and rng.random() < 0.1:
            seat = rng.choice(people)
            left = pb.SeatLeft(seat=seat.seat, player_id=seat.player_id)
            self._playing.discard(seat.player_id)
            seat.player_id = ""
            return self._commit(table, pb.Event(seat_left=left))
        if empty:
            here = {seat.player_id for seat in table.seats}
            coming = [player for player in self._free() if player not in here]
            if not coming:
                return self._close(table)
            self._sit(table, empty[0], rng.choice(coming))
            return self._commit(table, pb.Event(seat_taken=pb.SeatTaken(seat=table.seats[empty[0]])))
        table.playing = True
        return self._step(table, ending=ending)

    def _scored(self, table: _Open) -> list[pb.Event]:
        rng = self._rng
        scored = pb.DealScored(
            deal=table.ended,
            attackers_points=rng.randrange(0, 201, 5),
            winning_side=rng.randrange(2),
            nominal_levels=rng.choice([0, 1, 1, 2, 3]),
            failed_throws=[rng.choice([0, 0, 0, 1, 3]) for _ in range(4)],
        )
        if not self._mix.noise:
            return [pb.Event(deal_scored=scored)]
        scored.kitty.extend(Card.ValueType(rng.randint(1, 54)) for _ in range(8))
        scored.levels.extend([Rank.ValueType(1), Rank.ValueType(2)])
        scored.reveal.CopyFrom(
            pb.Reveal(
                deal=table.ended, server_seed=rng.randbytes(32), keys=[rng.randbytes(32) for _ in range(5)]
            )
        )
        scored.next_seed.CopyFrom(
            pb.SeedCommitment(
                deal=table.ended + 1,
                commitment=rng.randbytes(32),
                salt=rng.randbytes(32),
                key_id="k1",
                sealed_server_seed=pb.Sealed(
                    audience=4, nonce=rng.randbytes(12), ciphertext=rng.randbytes(48)
                ),
            )
        )
        return [
            pb.Event(cards_played=pb.CardsPlayed(seat=3, cards=[Card.ValueType(rng.randint(1, 54))])),
            pb.Event(trick_taken=pb.TrickTaken(seat=1, points=10, attackers_points=80)),
            pb.Event(deal_scored=scored),
        ]

    def _escape(self, table: _Open, seat: int) -> pb.Event:
        table.escaped.add(seat)
        player = table.seats[seat].player_id
        return pb.Event(seat_left=pb.SeatLeft(seat=seat, player_id=player, escaped=True))

    def _ended(self, table: _Open) -> pb.Event:
        side = self._rng.choice([None, 0, 1, 1])
        table.over = True
        self._leave(table)
        return pb.Event(
            match_ended=pb.MatchEnded(
                winning_side=side, advanced=[self._rng.randrange(9), 3], deals=table.scored
            )
        )

    def _close(self, table: _Open) -> Message:
        self._tables.remove(table)
        if not table.over:
            self._leave(table)
        reason = pb.CLOSE_REASON_FINISHED if table.over else pb.CLOSE_REASON_ABANDONED
        return self._commit(table, pb.Event(table_closed=pb.TableClosed(reason=reason)))

    def _leave(self, table: _Open) -> None:
        self._playing.difference_update(seat.player_id for seat in table.seats)

    def _commit(self, table: _Open, *events: pb.Event) -> Message:
        self._now_us += self._rng.randint(1, 3 * _SECOND)
        table.version += 1 if not table.version else self._rng.randint(1, 40)
        commit = Commit(
            table_id=table.table_id,
            version=table.version,
            prev_hash=self._rng.randbytes(32) if table.version > 1 else b"",
            recorded_at_us=self._now_us,
            schema=1,
            rules_version=1,
            events=events,
            previous_d=table.last_d,
        )
        if self._mix.noise:
            commit.command_id, commit.command_check = self._rng.randbytes(16), self._rng.randbytes(8)
            commit.actor.player_id = table.seats[0].player_id
        table.last_d = table.version
        self._sequences[table.stream] += self._rng.randint(1, 60)
        stored = commit.SerializeToString(deterministic=True)
        return Message(table.stream, self._sequences[table.stream], table.table_id, stored, commit)
