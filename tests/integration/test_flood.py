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
FLOOD_S = 2.0
RATE, BURST_S = 25, 4
"""Calls of one kind a second, and for how many seconds a caller may save them up: a flood on any machine."""
LIMITS = {"SHENGJI_COMMAND_RATE": str(RATE), "SHENGJI_VIEW_RATE": str(RATE), "SHENGJI_STRANGER_RATE": "10"}
FLOOD = """
import asyncio, collections, json, sys, time
import grpc

address, method, request, seconds = sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]), float(sys.argv[4])
tokens = sys.argv[5:]

async def main():
    codes = collections.Counter(RESOURCE_EXHAUSTED=0)
    async with grpc.aio.insecure_channel(address) as channel:
        call = channel.unary_unary("/shengji.table.v1.TableService/" + method)
        async def flood(number):
            while time.monotonic() < began + seconds or codes["RESOURCE_EXHAUSTED"] <= codes.total() / 2:
                made_up = "x.%s.%d-%d" % (tokens[0], number, sum(codes.values()))
                token = tokens[0] if len(tokens) == 1 else made_up
                try:
                    await call(request, metadata=(("authorization", "Bearer " + token),))
                    codes["OK"] += 1
                except grpc.aio.AioRpcError as error:
                    codes[error.code().name] += 1
        began = time.monotonic()
        print(flush=True)
        await asyncio.gather(*(flood(number) for number in range(16)))
    print(json.dumps([codes, time.monotonic() - began]))

asyncio.run(main())
"""
"""Calls one method as fast as it can, 16 at once, until more was refused than served; with two tokens it
makes up a new, false one each time."""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with running_house(tmp_path_factory.mktemp("flood"), env=LIMITS) as house:
        yield house


async def flooded(house, method, request, tokens, playing):
    """What came of playing while a process of its own floods a method; the flood's codes and seconds."""
    arguments = [house.replicas[0].address, method, request.SerializeToString().hex(), str(FLOOD_S), *tokens]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FLOOD, *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        await process.stdout.readline()
        result = await playing
    finally:
        out, _ = await process.communicate()
    return result, *json.loads(out)


async def play_a_while(calls, seconds):
    """Play matches at a table until the time is over; how long each command took, in seconds."""
    founded = await calls.settle("CreateTable", founding(), "founder")
    players = seated(calls, founded.table_id, NAMES, random.Random(1))
    view = await advance(players, PHASE_TRICKS)
    took = []
    began = time.monotonic()
    while (time.monotonic() - began < seconds or len(took) < 20) and view.phase not in OVER:
        mover = players[view.to_act[0]]
        name, request = (await mover.choices(await mover.view(view.version)))[-1]
        started = time.monotonic()
        version = (await calls.settle(name, request, mover.player)).version
        took.append(time.monotonic() - started)
        view = await mover.view(version)
        await asyncio.sleep(0.05)
    assert took
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
    playing = play_a_while(calls, FLOOD_S)
    slowed, codes, seconds = await flooded(house, method, request, tokens, playing)
    served = sum(count for code, count in codes.items() if code != "RESOURCE_EXHAUSTED")
    assert served <= RATE * (BURST_S + seconds) + 2
    assert not calls.retries, "nobody else was refused anything"
    assert statistics.median(slowed) < max(patience(0.1), 5 * statistics.median(quiet))
    assert max(slowed) < patience(2.0)


async def test_false_tokens_are_not_looked_at_for_ever(house, calls):
    """A stranger's signatures cost time to check; a player who was known before is served meanwhile."""
    await play_a_while(calls, 1.0)
    tokens = ["eyJhbGciOiJFZERTQSJ9", "made up"]
    request = pb.GetRulesRequest()
    slowed, codes, seconds = await flooded(house, "GetRules", request, tokens, play_as_known(calls))
    assert set(codes) == {"UNAUTHENTICATED", "RESOURCE_EXHAUSTED"}
    assert codes["UNAUTHENTICATED"] <= 10 * (BURST_S + seconds) + 16
    assert statistics.median(slowed) < patience(0.1)


async def play_as_known(calls):
    """As ``play_a_while``, founded by a player whose token was seen before."""
    founded = await calls.settle("CreateTable", founding(), NAMES[0])
    players = seated(calls, founded.table_id, NAMES, random.Random(2))
    version, took = 1, []
    for _ in range(30):
        view = await players[0].view(version)
        mover = players[view.to_act[0]]
        started = time.monotonic()
        version = await mover.move(await mover.view(view.version))
        took.append(time.monotonic() - started)
        await asyncio.sleep(0.05)
    return took
