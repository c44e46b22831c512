"""Whole random matches, from all seats, legal and illegal: what must hold at every table and every step."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.promises import cards_are_conserved, ends_by_its_rules, points_are_conserved
from support.scene import drawn_cards

from engine_ext.codes import CARDS, NO_TRUMP
from services.game import chain, commands
from services.game.commands import Refusal
from services.game.decide import decide
from services.game.entropy import SeededEntropy
from services.game.evolve import evolve, fold
from services.game.facts import Facts
from services.game.keys import Keyring, seal_of
from services.game.local import PLAYERS, open_local
from services.game.recent import REUSED, repeat_of
from services.game.seal import open_commit
from services.game.snapshot import pack, unpack
from services.game.state import (
    SEATS,
    Bury,
    Closed,
    Dealt,
    Declaring,
    Mutiny,
    Over,
    Pace,
    Scored,
    Seating,
    Tricks,
)
from services.game.state import (
    Counter as CounterPhase,
)
from services.game.views import SPECTATOR, hand_size, updates, view
from services.game.waits import all_drawn_us, asked, deadline_us, drawn, due_us, to_act
from services.pb.card.v1.card_pb2 import Card
from services.rules.cards import CARD_POINTS, counts_of, rank_of
from services.rules.options import Declaring as Policy
from services.rules.presets import PRESET_NAMES, preset

UNSOURCED = {"kitty": 36, "redeal_no_points": True, "redeal_few_trumps": 4, "bury_points_max": 100}
UNSOURCED |= {"throw_blockers": "shown", "throw_fine_points": 10, "must_defend": ["2", "5", "K"]}
UNSOURCED |= {"level_gap": True}
MATCHES = {
    **{name: (name, {}, 2) for name in PRESET_NAMES},
    # Short hands hold few points, so mutinies abound, and counters follow a quick deal.
    "tournament-2d in short": ("tournament-2d", {"kitty": 60}, 4),
    "classic-2d with mutinies": ("classic-2d", {"kitty": 68, "mutiny": True}, 2),
    "classic-4d with mutinies": ("classic-4d", {"mutiny": True}, 1),
    "classic-2d with what no source names": ("classic-2d", UNSOURCED, 3),
}
"""(preset, overrides, how many matches) by what they are called."""
AUDIENCES = (*range(SEATS), SPECTATOR)


class Match:
    """A table, a random number generator that plays it, and everything that has become public in the deal."""

    def __init__(self, preset_rules, seed):
        self.random = random.Random(seed)
        pace = Pace(draw_ms=self.random.choice((0, 100)), declare_ms=self.random.choice((0, 3000)))
        self.table = open_local(preset_rules, SeededEntropy(f"match {seed}"), pace)
        self.public = set()
        self.last_kitty = set()
        self.secrets = []
        self.declarer = None
        self.settled = None
        self.told = drawn(self.state, self.table.now_us)

    @property
    def state(self):
        return self.table.table

    # -- what is tried

    def step(self):
        """One random thing happens: somebody commands, or time passes."""
        self.table.now_us += self.random.choice((0, 0, 1000, 40_000, 500_000))
        command = self.some_command()
        if command is None:
            due = due_us(self.state)
            if due is not None:
                self.table.now_us = max(self.table.now_us, due)
            command = commands.Expire()
        self.try_(command)

    def try_(self, command):
        before, stored = self.state, len(self.table.stored)
        told = drawn(before, before.recorded_at_us)
        self.decides_alike(before, command)
        command_id = self.random.randbytes(16)
        answer = self.table.execute(command, command_id, command_id[:8])
        if isinstance(answer, Refusal):
            assert self.state is before
            assert len(self.table.stored) == stored
            assert set(answer.detail) <= {"card", "count", "shapes", "owed", "field", "detail"}
            return
        self.remembers(command, command_id)
        self.becomes_public(answer)
        self.cards_are_conserved()
        self.somebody_can_go_on()
        for audience in self.random.sample(AUDIENCES, 2):
            self.leaks_nothing(before, answer, told, audience)

    def some_command(self):
        roll = self.random.random()
        state = self.state
        seats = to_act(state, self.table.now_us)
        if roll < 0.08:
            return self.odd_command(state, self.random.randrange(SEATS))
        if not seats or (roll < 0.11 and deadline_us(state) is not None):
            return None
        return self.fitting_command(state, self.random.choice(seats))

    def fitting_command(self, state, seat):
        player, phase, choose = PLAYERS[seat], state.phase, self.random.choice
        if isinstance(phase, Seating | Scored):
            return commands.Ready(player, self.random.randbytes(choose((0, 7, 32))))
        if isinstance(phase, Declaring):
            held = drawn_cards(state).hands[seat][: drawn(state, self.table.now_us)]
            if state.rules.declaring is Policy.JOKER_BACKED:
                cards = self.backed(state, held)
                return commands.Declare(player, cards) if cards else commands.Pass(player)
            shows = [card for card in held if (card < 52 and rank_of(card) == phase.deal.level) or card >= 52]
            if shows and self.random.random() < 0.5:
                card = choose(shows)
                return commands.Declare(player, bytes([card]) * self.random.randint(1, held.count(card)))
            return commands.Pass(player)
        hand = phase.hands[seat]
        if isinstance(phase, Mutiny):
            return choose((commands.CallMutiny(player, state.version), commands.Pass(player)))
        if isinstance(phase, CounterPhase):
            cards = self.backed(state, hand)
            return commands.TakeCounter(player, state.version, cards) if cards else commands.Pass(player)
        if isinstance(phase, Bury):
            return commands.BuryCards(
                player, state.version, bytes(self.random.sample(hand, state.rules.kitty))
            )
        return commands.Play(player, state.version, self.some_play(state, hand))

    def backed(self, state, held):
        """Most often a showing backed by jokers, strong enough or not; None for none."""
        level = [card for card in held if card < 52 and rank_of(card) == state.phase.deal.level]
        found = [bytes([joker] * 2) for joker in (52, 53) if held.count(joker) == 2]
        for card in level:
            joker = 52 + (card // 13 in (1, 3))
            if joker in held:
                found.append(bytes([card] * self.random.randint(1, held.count(card)) + [joker]))
        return self.random.choice(found) if found and self.random.random() < 0.7 else None

    def some_play(self, state, hand):
        phase = state.phase
        order = state.rules.engine().order(phase.deal.level, phase.settled.trump)
        if phase.trick:
            lead = order.lead(phase.trick[0])
            suited = [card for card in hand if order.suit(card) == lead.suit]
            if self.random.random() < 0.15:
                pool = suited if len(suited) >= lead.size else hand
                return bytes(self.random.sample(pool, lead.size))
            return self.random.choice(lead.follows(counts_of(hand), 12).plays)
        if self.random.random() < 0.3:
            suit = self.random.choice(sorted({order.suit(card) for card in hand}))
            suited = [card for card in hand if order.suit(card) == suit]
            return bytes(self.random.sample(suited, self.random.randint(1, min(5, len(suited)))))
        return self.random.choice(order.leads(counts_of(hand), 24).plays)

    def odd_command(self, state, seat):
        """Mostly wrong: by the wrong seat, at the wrong time, with the wrong cards."""
        player, rnd = self.random.choice((*PLAYERS, "stranger")), self.random
        some = bytes(rnd.randrange(CARDS) for _ in range(rnd.randrange(9)))
        version = rnd.choice((0, state.version, state.version + 1, state.turn_version))
        odd = [
            commands.Ready(player),
            commands.Declare(player, some),
            commands.Pass(player),
            commands.BuryCards(player, version, some),
            commands.Play(player, version, some),
            commands.SetAutoPlay(player, rnd.random() < 0.5),
            commands.Sit(player, seat),
            commands.CallMutiny(player, version),
            commands.TakeCounter(player, version, some),
            commands.GiveTime(),
            commands.VoidDeal(),
            commands.Close(rnd.randrange(6)),
        ]
        if rnd.random() < 0.02:
            odd = [commands.Leave(player)]
        return rnd.choice(odd)

    # -- what must hold

    def decides_alike(self, state, command):
        """Two replicas decide the same, from the state and from its snapshot."""
        version = state.version + 1
        answers = [
            decide(
                replica,
                command,
                Facts(self.table.now_us, self.table.entropy.for_commit(state.table_id, version), "k"),
            )
            for replica in (state, unpack(pack(state)))
        ]
        assert answers[0] == answers[1]

    def remembers(self, command, command_id):
        player = getattr(command, "player_id", None)
        if player is not None:
            found = repeat_of(self.state, player, command_id, command_id[:8])
            assert found == self.state.version
            assert repeat_of(self.state, player, command_id, b"other   ") is REUSED

    def becomes_public(self, commit):
        for event in commit.events:
            kind = event.WhichOneof("kind")
            payload = getattr(event, kind)
            if kind == "deal_started":
                self.public = set()
                self.secrets = [payload_seed(self.state)]
            if kind == "cards_played":
                self.public |= {*payload.cards, *payload.attempted}
                told = bool(payload.attempted) and self.state.rules.throw_blockers == "shown"
                assert bool(payload.blocked_by) == told
                assert payload.seat not in payload.blocked_by
            if kind == "throw_refused":
                self.public |= {*payload.cards}
            if kind == "declared" and not self.state.rules.sealed:
                self.public |= {*payload.cards}
            if kind == "countered":
                self.public |= {*payload.cards}
                assert payload.seat == self.state.phase.seat
                assert self.state.phase.settled.declarer == self.declarer
            if kind == "mutiny_called":
                self.may_be_claimed(payload)
                assert payload.declarer == self.state.match.declarer == self.declarer
                assert payload.deal + 1 == self.state.next_seed.deal
                self.public |= {*payload.cards}
                self.secrets = []
            if kind == "declaring_closed":
                self.declarer = payload.declarer
                self.settled = (self.state.phase.deal.level, self.state.phase.settled.trump)
                self.public |= {card for shown in payload.opened for card in shown.cards}
                self.public |= {payload.turned_card} - {0}
            if kind == "deal_scored":
                self.last_kitty = {*payload.kitty}
                points_are_conserved(self.state, self.table.commits)
                ends_by_its_rules(self.state, self.table.commits)
                self.secrets = []
            if kind in ("deal_voided", "table_closed"):
                self.secrets = []

    def may_be_claimed(self, called):
        """A redeal is claimed with a hand, and by a seat, that the rules name."""
        rules, (level, trump) = self.state.rules, self.settled
        cards = [card - 1 for card in called.cards]
        points = sum(CARD_POINTS[card] for card in cards)
        trumps = sum(card >= 52 or rank_of(card) == level or card // 13 == trump for card in cards)
        few = trump != NO_TRUMP and trumps < rules.redeal_few_trumps
        attacks = (called.seat - called.declarer) % 2
        assert (rules.mutiny and attacks and points < 15) or (rules.redeal_no_points and not points) or few

    def cards_are_conserved(self):
        """All cards of the decks are where they belong, in hands of the right size."""
        state, phase = self.state, self.state.phase
        cards_are_conserved(state, self.table.commits)
        if isinstance(phase, Dealt) and not isinstance(phase, Declaring):
            for seat in range(SEATS):
                assert hand_size(state, seat, self.table.now_us) == len(phase.hands[seat])

    def somebody_can_go_on(self):
        state = self.state
        if not isinstance(state.phase, Closed):
            assert due_us(state) is not None
        if isinstance(state.phase, Declaring) and not asked(state, state.phase):
            assert due_us(state) == all_drawn_us(state)
        elif isinstance(state.phase, Dealt | Scored):
            assert to_act(state, due_us(state)) or any(held.escaped for held in state.seats)

    def leaks_nothing(self, before, commit, told, audience):
        after = self.state
        steps = list(updates(before, commit, after, audience, told))
        assert [step.version for step in steps] == [before.version] * (len(steps) - 1) + [after.version]
        assert [step.drawn for step in steps[:-1]] == list(
            range(told + 1, drawn(before, commit.recorded_at_us) + 1)
        )
        looks = [view(after, audience, commit.recorded_at_us)]
        known = self.known_to(audience, after, commit.recorded_at_us)
        if isinstance(before.phase, Dealt):
            looks.append(view(before, audience, commit.recorded_at_us))
            known |= self.known_to(audience, before, commit.recorded_at_us)
        for message in (*steps, *looks):
            assert cards_in(message) <= known
            raw = message.SerializeToString()
            assert not any(secret in raw for secret in self.secrets)
            assert b"sealed" not in str(message).encode()

    def known_to(self, audience, state, now_us):
        known, phase = set(self.public), state.phase
        if not isinstance(phase, Dealt):
            return known | self.last_kitty
        if audience == SPECTATOR:
            return known
        if isinstance(phase, Declaring):
            known |= {card + 1 for card in drawn_cards(state).hands[audience][: drawn(state, now_us)]}
            known |= {
                card + 1 for seat, shown in phase.declarations.shown if seat == audience for card in shown
            }
            return known
        known |= {card + 1 for card in phase.hands[audience]}
        if isinstance(phase, Tricks | CounterPhase) and phase.buried_by == audience:
            known |= {card + 1 for card in phase.buried}
        return known


def payload_seed(state):
    return state.phase.deal.seed.server_seed if isinstance(state.phase, Dealt) else b"\0" * 99


def cards_in(message):
    """Every card that a message names anywhere, as wire numbers."""
    found = set()
    for field, value in message.ListFields():
        many = value if field.is_repeated else [value]
        if field.enum_type is not None and field.enum_type is Card.DESCRIPTOR:
            found |= {*many}
        elif field.message_type is not None:
            for member in many:
                found |= cards_in(member)
    return found


def opened(table, keyring):
    """The stored commits, opened with a keyring while they are folded."""
    state = None
    for stored in table.stored:
        commit = open_commit(chain.decode(stored), current=seal_of(state), keyring=keyring)
        state = evolve(state, commit)
        yield state, commit


def check_folds(table):
    """The state is the fold of what is stored, snapshots or not; without keys the public part is the same."""
    states, commits = zip(*opened(table, table.keyring), strict=True)
    assert states[-1] == table.table
    assert fold(table.commits) == table.table
    middle = len(states) // 2
    assert fold(commits[middle + 1 :], unpack(pack(states[middle]))) == table.table
    for state, blind in zip(states, (state for state, _ in opened(table, Keyring())), strict=True):
        now_us = state.recorded_at_us
        assert view(blind, SPECTATOR, now_us) == view(state, SPECTATOR, now_us)


@pytest.mark.parametrize("name", MATCHES)
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_a_random_match_keeps_all_promises(name, seed):
    rules, overrides, deals = MATCHES[name]
    match = Match(preset(rules).with_overrides({"deals": deals, **overrides}), seed)
    for _ in range(3000):
        if isinstance(match.state.phase, Over | Closed):
            break
        match.step()
    assert isinstance(match.state.phase, Over | Closed), match.state.phase
    check_folds(match.table)
