"""Wrong tries are slowed on all replicas alike, and nobody can lock a stranger out."""

import asyncio

import pytest
from support.identity import AWAY, HOME, Clock, Desk, device, reason, refusal

from services.lobby.slowing import NETWORK, THING, wait_ms
from services.rules.reasons import Reason
from services.shell.errors import RefusedError

RIGHT, WRONG = device(), device(secret=b"w" * 16)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def desks(tmp_path, clock):
    """Two replicas on one store, and a device that is known."""
    one = Desk(tmp_path, clock)
    await one.device(RIGHT)
    return one, Desk(tmp_path, clock, one.store, seed=2)


async def fail(desks, times, address=HOME, thing=WRONG):
    """Wrong tries on the replicas by turns."""
    for number in range(times):
        assert await reason(desks[number % 2].device(thing, address)) is Reason.SIGN_IN_FAILED


def test_waits_double_from_a_second_to_a_quarter_of_an_hour():
    assert [wait_ms(THING, failures) for failures in range(4, 9)] == [0, 1000, 2000, 4000, 8000]
    assert wait_ms(THING, 15) == 900_000 == wait_ms(THING, 2**32 - 1)
    assert [wait_ms(NETWORK, failures) for failures in (49, 50, 55, 99)] == [0, 1000, 30_000, 30_000]


async def test_guesses_spread_over_replicas_are_slowed_as_one(desks, clock):
    await fail(desks, 5)
    for desk in desks:
        refused = await refusal(desk.device(WRONG))
        assert (refused.reason, refused.retry_after_s) == (Reason.RATE_LIMITED, 1.0)
    clock.now += 1
    await fail(desks, 1)
    refused = await refusal(desks[1].device(WRONG))
    assert refused.retry_after_s == 2.0
    clock.now += 1.5
    assert (await refusal(desks[0].device(WRONG))).retry_after_s == 0.5


async def test_a_right_secret_is_not_looked_at_during_a_wait_and_clears_the_count_after_it(desks, clock):
    await fail(desks, 5)
    assert await reason(desks[1].device(RIGHT)) is Reason.RATE_LIMITED
    clock.now += 1
    assert (await desks[1].device(RIGHT)).player
    await fail(desks, 5)


async def test_tries_during_a_wait_do_not_lengthen_it(desks, clock):
    await fail(desks, 5)
    for _ in range(20):
        assert await reason(desks[0].device(WRONG)) is Reason.RATE_LIMITED
    clock.now += 1
    assert (await desks[0].device(RIGHT)).player


async def test_a_strangers_tries_do_not_lock_the_owner_out(desks):
    await fail(desks, 5, AWAY)
    assert await reason(desks[0].device(RIGHT, AWAY)) is Reason.RATE_LIMITED
    assert (await desks[1].device(RIGHT, HOME)).player


async def test_one_household_is_one_network(desks):
    await fail(desks, 5, "2001:db8:1:2::1")
    assert await reason(desks[0].device(RIGHT, "2001:db8:1:2:ffff::7")) is Reason.RATE_LIMITED
    assert (await desks[0].device(RIGHT, "2001:db8:1:3::1")).player


async def test_a_network_that_tries_many_devices_is_slowed_for_half_a_minute_at_most(desks, clock):
    for number in range(12):
        await desks[0].device(device(f"phone-1{number:03}"), AWAY)
    for number in range(50):
        await fail(desks, 1, HOME, device(f"phone-1{number % 12:03}", b"w" * 16))
    refused = await refusal(desks[1].device(RIGHT, HOME))
    assert (refused.reason, refused.retry_after_s) == (Reason.RATE_LIMITED, 1.0)
    assert (await desks[1].device(RIGHT, AWAY)).player
    clock.now += 30
    assert (await desks[1].device(RIGHT, HOME)).player
    # A good secret of one's own does not buy more guesses at others'.
    await fail(desks, 1, HOME)
    assert (await refusal(desks[0].device(RIGHT, HOME))).retry_after_s == 2.0


async def test_counts_fade(desks, clock):
    await fail(desks, 4)
    clock.now += 3601
    await fail(desks, 5)
    assert await reason(desks[0].device(RIGHT)) is Reason.RATE_LIMITED


async def test_tries_at_once_count_one_by_one(desks):
    async def one(number):
        try:
            await desks[number % 2].device(WRONG)
        except RefusedError as error:
            return error.reason

    reasons = await asyncio.gather(*(one(number) for number in range(40)))
    assert reasons.count(Reason.SIGN_IN_FAILED) == 5
    assert desks[0].count("shengji_wrong_secrets_total") + desks[1].count("shengji_wrong_secrets_total") == 5
