"""Reports: what is taken, how often, and how they are listed."""

from collections.abc import Callable
from uuid import UUID

import pytest
from support.broker import new_table
from support.clocks import stand_still
from support.presence_world import World

from services.lobby.app import PRESENCE, _limits
from services.lobby.config import LobbyConfig
from services.lobby.report_store import MemoryReports
from services.lobby.reports import DAILY_MOST, DAY_MS, TEXT_MOST, Reports
from services.pb.lobby.v1.presence_service_pb2 import REPORT_KIND_ABUSE, FiledReport, ReportRequest
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.log_store import Unavailable, Why

ANN, BEN, CAT, DAN = (f"ply_{number:026}" for number in range(4))
TABLE = str(new_table())


class Desk:
    """Where Ann and Ben of the house, who sit at a table, report; Cat is another operator's."""

    def __init__(self) -> None:
        self.world = World()
        self.store = MemoryReports()
        self.reports = Reports(self.world.deps, self.store, self.world.table_log)

    async def file(self, player_id: str, request: ReportRequest) -> str:
        return await self.reports.file(request, self.world.call(player_id))

    async def refused(self, player_id: str, request: ReportRequest) -> RefusedError:
        before = await self.store.list("", 0, 100)
        with pytest.raises(RefusedError) as error:
            await self.file(player_id, request)
        assert await self.store.list("", 0, 100) == before
        return error.value


@pytest.fixture
async def desk() -> Desk:
    made = Desk()
    for player, operator in ((ANN, ""), (BEN, ""), (CAT, "acme"), (DAN, "")):
        await made.world.player(player, operator)
    made.world.table_log.versions[TABLE] = 40
    made.world.table_log.players[TABLE] = {ANN, BEN, CAT}
    return made


def request(number: int = 1, **fields: object) -> ReportRequest:
    made = ReportRequest(
        request_id=str(UUID(int=number)),
        table_id=TABLE,
        version=40,
        player_id=BEN,
        kind=REPORT_KIND_ABUSE,
        text="又说又笑",
    )
    for name, value in fields.items():
        setattr(made, name, value)
    return made


async def test_a_report_is_filed_as_it_was_made(desk: Desk) -> None:
    report_id = await desk.file(ANN, request())
    page = await desk.reports.list("", 0, "")
    assert page.reports == [
        FiledReport(
            report_id=report_id,
            reporter_id=ANN,
            report=request(),
            filed_at_ms=desk.world.clock.ms(),
            operator="",
        )
    ]
    assert desk.world.registry.get_sample_value("shengji_reports_total") == 1


async def test_the_same_request_is_filed_once(desk: Desk) -> None:
    first = await desk.file(ANN, request())
    desk.world.clock.now += 3600
    assert await desk.file(ANN, request()) == first
    assert len((await desk.reports.list("", 0, "")).reports) == 1
    assert desk.world.registry.get_sample_value("shengji_reports_total") == 1


async def test_one_request_id_of_two_players_is_two_reports(desk: Desk) -> None:
    await desk.file(ANN, request())
    await desk.file(BEN, request(player_id=ANN))
    assert len((await desk.reports.list("", 0, "")).reports) == 2


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (request(request_id="7"), Reason.BAD_ID),
        (request(table_id="*"), Reason.BAD_ID),
        (request(table_id=str(new_table())), Reason.UNKNOWN_TABLE),
        (request(version=0), Reason.BAD_INPUT),
        (request(version=41), Reason.BAD_INPUT),
        (request(kind=0), Reason.BAD_INPUT),
        (request(kind=77), Reason.BAD_INPUT),
        (request(text="骂" * (TEXT_MOST + 1)), Reason.TOO_LARGE),
        (request(player_id=ANN), Reason.BAD_INPUT),
        (request(player_id=CAT), Reason.UNKNOWN_PLAYER),
        (request(player_id="ply_nobody"), Reason.UNKNOWN_PLAYER),
        (request(player_id=""), Reason.UNKNOWN_PLAYER),
        (request(player_id="*"), Reason.UNKNOWN_PLAYER),
    ],
)
async def test_what_is_wrong_is_refused(desk: Desk, wrong: ReportRequest, reason: Reason) -> None:
    assert (await desk.refused(ANN, wrong)).reason is reason


