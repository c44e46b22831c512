"""Clients that repeat, reorder, forge and stray: the same answer or a reason, and nothing else happens."""

import asyncio
import random
import time
import uuid

import grpc
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.calls import Refused
from support.house import running_house
from support.seats import advance, founding, seated

from services.pb.event.v1.event_pb2 import RuleOption, Seat, Spectators
from services.pb.log.v1.log_pb2 import Commit
from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1.view_pb2 import PHASE_TRICKS
from services.rules.reasons import Reason, message
from services.shell.tokens import sign

CODE = grpc.StatusCode
NAMES = ("north", "east", "south", "west")


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with running_house(tmp_path_factory.mktemp("hostile"), replicas=2) as house:
        yield house


class Scene:
    """A table in its tricks, and who is to move."""

    def __init__(self, players, view):
        self.players = players
        self.view = view
        self.table_id = view.table_id
        self.mover = players[view.to_act[0]]
        self.other = players[(view.to_act[0] + 1) % 4]

    def play(self, cards, *, version=None, command_id=None):
        context = pb.CommandContext(
            table_id=self.table_id,
            command_id=command_id or str(uuid.uuid4()),
            version=self.view.version if version is None else version,
        )
        return pb.PlayRequest(context=context, cards=cards)

    async def plays(self, calls):
        request = pb.LegalPlaysRequest(table_id=self.table_id)
        listed = await calls.ask("LegalPlays", request, self.mover.player)
        return [list(play.cards) for play in listed.plays]


@pytest.fixture
async def scene(house, calls):
    founded = await calls.settle("CreateTable", founding(spectators=Spectators.SPECTATORS_OFF), NAMES[0])
    players = seated(calls, founded.table_id, NAMES, random.Random(6))
    return Scene(players, await advance(players, PHASE_TRICKS))


async def commits(house, table_id):
    return [Commit.FromString(raw) for raw in (await house.stored([table_id]))[table_id]]


async def refusal(calls, name, request, player, **options):
    with pytest.raises(Refused) as caught:
        await calls.call(name, request, player, **options)
    return caught.value


# --------------------------------------------------------------------------------------------- repeated, late


async def test_a_repeated_command_gets_its_first_answer(house, calls, scene):
    cards = (await scene.plays(calls))[0]
    request = scene.play(cards)
    first = (await calls.call("Play", request, scene.mover.player, 0)).receipt
    assert not first.repeated
    for replica in (0, 1, 0):
        again = (await calls.call("Play", request, scene.mover.player, replica)).receipt
        assert again.repeated
        assert again.version == first.version
    assert len(await commits(house, scene.table_id)) == first.version


async def test_a_command_sent_to_both_replicas_at_once_counts_once(house, calls, scene):
    request = scene.play((await scene.plays(calls))[0])
    answers = await asyncio.gather(
        *(calls.call("Play", request, scene.mover.player, replica) for replica in (0, 1, 0, 1))
    )
    assert {answer.receipt.version for answer in answers} == {scene.view.version + 1}
    assert sum(not answer.receipt.repeated for answer in answers) == 1
    assert len(await commits(house, scene.table_id)) == scene.view.version + 1


async def test_an_id_is_for_one_command(house, calls, scene):
    first, second = (await scene.plays(calls))[:2]
    request = scene.play(first)
    receipt = (await calls.call("Play", request, scene.mover.player)).receipt
    for other in (
        scene.play(second, command_id=request.context.command_id),
        scene.play(first, command_id=request.context.command_id, version=receipt.version),
    ):
        refused = await refusal(calls, "Play", other, scene.mover.player, replica=1)
        assert (refused.code, refused.reason) == (CODE.ALREADY_EXISTS, "COMMAND_ID_REUSED")
    leave = pb.LeaveRequest(context=request.context)
    refused = await refusal(calls, "Leave", leave, scene.mover.player)
    assert refused.reason == "COMMAND_ID_REUSED"
    # The same id is another player's own to use.
    theirs = scene.play(second, command_id=request.context.command_id, version=receipt.version)
    refused = await refusal(calls, "Play", theirs, scene.other.player)
    assert refused.reason == "NOT_IN_HAND"
    assert len(await commits(house, scene.table_id)) == receipt.version


