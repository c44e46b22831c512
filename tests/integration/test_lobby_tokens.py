"""Tokens and secrets over two lobby replicas and a table service: changed, foreign, stolen, guessed."""

import asyncio
import json
import math
import random
import sys
import time
import uuid

import grpc
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.calls import Refused
from support.house import COMES_S, UNLIMITED, running_house
from support.lobby_people import Person, plan

from services.lobby.operators import Operators
from services.lobby.slowing import NETWORK, THING, wait_ms
from services.lobby.store_jetstream import JetStreamStore
from services.pb.lobby.v1 import operator_service_pb2 as operator_pb
from services.pb.lobby.v1 import player_service_pb2 as player_pb
from services.pb.lobby.v1 import presence_service_pb2 as presence_pb
from services.pb.lobby.v1 import room_service_pb2 as room_pb
from services.pb.table.v1 import table_service_pb2 as pb
from services.shell.broker import Broker
from services.shell.tokens import sign
from services.shell.trust import LOBBY_ISSUER

SHENGJI = [sys.executable, "-c", "from services.cli.main import main; main()"]


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with running_house(
        tmp_path_factory.mktemp("tokens"), replicas=1, lobbies=2, bots=True, env=UNLIMITED
    ) as house:
        yield house


async def add_operator(house, name):
    """An operator's API key."""
    broker = await Broker.connect(house.nats_url("lobby"), "lobby")
    try:
        operators = Operators(JetStreamStore(broker), lambda: int(time.time() * 1000), random.randbytes)
        return await operators.add(name)
    finally:
        await broker.close()


async def refused(awaitable, reason, code=grpc.StatusCode.UNAUTHENTICATED):
    """A call that must be refused for a reason; the refusal."""
    with pytest.raises(Refused) as caught:
        await awaitable
    assert (caught.value.code, caught.value.reason) == (code, reason)
    return caught.value


