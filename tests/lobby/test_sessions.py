"""Staying signed in: one use a token, repeats, theft, races, signing out."""

import asyncio
import base64
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.identity import AWAY, HOME, Clock, Desk, device, kids, reason, refusal

from services.lobby.records import family_key
from services.lobby.sessions import FAMILY_S, GENERATIONS, generation_of, refresh_token, shown
from services.lobby.store import Conflict
from services.pb.lobby.v1.stored_pb2 import FamilyRecord
from services.rules.reasons import Reason


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def desk(tmp_path, clock):
    return Desk(tmp_path, clock)


@pytest.fixture
def other(tmp_path, clock, desk):
    """A second replica on the same store."""
    return Desk(tmp_path, clock, desk.store, seed=2)


async def family_of(desk, token):
    entry = await desk.store.get(family_key(shown(token).family_id))
    return FamilyRecord.FromString(entry.value)


async def test_a_sign_in_proves_its_player_and_can_be_renewed_on_any_replica(desk, other, clock):
    signed = await desk.guest()
    first = signed.tokens
    assert desk.identity(first).player_id == signed.player.player_id
    assert first.access_expires_at_ms == clock.ms() + 15 * 60_000
    assert first.refresh_expires_at_ms == clock.ms() + FAMILY_S * 1000
    clock.now += 20 * 60
    second = await other.refresh(first.refresh_token)
    assert other.identity(second).player_id == signed.player.player_id
    assert second.refresh_token != first.refresh_token
    assert second.refresh_expires_at_ms == clock.ms() + FAMILY_S * 1000
    assert (await desk.refresh(second.refresh_token)).refresh_token


async def test_a_token_says_nothing_that_is_kept(desk):
    token = (await desk.guest()).tokens.refresh_token
    family = await family_of(desk, token)
    head, _, proof = token.partition(".")
    assert head.startswith("ref_")
    assert base64.urlsafe_b64decode(proof + "=") not in family.SerializeToString()


async def test_a_lost_answer_is_given_again_to_the_same_request(desk, other, clock):
    token = (await desk.guest()).tokens.refresh_token
    request = str(uuid.uuid4())
    first = await desk.refresh(token, request)
    clock.now += 30
    again = await other.refresh(token, request.upper())
    assert again.refresh_token == first.refresh_token
    assert again.refresh_expires_at_ms == first.refresh_expires_at_ms
    assert other.identity(again).player_id == desk.identity(first).player_id
    assert await desk.refresh(first.refresh_token)


async def test_a_used_token_ends_the_whole_sign_in(desk, other):
    stolen = (await desk.guest()).tokens.refresh_token
    thief = await other.refresh(stolen, address=AWAY)
    assert await reason(desk.refresh(stolen)) is Reason.TOKEN_REUSED
    assert await reason(other.refresh(thief.refresh_token, address=AWAY)) is Reason.SIGN_IN_FAILED
    assert await reason(desk.refresh(stolen)) is Reason.TOKEN_REUSED
    assert desk.count("shengji_revoked_families_total") == 2


async def test_the_repeat_of_a_request_is_no_way_back_once_the_next_token_was_used(desk):
    token, request = (await desk.guest()).tokens.refresh_token, str(uuid.uuid4())
    second = await desk.refresh(token, request)
    await desk.refresh(second.refresh_token)
    assert await reason(desk.refresh(token, request)) is Reason.TOKEN_REUSED


async def test_a_request_id_used_for_two_refreshes_brings_no_used_token_back(desk):
    token, request = (await desk.guest()).tokens.refresh_token, str(uuid.uuid4())
    second = await desk.refresh(token, request)
    await desk.refresh(second.refresh_token, request)
    assert await reason(desk.refresh(token, request)) is Reason.TOKEN_REUSED


async def test_very_old_tokens_are_still_known_as_used(desk):
    first = token = (await desk.guest()).tokens.refresh_token
    for _ in range(40):
        token = (await desk.refresh(token)).refresh_token
    assert await reason(desk.refresh(first)) is Reason.TOKEN_REUSED
    assert await reason(desk.refresh(token)) is Reason.SIGN_IN_FAILED


@pytest.mark.parametrize("same", [True, False])
async def test_two_replicas_race_for_one_token(desk, other, same):
    token = (await desk.guest()).tokens.refresh_token
    requests = [str(uuid.uuid4())] * 2 if same else [str(uuid.uuid4()) for _ in range(2)]
    gate = Gate(desk.store, 2)
    for replica in (desk, other):
        replica.sessions._deps = replica.deps._replace(store=gate)
    answers = await asyncio.gather(
        desk.refresh(token, requests[0]), other.refresh(token, requests[1]), return_exceptions=True
    )
    assert gate.conflicts == 1
    if same:
        assert answers[0].refresh_token == answers[1].refresh_token
    else:
        won, lost = sorted(answers, key=lambda answer: isinstance(answer, Exception))
        assert lost.reason is Reason.TOKEN_REUSED
        assert await reason(desk.refresh(won.refresh_token)) is Reason.SIGN_IN_FAILED


class Gate:
    """A store whose first commits wait for each other, so that all have read the same."""

    def __init__(self, store, racers):
        self._store = store
        self._barrier = asyncio.Barrier(racers)
        self._through = 0
        self._racers = racers
        self.conflicts = 0

    async def get(self, key):
        return await self._store.get(key)

    async def commit(self, writes):
        if self._through < self._racers:
            self._through += 1
            await self._barrier.wait()
        try:
            return await self._store.commit(writes)
        except Conflict:
            self.conflicts += 1
            raise