async def test_a_late_command_lands_in_no_later_turn(house, calls, scene):
    late = scene.play((await scene.plays(calls))[1])
    version = scene.view.version
    for _ in range(4):
        view = await scene.mover.view(version)
        mover = scene.players[view.to_act[0]]
        version = await mover.move(await mover.view(view.version))
    refused = await refusal(calls, "Play", late, scene.mover.player, replica=1)
    assert (refused.code, refused.reason) == (CODE.ABORTED, "STALE_VERSION")
    for ahead in (version + 1, 2**63):
        early = scene.play(late.cards, version=ahead)
        began = time.monotonic()
        assert (await refusal(calls, "Play", early, scene.mover.player)).reason == "STALE_VERSION"
        assert time.monotonic() - began < 3, "a version that never was is not waited for"
    assert len(await commits(house, scene.table_id)) == version


@pytest.mark.parametrize("rounds", [12])
async def test_of_two_racing_commands_one_wins(house, calls, scene, rounds):
    """The same turn is played by two devices at two replicas: one card lies, the other device is told so."""
    version, lost = scene.view.version, []
    for _ in range(rounds):
        view = await scene.mover.view(version)
        if view.phase != PHASE_TRICKS:
            break
        mover = scene.players[view.to_act[0]]
        listed = await calls.ask("LegalPlays", pb.LegalPlaysRequest(table_id=scene.table_id), mover.player)
        requests = [
            pb.PlayRequest(context=mover.context(view), cards=listed.plays[at % len(listed.plays)].cards)
            for at in range(2)
        ]
        answers = await asyncio.gather(
            *(calls.call("Play", requests[at], mover.player, at) for at in range(2)), return_exceptions=True
        )
        won = [answer for answer in answers if not isinstance(answer, Exception)]
        assert len(won) == 1
        version = won[0].receipt.version
        assert version == view.version + 1
        (loser,) = (answer for answer in answers if isinstance(answer, Exception))
        assert isinstance(loser, Refused)
        lost.append(loser.reason)
        log = await commits(house, scene.table_id)
        assert len(log) == version
        assert log[-1].command_id == uuid.UUID(requests[answers.index(won[0])].context.command_id).bytes
    assert set(lost) <= {"STALE_VERSION"}, "the loser is answered by the state that it lost to"
    assert len(lost) > 4


async def test_commands_that_do_not_exclude_each_other_all_count(house, calls):
    """Four players say ready at once at two replicas: four commits, one deal."""
    founded = await calls.settle("CreateTable", founding(), NAMES[0])
    answers = await asyncio.gather(
        *(
            calls.settle(
                "Ready",
                pb.ReadyRequest(context=pb.CommandContext(table_id=founded.table_id)),
                name,
                seat % 2,
            )
            for seat, name in enumerate(NAMES)
        )
    )
    assert sorted(receipt.version for receipt in answers) == [2, 3, 4, 5]
    log = await commits(house, founded.table_id)
    kinds = [event.WhichOneof("kind") for commit in log for event in commit.events]
    assert kinds == ["table_opened"] + ["seat_ready"] * 4 + ["deal_started"]


# ------------------------------------------------------------------------------------------- forged, strayed


def forged(house):
    """Tokens that prove nothing, each for another reason."""
    stranger = Ed25519PrivateKey.generate()
    own = house.keys["local"]
    claims = {"iss": "local", "sub": "north", "scope": "table", "exp": int(time.time()) + 600, "jti": "1"}
    good = house.sign("north")
    head, body, signature = good.split(".")
    flipped = ("A" if signature[0] != "A" else "B") + signature[1:]
    return {
        "another key": sign(stranger, "local", "north"),
        "an unknown issuer": sign(own, "elsewhere", "north"),
        "the bots' issuer for a person": sign(house.keys["bots"], "bots", "north"),
        "the players' issuer for a bot": sign(own, "local", "bot:north"),
        "the bots' name, the players' key": sign(own, "bots", "bot:north"),
        "expired": house.sign("north", lifetime_s=-1),
        "another scope": house.sign("north", scope="lobby"),
        "a signature changed": f"{head}.{body}.{flipped}",
        "no signature": f"{head}.{body}.",
        "none as its algorithm": jwt.encode(claims, None, algorithm="none"),
        "the public key as a secret": jwt.encode(claims, "x" * 32, algorithm="HS256"),
        "no expiry": jwt.encode({k: v for k, v in claims.items() if k != "exp"}, own, algorithm="EdDSA"),
        "a fraction of a second": jwt.encode({**claims, "exp": claims["exp"] + 0.5}, own, algorithm="EdDSA"),
        "nothing": "",
        "garbage": "a.b.c",
        "too long": "x" * 4000,
    }


