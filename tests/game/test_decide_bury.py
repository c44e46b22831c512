"""Burying."""

from support.cards import cards
from support.scene import in_bury

from services.game.commands import BuryCards, Refusal
from services.game.state import Tricks
from services.game.waits import deadline_us
from services.rules.reasons import Reason

HAND = "S2 S3 S4 S5 S6 S7 S8 S9 H3 H4 H5 H6 H7 H8 H9 HT HJ HQ HK HA C3 C4 C5 C6 C7 D3 D4 D5 D6 D7 D8 LJ BJ"


def test_the_declarer_buries_and_leads():
    scene = in_bury(HAND, declarer=2)
    chosen = cards("HK HT H5 D5 C5 S5 BJ S2")
    assert scene.do(BuryCards("cid", scene.state.version, chosen)) == ["buried"]
    phase = scene.phase
    assert isinstance(phase, Tricks)
    assert (phase.buried, phase.buried_by, phase.leader, phase.left) == (bytes(sorted(chosen)), 2, 2, 25)
    assert len(phase.hands[2]) == 25
    assert scene.state.turn_version == scene.state.version


def test_what_cannot_be_buried():
    scene = in_bury(HAND)
    version = scene.state.version
    short = scene.ask(BuryCards("ann", version, cards("S2 S3")))
    assert (short.reason, short.detail) == (Reason.BURY_WRONG_COUNT, {"count": 8})
    alien = scene.ask(BuryCards("ann", version, cards("S2 S3 S4 S5 S6 S7 S8 CA")))
    assert (alien.reason, alien.detail) == (Reason.NOT_IN_HAND, {"card": "CA"})
    twice = scene.ask(BuryCards("ann", version, cards("S2 S2 S4 S5 S6 S7 S8 S9")))
    assert (twice.reason, twice.detail) == (Reason.NOT_IN_HAND, {"card": "S2"})


def test_a_limit_of_points():
    scene = in_bury(HAND, bury_points_max=10)
    chosen = BuryCards("ann", scene.state.version, cards("HK H5 S3 S4 S6 S7 S8 S9"))
    answer = scene.ask(chosen)
    assert isinstance(answer, Refusal)
    assert (answer.reason, answer.detail) == (Reason.BURY_TOO_MANY_POINTS, {"count": 10})


def test_only_the_declarer_buries_and_only_on_this_turn():
    scene = in_bury(HAND)
    eight = cards("S2 S3 S4 S6 S7 S8 S9 H3")
    version = scene.state.version
    assert scene.refuses(BuryCards("bob", version, eight)) is Reason.NOT_YOUR_TURN
    assert scene.refuses(BuryCards("ann", version - 1, eight)) is Reason.STALE_VERSION
    assert scene.refuses(BuryCards("ann", version + 1, eight)) is Reason.STALE_VERSION
    assert scene.refuses(BuryCards("eve", version, eight)) is Reason.NOT_SEATED
    scene.do(BuryCards("ann", version, eight))
    assert scene.refuses(BuryCards("ann", version + 1, eight)) is Reason.WRONG_PHASE


def test_when_the_time_is_up_the_server_buries_the_cheapest_cards():
    scene = in_bury(HAND)
    assert deadline_us(scene.state) == scene.state.waiting_since_us + 60_000_000
    assert scene.expire() == ["turn_expired", "buried"]
    assert scene.phase.buried == bytes(sorted(cards("C3 C4 C6 C7 D3 D4 D6 D7")))
    assert scene.state.seats[0].missed == 1
