"""Commands as clients send them: repeated, reordered, forged, oversized, racing."""

import asyncio
import uuid

import grpc
import pytest
from support.serving import PLAYERS, Caller, Game, Refused, context, founding, replica

from services.pb.event.v1.event_pb2 import DIFFICULTY_NORMAL, SPECTATORS_LINK, Seat
from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1 import view_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
AGAINST = grpc.StatusCode.FAILED_PRECONDITION
DENIED = grpc.StatusCode.PERMISSION_DENIED


async def refusal(awaitable):
    with pytest.raises(Refused) as caught:
        await awaitable
    return caught.value


# ------------------------------------------------------------------------------------------------ repeated


async def test_a_repeated_command_has_its_first_answer_at_every_replica(two):
    game = Game(two)
    await game.found()
    command_id = str(uuid.uuid4())
    first = await game.do(0, "Ready", command_id=command_id, client_seed=b"x")
    await game.do(1, "Ready")
    for _ in range(3):
        again = await game.do(0, "Ready", command_id=command_id, client_seed=b"x")
        assert (again.version, again.repeated) == (first.version, True)
    assert (await game.view(0)).version == 3


async def test_a_command_id_is_good_for_one_body(game):
    command_id = str(uuid.uuid4())
    await game.do(0, "Ready", command_id=command_id, client_seed=b"x")
    refused = await refusal(game.do(0, "Ready", command_id=command_id, client_seed=b"y"))
    assert (refused.code, refused.reason) == (grpc.StatusCode.ALREADY_EXISTS, "COMMAND_ID_REUSED")


async def test_the_order_of_cards_does_not_make_another_command(game):
    await game.deal()
    declarer = await game.pass_all()
    view = await game.view(declarer)
    cards, command_id = list(view.hand)[:8], str(uuid.uuid4())
    first = await game.do(declarer, "Bury", view.version, command_id, cards=cards)
    again = await game.do(declarer, "Bury", view.version, command_id, cards=cards[::-1])
    assert (again.version, again.repeated) == (first.version, True)


async def test_one_id_from_two_players_is_two_commands(game):
    command_id = str(uuid.uuid4())
    for seat in (0, 1):
        assert not (await game.do(seat, "Ready", command_id=command_id)).repeated


async def test_a_refused_command_is_not_remembered(game):
    command_id = str(uuid.uuid4())
    assert (await refusal(game.do(0, "Pass", command_id=command_id))).reason == "WRONG_PHASE"
    await game.deal()
    assert not (await game.do(0, "Pass", command_id=command_id)).repeated


async def test_a_founding_is_repeated_at_every_replica(two):
    request = founding(PLAYERS[:2])
    caller = Caller(two[0].data, "ann")
    answers = [await caller.call(at, "CreateTable", request) for at in (*two, *two)]
    assert [answer.receipt.repeated for answer in answers] == [False, True, True, True]
    assert len({(answer.table_id, answer.resume) for answer in answers}) == 1
    request.spectator_delay_ms = 5
    for at in two:
        assert (await refusal(caller.call(at, "CreateTable", request))).reason == "COMMAND_ID_REUSED"
    other = await Caller(two[0].data, "bob").call(two[1], "CreateTable", request)
    assert other.table_id != answers[0].table_id


async def test_foundings_that_race_found_one_table(two):
    request = founding()
    callers = [Caller(two[0].data, "ann") for _ in range(6)]
    answers = await asyncio.gather(
        *(caller.call(two[i % 2], "CreateTable", request) for i, caller in enumerate(callers))
    )
    assert len({answer.table_id for answer in answers}) == 1
    assert [answer.receipt.repeated for answer in answers].count(False) == 1


# ----------------------------------------------------------------------------------- reordered and racing