async def test_forged_tokens_prove_nothing(house, calls, scene):
    request = scene.play((await scene.plays(calls))[0])
    for what, token in forged(house).items():
        metadata = (("authorization", f"Bearer {token}"),)
        refused = await refusal(calls, "Play", request, "north", metadata=metadata)
        assert (refused.code, refused.reason) == (CODE.UNAUTHENTICATED, "UNAUTHENTICATED"), what
        if token:
            assert token not in str(refused), what
    for metadata in ((), (("authorization", house.token("north")),), (("authorization", "Basic bm9ydGg6"),)):
        refused = await refusal(calls, "Play", request, "north", metadata=metadata)
        assert refused.reason == "UNAUTHENTICATED"
    assert len(await commits(house, scene.table_id)) == scene.view.version


async def test_nobody_plays_anothers_seat(house, calls, scene):
    """Whatever a player says, it is said for the seat that its token's player has."""
    request = scene.play((await scene.plays(calls))[0])
    refused = await refusal(calls, "Play", request, scene.other.player)
    assert (refused.code, refused.reason) == (CODE.FAILED_PRECONDITION, "NOT_YOUR_TURN")
    for name, stray in (
        ("Play", request),
        ("Leave", pb.LeaveRequest(context=request.context)),
        ("SetAutoPlay", pb.SetAutoPlayRequest(context=request.context, on=True)),
        ("LegalPlays", pb.LegalPlaysRequest(table_id=scene.table_id)),
    ):
        refused = await refusal(calls, name, stray, "stranger")
        assert (refused.code, refused.reason) == (CODE.PERMISSION_DENIED, "NOT_SEATED"), name
    refused = await refusal(calls, "GetView", pb.GetViewRequest(table_id=scene.table_id), "stranger")
    assert (refused.code, refused.reason) == (CODE.PERMISSION_DENIED, "NOT_YOURS")
    listed = await calls.call("LegalPlays", pb.LegalPlaysRequest(table_id=scene.table_id), scene.other.player)
    assert not listed.plays
    sit = pb.SitRequest(context=request.context, seat=0)
    assert (await refusal(calls, "Sit", sit, "stranger")).code == CODE.FAILED_PRECONDITION
    assert len(await commits(house, scene.table_id)) == scene.view.version


# -------------------------------------------------------------------------------------------------- malformed


