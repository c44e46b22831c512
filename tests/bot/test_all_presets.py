"""Every preset played to the end by bots, with everything watched that must hold in every match.

By default 20 whole matches a preset, begun near the ace so that they end soon by the rules' own match end.
Thousands of matches from the first level on take some minutes a preset:

    pytest -m slow tests/bot/test_all_presets.py
"""

from collections import Counter
from random import Random

import pytest
from support.engines import rules_of
from support.promises import cards_are_conserved, ends_by_its_rules, points_are_conserved
from support.record_corpus import Daring

from engine_ext.codes import Verdict
from services.bot.local import LocalBots
from services.game.commands import Expire, Play, Refusal
from services.game.decide import decide
from services.game.entropy import SeededEntropy
from services.game.facts import Facts
from services.game.local import open_local
from services.game.state import Over, Tricks
from services.pb.event.v1.event_pb2 import Difficulty
from services.rules.cards import counts_of
from services.rules.options import MatchEnd, Throws
from services.rules.presets import PRESET_NAMES, preset
from services.rules.reasons import Reason

EASY, NORMAL = Difficulty.DIFFICULTY_EASY, Difficulty.DIFFICULTY_NORMAL
TABLES = ((NORMAL,) * 4, (NORMAL, EASY, NORMAL, EASY), (EASY,) * 4)
MATCHES, MANY = 20, 150
"""Matches a preset, by default and in the long run."""
MOST_DEALS = 200
"""A match that has not ended by then never will."""
LOOKED_AT = 0.06
"""Share of turns at which plays are tried that the bot does not make."""
TRIED = 2
"""Plays of each kind that are tried at such a turn."""


class Witness:
    """Watches one match; its ``__call__`` is the policy of all four bots.

    Attributes:
        met: how often each kind of answer was given to plays that were tried.
    """

    def __init__(self, table, seed, met):
        self.table, self.met = table, met
        self._rng = Random(seed)
        self._policy = Daring(self._rng.choice((0, 0.2)))
        self._execute = table.execute
        table.execute = self.execute

    def execute(self, command, *rest):
        """Decide as the table does, and look at what came of it."""
        commits = self.table.commits
        answer = self._execute(command, *rest)
        if isinstance(answer, Refusal):
            assert not isinstance(command, Expire), f"stuck in {self.table.table.phase}"
            return answer
        kinds = {event.WhichOneof("kind") for event in answer.events}
        assert "turn_expired" not in kinds, "a bot always knows what to do"
        if kinds & {"deal_started", "trick_taken", "buried", "countered"}:
            cards_are_conserved(self.table.table, commits)
        if "deal_scored" in kinds:
            points_are_conserved(self.table.table, commits)
            ends_by_its_rules(self.table.table, commits)
        return answer

    def __call__(self, view, rules, memory, difficulty, drawn=None):
        state = self.table.table
        if isinstance(state.phase, Tricks) and self._rng.random() < LOOKED_AT:
            order = rules_of("twin", rules.preset).order(state.phase.deal.level, state.phase.settled.trump)
            if state.phase.trick:
                self._try_follows(state, order)
            else:
                self._try_leads(state, order)
        return self._policy(view, rules, memory, difficulty, drawn)

    def _answer(self, state, cards):
        """What the table would say, without doing it."""
        entropy = self.table.entropy.for_commit(state.table_id, state.version + 1)
        command = Play(state.seats[state.phase.to_move].player_id, state.version, cards)
        answer = decide(state, command, Facts(self.table.now_us, entropy, self.table.keyring.current))
        if isinstance(answer, Refusal):
            self.met[answer.reason] += 1
        else:
            self.met[answer[0].WhichOneof("kind")] += 1
        return answer

    def _try_follows(self, state, order):
        rng, phase = self._rng, state.phase
        hand = phase.hands[phase.to_move]
        core = state.rules.engine().order(phase.deal.level, phase.settled.trump).lead(phase.trick[0])
        twin = order.lead(phase.trick[0])
        listed = core.follows(counts_of(hand), 16).plays
        for cards in rng.sample(listed, min(TRIED, len(listed))):
            assert twin.check_cards(hand, cards) == Verdict.OK
            assert not isinstance(self._answer(state, cards), Refusal)
        suited = [card for card in hand if order.suit(card) == twin.suit]
        for pool in (hand, suited) * TRIED:
            if len(pool) >= twin.size:
                self._judge(state, twin, hand, bytes(rng.sample(list(pool), twin.size)))
        if len(hand) > twin.size:
            self._judge(state, twin, hand, bytes(rng.sample(list(hand), twin.size + 1)))
        strange = rng.choice([card for card in range(54) if card not in hand])
        self._judge(state, twin, hand, bytes([strange]) + bytes(rng.sample(list(hand), twin.size - 1)))

    def _judge(self, state, twin, hand, cards):
        """The table answers a follow as the second engine judges it, and names what is owed."""
        verdict = Verdict(twin.check_cards(hand, cards))
        answer = self._answer(state, cards)
        if verdict is Verdict.OK:
            assert not isinstance(answer, Refusal), answer
            return
        assert isinstance(answer, Refusal), (verdict, cards)
        assert answer.reason == Reason[verdict.name]
        if verdict in (Verdict.MUST_FOLLOW_SUIT, Verdict.MUST_FOLLOW_SHAPE):
            assert answer.detail["shapes"] == twin.owed(counts_of(hand))

    def _try_leads(self, state, order):
        rng, phase = self._rng, state.phase
        hand = phase.hands[phase.to_move]
        core = state.rules.engine().order(phase.deal.level, phase.settled.trump)
        listed = core.leads(counts_of(hand), 64).plays
        for cards in rng.sample(listed, min(TRIED, len(listed))):
            assert len(order.shape(cards)) == 1
            assert not isinstance(self._answer(state, cards), Refusal)
        suit = order.suit(rng.choice(hand))
        suited = [card for card in hand if order.suit(card) == suit]
        for pool in (hand, suited) * TRIED:
            self._judge_lead(state, order, bytes(rng.sample(list(pool), rng.randint(1, min(5, len(pool))))))
        assert self._answer(state, b"").reason is Reason.WRONG_COUNT

    def _judge_lead(self, state, order, cards):
        """The table answers a lead as the second engine judges it."""
        phase, answer = state.phase, self._answer(state, cards)
        if len({order.suit(card) for card in cards}) > 1:
            assert answer.reason is Reason.MIXED_SUITS
        elif len(order.shape(cards)) == 1:
            assert not isinstance(answer, Refusal), answer
        elif state.rules.throws is Throws.NONE or phase.throw_refused:
            assert answer.reason is Reason.THROW_NOT_ALLOWED
        else:
            others = [phase.hands[(phase.to_move + step) % 4] for step in (1, 2, 3)]
            throw = order.throw(bytes(sorted(cards)), others)
            if throw.verdict != Verdict.OK:
                assert answer[0].HasField("throw_refused")
            else:
                assert bytes(card - 1 for card in answer[0].cards_played.cards) == throw.played
                assert bool(answer[0].cards_played.attempted) == (throw.played != bytes(sorted(cards)))


