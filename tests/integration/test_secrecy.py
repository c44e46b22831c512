"""Nobody is told what it may not know: every byte that leaves the house in whole matches is looked at."""

import asyncio
import base64
import random
import re
import urllib.request
from collections import Counter

import pytest
from nats.aio.client import Client
from support.calls import Calls, Refused
from support.house import UNLIMITED, House, own_port
from support.seats import AT_ONCE, OVER, Watching, founding, seated
from support.secrecy import Truth, check_message, decoded

from services.game import chain
from services.game.errors import ShengjiError
from services.game.ids import parse_subject
from services.game.keys import Keyring, reveal_in, seal_of
from services.game.seal import open_commit
from services.pb.event.v1.event_pb2 import Pace
from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1.view_pb2 import PHASE_DECLARING
from services.shell.keys import master_keys

NAMES = ("north", "east", "south", "west")
VIEWERS = (*NAMES, "onlooker")
DRAWN = Pace()
DRAWN.CopyFrom(AT_ONCE)
DRAWN.draw_ms = 40
TABLES = [
    ("classic-1d", 2, DRAWN),
    ("classic-2d", 1, AT_ONCE),
    ("classic-3d", 1, AT_ONCE),
    ("classic-4d", 1, AT_ONCE),
]
"""(preset, deals, pace)."""
CARD_TEXT = re.compile(r"(?<![A-Za-z0-9])(?:[SHCD](?:[2-9TJQKA])|LJ|BJ|CARD_[A-Z0-9]+)(?![A-Za-z0-9])")


class Tapped:
    """A house all of whose wires are tapped, after whole matches were played in it.

    Attributes:
        sent: for each table what was sent to whom: (player, method, bytes), in order.
        wire: everything that went through NATS, in order: (subject, data).
        stored: the stored bytes of each table.
        truths: each table with its secrets in the clear.
        pages: what the services' metrics said in the end.
        printed: what the services printed, nats-server's own log included.
    """

    def __init__(self) -> None:
        self.sent = {}
        self.wire = []
        self.stored = {}
        self.truths = {}
        self.pages = ""
        self.printed = ""

    def secrets(self):
        """(what, secret, version that reveals it) of all tables."""
        for truth in self.truths.values():
            for deal in truth.deals:
                for secret in (deal.seed, *deal.keys):
                    yield truth.table_id, secret, deal.ends
                for _, text in deal.texts():
                    yield truth.table_id, text, deal.ends


async def look_around(calls, table_id, rng):
    """All four seats and a spectator look, and somebody asks for what is refused."""
    for viewer in VIEWERS:
        await calls.ask("GetView", pb.GetViewRequest(table_id=table_id), viewer, rng.randrange(2))
    for name in NAMES:
        await calls.ask("LegalPlays", pb.LegalPlaysRequest(table_id=table_id), name, rng.randrange(2))
    view = (await calls.ask("GetView", pb.GetViewRequest(table_id=table_id), "onlooker")).view
    for _ in range(3):
        context = pb.CommandContext(table_id=table_id, version=view.version)
        cards = [rng.randint(1, 54) for _ in range(rng.randint(1, 8))]
        method, request = rng.choice(
            [
                ("Bury", pb.BuryRequest(context=context, cards=cards)),
                ("Declare", pb.DeclareRequest(context=context, cards=[53, 53, 53, 53, 53])),
                ("Play", pb.PlayRequest(context=context, cards=[*cards, 54, 54, 54, 54, 54])),
            ]
        )
        with pytest.raises(Refused):
            await calls.settle(method, request, rng.choice(VIEWERS))


