"""Two replicas serve one table: whoever is asked, the log is one, and so is what watchers are told."""

import asyncio
import random
from collections import Counter
from contextlib import suppress

import pytest
from support.calls import Refused
from support.house import COMES_S, UNLIMITED, running_house
from support.seats import AT_ONCE, MOVED_ON, OVER, Watching, advance, founding, seated

from services.pb.event.v1.event_pb2 import Pace
from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1.view_pb2 import PHASE_DECLARING

AUDIENCES = ("north", "east", "south", "west", "onlooker")


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with running_house(tmp_path_factory.mktemp("replicas"), replicas=2, env=UNLIMITED) as house:
        yield house


def told(step):
    return pb.WatchResponse.FromString(step)


async def play_alternating(calls, founded, late, rng):
    """Play a match command by command, each by the other replica; new watches begin at random tokens."""
    leader = Watching(calls, founded.table_id, "onlooker", founded.resume).start()
    players = seated(calls, founded.table_id, AUDIENCES[:4], rng, bold=0.5)
    count, version = 0, 1
    while True:
        view = await players[0].view(version)
        if view.phase in OVER:
            break
        mover = players[view.to_act[0]]
        version = await mover.move(await mover.view(view.version), count % 2)
        assert version, "nobody else moves"
        count += 1
        if count % 10 == 0 and leader.resumes:
            place = rng.randrange(len(leader.resumes))
            audience, after = rng.choice(AUDIENCES), leader.resumes[place]
            late.append((place + 1, Watching(calls, founded.table_id, audience, after, count % 2).start()))
    await leader.stop()
    return count, sum((player.refused for player in players), Counter())


@pytest.mark.parametrize(("preset", "deals"), [("classic-1d", 3), ("classic-4d", 1)])
async def test_two_replicas_alternate(house, calls, preset, deals):
    rng = random.Random(71)
    founded = await calls.settle("CreateTable", founding(preset, deals=str(deals)), "north")
    watches = {
        (audience, replica): Watching(
            calls, founded.table_id, audience, founded.resume, replica, stay=True
        ).start()
        for audience in AUDIENCES
        for replica in (0, 1)
    }
    late = []
    count, refused = await play_alternating(calls, founded, late, rng)
    for watch in (*watches.values(), *(watch for _, watch in late)):
        await watch.until(lambda watch=watch: watch.over)
        await watch.stop()
        assert not watch.breaks
    report = await house.sound(founded.table_id)
    assert report.versions == count + 1, "every acknowledged command is one commit, and nothing else is"
    assert report.finished
    assert len(report.deals) == deals
    assert not set(refused) & MOVED_ON, "each replica knew of what the other had recorded"
    for audience in AUDIENCES:
        one, other = (watches[audience, replica].steps for replica in (0, 1))
        for a, b in zip(one, other, strict=True):
            assert a == b, f"{audience} was told {told(a)} by one replica and {told(b)} by the other"
        assert [told(step).update.version for step in one] == list(range(2, report.versions + 1))
    assert len(late) > 5
    for place, watch in late:
        assert watch.steps == watches[watch.player, 0].steps[place:], (
            "a resumed watch tells the rest, no more"
        )


async def test_cards_are_drawn_alike_at_two_replicas(house, calls):
    """Rounds of the draw have no commits, and declarations come between them: one order everywhere."""
    pace = Pace()
    pace.CopyFrom(AT_ONCE)
    pace.draw_ms, pace.declare_ms = 60, 60_000
    rng = random.Random(8)
    founded = await calls.settle("CreateTable", founding("classic-2d", pace=pace, deals="1"), "north")
    table_id = founded.table_id
    watches = {
        (audience, replica): Watching(calls, table_id, audience, founded.resume, replica, stay=True).start()
        for audience in AUDIENCES
        for replica in (0, 1)
    }
    players = seated(calls, table_id, AUDIENCES[:4], rng, bold=1.0)
    late, at = [], 0
    view = await advance(players, PHASE_DECLARING)
    while view.phase == PHASE_DECLARING:
        mover, mine = players[at % 4], watches[players[at % 4].player, 0]
        *showing, passing = await mover.choices(await mover.view())
        # As long as cards come, nobody passes.
        for name, request in [*showing, passing] if view.drawn == 25 else showing:
            with suppress(Refused):
                await calls.settle(name, request, mover.player, at % 2)
        if view.drawn < 25:
            await mine.until(lambda mine=mine: mine.resumes)
            late.append(Watching(calls, table_id, mover.player, mine.resumes[-1], at % 2, stay=True).start())
        await asyncio.sleep(0.07)
        at += 1
        view = await players[0].view()
    version = view.version
    for watch in (*watches.values(), *late):
        await watch.until(lambda watch=watch: watch.version >= version)
        await watch.stop()
    report = await house.sound(table_id)
    steps = [told(step).update for step in watches["north", 0].steps]
    assert sum(event.HasField("declared") for step in steps for event in step.events) > 0
    assert report.versions == version
    for audience in AUDIENCES:
        one, other = (watches[audience, replica].steps for replica in (0, 1))
        drawn = [card for step in one for card in told(step).update.drawn_cards]
        assert len(drawn) == (25 if audience in AUDIENCES[:4] else 0)
        rounds = [told(step).update.drawn for step in one]
        assert sorted(set(rounds)) == list(range(26)), "every round is told"
        for a, b in zip(one, other, strict=True):
            assert a == b, f"{audience} was told {told(a)} by one replica and {told(b)} by the other"
    for watch in late:
        whole = watches[watch.player, 0].steps
        assert watch.steps == whole[len(whole) - len(watch.steps) :]
        assert len(watch.steps) < len(whole)


async def test_a_watch_is_renewed_through_the_other_replica(house, calls):
    """Between processes, as NATS' users may: the heartbeat names the expiry of a token shown elsewhere."""
    founded = await calls.settle("CreateTable", founding("classic-1d", deals="1"), "north")

    def bearer(lifetime_s):
        token = house.sign("north", lifetime_s=lifetime_s)
        return (("authorization", f"Bearer {token}"),)

    request = pb.WatchRequest(table_id=founded.table_id)
    watches = [
        calls.channels[replica].unary_stream(
            "/shengji.table.v1.TableService/Watch", request_serializer=pb.WatchRequest.SerializeToString
        )(request, metadata=bearer(30))
        for replica in (0, 1)
    ]
    for watch in watches:
        assert told(await watch.read()).HasField("snapshot")
    answer = await calls.call("RenewWatch", pb.RenewWatchRequest(), "north", replica=0, metadata=bearer(900))
    for watch in watches:
        async with asyncio.timeout(COMES_S):
            while told(await watch.read()).heartbeat.token_expires_at_ms != answer.expires_at_ms:
                pass
        watch.cancel()
