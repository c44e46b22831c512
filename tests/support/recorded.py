"""Matches recorded in process, step by step, with foreseeable randomness."""

import uuid
from itertools import product

from engine_ext.codes import BIG_JOKER, LITTLE_JOKER
from services.game import chain, commands, waits
from services.game.decide import Refusal, decide
from services.game.entropy import SeededEntropy
from services.game.evolve import evolve
from services.game.facts import Facts
from services.game.ids import CommandId, TableId
from services.game.keys import Keyring, command_check, seal_of
from services.game.local import PLAYERS, START_US, LocalTable
from services.game.seal import open_commit
from services.game.state import Bury, Counter, Declaring, Mutiny, Pace, Scored, Seating, Tricks
from services.pb.log.v1.log_pb2 import Commit
from services.rules.autoplay import automatic_follow, automatic_lead
from services.rules.cards import contains
from services.rules.options import Declaring as Policy
from services.rules.presets import preset

MASTERS = {"k1": bytes(range(32))}


class Recorder(LocalTable):
    """One table that a test plays step by step; a refusal fails.

    Args:
        seed: of all randomness.
        rules: preset, and overrides in their JSON form.
        insecure: whether the table says that its randomness is foreseeable.
    """

    def __init__(self, seed="a match", rules="classic-2d", insecure=True, **overrides):
        super().__init__(SeededEntropy(seed), Keyring(MASTERS, "k1"))
        self.rules = preset(rules).with_overrides(overrides)
        self.table_id = TableId.new(START_US // 1000, SeededEntropy(seed).bytes(10))
        self.insecure = seed if insecure else ""

    @property
    def log(self):
        """The stored bytes of every commit."""
        return self.stored

    @property
    def head(self):
        return chain.commit_hash(self.log[-1])

    def found(self, seats=(), pace=None):
        """Founds the table, with these players seated."""
        plans = [commands.SeatPlan(player) for player in seats] + [commands.SeatPlan()] * (4 - len(seats))
        self.do(
            commands.OpenTable(
                self.table_id,
                PLAYERS[0],
                self.rules,
                seats=tuple(plans),
                pace=pace or Pace(draw_ms=10),
                insecure_entropy=self.insecure,
            )
        )

    def do(self, command):
        """Decides and records a command, a player's with an id and a check."""
        command_id = check = b""
        if isinstance(command, commands.PlayerCommand):
            command_id = CommandId(uuid.uuid5(uuid.NAMESPACE_OID, str(len(self.log))).bytes)
            body = repr(command).encode()
            check = command_check(self.keyring, self.keyring.current, self.table_id, body)
        commit = self.execute(command, command_id, check)
        assert isinstance(commit, Commit), (command, commit)
        self.now_us += 50_000

    def read(self, stored):
        """Folds a stored commit with the keys at hand."""
        commit = chain.decode(stored)
        self.state = evolve(
            self.state, open_commit(commit, current=seal_of(self.state), keyring=self.keyring)
        )

    def expire(self):
        """Waits until something is due, and lets the server do it."""
        self.now_us = max(self.now_us, waits.due_us(self.state))
        self.do(commands.Expire())

    def ready(self):
        """Everybody says so, with seeds of their own."""
        for seat, player in enumerate(PLAYERS):
            held = self.state.seats[seat]
            if isinstance(self.state.phase, Seating | Scored) and not held.escaped and not held.ready:
                self.do(commands.Ready(player, bytes([seat, len(self.log) % 256]) * seat))

    def deal(self, expiring=False):
        """Plays one deal from the cards' drawing to its score; expiring: the server plays every turn."""
        self.now_us = max(self.now_us, waits.all_drawn_us(self.state))
        if not expiring:
            self.declare()
        while isinstance(self.state.phase, Declaring | Mutiny | Bury | Counter | Tricks):
            if expiring:
                self.expire()
            else:
                self.turn()

    def declare(self):
        """The first seat that can declare shows one level card, with a joker where the rules ask for one."""
        backing = [(LITTLE_JOKER,), (BIG_JOKER,)] if self.rules.declaring is Policy.JOKER_BACKED else [()]
        for seat, player in enumerate(PLAYERS):
            for card, jokers in product(self.state.phase.hands[seat], backing):
                show = commands.Declare(player, bytes([card, *jokers]))
                facts = Facts(self.now_us, self.entropy, "")
                if not isinstance(decide(self.state, show, facts), Refusal):
                    self.do(show)
                    return

    def try_or_pass(self, command):
        """A command if it may be, else a pass."""
        facts = Facts(self.now_us, SeededEntropy("asking"), "")
        refused = isinstance(decide(self.state, command, facts), Refusal)
        self.do(commands.Pass(command.player_id) if refused else command)

    def turn(self):
        """Somebody whose turn it is does the plainest legal thing."""
        seat = waits.to_act(self.state, self.now_us)[0]
        player, phase, version = PLAYERS[seat], self.state.phase, self.state.version
        match phase:
            case Declaring():
                self.do(commands.Pass(player))
            case Mutiny():
                self.try_or_pass(commands.CallMutiny(player, version))
            case Counter():
                level, hand = phase.deal.level, phase.hands[seat]
                shown = [bytes([joker] * 2) for joker in (LITTLE_JOKER, BIG_JOKER)]
                shown += [bytes([13 * suit + level] * 2 + [BIG_JOKER - (suit + 1) % 2]) for suit in range(4)]
                held = [cards for cards in shown if contains(hand, cards)]
                self.try_or_pass(commands.TakeCounter(player, version, held[0] if held else b""))
            case Bury():
                self.do(commands.BuryCards(player, version, phase.hands[seat][: self.rules.kitty]))
            case Tricks():
                order = self.rules.engine().order(phase.deal.level, phase.settled.trump)
                hand = phase.hands[seat]
                if phase.trick:
                    cards = automatic_follow(order, order.lead(phase.trick[0]), hand)
                else:
                    cards = automatic_lead(order, hand)
                self.do(commands.Play(player, version, cards))


def rechained(log, change, version):
    """A forged log: one commit changed, and everything after it hashed anew, so that the chain holds.

    ``change`` gets all commits of the log from ``version`` on as a list and may do with it what it likes.
    """
    commits = [Commit.FromString(stored) for stored in log]
    tail = commits[version - 1 :]
    change(tail)
    forged = list(log[: version - 1])
    for at, commit in enumerate(tail, version):
        commit.version = at
        commit.prev_hash = chain.commit_hash(forged[-1]) if forged else b""
        forged.append(commit.SerializeToString(deterministic=True))
    return forged


def versions_of(log, kind):
    """The versions of the commits that hold an event of a kind."""
    commits = map(Commit.FromString, log)
    return [c.version for c in commits if any(event.WhichOneof("kind") == kind for event in c.events)]


def event_of(commit, kind):
    """The first event of a kind in a commit, as its own message."""
    return next(getattr(event, kind) for event in commit.events if event.WhichOneof("kind") == kind)


def short_match(seed="short", **overrides):
    """A match of two deals of three cards each, played by the players; the table is closed."""
    options = {"kitty": 42, "kitty_card": 3, "deals": 2, **overrides}
    match = Recorder(seed, "classic-1d", **options)
    match.found()
    for seat, player in enumerate(PLAYERS):
        match.do(commands.Sit(player, seat))
    for deal in range(2):
        match.ready()
        match.deal(expiring=deal == 1)
    match.expire()
    return match
