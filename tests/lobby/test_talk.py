"""Phrases, saying and muting."""

import json

import pytest
from support.presence_world import Clock, World

from services.lobby.phrases import PHRASES
from services.lobby.records import place_key, player_key
from services.lobby.talk import MUTED_MOST, SAY_BURST, SAY_EVERY_S, Saying
from services.pb.lobby.v1.stored_pb2 import PlaceRecord, PlayerRecord
from services.rules.reasons import Reason
from services.shell.bus import MemoryBus
from services.shell.errors import RefusedError

ANN, BEN, CAT = (f"ply_{number:026}" for number in range(3))


async def people(world: World | None = None) -> tuple[World, list[Saying]]:
    """Ann and Ben in a room, Cat of another operator's; and what is said."""
    world = world or World()
    await world.start()
    for player in (ANN, BEN):
        await world.player(player)
    await world.player(CAT, "acme")
    await world.room("rom_a", ANN, BEN)
    heard: list[Saying] = []
    world.talk.on_said(heard.append)
    return world, heard


async def refused(doing: object) -> RefusedError:
    with pytest.raises(RefusedError) as error:
        await doing  # type: ignore[misc]
    return error.value


def test_phrases_are_many_and_in_both_languages() -> None:
    emotes = [phrase for phrase in PHRASES.values() if phrase.emote]
    assert (len(PHRASES) - len(emotes), len(emotes)) == (24, 12)
    for phrase_id, phrase in PHRASES.items():
        assert phrase.phrase_id == phrase_id
        assert phrase_id.startswith("emote_") == phrase.emote
        assert phrase.en.isascii()
        assert not phrase.zh.isascii()
    for texts in ([phrase.zh for phrase in PHRASES.values()], [phrase.en for phrase in PHRASES.values()]):
        assert len(set(texts)) == len(texts)


def test_no_phrase_speaks_of_cards_or_plays() -> None:
    told = " ".join(f"{phrase.zh} {phrase.en}".lower() for phrase in PHRASES.values())
    for word in ("trump", "heart", "spade", "club", "diamond", "joker", "pair", "point", "lead ", "partner"):
        assert word not in told
    for word in "主牌桃梅方王对拖分底杀毙垫甩级庄闲":
        assert word not in told.replace("方便", "").replace("对不起", "")


async def test_what_is_said_is_told_with_its_place() -> None:
    world, heard = await people()
    await world.put({place_key(ANN): PlaceRecord(room_id="rom_a", table_id="tbl_a", seat=0)})
    await world.talk.say(ANN, "nice")
    [saying] = heard
    assert (saying.room_id, saying.table_id) == ("rom_a", "tbl_a")
    assert (saying.said.player_id, saying.said.phrase_id) == (ANN, "nice")
    assert saying.said.said_at_ms == world.clock.ms()
    assert world.registry.get_sample_value("shengji_said_total") == 1


async def test_nobody_speaks_from_nowhere_nor_while_waiting() -> None:
    world, heard = await people()
    assert (await refused(world.talk.say(CAT, "nice"))).reason is Reason.NOT_IN_ROOM
    await world.ticket("tkt_a", CAT)
    assert (await refused(world.talk.say(CAT, "nice"))).reason is Reason.NOT_IN_ROOM
    assert not heard


@pytest.mark.parametrize("phrase_id", ["", "NICE", "play your trumps", "emote"])
async def test_nothing_else_can_be_said(phrase_id: str) -> None:
    world, heard = await people()
    assert (await refused(world.talk.say(ANN, phrase_id))).reason is Reason.UNKNOWN_PHRASE
    assert not heard


async def test_one_in_two_seconds_and_three_at_once() -> None:
    world, heard = await people()
    for _ in range(SAY_BURST):
        await world.talk.say(ANN, "nice")
    limited = await refused(world.talk.say(ANN, "nice"))
    assert limited.reason is Reason.RATE_LIMITED
    assert limited.retry_after_s == SAY_EVERY_S
    await world.talk.say(BEN, "nice")
    world.clock.now += SAY_EVERY_S
    await world.talk.say(ANN, "nice")
    assert len(heard) == SAY_BURST + 2


async def test_the_limit_holds_over_all_replicas() -> None:
    bus, clock = MemoryBus(), Clock()
    here, _ = await people(World(bus=bus, clock=clock, seed=1))
    there = World(store=here.store, bus=bus, clock=clock, seed=2)
    await there.start()
    for world in (here, there, here):
        await world.talk.say(ANN, "nice")
    for world in (here, there):
        assert (await refused(world.talk.say(ANN, "nice"))).reason is Reason.RATE_LIMITED


@pytest.mark.parametrize("news", [b"", b"{}", b"[1]", json.dumps({"player": 1}).encode()])
async def test_other_news_is_logged_and_not_told(news: bytes) -> None:
    world, heard = await people()
    await world.bus.tell("said", news)
    assert not heard
    assert "bad_news" in world.log.getvalue()


async def test_muting_is_kept_and_can_be_taken_back() -> None:
    world, _ = await people()
    for _ in range(2):
        await world.talk.mute(ANN, BEN, True)
        assert await world.talk.muted_by(ANN) == {BEN}
    record = PlayerRecord.FromString((await world.store.get(player_key(ANN))).value)
    assert list(record.muted) == [BEN]
    for _ in range(2):
        await world.talk.mute(ANN, BEN, False)
        assert await world.talk.muted_by(ANN) == set()
    assert await world.talk.muted_by(BEN) == set()


@pytest.mark.parametrize("other", [CAT, "ply_unknown", "", "*", "a.b", "bot:1"])
async def test_only_players_of_the_same_operator_can_be_muted(other: str) -> None:
    world, _ = await people()
    assert (await refused(world.talk.mute(ANN, other, True))).reason is Reason.UNKNOWN_PLAYER
    assert await world.talk.muted_by(ANN) == set()


async def test_nobody_mutes_themselves() -> None:
    world, _ = await people()
    assert (await refused(world.talk.mute(ANN, ANN, True))).reason is Reason.BAD_INPUT


async def test_at_most_two_hundred_are_muted() -> None:
    world, _ = await people()
    others = [f"ply_other{number}" for number in range(MUTED_MOST)]
    await world.put({player_key(ANN): PlayerRecord(player_id=ANN, muted=others)})
    assert (await refused(world.talk.mute(ANN, BEN, True))).reason is Reason.TOO_LARGE
    await world.talk.mute(ANN, others[0], False)
    await world.talk.mute(ANN, BEN, True)
    assert BEN in await world.talk.muted_by(ANN)


async def test_another_replica_hears_of_a_mute_at_once_or_half_a_minute_later() -> None:
    bus, clock = MemoryBus(), Clock()
    here, _ = await people(World(bus=bus, clock=clock, seed=1))
    there = World(store=here.store, bus=bus, clock=clock, seed=2)
    await there.start()
    assert await there.talk.muted_by(ANN) == set()
    await here.talk.mute(ANN, BEN, True)
    assert await there.talk.muted_by(ANN) == {BEN}
    deaf = World(store=here.store, bus=MemoryBus(), clock=clock, seed=3)
    assert await deaf.talk.muted_by(ANN) == {BEN}
    await here.talk.mute(ANN, BEN, False)
    assert await deaf.talk.muted_by(ANN) == {BEN}
    clock.now += 30
    assert await deaf.talk.muted_by(ANN) == set()