async def test_a_play_for_an_earlier_turn_is_stale(game):
    leader = await game.to_tricks()
    view = await game.view(leader)
    plays = await game.legal(leader)
    await game.play_one(leader)
    for seat in (leader, (leader + 1) % 4):
        cards = plays.plays[0].cards
        refused = await refusal(game.do(seat, "Play", view.version, cards=cards))
        assert (refused.code, refused.reason) == (grpc.StatusCode.ABORTED, "STALE_VERSION")
    refused = await refusal(game.do(leader, "Play", view.version + 5, cards=plays.plays[0].cards))
    assert refused.reason == "STALE_VERSION"


async def test_of_racing_commands_one_wins_and_the_others_are_answered_by_it(two):
    game = Game(two)
    await game.found(founding(PLAYERS[:1]))
    rivals = [Caller(two[0].data, f"rival{i}") for i in range(6)]
    sits = [
        rival.call(two[i % 2], "Sit", pb.SitRequest(context=context(game.table_id), seat=2))
        for i, rival in enumerate(rivals)
    ]
    outcomes = await asyncio.gather(*sits, return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, Refused)]
    assert len(refused) == 5
    assert {(error.code, error.reason) for error in refused} == {(AGAINST, "SEAT_TAKEN")}


async def test_one_command_at_two_replicas_at_once_is_recorded_once(two):
    game = Game(two)
    await game.found()
    command_id = str(uuid.uuid4())
    receipts = await asyncio.gather(*(game.do(0, "Ready", command_id=command_id) for _ in range(4)))
    assert len({receipt.version for receipt in receipts}) == 1
    assert [receipt.repeated for receipt in receipts].count(False) == 1


async def test_many_players_at_many_replicas_leave_one_history(two):
    game = Game(two)
    await game.found()
    receipts = await asyncio.gather(*(game.do(seat, "Ready") for seat in range(4)))
    assert sorted(receipt.version for receipt in receipts) == [2, 3, 4, 5]
    receipts = await asyncio.gather(*(game.do(seat, "Pass") for seat in range(4)))
    assert sorted(receipt.version for receipt in receipts) == [6, 7, 8, 9]
    assert (await game.view(0)).phase == view_pb2.PHASE_BURY


# ---------------------------------------------------------------------------------- forged and malformed


async def test_only_a_seats_own_player_acts_for_it(game):
    stranger = Caller(game.at.data, "mallory")
    await game.deal()
    for method in ("Pass", "Leave", "SetAutoPlay", "Declare"):
        request = getattr(pb, method + "Request")(context=context(game.table_id))
        refused = await refusal(stranger.call(game.at, method, request))
        assert (refused.code, refused.reason) == (DENIED, "NOT_SEATED")
    declarer = await game.pass_all()
    view = await game.view(declarer)
    cards = list(view.hand)[:8]
    refused = await refusal(game.do((declarer + 1) % 4, "Bury", view.version, cards=cards))
    assert (refused.code, refused.reason) == (AGAINST, "NOT_YOUR_TURN")


async def test_a_follow_that_owes_says_what_is_owed_in_the_callers_language(nats_server, data):
    """Cards that are known: who follows here has to, and has something else as well."""
    async with replica(nats_server.url, data, insecure_entropy="owes") as at:
        game = Game([at])
        await game.found(founding(command_id="018f0000-0000-7000-8000-000000000001"))
        await _owes(game)


