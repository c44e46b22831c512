"""What the lobby says, prints and measures: secrets to nobody else, and names that are a promise.

People of the house and of an operator sign in, meet, play, talk, report and go wrong in every way, while all
wires are tapped, logs are at their most talkative and metrics are read.
"""

import asyncio
import base64
import json
import random
import re
import time
import uuid

import grpc
import pytest
from nats.aio.client import Client
from prometheus_client.parser import text_string_to_metric_families
from support.calls import Calls, Refused
from support.house import COMES_S, UNLIMITED, House, own_port
from support.lobby_people import METHODS, LobbyCalls, Person, plan
from support.lobby_taps import Tapped, forms, measured, pages_of

from services.game.ids import new_id
from services.lobby.operators import Operators
from services.lobby.store_jetstream import JetStreamStore
from services.pb.event.v1.event_pb2 import SPECTATORS_LINK
from services.pb.lobby.v1 import match_service_pb2 as match_pb
from services.pb.lobby.v1 import operator_service_pb2 as operator_pb
from services.pb.lobby.v1 import player_service_pb2 as player_pb
from services.pb.lobby.v1 import presence_service_pb2 as presence_pb
from services.pb.lobby.v1 import room_service_pb2 as room_pb
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_AFTER, VISIBILITY_PUBLIC
from services.rules.reasons import Reason
from services.shell.broker import Broker
from services.shell.logs import ORDER

USER_ID = "the-operators-own-name-for-dan"
REPORT_TEXT = "He told me what he held."
LABELS = {
    "shengji_build_info": {"version", "python"},
    "shengji_rpc_seconds": {"method"},
    "shengji_rpc_calls": {"method", "code"},
    "shengji_refusals": {"reason"},
    "shengji_sign_ins": {"way"},
    "shengji_wrong_secrets": set(),
    "shengji_revoked_families": set(),
    "shengji_store_conflicts": set(),
    "shengji_players_online": set(),
    "shengji_stays": set(),
    "shengji_rooms": set(),
    "shengji_ended_rooms": {"why"},
    "shengji_founded_tables": set(),
    "shengji_failed_starts": set(),
    "shengji_tickets": set(),
    "shengji_dropped_tickets": {"why"},
    "shengji_matches": {"filled"},
    "shengji_pass_seconds": set(),
    "shengji_ticket_wait_seconds": set(),
    "shengji_said": set(),
    "shengji_reports": set(),
    "shengji_aftermath_lag_seconds": set(),
}
VALUES = {
    "method": set(METHODS),
    "code": {code.name for code in grpc.StatusCode},
    "reason": {reason.value for reason in Reason},
    "way": {"guest", "device", "user", "refresh"},
    "why": {"left", "offline", "after", "cancelled"},
    "filled": {"people", "bots"},
}
LATER = {
    "shengji_players_online": 2 * 5,
    "shengji_stays": 5,
    "shengji_pass_seconds_count": 3,
    "shengji_aftermath_lag_seconds_count": 1,
    "shengji_founded_tables_total": 2,
    "shengji_ended_rooms_total": 1,
}
"""What is counted a moment after its cause: wait for so much."""
FIELDS = {
    "serving": {"address", "metrics_port"},
    "stopping": set(),
    "stopped": set(),
    "refused": {"rpc", "reason", "code", "table_id", "trace_id", "seconds"},
    "deliveries_away": {"fault"},
}
"""What a lobby prints while nothing is broken; the last one if it starts before the table service has."""


async def fails(awaitable, *reasons):
    with pytest.raises(Refused) as caught:
        await awaitable
    assert caught.value.reason in reasons, caught.value.reason


async def come_in(tapped, lobby, key):
    """Ann with a device, Bob and Eve as guests, Dan as an operator's user; all stay."""
    device = player_pb.Device(device_id=str(uuid.uuid4()), secret=random.randbytes(32))
    tapped.keep("a device's secret", device.secret)
    ann = await Person(lobby, 0).sign_in(device, name="Ann")
    bob, eve, cid = [await Person(lobby, at % 2).sign_in() for at in range(3)]
    for person in (ann, bob, eve, cid):
        tapped.keep_tokens(person.tokens, person.player_id, "a stranger")
    request = operator_pb.SignInUserRequest(user_id=USER_ID, name="Dan")
    signed = await lobby.call("SignInUser", request, key, 1, "the operator")
    dan = Person(lobby, 1)
    dan.player = signed.player
    dan.hold(signed.tokens)
    tapped.keep_tokens(dan.tokens, dan.player_id, "the operator")
    tapped.keep("a user id", USER_ID, dan.player_id, "the operator")
    for person in (ann, bob, cid, eve, dan):
        person.come()
        await person.stay.until(lambda person=person: person.stay.whereabouts is not None)
    return ann, bob, cid, eve, dan, device