def play(rules, seed, difficulties, met):
    """One whole match under a witness."""
    table = open_local(rules, SeededEntropy(seed))
    LocalBots(table, difficulties, Witness(table, seed, met)).play(MOST_DEALS)
    assert isinstance(table.table.phase, Over), f"no end after {MOST_DEALS} deals"
    return table


def play_many(rules, seed, matches):
    """Many matches, of strong and weak bots, and what the witness met in them.

    Args:
        rules: of a match by its number.
        seed: of all.
        matches: how many.
    """
    met = Counter()
    for number in range(matches):
        play(rules(number), f"{seed} {number}", TABLES[number % len(TABLES)], met)
    assert met["cards_played"] > matches
    assert met.keys() >= {
        *(Reason.MUST_FOLLOW_SUIT, Reason.WRONG_COUNT, Reason.NOT_IN_HAND, Reason.MIXED_SUITS),
        *((Reason.MUST_FOLLOW_SHAPE,) if rules(0).decks > 1 else ()),
    }


def near_the_end(rules, number):
    """The same rules, begun where the match ends soon by its own end."""
    match rules.match_end:
        case MatchEnd.LOOP:
            return rules.with_overrides({"deals": 2})
        case MatchEnd.REACH_ACE:
            return rules.with_overrides({"start_level": "K"})
        case MatchEnd.PASS_ACE:
            return rules.with_overrides({"start_level": "A" if number % 10 else "K"})


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_whole_matches_keep_all_promises(name):
    play_many(lambda number: near_the_end(preset(name), number), f"whole {name}", MATCHES)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", PRESET_NAMES)
def test_many_matches_from_the_first_level_on(name):
    play_many(lambda _: preset(name), f"many {name}", MANY)
