"""People play for chips, from the lobby to the table to the ledger, which are processes: to the chip."""

import asyncio
import random
import uuid

import pytest
from support.calls import Refused
from support.ledger_house import TOLD_S, People, people_of, running_ledger_house, staked
from support.seats import Player

from services.pb.event.v1.event_pb2 import CLOSE_REASON_UNFUNDED
from services.pb.ledger.v1 import ledger_service_pb2 as pb
from services.pb.lobby.v1 import room_service_pb2 as rooms
from services.pb.lobby.v1.room_pb2 import ROOM_STATE_AFTER, ROOM_STATE_OPEN, ROOM_STATE_PLAYING
from services.pb.log.v1.log_pb2 import Commit
from services.pb.table.v1 import table_service_pb2 as tables
from services.pb.table.v1.view_pb2 import PHASE_SCORED, PHASE_SEATING

GRANT = 10_000
STAKE = 10
DEALS = 3
PLAYED_S = 240


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with running_ledger_house(tmp_path_factory.mktemp("staked"), grant=GRANT) as house:
        yield house


@pytest.fixture
async def people(house):
    async with people_of(house) as people:
        yield people


class Looking(Player):
    """Looks at a deal's result until the match is over, as people may."""

    async def choices(self, view):
        if view.phase == PHASE_SCORED:
            await self.watch.until(lambda: self.watch.over)
        return await super().choices(view)


async def chips(people: People, *players):
    """What players own: (available, held) of each."""
    told = [await people.balance(player) for player in players]
    return [(balance.available, balance.held) for balance in told]


async def until_other(people, player, owned):
    """Wait until a player owns another sum than so much."""
    async with asyncio.timeout(TOLD_S):
        while True:
            balance = await people.balance(player)
            if balance.available + balance.held != owned:
                return
            await asyncio.sleep(0.05)


async def statement(people, player):
    """A player's whole statement, by small pages, oldest first."""
    entries, token = [], ""
    while True:
        request = pb.ListStatementRequest(page_size=3, page_token=token)
        answer = await people.ask("ListStatement", request, player)
        entries += answer.entries
        token = answer.next_page_token
        if not token:
            return entries[::-1]


async def deals_of(house, table_id):
    """The scored deals in a table's log."""
    stored = (await house.stored([table_id]))[table_id]
    events = [event for raw in stored for event in Commit.FromString(raw).events]
    return [event.deal_scored for event in events if event.HasField("deal_scored")]


def owed(scored, stake):
    """What seats 0 to 3 win by RULES §9 of deals of which nobody was short."""
    won = [0, 0, 0, 0]
    for deal in scored:
        for seat in range(4):
            sign = 1 if seat % 2 == deal.winning_side else -1
            won[seat] += sign * stake * max(1, deal.nominal_levels)
    return won


async def test_two_guests_and_two_bots_play_for_chips(house, people):
    ann, bob = await people.guests(2)
    assert await chips(people, ann, bob) == [(GRANT, 0)] * 2
    room = await people.table([ann, bob, "", ""], staked(STAKE, deals=str(DEALS), match_end='"loop"'))
    # Held before anybody could play: the table would not be there otherwise.
    assert await chips(people, ann, bob) == [(GRANT - 8 * STAKE, 8 * STAKE)] * 2
    (hold,) = (await people.balance(ann)).holds
    assert (hold.table_id, hold.amount) == (room.table_id, 8 * STAKE)
    await people.play(room, random.Random(1), PLAYED_S)
    told = await people.settled(room.table_id, ann)
    match = told.match
    won = owed(await deals_of(house, room.table_id), STAKE)
    assert list(match.won) == won
    assert [sum(deal.won[seat] for deal in told.deals) for seat in range(4)] == won
    assert [deal.deal for deal in told.deals] == list(range(1, DEALS + 1))
    assert (match.state, match.rated, match.deals) == (pb.MATCH_STATE_FINISHED, False, DEALS)
    assert await chips(people, ann, bob) == [(GRANT + won[0], 0), (GRANT + won[1], 0)]
    assert not (await people.balance(ann)).holds
    for seat, player in enumerate((ann, bob)):
        lines = await statement(people, player)
        assert sum(line.available for line in lines) == GRANT + won[seat]
        assert sum(line.held for line in lines) == 0
        assert lines[-1].available_after == GRANT + won[seat]
        purposes = [line.purpose for line in lines]
        assert purposes[:2] == [pb.PURPOSE_GRANT, pb.PURPOSE_HOLD]
        assert purposes.count(pb.PURPOSE_SETTLEMENT) == DEALS
        assert purposes[-1] == pb.PURPOSE_RELEASE
        history = await people.ask("ListMatches", pb.ListMatchesRequest(), player)
        assert [one.table_id for one in history.matches] == [room.table_id]
        (rating,) = (await people.ask("GetRatings", pb.GetRatingsRequest(), player)).ratings
        assert (rating.rating, rating.matches) == (1500, 0)
        stats = await people.ask("GetStats", pb.GetStatsRequest(), player)
        assert (stats.deals, stats.matches, stats.won) == (DEALS, 1, won[seat])
    (stranger,) = await people.guests(1)
    with pytest.raises(Refused) as caught:
        await people.ask("GetMatch", pb.GetMatchRequest(table_id=room.table_id), stranger)
    assert caught.value.reason == "NOT_SEATED"


