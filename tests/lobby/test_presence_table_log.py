"""What the lobby reads in a table's log, on a real server."""

from support.broker import new_table

from services.game.ids import Kind
from services.lobby.table_log import JetStreamTableLog
from services.pb.event.v1.event_pb2 import Event, Seat, SeatLeft, SeatReady, SeatTaken, TableOpened
from services.pb.log.v1.log_pb2 import Commit
from services.shell.broker import Broker
from services.shell.log_jetstream import JetStreamLog


async def write(broker: Broker, table_id: str, *commits: tuple[Kind, Event]) -> None:
    """Write a table's commits."""
    log, last = JetStreamLog(broker), 0
    for version, (kind, event) in enumerate(commits, start=1):
        commit = Commit(table_id=table_id, version=version, events=[event])
        done = await log.append(table_id, last, commit.SerializeToString(), kind)
        last = done.sequence  # type: ignore[union-attr]


async def test_version_and_players_are_read_from_the_log(broker: Broker) -> None:
    log, table_id, other = JetStreamTableLog(broker), new_table(), new_table()
    assert await log.version_of(table_id) == 0
    assert await log.seated(table_id) == frozenset()
    seats = [Seat(seat=0, player_id="ply_a"), Seat(seat=1), Seat(seat=2, player_id="bot:easy")]
    opened = Event(table_opened=TableOpened(creator_id="svc:lobby", seats=seats))
    ready = Event(seat_ready=SeatReady(seat=0))
    await write(broker, other, ("d", opened))
    await write(
        broker,
        table_id,
        ("d", opened),
        ("m", ready),
        ("d", Event(seat_taken=SeatTaken(seat=Seat(seat=1, player_id="ply_b")))),
        ("d", Event(seat_left=SeatLeft(seat=1, player_id="ply_b"))),
        ("d", Event(seat_taken=SeatTaken(seat=Seat(seat=1, player_id="ply_c")))),
        ("m", ready),
    )
    assert await log.version_of(table_id) == 6
    assert await log.version_of(other) == 1
    assert await log.seated(table_id) == {"ply_a", "ply_b", "ply_c", "bot:easy"}


async def test_what_is_no_table_id_has_no_log(broker: Broker) -> None:
    log = JetStreamTableLog(broker)
    assert await log.version_of("tbl_*") == 0
    assert await log.seated(">") == frozenset()