def malformed(scene):
    """Requests that are none: (method, request, reason)."""
    good = scene.play([1])
    context = good.context

    def of(**changes):
        changed = pb.CommandContext()
        changed.CopyFrom(context)
        for name, value in changes.items():
            setattr(changed, name, value)
        return pb.PlayRequest(context=changed, cards=[1])

    bad_founding = founding()
    bad_founding.seats[0].seat = 9
    bot_named = founding()
    bot_named.seats[0].player_id = "bot:x"
    strange = founding()
    strange.seats[0].CopyFrom(Seat(seat=0, difficulty=99))
    looking = founding()
    looking.spectators = 42
    hurried = founding()
    hurried.pace.turn_ms = 1
    twice = founding(seats=("north", "north", "", ""))
    return [
        ("Play", of(table_id="*"), "BAD_ID"),
        ("Play", of(table_id="tbl_*"), "BAD_ID"),
        ("Play", of(table_id=scene.table_id + ".m"), "BAD_ID"),
        ("Play", of(table_id=scene.table_id.upper()), "BAD_ID"),
        ("Play", of(table_id="tbl_" + "ü" * 26), "BAD_ID"),
        ("Play", of(table_id=""), "BAD_ID"),
        ("Play", of(command_id="1"), "BAD_ID"),
        ("Play", of(command_id="x" * 30_000), "BAD_ID"),
        ("Play", of(table_id=scene.table_id[:-4] + "0000"), "UNKNOWN_TABLE"),
        ("Play", scene.play([0]), "BAD_INPUT"),
        ("Play", scene.play([200]), "BAD_INPUT"),
        ("Play", scene.play([-1]), "BAD_INPUT"),
        ("Play", scene.play([1] * 65), "TOO_LARGE"),
        ("Play", b"\xff\xff\xff garbage", "BAD_INPUT"),
        ("Ready", pb.ReadyRequest(context=context, client_seed=bytes(33)), "BAD_INPUT"),
        ("Sit", pb.SitRequest(context=context, seat=4), "BAD_INPUT"),
        ("LegalPlays", pb.LegalPlaysRequest(table_id=scene.table_id, cap=257), "BAD_INPUT"),
        ("GetView", pb.GetViewRequest(table_id=scene.table_id, min_version=2**60), "BAD_INPUT"),
        ("GetRules", pb.GetRulesRequest(preset="no-such"), "UNKNOWN_PRESET"),
        ("CreateTable", founding("no-such"), "UNKNOWN_PRESET"),
        ("CreateTable", founding(no_option="1"), "UNKNOWN_OPTION"),
        ("CreateTable", founding(decks='"two"'), "BAD_OPTION"),
        ("CreateTable", founding(decks="[" * 5000), "BAD_OPTION"),
        ("CreateTable", founding(decks="NaN"), "BAD_OPTION"),
        ("CreateTable", bad_founding, "BAD_INPUT"),
        ("CreateTable", bot_named, "BAD_INPUT"),
        ("CreateTable", strange, "BAD_INPUT"),
        ("CreateTable", looking, "BAD_INPUT"),
        ("CreateTable", hurried, "BAD_INPUT"),
        ("CreateTable", twice, "BAD_INPUT"),
    ]


async def test_malformed_requests_are_refused_with_a_reason(house, calls, scene):
    codes = {"UNKNOWN_TABLE": CODE.NOT_FOUND}
    for name, request, reason in malformed(scene):
        if name == "CreateTable":
            await asyncio.sleep(0.2)  # five tables a second and player
        refused = await refusal(calls, name, request, "north")
        assert (refused.code, refused.reason) == (codes.get(reason, CODE.INVALID_ARGUMENT), reason), request
        assert refused.localized
    overrides = [RuleOption(name="decks", value="2")] * 2
    doubled = founding()
    doubled.overrides.extend(overrides)
    assert (await refusal(calls, "CreateTable", doubled, "north")).reason == "BAD_OPTION"
    assert len(await commits(house, scene.table_id)) == scene.view.version


async def test_an_oversized_message_hurts_nobody(house, calls, scene):
    request = scene.play([1] * 70_000)
    refused = await refusal(calls, "Play", request, "north")
    assert refused.code == CODE.RESOURCE_EXHAUSTED
    assert (await scene.mover.view()).version == scene.view.version
    metadata = (*calls.bearer("north"), ("x-large", "x" * 100_000))
    refused = await refusal(calls, "Play", scene.play([1]), "north", metadata=metadata)
    assert refused.code in {CODE.RESOURCE_EXHAUSTED, CODE.INTERNAL, CODE.UNAVAILABLE}
    assert (await scene.mover.view()).version == scene.view.version


async def test_a_refusal_speaks_the_callers_language(calls, scene):
    request = scene.play((await scene.plays(calls))[0], version=1)
    texts = {
        "zh-CN,zh;q=0.9": message(Reason.STALE_VERSION, "zh"),
        "fr, en;q=0.5": message(Reason.STALE_VERSION, "en"),
    }
    for language, text in texts.items():
        metadata = (*calls.bearer(scene.mover.player), ("accept-language", language))
        refused = await refusal(calls, "Play", request, scene.mover.player, metadata=metadata)
        assert refused.localized == text
