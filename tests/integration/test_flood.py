"""Who floods is told to slow down, and nobody else is slowed noticeably (ARCHITECTURE §7)."""

import asyncio
import json
import random
import statistics
import sys
import time

import pytest
from support.house import patience, running_house
from support.seats import OVER, advance, founding, seated

from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1.view_pb2 import PHASE_TRICKS

NAMES = ("north", "east", "south", "west")
FLOOD_S = 3.0
RATE, BURST_S = 100, 4
"""The defaults: calls of one kind a second, and for how many seconds a caller may save them up."""
FLOOD = """
import asyncio, collections, json, sys, time
import grpc

address, method, request, seconds = sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]), float(sys.argv[4])
tokens = sys.argv[5:]

async def main():
    codes = collections.Counter()
    async with grpc.aio.insecure_channel(address) as channel:
        call = channel.unary_unary("/shengji.table.v1.TableService/" + method)
        async def flood(number):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                made_up = "x.%s.%d-%d" % (tokens[0], number, sum(codes.values()))
                token = tokens[0] if len(tokens) == 1 else made_up
                try:
                    await call(request, metadata=(("authorization", "Bearer " + token),))
                    codes["OK"] += 1
                except grpc.aio.AioRpcError as error:
                    codes[error.code().name] += 1
        await asyncio.gather(*(flood(number) for number in range(16)))
    print(json.dumps(codes))

asyncio.run(main())
"""
"""Calls one method as fast as it can, 16 at once; with two tokens it makes up a new, false one each time."""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with running_house(tmp_path_factory.mktemp("flood")) as house:
        yield house


async def flooded(house, method, request, tokens, playing):
    """(what came of playing, the flood's status codes) while a process of its own floods a method."""
    arguments = [house.replicas[0].address, method, request.SerializeToString().hex(), str(FLOOD_S), *tokens]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FLOOD, *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        result = await playing
    finally:
        out, _ = await process.communicate()
    return result, json.loads(out)


async def play_a_while(calls, seconds):
    """Play matches at a table until the time is over; how long each command took, in seconds."""
    founded = await calls.settle("CreateTable", founding(), "founder")
    players = seated(calls, founded.table_id, NAMES, random.Random(1))
    view = await advance(players, PHASE_TRICKS)
    took = []
    began = time.monotonic()
    while time.monotonic() - began < seconds and view.phase not in OVER:
        mover = players[view.to_act[0]]
        name, request = (await mover.choices(await mover.view(view.version)))[-1]
        started = time.monotonic()
        version = (await calls.settle(name, request, mover.player)).version
        took.append(time.monotonic() - started)
        view = await mover.view(version)
        await asyncio.sleep(0.03)
    assert len(took) > 10
    return took


@pytest.mark.parametrize("method", ["GetView", "Play"])
async def test_a_flood_slows_only_who_floods(house, calls, method):
    founded = await calls.settle("CreateTable", founding(seats=("flooder", "", "", "")), "flooder")
    view = await seated(calls, founded.table_id, ["flooder"], random.Random(1))[0].view()
    if method == "GetView":
        request = pb.GetViewRequest(table_id=view.table_id)
    else:
        command_id = "00000000-0000-4000-8000-000000000001"
        context = pb.CommandContext(table_id=view.table_id, command_id=command_id)
        request = pb.PlayRequest(context=context, cards=[1])
    quiet = await play_a_while(calls, FLOOD_S)
    tokens = [house.token("flooder")]
    slowed, codes = await flooded(house, method, request, tokens, play_a_while(calls, FLOOD_S))
    served = sum(count for code, count in codes.items() if code != "RESOURCE_EXHAUSTED")
    assert served <= RATE * (BURST_S + FLOOD_S + 2)
    assert codes["RESOURCE_EXHAUSTED"] > served / 2
    assert not calls.retries, "nobody else was refused anything"
    assert statistics.median(slowed) < max(patience(0.05), 4 * statistics.median(quiet))
    assert max(slowed) < patience(1.0)


async def test_false_tokens_are_not_looked_at_for_ever(house, calls):
    """A stranger's signatures cost time to check; a player who was known before is served meanwhile."""
    await play_a_while(calls, 1.0)
    tokens = ["eyJhbGciOiJFZERTQSJ9", "made up"]
    slowed, codes = await flooded(house, "GetRules", pb.GetRulesRequest(), tokens, play_as_known(calls))
    assert set(codes) == {"UNAUTHENTICATED", "RESOURCE_EXHAUSTED"}
    assert codes["RESOURCE_EXHAUSTED"] > codes["UNAUTHENTICATED"]
    assert statistics.median(slowed) < patience(0.1)


async def play_as_known(calls):
    """As ``play_a_while``, founded by a player whose token was seen before."""
    founded = await calls.settle("CreateTable", founding(), NAMES[0])
    players = seated(calls, founded.table_id, NAMES, random.Random(2))
    version, took = 1, []
    for _ in range(40):
        view = await players[0].view(version)
        mover = players[view.to_act[0]]
        started = time.monotonic()
        version = await mover.move(await mover.view(view.version))
        took.append(time.monotonic() - started)
        await asyncio.sleep(0.05)
    return took