async def test_who_never_sat_there_cannot_report(desk: Desk) -> None:
    assert (await desk.refused(DAN, request())).reason is Reason.NOT_YOURS


async def test_twenty_a_day(desk: Desk) -> None:
    for number in range(DAILY_MOST):
        await desk.file(ANN, request(number))
        desk.world.clock.now += 60
    limited = await desk.refused(ANN, request(99))
    assert limited.reason is Reason.RATE_LIMITED
    assert limited.retry_after_s == DAY_MS / 1000 - DAILY_MOST * 60
    await desk.file(ANN, request(3))  # filed already
    await desk.file(BEN, request(99, player_id=ANN))
    desk.world.clock.now += limited.retry_after_s
    await desk.file(ANN, request(99))
    assert (await desk.refused(ANN, request(100))).reason is Reason.RATE_LIMITED


async def test_a_report_counted_but_not_filed_can_be_filed_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(DAILY_MOST - 1):
        await desk.file(ANN, request(number))
    file: Callable[[FiledReport], object] = desk.store.file

    async def gone(report: FiledReport) -> bool:
        raise Unavailable(Why.NO_ANSWER)

    monkeypatch.setattr(desk.store, "file", gone)
    with pytest.raises(Unavailable):
        await desk.file(ANN, request(99))
    monkeypatch.setattr(desk.store, "file", file)
    await desk.file(ANN, request(99))
    assert len((await desk.reports.list("", 100, "")).reports) == DAILY_MOST


async def test_an_operator_lists_its_own_page_by_page_and_later(desk: Desk) -> None:
    desk.world.table_log.players[TABLE] |= {"ply_eve"}
    await desk.world.player("ply_eve", "acme")
    acme = [await desk.file(CAT, request(number, player_id="ply_eve")) for number in range(5)]
    await desk.file(ANN, request())
    assert [report.operator for report in (await desk.reports.list("", 0, "")).reports] == [""]
    first = await desk.reports.list("acme", 3, "")
    second = await desk.reports.list("acme", 3, first.next_page_token)
    assert [report.report_id for report in first.reports + second.reports] == acme
    end = await desk.reports.list("acme", 3, second.next_page_token)
    assert (end.reports, end.next_page_token) == ([], second.next_page_token)
    later = await desk.file(CAT, request(9, player_id="ply_eve"))
    assert [report.report_id for report in (await desk.reports.list("acme", 3, end.next_page_token))[0]] == [
        later
    ]
    assert (await desk.reports.list("other", 0, "")).next_page_token == "r0"


@pytest.mark.parametrize(
    ("size", "token"), [(101, ""), (0, "x"), (0, "r"), (0, "r-1"), (0, "12"), (0, "r" + "9" * 30), (0, "r١")]
)
async def test_what_is_no_page_is_refused(desk: Desk, size: int, token: str) -> None:
    with pytest.raises(RefusedError) as error:
        await desk.reports.list("", size, token)
    assert error.value.reason is Reason.BAD_INPUT


def test_reports_are_limited_before_a_table_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused ones do not count against the day's limit, and cost many reads each."""
    stand_still(monkeypatch)
    config = LobbyConfig(create_rate=1.0)
    bucket = _limits(PRESENCE, config)["Report"]
    assert [bool(bucket.take(ANN)) for _ in range(6)] == [False] * 4 + [True] * 2


async def test_what_no_field_is_of_is_not_kept(desk: Desk) -> None:
    """A page of padded reports would be too long for any operator to receive."""
    padded = ReportRequest.FromString(request().SerializeToString() + b"\xfa\x07\x90\x4e" + bytes(10_000))
    assert padded.ByteSize() > 10_000
    await desk.file(ANN, padded)
    ((_, filed),) = await desk.store.list("", 0, 100)
    assert filed.report == request()
    assert filed.ByteSize() < 500
