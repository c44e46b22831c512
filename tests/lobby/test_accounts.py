"""Guests, devices, names: who comes in, as whom, and what is kept."""

import asyncio
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.identity import HOME, Clock, Desk, device, reason, refusal

from services.game.ids import is_id
from services.lobby.accounts import DEVICES_MOST, NewPlayer
from services.lobby.player_names import checked_name, made_up_name
from services.rules.reasons import Reason
from services.shell.errors import RefusedError


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def desk(tmp_path, clock):
    return Desk(tmp_path, clock)


async def test_a_guest_is_founded_with_a_name_of_its_own(desk, clock):
    ann, bob = await desk.guest(), await desk.accounts.sign_in_guest(NewPlayer("", "阿宝", "zh-CN"))
    assert ann.founded
    assert ann.player.guest
    assert is_id("ply", ann.player.player_id)
    assert checked_name(ann.player.name) == ann.player.name
    assert (bob.player.name, bob.player.operator, bob.player.devices) == ("阿宝", "", 0)
    assert bob.player.player_id != ann.player.player_id
    assert ann.player.created_at_ms == clock.ms()
    assert await desk.accounts.get(ann.player.player_id) == ann.player


async def test_made_up_names_speak_the_players_language(desk):
    chinese = await desk.accounts.sign_in_guest(NewPlayer("", "", "zh-CN,zh;q=0.9"))
    assert not chinese.player.name.isascii()
    assert (await desk.guest()).player.name.isascii()


async def test_a_device_founds_a_player_once(desk):
    first, again = await desk.device(device()), await desk.device(device())
    assert (first.founded, again.founded) == (True, False)
    assert first.player == again.player
    assert (first.player.guest, first.player.devices) == (False, 1)
    assert await reason(desk.device(device(secret=b"x" * 16))) is Reason.SIGN_IN_FAILED


async def test_a_secret_is_kept_as_a_hash(desk):
    await desk.device(device(secret=b"very secret bytes"))
    assert not any(b"very secret" in entry.value for entry in desk.store._entries.values())


@pytest.mark.parametrize(
    ("name", "secret", "field"),
    [
        ("short", b"s" * 16, "device_id"),
        ("x" * 129, b"s" * 16, "device_id"),
        ("with space", b"s" * 16, "device_id"),
        ("control\x00id", b"s" * 16, "device_id"),
        ("phone-0001", b"s" * 15, "secret"),
        ("phone-0001", b"s" * 65, "secret"),
    ],
)
async def test_a_device_that_cannot_be(desk, name, secret, field):
    for doing in (desk.device(device(name, secret)), desk.accounts.link_device("x", device(name, secret))):
        refused = await refusal(doing)
        assert (refused.reason, refused.detail["field"]) == (Reason.BAD_INPUT, field)
    assert not desk.store._entries


async def test_a_guest_keeps_everything_when_a_device_is_linked(desk):
    guest = await desk.guest()
    await desk.accounts.set_name(guest.player.player_id, "Ann")
    linked = await desk.accounts.link_device(guest.player.player_id, device())
    assert linked.player_id == guest.player.player_id
    assert (linked.guest, linked.devices, linked.name) == (False, 1, "Ann")
    signed = await desk.device(device())
    assert (signed.player, signed.founded) == (linked, False)
    assert await desk.refresh(guest.tokens.refresh_token)


async def test_linking_again_changes_the_secret_alone(desk):
    player = (await desk.device(device())).player
    assert await desk.accounts.link_device(player.player_id, device(secret=b"n" * 16)) == player
    assert await reason(desk.device(device())) is Reason.SIGN_IN_FAILED
    assert (await desk.device(device(secret=b"n" * 16))).player == player


async def test_a_device_is_one_players(desk):
    await desk.device(device())
    bob = (await desk.guest()).player.player_id
    assert await reason(desk.accounts.link_device(bob, device(secret=b"b" * 16))) is Reason.ALREADY_LINKED
    assert (await desk.accounts.unlink_device(bob, device().device_id)).devices == 0
    assert (await desk.device(device())).player.player_id != bob


async def test_devices_are_counted(desk):
    ann = (await desk.guest()).player.player_id
    for number in range(DEVICES_MOST):
        await desk.accounts.link_device(ann, device(f"phone-{number:04}"))
    assert await reason(desk.accounts.link_device(ann, device("phone-more"))) is Reason.TOO_LARGE
    assert (await desk.accounts.link_device(ann, device("phone-0003"))).devices == DEVICES_MOST