async def test_what_is_no_token_fails_and_ends_nothing(tmp_path, desk, clock):
    token = (await desk.guest()).tokens.refresh_token
    head, _, proof = token.partition(".")
    unknown = (await Desk(tmp_path, clock, seed=3).guest()).tokens.refresh_token
    wrong = (f"{head}.", f"{head}.{proof}x", f"{head}.{proof[:-1]}", f"{head}.é")
    for bad in ("", "x", f".{proof}", unknown, *wrong):
        assert await reason(desk.refresh(bad)) is Reason.SIGN_IN_FAILED
    assert await reason(desk.refresh(token, "no-uuid")) is Reason.BAD_ID
    assert await desk.refresh(token)


async def test_wrong_tokens_of_one_sign_in_slow_down_whoever_shows_them_and_nobody_else(desk, other, clock):
    token = (await desk.guest()).tokens.refresh_token
    wrong = token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")
    for replica in (desk, other, desk, other, desk):
        assert await reason(replica.refresh(wrong, address=AWAY)) is Reason.SIGN_IN_FAILED
    for replica in (desk, other):
        refused = await refusal(replica.refresh(token, address=AWAY))
        assert (refused.reason, refused.retry_after_s) == (Reason.RATE_LIMITED, 1.0)
    assert await other.refresh(token, address=HOME)


async def test_an_unused_sign_in_ends_and_a_used_one_lives_on(desk, clock):
    used, unused = [(await desk.guest()).tokens.refresh_token for _ in range(2)]
    clock.now += FAMILY_S - 1
    used = (await desk.refresh(used)).refresh_token
    clock.now += 2
    assert await reason(desk.refresh(unused)) is Reason.SIGN_IN_FAILED
    clock.now += FAMILY_S - 3
    used = (await desk.refresh(used)).refresh_token
    clock.now += FAMILY_S + 1
    assert await reason(desk.refresh(used)) is Reason.SIGN_IN_FAILED


async def test_signing_out_ends_one_sign_in(desk, other):
    phone = device()
    one, two = await desk.device(phone), await other.device(phone)
    player = one.player.player_id
    await desk.sessions.end(player, one.tokens.refresh_token, HOME)
    await other.sessions.end(player, one.tokens.refresh_token, HOME)
    assert await reason(other.refresh(one.tokens.refresh_token)) is Reason.SIGN_IN_FAILED
    assert await desk.refresh(two.tokens.refresh_token)


async def test_nobody_signs_somebody_else_out(desk):
    ann, bob = await desk.guest(), await desk.guest()
    ending = desk.sessions.end(bob.player.player_id, ann.tokens.refresh_token, HOME)
    assert await reason(ending) is Reason.SIGN_IN_FAILED
    assert await desk.refresh(ann.tokens.refresh_token)


async def test_signing_out_everywhere_ends_what_was_begun_before_by_any_clock(tmp_path, desk, clock):
    ahead = Clock()
    ahead.now = clock.now + 4  # a replica whose clock is four seconds ahead
    other = Desk(tmp_path, ahead, desk.store, seed=2)
    phone = device()
    before = [await desk.device(phone), await other.device(phone)]
    await desk.sessions.end_all(before[0].player.player_id)
    after = [await desk.device(phone), await other.device(phone)]
    for signed in before:
        assert await reason(desk.refresh(signed.tokens.refresh_token)) is Reason.SIGN_IN_FAILED
    for signed in after:
        assert await desk.refresh(signed.tokens.refresh_token)
    assert await reason(desk.sessions.end_all("ply_nobody")) is Reason.UNKNOWN_PLAYER


async def test_keys_change_under_way_and_old_tokens_live_out_their_time(desk, other, clock):
    old = (await desk.guest()).tokens
    before = kids(desk.signer.key_set())
    desk.signer._ring.rotate()
    clock.now += 61
    new = (await other.refresh(old.refresh_token)).access_token
    assert kids(other.signer.key_set()) == kids(desk.signer.key_set()) != before
    for replica in (desk, other):
        assert replica.verifier.verify(new)
        assert replica.verifier.verify(old.access_token)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=12))
def test_only_the_newest_token_of_an_honest_line_is_ever_good(folder, uses):
    """Whatever is shown in whatever order: a token works if it is the newest and none was used twice."""

    async def run():
        desk = Desk(folder, Clock())
        tokens = [(await desk.guest()).tokens.refresh_token]
        ended = False
        for use in uses:
            token = tokens[-1 - use % len(tokens)]
            newest = token == tokens[-1]
            try:
                tokens.append((await desk.refresh(token)).refresh_token)
            except Exception as error:
                expected = Reason.SIGN_IN_FAILED if newest else Reason.TOKEN_REUSED
                assert error.reason is expected  # noqa: PT017
                assert ended or not newest
                ended = True
            else:
                assert newest
                assert not ended

    asyncio.run(run())


def test_generations_are_told_apart_as_far_back_as_is_promised():
    family = FamilyRecord(secret=b"s" * 32, generation=1)
    token = {}
    for generation in (1, 2, GENERATIONS, GENERATIONS + 1):
        family.generation = generation
        token[generation] = shown(refresh_token("0" * 26, family)).proof or refresh_token("x", family)[6:]
    assert generation_of(family, token[GENERATIONS + 1]) == GENERATIONS + 1
    assert generation_of(family, token[2]) == 2
    assert generation_of(family, token[1]) == 0