async def play_tapped(house, preset, deals, pace, sent, rng):
    """Play a match, all looking on; its table."""
    calls = Calls(
        [replica.address for replica in house.replicas], house.token, lambda *message: sent.append(message)
    )
    founded = await calls.settle("CreateTable", founding(preset, pace=pace, deals=str(deals)), "founder")
    table_id = founded.table_id
    sent.clear()  # the founder's answer has no view
    watches = [Watching(calls, table_id, viewer, "", at % 2).start() for at, viewer in enumerate(VIEWERS)]
    # From the founding on: all at one table, and one at the larger ones: an audience is told one message.
    resuming = VIEWERS if deals > 1 else VIEWERS[:1]
    watches += [Watching(calls, table_id, viewer, founded.resume).start() for viewer in resuming]
    players = seated(calls, table_id, NAMES, rng, bold=0.4)
    version, moves = 1, 0
    while True:
        view = await players[0].view(version)
        if view.phase in OVER:
            break
        if moves % 7 == 0 or (view.phase == PHASE_DECLARING and pace.draw_ms):
            await look_around(calls, table_id, rng)
        mover = players[rng.choice(view.to_act)]
        version = await mover.move(await mover.view(view.version)) or view.version
        moves += 1
    for watch in watches:
        await watch.until(lambda watch=watch: watch.over)
        await watch.stop()
    await calls.close()
    return table_id


def read_page(url):
    with urllib.request.urlopen(url) as page:
        return page.read().decode()


async def play_all(folder):
    metrics = f"127.0.0.1:{own_port()}"
    house = House(folder, 2, UNLIMITED, nats_users=False)
    house.replicas[0].env["SHENGJI_METRICS"] = metrics
    for service in (*house.replicas, house.bots):
        service.env["SHENGJI_LOG_LEVEL"] = "debug"
    tapped, client = Tapped(), Client()
    try:
        await house.start(bots=True)

        async def take(message):
            tapped.wire.append((message.subject, message.data))

        await client.connect(house.nats.url)
        await client.subscribe(">", cb=take)
        rng = random.Random(12)
        sents = [[] for _ in TABLES]
        tables = await asyncio.gather(
            *(
                play_tapped(house, preset, deals, pace, sent, random.Random(rng.random()))
                for (preset, deals, pace), sent in zip(TABLES, sents, strict=True)
            )
        )
        tapped.sent = dict(zip(tables, sents, strict=True))
        tapped.stored = await house.stored(tables)
        tapped.pages = await asyncio.to_thread(read_page, f"http://{metrics}/metrics")
        for replica in house.replicas:
            await replica.stop()  # which writes the last snapshots
        await client.flush()
        await asyncio.sleep(0.2)
    finally:
        await client.close()
        house.kill()
    tapped.truths = {table_id: Truth(table_id, stored) for table_id, stored in tapped.stored.items()}
    tapped.printed = house.printed() + (folder / "nats" / "nats.log").read_text()
    tapped.masters = list(master_keys(folder).values())
    tapped.tokens = [house.token(viewer) for viewer in VIEWERS]
    return tapped


@pytest.fixture(scope="module")
def tapped(tmp_path_factory):
    return asyncio.run(play_all(tmp_path_factory.mktemp("secrecy")))


def test_the_matches_were_worth_looking_at(tapped):
    """Declarations, throws, refusals, burials and all kinds of messages occurred."""
    kinds, methods = Counter(), Counter()
    for truth in tapped.truths.values():
        kinds.update(event.WhichOneof("kind") for commit in truth.commits for event in commit.events)
    for sent in tapped.sent.values():
        methods.update(method for _, method, _ in sent)
    assert {"declared", "buried", "kitty_taken", "cards_played", "deal_scored"} <= set(kinds)
    assert {"GetView", "LegalPlays", "Watch", "Play refused", "Bury refused", "Declare refused"} <= set(
        methods
    )
    assert methods["Watch"] > 1000
    assert sum(len(truth.deals) for truth in tapped.truths.values()) == sum(deals for _, deals, _ in TABLES)
    played = [e.cards_played for t in tapped.truths.values() for c in t.commits for e in c.events]
    assert any(play.attempted for play in played), "no throw failed"


