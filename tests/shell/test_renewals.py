"""Streams live as long as the newest token of their player, on every replica."""

import pytest

from services.shell.bus import MemoryBus
from services.shell.renewals import Renewals


class Told:
    """Counts how often a stream was told that it lives longer."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1


async def replicas(topics=("streams", "streams")):
    bus = MemoryBus()
    made = [Renewals(bus, topic) for topic in topics]
    for renewals in made:
        await renewals.start()
    return bus, *made


async def test_a_fresh_token_extends_every_stream_of_its_player_on_every_replica():
    _, here, there = await replicas()
    told = Told()
    leases = [renewals.enter("ann", 100, told) for renewals in (here, here, there)]
    bob = there.enter("bob", 100, told)
    await here.renew("ann", 900)
    assert [lease.expires_at for lease in leases] == [900, 900, 900]
    assert told.times == 3, "each once, though its own replica hears of it twice"
    assert bob.expires_at == 100


async def test_nothing_is_shortened():
    _, here, there = await replicas()
    told = Told()
    lease = there.enter("ann", 500, told)
    await here.renew("ann", 400)
    await here.renew("ann", 500)
    assert (lease.expires_at, told.times) == (500, 0)


async def test_a_stream_that_ended_is_forgotten_and_its_neighbour_is_not():
    _, here, _ = await replicas()
    told = Told()
    first, second = here.enter("ann", 100, told), here.enter("ann", 100, told)
    here.leave(first)
    here.leave(first)
    await here.renew("ann", 900)
    assert (first.expires_at, second.expires_at, told.times) == (100, 900, 1)
    here.leave(second)
    assert not here._leases


async def test_a_stream_may_end_while_it_is_told():
    _, here, _ = await replicas()
    leases = []
    leases.extend(here.enter("ann", 100, lambda: [here.leave(lease) for lease in leases]) for _ in range(3))
    await here.renew("ann", 900)
    assert not here._leases


async def test_streams_of_another_kind_are_not_meant():
    _, here, there = await replicas(("watches", "stays"))
    lease = there.enter("ann", 100, Told())
    await here.renew("ann", 900)
    assert lease.expires_at == 100


@pytest.mark.parametrize(
    "news", [b"", b"[", b"\xff", b"1", b'["ann"]', b'["ann", "1"]', b"[1, 2]", b'["ann", true]', b"null"]
)
async def test_news_that_cannot_be_read_changes_nothing(news):
    bus, here, _ = await replicas()
    told = Told()
    lease = here.enter("ann", 100, told)
    await bus.tell("streams", news)
    assert (lease.expires_at, told.times) == (100, 0)