async def _owes(game):
    leader = await game.to_tricks()
    singles = [play for play in (await game.legal(leader, cap=256)).plays if len(play.cards) == 1]
    await game.do(leader, "Play", game.version, cards=singles[0].cards)
    seat = (leader + 1) % 4
    view = await game.view(seat)
    legal = {play.cards[0] for play in (await game.legal(seat)).plays}
    card = next(card for card in view.hand if card not in legal)
    request = pb.PlayRequest(context=context(game.table_id, view.version), cards=[card])
    zh = ("accept-language", "zh-CN")
    refused = await refusal(game.callers[seat].call(game.at, "Play", request, zh))
    assert refused.code is AGAINST
    assert refused.reason == "MUST_FOLLOW_SUIT"
    assert refused.text.locale == "zh"
    assert "花色" in refused.text.message
    assert refused.info.domain == "shengji.table"
    assert len(refused.owed.components) == 1


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (founding(preset="poker"), "UNKNOWN_PRESET"),
        (founding(overrides={"colour": "1"}), "UNKNOWN_OPTION"),
        (founding(overrides={"preset": '"x"'}), "UNKNOWN_OPTION"),
        (founding(overrides={"decks": '"two"'}), "BAD_OPTION"),
        (founding(overrides={"decks": "{"}), "BAD_OPTION"),
        (founding(overrides={"decks": "NaN"}), "BAD_OPTION"),
        (founding(overrides={"kitty": "[" * 5000}), "BAD_OPTION"),
        (founding(overrides={"kitty": "7"}), "BAD_OPTION"),
        (founding(command_id="1234"), "BAD_ID"),
        (founding(previous_table_id="tbl_x"), "BAD_ID"),
        (founding(spectator_delay_ms=700_000), "BAD_INPUT"),
        (founding(["ann", "ann"]), "BAD_INPUT"),
        (founding(["ann", "bot:x"]), "BAD_INPUT"),
        (founding(["ann", "svc:lobby"]), "BAD_INPUT"),
        (founding(["ann", "a b"]), "BAD_INPUT"),
    ],
)
async def test_a_founding_that_cannot_be(one, request_, reason):
    refused = await refusal(Caller(one.data, "ann").call(one, "CreateTable", request_))
    assert (refused.code, refused.reason) == (INVALID, reason)


async def test_bots_are_named_by_the_service(one):
    request = founding(PLAYERS[:1])
    request.seats.add(seat=3, difficulty=DIFFICULTY_NORMAL)
    answer = await Caller(one.data, "ann").call(one, "CreateTable", request)
    bot = answer.seats[3]
    assert bot.player_id == f"bot:{answer.table_id[4:]}:3"
    ready = pb.ReadyRequest(context=context(answer.table_id))
    assert (await Caller(one.data, bot.player_id).call(one, "Ready", ready)).receipt.version == 2
    request.command_id = str(uuid.uuid4())
    request.seats.append(Seat(seat=2, player_id="bot:mine", difficulty=DIFFICULTY_NORMAL))
    refused = await refusal(Caller(one.data, "ann").call(one, "CreateTable", request))
    assert refused.reason == "BAD_INPUT"


async def test_a_table_id_is_its_form_and_must_exist(one):
    caller = Caller(one.data, "ann")
    before = one.value("shengji_open_tables")
    for table_id in ("", "*", ">", "tbl_*", "tbl_" + "0" * 25 + "*", "tbl_" + "A" * 26, "ü", "x" * 300):
        request = pb.PassRequest(context=context(table_id))
        refused = await refusal(caller.call(one, "Pass", request))
        assert (refused.code, refused.reason) == (INVALID, "BAD_ID")
        with pytest.raises(Refused, match="BAD_ID"):
            await caller.watch(one, table_id).next()
    for unknown in ("tbl_01jzzzzzzze00800000000000a", "tbl_01jzzzzzzze00800000000000b"):
        refused = await refusal(caller.view(one, unknown))
        assert (refused.code, refused.reason) == (grpc.StatusCode.NOT_FOUND, "UNKNOWN_TABLE")
        with pytest.raises(Refused, match="UNKNOWN_TABLE"):
            await caller.watch(one, unknown).next()
    assert one.value("shengji_open_tables") == before
    assert one.value("shengji_watchers") == 0


async def test_malformed_commands(game):
    await game.to_tricks()
    view = await game.view(0)
    seat = view.to_act[0]
    for cards, reason in (
        ([1] * 65, "TOO_LARGE"),
        ([0], "BAD_INPUT"),
        ([55], "BAD_INPUT"),
        ([-1], "BAD_INPUT"),
    ):
        refused = await refusal(game.do(seat, "Play", view.version, cards=cards))
        assert (refused.code, refused.reason) == (INVALID, reason)
    refused = await refusal(game.do(seat, "Play", view.version, command_id="{x}", cards=[1]))
    assert (refused.code, refused.reason) == (INVALID, "BAD_ID")
    refused = await refusal(game.do(seat, "Ready", client_seed=b"x" * 33))
    assert (refused.code, refused.reason) == (INVALID, "BAD_INPUT")
    refused = await refusal(game.do(seat, "Play", view.version, cards=[]))
    assert refused.code is AGAINST