@pytest.mark.parametrize("number", range(len(TABLES)), ids=[preset for preset, _, _ in TABLES])
def test_nobody_is_told_what_it_may_not_know(tapped, number):
    table_id = list(tapped.sent)[number]
    truth, told = tapped.truths[table_id], Counter()
    for player, method, raw in tapped.sent[table_id]:
        seat = NAMES.index(player) if player in NAMES else None
        told[player] += bool(check_message(truth, seat, method, raw))
        for master in tapped.masters:
            assert master not in raw
    assert min(told[viewer] for viewer in VIEWERS) > 50


def test_nats_holds_no_secret_before_it_is_revealed(tapped):
    """Commits, live copies, timers, snapshots and answers: whatever went through NATS tells nothing early."""
    for place in ("sj.v1.table.", "sj.v1.live.", "sj.v1.timer.arm.", "$KV.SJ_SNAPSHOTS.", "_INBOX"):
        assert any(subject.startswith(place) for subject, _ in tapped.wire), f"nothing came by on {place}"
    revealed: dict[str, int] = dict.fromkeys(tapped.stored, 0)
    secrets = list(tapped.secrets())
    for subject, data in tapped.wire:
        if subject.startswith("sj.v1.table."):
            commit = chain.decode(data)
            if any(reveal_in(event) for event in commit.events):
                revealed[parse_subject(subject).table_id] = commit.version
        for part in decoded(data):
            for master in tapped.masters:
                assert master not in part
            for table_id, secret, ends in secrets:
                if secret in part:
                    assert revealed[table_id] >= ends, f"{subject} holds a secret before its deal is over"
    assert all(revealed.values())


def test_what_is_stored_holds_no_secret_of_an_open_deal(tapped):
    for table_id, stored in tapped.stored.items():
        for version, raw in enumerate(stored, 1):
            for deal in tapped.truths[table_id].deals:
                if version < deal.ends:
                    assert deal.seed not in raw
                    assert not any(key in raw for key in deal.keys)
                    assert not any(text in raw for _, text in deal.texts())


def test_one_seats_key_opens_nothing_of_another(tapped):
    opened = 0
    for table_id, stored in tapped.stored.items():
        truth = tapped.truths[table_id]
        for deal in truth.deals:
            before = truth.at(deal.begins - 1)
            seal = seal_of(before)
            dealing = chain.decode(stored[deal.begins - 1])
            for seat in range(4):
                own = Keyring().with_keys(table_id, seal, {seat: deal.keys[seat]})
                (started,) = (
                    event.deal_started
                    for event in open_commit(dealing, current=seal, keyring=own).events
                    if event.HasField("deal_started")
                )
                assert [bool(hand.cards) for hand in started.hands] == [other == seat for other in range(4)]
                assert not started.kitty.cards
                opened += 1
                for other in ({0, 1, 2, 3, 4} if deal.kitty else {0, 1, 2, 3}) - {seat}:
                    wrong = Keyring().with_keys(table_id, seal, {other: deal.keys[seat]})
                    with pytest.raises(ShengjiError):
                        open_commit(dealing, current=seal, keyring=wrong)
    assert opened == 4 * sum(deals for _, deals, _ in TABLES)


def test_nothing_secret_is_printed_or_measured(tapped):
    """Logs at their most talkative, and metrics: no cards, no keys, no tokens, and no ids in metrics."""
    assert '"level": "debug"' in tapped.printed
    for text in (tapped.printed, tapped.pages):
        assert not CARD_TEXT.search(text), CARD_TEXT.search(text)
        for token in tapped.tokens:
            assert token.split(".")[2] not in text
        assert "eyJ" not in text
        keys = [secret for _, secret, _ in tapped.secrets() if len(secret) == 32]
        for secret in (*keys, *tapped.masters):
            assert secret.hex() not in text
            assert base64.b64encode(secret).decode() not in text
    assert "tbl_" not in tapped.pages
    assert not any(name in tapped.pages for name in VIEWERS)