async def meet_and_play(tapped, tables, metrics, ann, bob, eve):
    """A room by code, which Eve never sees, a match at a table that needs a link, and talk."""
    planned = plan(deals="1")
    planned.spectators = SPECTATORS_LINK
    made = await ann.make_room(planned, visibility=VISIBILITY_PUBLIC)
    tapped.keep("an invite code", made.code, ann.player_id)
    watch = eve.calls.stream("WatchRooms", room_pb.WatchRoomsRequest(), eve.token, 1)
    for _ in range(2):
        eve.calls.saw(eve.player_id, "WatchRooms", await watch.read())
    assert (await eve.call("ListRooms", room_pb.ListRoomsRequest())).rooms
    room = (await ann.call("RenewCode", room_pb.RenewCodeRequest(room_id=made.room_id))).room
    tapped.keep("an invite code", room.code, ann.player_id, bob.player_id)
    await fails(bob.join(made.code), "UNKNOWN_CODE")
    await bob.join(room.code)
    seats = [room_pb.TakeSeatRequest(room_id=room.room_id, seat=1 + number % 3) for number in range(12)]
    # Until two changes of one record have met.
    while not sum(measured(page, "shengji_store_conflicts_total") for page in await pages_of(metrics)):
        taking = [
            eve.calls.settle("TakeSeat", seat, bob.token, at % 2, bob.player_id)
            for at, seat in enumerate(seats)
        ]
        await asyncio.gather(*taking)
    await bob.take_seat(room.room_id, 2)
    for look in (
        eve.call("GetRoom", room_pb.GetRoomRequest(room_id=room.room_id)),
        eve.call("StartRoom", room_pb.StartRoomRequest(room_id=room.room_id)),
    ):
        await fails(look, "NOT_IN_ROOM")
    await ann.start(room.room_id)
    both = [await person.told_of_table() for person in (ann, bob)]
    assert both[0].spectator_code
    may_know = (ann.player_id, bob.player_id, "svc:lobby")
    tapped.keep("a spectator's code", both[0].spectator_code, *may_know)
    tapped.keep("a resume token", both[0].resume, *may_know)
    asked = presence_pb.GetPresenceRequest(player_ids=[ann.player_id, bob.player_id])
    assert len((await eve.call("GetPresence", asked)).players) == 2
    await ann.call("Say", presence_pb.SayRequest(phrase_id="nice"))
    await bob.stay.until(lambda: bob.stay.said)
    await asyncio.gather(
        *(
            person.player_at(tables, room, random.Random(at)).play()
            for at, (person, room) in enumerate(zip((ann, bob), both, strict=True))
        )
    )
    report = presence_pb.ReportRequest(
        request_id=str(uuid.uuid4()),
        table_id=both[0].table_id,
        version=5,
        player_id=bob.player_id,
        kind=presence_pb.REPORT_KIND_COLLUSION,
        text=REPORT_TEXT,
    )
    tapped.keep("a report", REPORT_TEXT)
    await ann.call("Report", report)
    await ann.stay.until(lambda: ann.stay.room.state == ROOM_STATE_AFTER)
    for person in (ann, bob):
        await person.settle("LeaveRoom", room_pb.LeaveRoomRequest(room_id=room.room_id))
    watch.cancel()


async def go_wrong(tapped, lobby, key, bob, eve, dan, device):
    """Wrong tokens, secrets, keys, codes, ids and messages; a refresh token used twice."""
    me = player_pb.GetPlayerRequest()
    for token in (f"{eve.token[:-3]}abc", "no token", bob.tokens.refresh_token, key, "", eve.token[:40]):
        await fails(lobby.call("GetPlayer", me, token, 0, "somebody"), "UNAUTHENTICATED")
    for wrong in (f"{key[:-2]}xx", eve.token, "opk_"):
        ask = operator_pb.ListUsersRequest()
        await fails(lobby.call("ListUsers", ask, wrong, 1, "somebody"), "UNAUTHENTICATED")
    wrong = player_pb.Device(device_id=device.device_id, secret=random.randbytes(32))
    request = player_pb.SignInRequest(device=wrong)
    tapped.keep("a wrong secret", wrong.secret)
    await fails(lobby.call("SignIn", request, "", 0, "somebody"), "SIGN_IN_FAILED")
    short = player_pb.SignInRequest(device=player_pb.Device(device_id=device.device_id, secret=b"0123456"))
    await fails(lobby.call("SignIn", short, "", 0, "somebody"), "BAD_INPUT")
    for code in ("AAAAAA", "", "x" * 100):
        await fails(eve.join(code), "UNKNOWN_CODE")
    nowhere = room_pb.JoinRoomRequest(room_id=new_id("rom", 1, bytes(10)))
    await fails(eve.call("JoinRoom", nowhere), "UNKNOWN_ROOM")
    await fails(eve.call("Say", presence_pb.SayRequest(phrase_id="nice")), "NOT_IN_ROOM")
    await fails(
        dan.call("Mute", presence_pb.MuteRequest(player_id=bob.player_id, muted=True)), "UNKNOWN_PLAYER"
    )
    old = bob.tokens
    await bob.refresh()
    tapped.keep_tokens(bob.tokens, bob.player_id)
    for token, reason in ((old, "TOKEN_REUSED"), (bob.tokens, "SIGN_IN_FAILED")):
        again = player_pb.RefreshRequest(refresh_token=token.refresh_token, request_id=str(uuid.uuid4()))
        await fails(lobby.call("Refresh", again, "", 1, bob.player_id), reason)