async def test_an_oversized_request_is_not_read(game):
    request = pb.ReadyRequest(context=context(game.table_id), client_seed=b"x" * 100_000)
    refused = await refusal(game.callers[0].call(game.at, "Ready", request))
    assert refused.code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_bytes_that_are_no_request_are_malformed(game):
    raw = game.at.channel.unary_unary("/shengji.table.v1.TableService/Pass")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await raw(b"\xff\xff\xff", metadata=game.callers[0].metadata)
    refused = Refused(caught.value)
    assert (refused.code, refused.reason) == (INVALID, "BAD_INPUT")


# ---------------------------------------------------------------------------------------------- questions


async def test_legal_plays_are_legal_and_never_a_throw(game):
    leader = await game.to_tricks()
    listing = await game.legal(leader)
    assert listing.complete
    assert len(listing.plays) > 1
    capped = await game.legal(leader, cap=2)
    assert (len(capped.plays), capped.complete) == (2, False)
    assert list(capped.plays) == list(listing.plays)[:2]
    for play in listing.plays:
        assert len({(card - 1) // 13 for card in play.cards if card < 53}) <= 2
    assert not (await game.legal((leader + 1) % 4)).plays
    await game.play_one(leader)
    for step in (1, 2, 3):
        seat = (leader + step) % 4
        best = (await game.legal(seat)).plays[0]
        await game.do(seat, "Play", game.version, cards=best.cards)
    with pytest.raises(Refused, match="BAD_INPUT"):
        await game.legal(leader, cap=257)
    stranger = pb.LegalPlaysRequest(table_id=game.table_id)
    with pytest.raises(Refused, match="NOT_SEATED"):
        await Caller(game.at.data, "mallory").call(game.at, "LegalPlays", stranger)


async def test_a_view_waits_for_its_version(two, monkeypatch):
    game = Game(two)
    await game.found()
    waiting = asyncio.create_task(game.callers[0].view(two[1], game.table_id, 2))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    await game.callers[1].call(two[0], "Ready", pb.ReadyRequest(context=context(game.table_id)))
    assert (await waiting).version == 2
    monkeypatch.setattr("services.table.servicer.VIEW_WAIT_S", 0.1)
    refused = await refusal(game.callers[0].view(two[1], game.table_id, 3))
    assert (refused.code, refused.retry is not None) == (grpc.StatusCode.UNAVAILABLE, True)
    with pytest.raises(Refused, match="BAD_INPUT"):
        await game.callers[0].view(two[1], game.table_id, 2**60)


async def test_rules_by_table_by_preset_and_the_list(game):
    caller = Caller(game.at.data, "mallory")
    by_table = await caller.call(game.at, "GetRules", pb.GetRulesRequest(table_id=game.table_id))
    by_preset = await caller.call(game.at, "GetRules", pb.GetRulesRequest(preset="classic-2d"))
    assert by_table.rules == by_preset.rules
    listing = await caller.call(game.at, "GetRules", pb.GetRulesRequest())
    assert not listing.HasField("rules")
    assert len(listing.presets) == 17
    with pytest.raises(Refused, match="UNKNOWN_PRESET"):
        await caller.call(game.at, "GetRules", pb.GetRulesRequest(preset="x"))


async def test_a_link_code_is_given_to_the_founder_alone(one):
    answer = await Caller(one.data, "ann").call(one, "CreateTable", founding(spectators=SPECTATORS_LINK))
    assert len(answer.spectator_code) == 13
    eve = Caller(one.data, "eve")
    for code in ("", "x", answer.spectator_code[:-1], "ü" * 13):
        assert (await refusal(eve.view(one, answer.table_id, code=code))).reason == "NOT_YOURS"
    assert not (await eve.view(one, answer.table_id, code=answer.spectator_code)).hand
