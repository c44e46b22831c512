"""Tables for tests of the game: rigged states, and commands asked of them one at a time."""

from dataclasses import replace

from services.game.commands import Expire, OpenTable, Ready, Refusal, SeatPlan
from services.game.decide import decide
from services.game.draw import cards_of_deal
from services.game.entropy import SeededEntropy
from services.game.evolve import evolve
from services.game.facts import Facts
from services.game.ids import TableId
from services.game.local import actor_of
from services.game.state import Bury, Counter, Mutiny, Pace, Settled, Tricks
from services.game.waits import due_us
from services.pb.log.v1.log_pb2 import Commit
from services.rules.cards import parse_cards, parse_level, parse_trump
from services.rules.joker_backed import standing_of
from services.rules.presets import preset
from support.cards import cards

NOW = 1_800_000_000_000_000
SECOND = 1_000_000
TABLE = TableId.new(NOW // 1000, bytes(10))
PLAYERS = ("ann", "bob", "cid", "dan")
PACE = Pace()
AT_ONCE = Pace(draw_ms=0)


class Scene:
    """A table, a clock, and what the last command came to."""

    def __init__(self, state=None, seed="scene", now_us=NOW):
        self.state = state
        self.entropy = SeededEntropy(seed)
        self.now_us = now_us
        self.events = ()

    @property
    def phase(self):
        return self.state.phase

    def facts(self):
        version = self.state.version + 1 if self.state else 1
        return Facts(self.now_us, self.entropy.for_commit(TABLE, version), "k1")

    def ask(self, command):
        return decide(self.state, command, self.facts())

    def do(self, command, command_id=b"", check=b""):
        """Decide and fold; a refusal fails. Answers the kinds of the events."""
        self.events = self.ask(command)
        assert not isinstance(self.events, Refusal), (command, self.events)
        commit = Commit(
            table_id=TABLE,
            version=self.state.version + 1 if self.state else 1,
            command_id=command_id,
            command_check=check,
            actor=actor_of(self.state, command),
            recorded_at_us=self.now_us,
            events=self.events,
        )
        self.state = evolve(self.state, commit)
        return [event.WhichOneof("kind") for event in self.events]

    def refuses(self, command):
        """The reason for which a command is refused; an accepted one fails."""
        answer = self.ask(command)
        assert isinstance(answer, Refusal), (command, answer)
        return answer.reason

    def expire(self):
        """Wait until something is due and let the server do it."""
        self.now_us = max(self.now_us, due_us(self.state))
        return self.do(Expire())

    def event(self, kind):
        """The last command's event of a kind."""
        return next(getattr(event, kind) for event in self.events if event.HasField(kind))

    def rig(self, **changes):
        """Replace fields of the phase."""
        phase = self.phase
        changed = phase._replace(**changes) if isinstance(phase, Tricks) else replace(phase, **changes)
        self.state = self.state._replace(phase=changed)

    def stand(self, phase):
        """Put the table where this phase has just begun; the scene itself."""
        self.state = self.state._replace(phase=phase, turn_version=self.state.version)
        return self


def founding(rules="classic-2d", pace=PACE, players=PLAYERS, stake=0, **overrides):
    """The command that founds a table with these players seated from seat 0 on."""
    plans = [SeatPlan(player) for player in players] + [SeatPlan()] * (4 - len(players))
    chosen = preset(rules).with_overrides(overrides)
    return OpenTable(TABLE, "ann", chosen, pace=pace, seats=tuple(plans), stake=stake)


def founded(rules="classic-2d", pace=PACE, players=PLAYERS, seed="scene", **overrides):
    """A table before its first deal."""
    scene = Scene(seed=seed)
    scene.do(founding(rules, pace, players, **overrides))
    return scene


def dealt(rules="classic-2d", pace=PACE, seed="scene", **overrides):
    """A table whose first deal has just started."""
    scene = founded(rules, pace, seed=seed, **overrides)
    for player in PLAYERS:
        scene.do(Ready(player))
    return scene


def dealt_where(wanted, rules="classic-2d", pace=PACE, first=True, **overrides):
    """A deal just started whose cards fulfil ``wanted(hands in the order drawn, kitty)``."""
    for number in range(2000):
        scene = dealt(rules, pace, seed=f"where {number}", **overrides)
        hands, kitty = drawn_cards(scene.state)
        if wanted(hands, kitty):
            return scene
    raise AssertionError("no such deal among 2000")


def drawn_cards(state):
    """The hands of the open deal in the order drawn, and its kitty."""
    deal, rules = state.phase.deal, state.rules
    return cards_of_deal(
        deal.seed.server_seed,
        deal.client_seeds,
        state.table_id,
        deal.number,
        rules.decks,
        deal.first_drawer,
        rules.hand_size,
    )


def in_tricks(*hands, trump="S", level="2", declarer=0, kitty="", rules="classic-2d", pace=PACE, **changes):
    """A table in mid-deal with these hands (texts), the declarer to lead."""
    overrides = {key: changes.pop(key) for key in list(changes) if key not in Tricks._fields}
    scene = dealt(rules, pace, **overrides)
    deal = replace(scene.phase.deal, level=parse_level(level), declarer=declarer)
    held = tuple(bytes(sorted(cards(hand))) for hand in hands)
    phase = Tricks(
        deal=deal,
        settled=Settled(parse_trump(trump, two_colour=scene.state.rules.two_colour), declarer),
        hands=held,
        left=len(held[0]),
        leader=declarer,
        trick=(),
        attackers_points=0,
        last_trick=(),
        last_leader=declarer,
        buried=bytes(sorted(cards(kitty))),
        buried_by=declarer,
        fines=0,
        failed_throws=(0, 0, 0, 0),
        throw_refused=False,
    )
    scene.state = scene.state._replace(phase=phase._replace(**changes), turn_version=scene.state.version)
    return scene


def in_bury(hand, kitty_size=8, trump="S", level="2", declarer=0, pace=PACE, rules="classic-2d", **overrides):
    """A table where the declarer, with this hand (text) and unknown others, has to bury."""
    scene = dealt(rules, pace, **overrides)
    held = [bytes(range(25))] * 4
    held[declarer] = bytes(sorted(cards(hand)))
    deal = replace(scene.phase.deal, level=parse_level(level))
    settled = Settled(parse_trump(trump), declarer)
    phase = Bury(deal, settled, tuple(held), held[declarer][:kitty_size], declarer)
    scene.state = scene.state._replace(phase=phase, turn_version=scene.state.version)
    return scene


def in_mutiny(
    *hands,
    kitty="C3 C4 C6 C7 C8 C9 CT CJ",
    declarer=0,
    trump="S",
    rules="tournament-2d",
    pace=PACE,
    **overrides,
):
    """A table where trump is settled and a redeal may be claimed with one of these hands (texts)."""
    scene = dealt(rules, pace, **overrides)
    deal = replace(scene.phase.deal, declarer=declarer)
    held = tuple(bytes(sorted(cards(hand))) for hand in hands)
    phase = Mutiny(deal, Settled(parse_trump(trump), declarer), held, cards(kitty), passes=0)
    return scene.stand(phase)


def in_counter(*hands, standing="", buried="C3 C4 C6 C7 C8 C9 CT CJ", declarer=0, trump="S", level="2"):
    """A table of tournament-2d where the declarer has buried; the standing declaration is "seat cards"."""
    scene = dealt("tournament-2d")
    deal = replace(scene.phase.deal, declarer=declarer, level=parse_level(level))
    seat, *shown = standing.split() or [""]
    declared = standing_of(int(seat), parse_cards(shown), locked=len(shown) > 2) if seat else None
    trump = declared.trump if declared else parse_trump(trump)
    held = tuple(bytes(sorted(cards(hand))) for hand in hands)
    phase = Counter(
        deal,
        Settled(trump, declarer, declared),
        held,
        bytes(sorted(cards(buried))),
        buried_by=declarer,
        to_act=(declarer + 1) % 4,
    )
    return scene.stand(phase)