async def look_for_matches(eve, cid):
    """One ticket is cancelled, one is matched with bots."""
    request = match_pb.CreateTicketRequest(request_id=str(uuid.uuid4()), preset="classic-1d")
    ticket = (await eve.call("CreateTicket", request)).ticket
    await eve.call("CancelTicket", match_pb.CancelTicketRequest(ticket_id=ticket.ticket_id))
    request = match_pb.CreateTicketRequest(request_id=str(uuid.uuid4()), preset="classic-1d", bots_after_s=1)
    await cid.call("CreateTicket", request)
    await cid.told_of_table()


async def tell_all(house, metrics):
    """The whole story, tapped."""
    tapped, client = Tapped(), Client()

    def tap(who, method, raw):
        tapped.sent.append((who, method, raw))

    lobby = LobbyCalls([replica.address for replica in house.lobbies], tap)
    tables = Calls([replica.address for replica in house.replicas], lobby.token, tap)
    try:
        await client.connect(house.nats.url)

        async def take(message):
            tapped.wire.append((message.subject, message.data))

        await client.subscribe(">", cb=take)
        broker = await Broker.connect(house.nats.url, "lobby")
        operators = Operators(JetStreamStore(broker), lambda: time.time_ns() // 1_000_000, random.randbytes)
        key = await operators.add("acme")
        await broker.close()
        tapped.keep("an API key", key.rpartition(".")[2])
        for path in (house.folder / "keys").glob("*.key"):
            secret = base64.b64decode(path.read_text().split("-----")[2])[-32:]
            tapped.keep(f"the private key {path.name}", secret)
        for ring_key in house.ring.listed():
            tapped.keep("a private key of the ring", ring_key.key.private_bytes_raw())
        ann, bob, cid, eve, dan, device = await come_in(tapped, lobby, key)
        await meet_and_play(tapped, tables, metrics, ann, bob, eve)
        await look_for_matches(eve, cid)
        await go_wrong(tapped, lobby, key, bob, eve, dan, device)
        listed = await lobby.call("ListUsers", operator_pb.ListUsersRequest(), key, 1, "the operator")
        assert [player.user_id for player in listed.players] == [USER_ID]
        reports = await lobby.call("ListReports", operator_pb.ListReportsRequest(), key, 0, "the operator")
        assert not reports.reports, "the house's reports are not the operator's"
        tapped.pages = await counted_pages(metrics)
        for person in (ann, bob, cid, eve, dan):
            await person.go()
        assert [await replica.stop() for replica in house.lobbies] == [0, 0]
        await client.flush()
    finally:
        await client.close()
        await tables.close()
        await lobby.close()
        house.kill()
    tapped.printed = house.printed() + (house.folder / "nats" / "nats.log").read_text()
    for replica in house.lobbies:
        tapped.lines += [json.loads(line) for line in replica.log.read_text().splitlines()]
    return tapped


async def counted_pages(metrics):
    """The metrics once what is done later, or told to the other replica later, is in them."""
    async with asyncio.timeout(COMES_S):
        while True:
            pages = await pages_of(metrics)
            sums = {name: sum(measured(page, name) for page in pages) for name in LATER}
            if all(least <= sums[name] for name, least in LATER.items()):
                return pages
            await asyncio.sleep(0.1)


async def run(folder):
    house = House(folder, 1, UNLIMITED, nats_users=False, lobbies=2)
    metrics = [f"127.0.0.1:{own_port()}" for _ in house.lobbies]
    for service, address in zip(house.lobbies, metrics, strict=True):
        service.env["SHENGJI_METRICS"] = address
    for service in (*house.replicas, *house.lobbies, house.bots):
        service.env["SHENGJI_LOG_LEVEL"] = "debug"
    try:
        await house.start(bots=True)
        return await tell_all(house, metrics)
    finally:
        house.kill()


@pytest.fixture(scope="module")
def tapped(tmp_path_factory):
    return asyncio.run(run(tmp_path_factory.mktemp("lobby_secrecy")))


def test_nobody_is_told_what_it_may_not_know(tapped):
    assert len(tapped.sent) > 100
    for what, secret, may_know in tapped.secrets:
        for who, method, raw in tapped.sent:
            if who not in may_know:
                assert not any(form in raw for form in forms(secret)), f"{who} is told {what} by {method}"
    told = {
        what
        for what, secret, may_know in tapped.secrets
        if may_know
        and any(who in may_know and form in raw for who, _, raw in tapped.sent for form in forms(secret))
    }
    assert told == {
        "an access token",
        "a refresh token",
        "an invite code",
        "a spectator's code",
        "a resume token",
        "a user id",
    }, "else the check above could not fail"


def test_no_secret_goes_through_nats(tapped):
    """Tokens, keys and secrets are nowhere: records hold hashes, and what tokens follow from."""
    assert any(subject.startswith("$KV.SJ_LOBBY.family.") for subject, _ in tapped.wire)
    assert any(subject.startswith("$KV.SJ_LOBBY.device.") for subject, _ in tapped.wire)
    # Of the table's own the lobby keeps what members are told; who reads records may read reports.
    kept = {"an invite code", "a spectator's code", "a resume token", "a user id", "a report"}
    for what, secret, _ in tapped.secrets:
        if what not in kept:
            for subject, data in tapped.wire:
                assert not any(form in data for form in forms(secret)), f"{what} on {subject}"


def test_nothing_secret_is_printed_or_measured(tapped):
    assert '"level": "debug"' in tapped.printed
    for where, text in [("log", tapped.printed), *(("metrics", page) for page in tapped.pages)]:
        encoded = text.encode()
        for what, secret, _ in tapped.secrets:
            assert not any(form in encoded for form in forms(secret)), f"{what} in {where}"
        for mark in ("eyJ", "opk_", "ref_", "Bearer "):
            assert mark not in text, f"{mark} in {where}"
        assert not re.search(r"\bPRIVATE KEY\b", text)
    for page in tapped.pages:
        assert not re.search(r"(ply|rom|tkt|tbl|rep)_[0-9a-z]{26}", page)


def test_the_metrics_are_pinned_and_count_what_happened(tapped):
    sums = {}
    for page in tapped.pages:
        families = list(text_string_to_metric_families(page))
        found = {
            family.name: {name for sample in family.samples for name in sample.labels} - {"le"}
            for family in families
        }
        assert found == LABELS
        for family in families:
            for sample in family.samples:
                for name, value in sample.labels.items():
                    assert value in VALUES.get(name, {value}), (sample.name, name, value)
                key = (sample.name, *sorted(value for name, value in sample.labels.items() if name != "le"))
                sums[key] = sums.get(key, 0) + sample.value
    exactly = {
        ("shengji_sign_ins_total", "guest"): 3,
        ("shengji_sign_ins_total", "device"): 1,
        ("shengji_sign_ins_total", "user"): 1,
        ("shengji_sign_ins_total", "refresh"): 1,
        ("shengji_revoked_families_total",): 1,
        ("shengji_founded_tables_total",): 2,
        ("shengji_failed_starts_total",): 0,
        ("shengji_ended_rooms_total", "left"): 1,
        ("shengji_dropped_tickets_total", "cancelled"): 1,
        ("shengji_matches_total", "bots"): 1,
        ("shengji_matches_total", "people"): 0,
        ("shengji_ticket_wait_seconds_count",): 1,
        ("shengji_said_total",): 1,
        ("shengji_reports_total",): 1,
        ("shengji_stays",): 5,
        ("shengji_players_online",): 2 * 5,
        ("shengji_rpc_calls_total", "OK", "Report"): 1,
        ("shengji_refusals_total", "token_reused"): 1,
    }
    assert {key: sums.get(key) for key in exactly} == exactly
    assert sums["shengji_wrong_secrets_total",] >= 2
    assert sums["shengji_store_conflicts_total",] >= 1
    assert sums["shengji_pass_seconds_count",] >= 3
    assert sums["shengji_aftermath_lag_seconds_count",] >= 1


def test_the_fields_of_log_lines_are_closed(tapped):
    always = {"ts", "level", "service", "event"}
    for line in tapped.lines:
        assert line["service"] == "lobby"
        assert line["event"] in FIELDS, line
        assert set(line) - always <= FIELDS[line["event"]], line
        assert set(line) <= set(ORDER)
        assert line["level"] in ("debug", "info") or line["event"] == "deliveries_away", line
    assert {line["event"] for line in tapped.lines} >= FIELDS.keys() - {"deliveries_away"}
    refused = [line for line in tapped.lines if line["event"] == "refused"]
    assert {line["reason"] for line in refused} >= {"unauthenticated", "token_reused", "unknown_code"}