async def rotated(house):
    """``shengji keys rotate``: the new key's kid."""
    command = [*SHENGJI, "keys", "rotate", "--data", str(house.folder)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode().split()[0]


async def until_public(lobby, replica, kids):
    """Wait until a lobby says that these keys are its own."""
    async with asyncio.timeout(COMES_S):
        while True:
            keys = (await lobby.call("GetKeys", player_pb.GetKeysRequest(), replica=replica)).jwks
            if {key["kid"] for key in json.loads(keys)["keys"]} == kids:
                return
            await asyncio.sleep(0.1)


def not_before(house, kid):
    """When a key begins to sign."""
    ring = json.loads((house.folder / "keys" / "lobby.keys").read_bytes())
    (at,) = (key["not_before"] for key in ring["keys"] if key["kid"] == kid)
    return at


def bring_forward(house, kid):
    """Let a key sign from now on, as if its minute of waiting were over."""
    path = house.folder / "keys" / "lobby.keys"
    ring = json.loads(path.read_bytes())
    for key in ring["keys"]:
        if key["kid"] == kid:
            key["not_before"] = int(time.time())
    scratch = path.with_suffix(".test")
    scratch.write_text(json.dumps(ring))
    scratch.replace(path)


def kid_of(token):
    return jwt.get_unverified_header(token)["kid"]


async def test_nobody_is_refused_while_keys_change(house, lobby, tables):
    """People ask both services all the time under old and new tokens; the new key signs in the end."""
    people = [await Person(lobby, replica).sign_in() for replica in (0, 1)]
    (ann, bob), first = people, kid_of(people[0].token)
    room = await ann.make_room(plan())
    ann.come()
    await ann.stay.until(lambda: ann.stay.whereabouts is not None)
    await ann.start(room.room_id)
    playing = ann.player_at(tables, await ann.told_of_table(), random.Random(4))
    stop, asked, signed = asyncio.Event(), [], {}

    async def keep_asking(person):
        while not stop.is_set():
            for replica in (0, 1):
                await person.call("GetWhereabouts", presence_pb.GetWhereaboutsRequest(), replica)
            at = len(asked) % 2
            newcomer = await Person(lobby, at).sign_in()
            signed[at] = kid_of(newcomer.token)
            await newcomer.call("GetPlayer", player_pb.GetPlayerRequest(), 1 - at)
            # The table service verifies by itself.
            await tables.call("RenewWatch", pb.RenewWatchRequest(), newcomer.player_id)
            await tables.call("GetView", pb.GetViewRequest(table_id=playing.table_id), ann.player_id)
            asked.append(kid_of(newcomer.token))
            await asyncio.sleep(0.02)

    asking = [asyncio.create_task(keep_asking(person)) for person in people]
    play = asyncio.create_task(playing.play())
    added = await rotated(house)
    for replica in (0, 1):
        await until_public(lobby, replica, {first, added})
    if time.time() < not_before(house, added):
        assert set(asked) == {first}, "it is public first and signs later"
    bring_forward(house, added)
    async with asyncio.timeout(COMES_S):
        while playing.moves <= 3 or [signed.get(replica) for replica in (0, 1)] != [added] * 2:
            assert not any(task.done() for task in asking)
            await asyncio.sleep(0.05)
    stop.set()
    await asyncio.gather(*asking)
    assert set(asked) == {first, added}
    assert kid_of(ann.token) == first, "the old token counted all along"
    play.cancel()
    (ended,) = await asyncio.gather(play, return_exceptions=True)
    assert ended is None or isinstance(ended, asyncio.CancelledError), ended
    assert not playing.watch.breaks
    assert not ann.stay.breaks
    await bob.refresh()
    assert kid_of(bob.token) == added
    await ann.go()


async def test_operators_players_never_meet(house, lobby, tables):
    """Rooms, codes and tables of one operator's players are nothing to another's; nor is a forged name."""
    for name in ("acme", "other"):
        await add_operator(house, name)
    ann = await Person(lobby, 0).sign_in(operator="acme")
    bob = await Person(lobby, 1).sign_in(operator="other")
    cid = await Person(lobby, 1).sign_in()
    assert ann.player.operator == "acme"
    room = await ann.make_room(plan(), visibility=2)
    for stranger in (bob, cid):
        await refused(stranger.join(room.code), "UNKNOWN_CODE", grpc.StatusCode.NOT_FOUND)
        by_id = room_pb.JoinRoomRequest(room_id=room.room_id)
        await refused(stranger.call("JoinRoom", by_id), "UNKNOWN_ROOM", grpc.StatusCode.NOT_FOUND)
        listed = await stranger.call("ListRooms", room_pb.ListRoomsRequest())
        assert room.room_id not in [found.room_id for found in listed.rooms]
        asked = presence_pb.GetPresenceRequest(player_ids=[ann.player_id])
        (found,) = (await stranger.call("GetPresence", asked)).players
        assert (found.doing, found.table_id) == (0, "")
        mute = presence_pb.MuteRequest(player_id=ann.player_id, muted=True)
        await refused(stranger.call("Mute", mute), "UNKNOWN_PLAYER", grpc.StatusCode.NOT_FOUND)
    for kid, key in (("", Ed25519PrivateKey.generate()), (kid_of(ann.token), Ed25519PrivateKey.generate())):
        bob.hold_access(sign(key, LOBBY_ISSUER, bob.player_id, kid=kid, operator="acme"))
        await refused(bob.call("GetPlayer", player_pb.GetPlayerRequest()), "UNAUTHENTICATED")
        look = tables.call("GetView", pb.GetViewRequest(table_id="tbl_" + "0" * 26), bob.player_id)
        await refused(look, "UNAUTHENTICATED")


async def test_an_operator_sees_its_own_players_alone(house, lobby):
    keys = {name: await add_operator(house, name) for name in ("north", "south")}
    signed = {}
    for replica, (name, key) in enumerate(keys.items()):
        request = operator_pb.SignInUserRequest(user_id="user-1", name=f"User of {name}")
        signed[name] = await lobby.call("SignInUser", request, key, replica)
        assert signed[name].founded
    assert signed["north"].player.player_id != signed["south"].player.player_id
    for name, other in (("north", "south"), ("south", "north")):
        theirs = operator_pb.GetUserRequest(player_id=signed[other].player.player_id)
        await refused(
            lobby.call("GetUser", theirs, keys[name], 1), "UNKNOWN_PLAYER", grpc.StatusCode.NOT_FOUND
        )
        ends = operator_pb.SignOutUserRequest(player_id=signed[other].player.player_id)
        await refused(
            lobby.call("SignOutUser", ends, keys[name], 0), "UNKNOWN_PLAYER", grpc.StatusCode.NOT_FOUND
        )
        listed = await lobby.call("ListUsers", operator_pb.ListUsersRequest(), keys[name], 1)
        assert [player.player_id for player in listed.players] == [signed[name].player.player_id]
    # A guest of one operator's is not taken over by the other.
    guest = await Person(lobby, 0).sign_in(operator="north")
    takes = operator_pb.SignInUserRequest(user_id="user-2", guest_access_token=guest.token)
    await refused(
        lobby.call("SignInUser", takes, keys["south"], 1), "UNKNOWN_PLAYER", grpc.StatusCode.NOT_FOUND
    )
    linked = await lobby.call("SignInUser", takes, keys["north"], 1)
    assert linked.player.player_id == guest.player_id
    assert not linked.player.guest
    # A player's token is no API key, and an API key no player's token.
    ask = operator_pb.ListUsersRequest()
    await refused(lobby.call("ListUsers", ask, guest.token), "UNAUTHENTICATED")
    await refused(lobby.call("GetPlayer", player_pb.GetPlayerRequest(), keys["north"]), "UNAUTHENTICATED")


async def test_a_stolen_refresh_token_ends_the_whole_sign_in(lobby):
    """Owner and thief use it at two replicas: whoever comes second ends it for both."""
    owner = await Person(lobby, 0).sign_in()
    thief = Person(lobby, 1)
    thief.player, thief.tokens = owner.player, owner.tokens
    request_id = str(uuid.uuid4())
    await owner.refresh(request_id)
    stolen, newest = thief.tokens, owner.tokens.refresh_token
    # A lost answer costs nothing: the same request again gets the same token at the other replica.
    again = player_pb.RefreshRequest(refresh_token=stolen.refresh_token, request_id=request_id)
    assert (await lobby.call("Refresh", again, replica=1)).tokens.refresh_token == newest
    await refused(thief.refresh(), "TOKEN_REUSED")
    await refused(owner.refresh(), "SIGN_IN_FAILED")
    for token in (stolen.refresh_token, newest):
        late = player_pb.RefreshRequest(refresh_token=token, request_id=str(uuid.uuid4()))
        for replica in (0, 1):
            with pytest.raises(Refused) as caught:
                await lobby.call("Refresh", late, replica=replica)
            assert caught.value.reason in {"SIGN_IN_FAILED", "TOKEN_REUSED"}


async def test_both_replicas_at_once_give_a_refresh_token_away_once(lobby):
    for _ in range(4):
        owner = await Person(lobby, 0).sign_in()
        requests = [
            player_pb.RefreshRequest(refresh_token=owner.tokens.refresh_token, request_id=str(uuid.uuid4()))
            for _ in range(2)
        ]
        answers = await asyncio.gather(
            *(lobby.call("Refresh", request, replica=at) for at, request in enumerate(requests)),
            return_exceptions=True,
        )
        assert sum(isinstance(answer, player_pb.RefreshResponse) for answer in answers) == 1, answers
        (lost,) = [answer for answer in answers if isinstance(answer, Refused)]
        assert lost.reason == "TOKEN_REUSED"


async def test_a_devices_secret_is_not_guessed_faster_at_two_replicas(house, lobby):
    """Five wrong tries are looked at, whichever replica gets them; then a wait that doubles."""
    device = player_pb.Device(device_id=str(uuid.uuid4()), secret=random.randbytes(32))
    owner = await Person(lobby, 0).sign_in(device)
    assert (await Person(lobby, 1).sign_in(device)).player_id == owner.player_id
    looked_at, limited, wait_s, last = 0, 0, 0, 0.0
    while limited < 15:
        wrong = player_pb.SignInRequest(
            device=player_pb.Device(device_id=device.device_id, secret=random.randbytes(32))
        )
        began = time.monotonic()
        with pytest.raises(Refused) as caught:
            await lobby.call("SignIn", wrong, replica=(looked_at + limited) % 2)
        if caught.value.reason == "RATE_LIMITED":
            limited += 1
            assert looked_at >= THING.free
            assert caught.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert 0 < caught.value.retry_s <= wait_s
            continue
        # Where calls take long, another one is looked at when the wait is over; and the next wait is longer.
        assert caught.value.reason == "SIGN_IN_FAILED"
        assert time.monotonic() - last >= wait_s
        looked_at, last = looked_at + 1, began
        wait_s = wait_ms(THING, looked_at) / 1000
    # Nothing is looked at meanwhile, not even the right secret; after it the owner is in.
    right = player_pb.SignInRequest(device=device)
    try:
        await lobby.call("SignIn", right, replica=1)
    except Refused as refusal:
        reason = refusal.reason
    else:
        reason = "RATE_LIMITED" if time.monotonic() - last >= wait_s else ""
    assert reason == "RATE_LIMITED"
    await asyncio.sleep(wait_s + 0.1)
    assert (await lobby.call("SignIn", right, replica=1)).player.player_id == owner.player_id


async def test_guesses_all_at_once_are_counted_one_by_one(house, lobby):
    """40 at the same moment through both replicas: no more are looked at than may be."""
    device = player_pb.Device(device_id=str(uuid.uuid4()), secret=random.randbytes(32))
    await Person(lobby, 0).sign_in(device)

    async def guess(number):
        wrong = player_pb.Device(device_id=device.device_id, secret=random.randbytes(32))
        with pytest.raises(Refused) as caught:
            await lobby.call("SignIn", player_pb.SignInRequest(device=wrong), replica=number % 2)
        return caught.value.reason

    began = time.monotonic()
    reasons = await asyncio.gather(*(guess(number) for number in range(40)))
    seconds = time.monotonic() - began
    assert set(reasons) <= {"SIGN_IN_FAILED", "RATE_LIMITED", "BUSY"}
    assert 1 <= reasons.count("SIGN_IN_FAILED") <= THING.free + 1 + math.log2(1 + seconds)
    assert NETWORK.free > 2 * THING.free, "else the tests above slow each other"