async def test_who_cannot_afford_it_does_not_sit(people):
    ann, bob = await people.guests(2)
    dear = GRANT // 8 + 1
    with pytest.raises(Refused) as caught:
        await people.room([ann], staked(dear))
    assert caught.value.reason == "INSUFFICIENT_FUNDS"
    assert caught.value.metadata == {"player_id": ann, "amount": str(8 * dear)}
    with pytest.raises(Refused) as caught:
        await people.ticket(bob, dear)
    assert caught.value.reason == "INSUFFICIENT_FUNDS"
    assert caught.value.metadata["amount"] == str(8 * dear)
    assert (await people.ticket(bob, GRANT // 8)).stake == GRANT // 8
    room = await people.room([ann, "", "", ""], staked(GRANT // 8))
    plan = rooms.SetPlanRequest(room_id=room.room_id, plan=staked(dear))
    with pytest.raises(Refused) as caught:
        await people.call("SetPlan", plan, ann)
    assert caught.value.reason == "INSUFFICIENT_FUNDS"


async def test_a_match_that_a_seat_cannot_pay_for_is_ended_and_archived(house, people):
    """Ann and Bob are opponents, so one of them pays for the first deal and cannot fill up the stake."""
    ann, bob = await people.guests(2)
    stake = GRANT // 8
    room = await people.table([ann, bob, "", ""], staked(stake))
    players = [
        Looking(people.tables, room.table_id, player, seat, random.Random(seat), room.resume)
        for seat, player in enumerate((ann, bob))
    ]
    async with asyncio.timeout(PLAYED_S):
        await asyncio.gather(*(player.play() for player in players))
    assert (await people.until(room.room_id, ann, ROOM_STATE_AFTER)).state == ROOM_STATE_AFTER
    told = await people.settled(room.table_id, ann)
    assert (told.match.state, told.match.rated) == (pb.MATCH_STATE_BROKEN_OFF, False)
    assert (len(told.deals), sum(told.match.won)) == (1, 0)
    assert [held for _, held in await chips(people, ann, bob)] == [0, 0]
    stored = (await house.stored([room.table_id]))[room.table_id]
    (closed,) = [event.table_closed for event in Commit.FromString(stored[-1]).events]
    assert closed.reason == CLOSE_REASON_UNFUNDED
    # The table is closed, so its log is archived; whatever reads it finds it there once the stream drops it.
    await people.settled(room.table_id, ann, archived=True)
    assert await people.log(room.table_id, bob) == stored
    async with asyncio.timeout(TOLD_S):
        while len((await house.stored([room.table_id]))[room.table_id]) > 1:
            pruned = await house.shengji("prune", "--older-than", "0s")
            assert pruned.returncode == 0, pruned.stdout + pruned.stderr
    for command, said in (("verify", "sound"), ("replay", "Deal 1")):
        done = await house.shengji(command, room.table_id)
        assert done.returncode == 0, done.stdout + done.stderr
        assert said in done.stdout


async def test_four_people_are_rated_and_matched_by_it(people):
    four = await people.guests(4)
    room = await people.table(four, staked(STAKE, deals="1"))
    await people.play(room, random.Random(5), PLAYED_S)
    told = await people.settled(room.table_id, four[0])
    assert told.match.rated
    answer = await people.ask("GetRatings", pb.GetRatingsRequest(player_ids=four), four[0])
    ratings = [rating.rating for rating in answer.ratings]
    assert [rating.matches for rating in answer.ratings] == [1] * 4
    side = told.match.winning_side
    if told.match.HasField("winning_side"):
        assert ratings[side] == ratings[side + 2] > 1500 > ratings[1 - side] == ratings[3 - side]
    else:
        assert ratings == pytest.approx([1500] * 4)
    await people.until(room.room_id, four[0], ROOM_STATE_AFTER)
    for player in four:
        await people.call("LeaveRoom", rooms.LeaveRoomRequest(room_id=room.room_id), player)
    ticket = await people.ticket(four[side], 2 * STAKE)
    assert ticket.rating == ratings[side]
    board = await people.ask("GetLeaderboard", pb.GetLeaderboardRequest(around_player_id=four[0]), four[0])
    assert {rank.rating.player_id for rank in board.ranks} >= set(four)


async def test_bots_alone_play_for_the_houses_chips(people):
    (host,) = await people.guests(1)
    request = rooms.CreateRoomRequest(request_id=str(uuid.uuid4()), plan=staked(STAKE, deals="2"), stand=True)
    room = (await people.call("CreateRoom", request, host)).room
    start = rooms.StartRoomRequest(room_id=room.room_id, fill_with_bots=True)
    await people.call("StartRoom", start, host)
    room = await people.until(room.room_id, host, ROOM_STATE_PLAYING, ROOM_STATE_OPEN)
    assert room.state == ROOM_STATE_PLAYING, room.failed
    told = await people.settled(room.table_id, people.admin(), PLAYED_S)
    assert (told.match.state, told.match.deals, told.match.rated) == (pb.MATCH_STATE_FINISHED, 2, False)
    # Two deals may cancel out, so each is looked at.
    assert sum(told.match.won) == 0
    assert all(sum(deal.won) == 0 != deal.won[0] for deal in told.deals)
    assert await chips(people, host) == [(GRANT, 0)]


async def test_leaving_costs_where_the_rules_say_so(people):
    ann, bob = await people.guests(2)
    room = await people.table([ann, bob, "", ""], staked(STAKE, "bigkitty-4d"))
    players = people.at(room, random.Random(7))
    async with asyncio.timeout(TOLD_S):
        while (view := await players[0].view()).phase == PHASE_SEATING:
            for player in players:
                await player.move(await player.view())
    leave = tables.LeaveRequest(context=players[1].context(view))
    await people.tables.settle("Leave", leave, bob)
    await until_other(people, bob, GRANT)
    assert [sum(owned) for owned in await chips(people, ann, bob)] == [GRANT + STAKE, GRANT - 8 * STAKE]
    lines = await statement(people, bob)
    assert pb.PURPOSE_ESCAPE in {line.purpose for line in lines}
    # Its chips stay bound to the match, which is played on: no other table for chips until it is over.
    with pytest.raises(Refused) as caught:
        await people.room([bob], staked(STAKE))
    assert caught.value.reason == "ELSEWHERE"


async def test_the_same_people_play_again_at_once(people):
    """The ledger may still be settling the match before; that is waited for and refuses nothing."""
    ann, bob = await people.guests(2)
    stake = GRANT // 8 // 8
    room = await people.table([ann, "", bob, ""], staked(stake, deals="1"))
    seen = {room.table_id}
    for turn in range(4):
        await people.play(room, random.Random(10 + turn), PLAYED_S)
        await people.until(room.room_id, ann, ROOM_STATE_AFTER)
        for player in (ann, bob):
            again = rooms.PlayAgainRequest(room_id=room.room_id, again=True)
            await people.call("PlayAgain", again, player)
        room = await people.until(room.room_id, ann, ROOM_STATE_PLAYING, ROOM_STATE_OPEN)
        assert room.state == ROOM_STATE_PLAYING, room.failed
        assert room.table_id not in seen
        seen.add(room.table_id)
    # The newest table is there; the ledger hears of it a moment later.
    async with asyncio.timeout(TOLD_S):
        while await people.match(room.table_id, ann) is None:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
    history = await people.ask("ListMatches", pb.ListMatchesRequest(), ann)
    assert {match.table_id for match in history.matches} == seen


async def test_an_audit_finds_nothing_while_it_runs_and_after(house, people):
    """Last in this file: all that the tests before left is in it. The house stops, and it is so still."""
    ann, bob = await people.guests(2)
    room = await people.table([ann, bob, "", ""], staked(STAKE, deals="2"))
    playing = asyncio.create_task(people.play(room, random.Random(20), PLAYED_S))
    audits = 0
    while not playing.done() or not audits:
        await house.audited()
        audits += 1
    await playing
    await people.settled(room.table_id, ann)
    before = await house.nothing_differs()
    await house.stop()
    report = await house.audited()
    assert f"{report.tables} tables, {report.commits} commits, {report.transfers} transfers," in before
    assert report.transfers > report.matches > 8
    for line in house.printed().splitlines():
        assert '"level": "error"' not in line, line
        assert not line.startswith("Traceback"), house.printed()[-4000:]