async def test_a_device_is_unlinked_but_never_the_last_way_in(desk):
    ann = (await desk.device(device())).player.player_id
    assert await reason(desk.accounts.unlink_device(ann, device().device_id)) is Reason.LAST_WAY_IN
    await desk.accounts.link_device(ann, device("tablet-01"))
    assert (await desk.accounts.unlink_device(ann, device().device_id)).devices == 1
    assert (await desk.accounts.unlink_device(ann, device().device_id)).devices == 1
    other = await desk.device(device())
    assert other.founded
    assert other.player.player_id != ann


async def test_a_player_that_nobody_knows(desk):
    for nobody in ("ann", "ply_01", "bot:x:1", "", "ply_" + "0" * 26, "a.b", "*"):
        for doing in (
            desk.accounts.get(nobody),
            desk.accounts.set_name(nobody, "Ann"),
            desk.accounts.link_device(nobody, device()),
            desk.accounts.unlink_device(nobody, "phone-0001"),
        ):
            assert await reason(doing) is Reason.UNKNOWN_PLAYER


async def test_players_begin_at_operators_that_serve(desk):
    await desk.operators.add("acme")
    assert (await desk.guest("acme")).player.operator == "acme"
    signed = await desk.device(device(), operator="acme")
    assert desk.identity(signed.tokens).operator == "acme"
    for name in ("other", "*", "a.b", "x", "ACME"):
        assert await reason(desk.guest(name)) is Reason.UNKNOWN_OPERATOR
    await desk.operators.suspend("acme")
    assert await reason(desk.guest("acme")) is Reason.UNKNOWN_OPERATOR
    assert await reason(desk.device(device())) is Reason.SIGN_IN_FAILED
    assert await reason(desk.refresh(signed.tokens.refresh_token)) is Reason.SIGN_IN_FAILED
    await desk.operators.suspend("acme", False)
    assert await desk.refresh(signed.tokens.refresh_token)


@pytest.mark.parametrize(
    "name", ["Ann", "阿宝", "X Æ A-12", "é" * 24, "王小明❤️", "Ωμέγα 5", "한글", "ก้อย", "😀"]
)
async def test_a_name_that_people_can_read(desk, name):
    ann = (await desk.guest()).player.player_id
    assert (await desk.accounts.set_name(ann, name)).name == name


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", " Ann", "Ann ", "A  nn", "x" * 25, "é" * 25, "A\nB", "A\tB", "A\u00a0B", "A\u3000B"),
        *("A\u200bB", "A\u202eB", "\ufeffA", "\u2066A", "\u3164", "\u2800", "A\u00ad", "\ue000", "\ud800"),
        *("a\u0301\u0301\u0301\u0301", "\u0301a", "\ufdfd", "Аnn", "Αnn", "...", "\U000e0041A"),
        *("Ann\ufe0f", "Ann\ufe00", "Ann\U000e0100", "A\u180bnn", "\u2764\ufe0f\ufe0f", "\u2764\ufe0e"),
    ],
)
async def test_a_name_that_nobody_could_tell(desk, name):
    ann = (await desk.guest()).player
    refused = await refusal(desk.accounts.set_name(ann.player_id, name))
    assert (refused.reason, refused.detail["field"]) == (Reason.BAD_INPUT, "name")
    assert (await desk.accounts.get(ann.player_id)).name == ann.name
    if name:
        assert await reason(desk.accounts.sign_in_guest(NewPlayer("", name))) is Reason.BAD_INPUT


@settings(max_examples=300)
@given(st.text(max_size=30))
def test_a_name_is_taken_once_and_for_all_or_refused(text):
    try:
        name = checked_name(text)
    except RefusedError as error:
        assert error.reason is Reason.BAD_INPUT  # noqa: PT017
    else:
        assert checked_name(name) == name
        assert 1 <= len(name) <= 24
        assert name.strip() == name


@given(st.binary(min_size=4, max_size=4), st.sampled_from(["en", "zh"]))
def test_made_up_names_can_be(noise, language):
    name = made_up_name(noise, language)
    assert checked_name(name) == name


async def test_a_device_of_two_replicas_founds_one_player(tmp_path, desk, clock):
    other = Desk(tmp_path, clock, desk.store, seed=2)
    one, two = await asyncio.gather(desk.device(device(), HOME), other.device(device(), HOME))
    assert one.player == two.player
    assert sorted([one.founded, two.founded]) == [False, True]


def test_a_long_text_is_refused_without_being_composed():
    """Composing 20,000 marks takes seconds, in which nobody else is served."""
    started = time.thread_time()
    with pytest.raises(RefusedError) as caught:
        checked_name("a" + "\u0301" * 10_000 + "\u0316" * 10_000)
    assert caught.value.detail == {"field": "name", "detail": "has 1 to 24 characters"}
    assert time.thread_time() - started < 0.5
