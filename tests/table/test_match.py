"""A whole match over gRPC, at two replicas in turn, and what its log is worth."""

from support.serving import Caller, Game, founding

from services.game.verify import DealState, verify
from services.pb.event.v1.event_pb2 import SPECTATORS_PUBLIC
from services.pb.table.v1 import view_pb2
from services.shell.log_jetstream import JetStreamLog


async def test_a_whole_match_with_replicas_alternating_command_by_command(two, broker):
    game = Game(two)
    await game.found(founding(overrides={"deals": "2"}, spectators=SPECTATORS_PUBLIC))
    spectator = Caller(two[0].data, "eve")
    watches = [game.callers[1].watch(at, game.table_id) for at in two]
    passers_by = spectator.watch(two[1], game.table_id)
    for number in (1, 2):
        leader = await game.to_tricks()
        view = await game.play_deal(leader)
        assert view.deal == number
        assert view.last_score.deal == number
    assert view.phase == view_pb2.PHASE_OVER
    assert view.result.deals == 2

    told = [await watch.until(view.version) for watch in (*watches, passers_by)]
    assert [m.SerializeToString() for m in told[0][1:]] == [m.SerializeToString() for m in told[1][1:]]
    assert len(told[2]) == len(told[0])
    kinds = {event.WhichOneof("kind") for message in told[2] for event in message.update.events}
    assert kinds >= {"deal_started", "cards_played", "trick_taken", "deal_scored", "match_ended"}

    stored = await JetStreamLog(broker).read(game.table_id)
    report = verify(game.table_id, [commit.payload for commit in stored])
    assert report.problem is None
    assert report.deals == {1: DealState.VERIFIED, 2: DealState.VERIFIED}
    assert report.versions == view.version
    for watch in (*watches, passers_by):
        watch.stop()
