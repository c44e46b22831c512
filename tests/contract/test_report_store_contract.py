"""What every store of reports does, in memory and on a real server alike."""

import asyncio
import os

import pytest

from services.lobby.report_store import JetStreamReports, MemoryReports, ReportStore
from services.pb.lobby.v1.presence_service_pb2 import FiledReport, ReportRequest
from services.shell.broker import Broker


def report(operator: str, text: str = "") -> FiledReport:
    """A report that is nobody else's."""
    return FiledReport(
        report_id="rep_" + os.urandom(16).hex(), operator=operator, report=ReportRequest(text=text)
    )


def operator() -> str:
    """An operator that is nobody else's."""
    return "op-" + os.urandom(6).hex()


class ReportStoreContract:
    """The contract; an adapter's class provides ``reports``."""

    async def test_reports_are_listed_in_order_and_by_operator(self, reports: ReportStore) -> None:
        mine, others = operator(), operator()
        filed = [report(mine, str(number)) for number in range(5)]
        for one in filed:
            assert await reports.file(one)
            assert await reports.file(report(others))
        listed = await reports.list(mine, 0, 10)
        assert [one for _, one in listed] == filed
        places = [place for place, _ in listed]
        assert places == sorted(places)
        assert await reports.list(mine, places[1], 2) == listed[2:4]
        assert await reports.list(mine, places[-1], 10) == []
        assert await reports.list(operator(), 0, 10) == []

    async def test_a_report_is_filed_once(self, reports: ReportStore) -> None:
        one = report(operator(), "first")
        assert await reports.file(one)
        again = FiledReport.FromString(one.SerializeToString())
        again.report.text = "second"
        assert not await reports.file(again)
        assert [kept for _, kept in await reports.list(one.operator, 0, 10)] == [one]

    async def test_of_many_at_once_one_is_filed(self, reports: ReportStore) -> None:
        one = report(operator())
        answers = await asyncio.gather(*(reports.file(one) for _ in range(5)), return_exceptions=True)
        assert answers.count(True) == 1
        assert len(await reports.list(one.operator, 0, 10)) == 1

    async def test_the_house_and_an_operator_called_house_are_two(self, reports: ReportStore) -> None:
        houses, its = report("", "house's"), report("house", "its")
        await reports.file(houses)
        await reports.file(its)
        assert [kept for _, kept in await reports.list("house", 0, 100)][-1] == its
        assert houses in [kept for _, kept in await reports.list("", 0, 100)]
        assert its not in [kept for _, kept in await reports.list("", 0, 100)]

    @pytest.mark.parametrize("bad", ["*", ">", "a.b", "A1", "x", "_house", "a b"])
    async def test_no_other_text_becomes_a_subject(self, reports: ReportStore, bad: str) -> None:
        with pytest.raises(ValueError, match="is no operator's name"):
            await reports.list(bad, 0, 10)
        with pytest.raises(ValueError, match="is no operator's name"):
            await reports.file(report(bad))
        with pytest.raises(ValueError, match="is no report's id"):
            await reports.file(FiledReport(report_id="rep_" + bad))


class TestMemoryReports(ReportStoreContract):
    @pytest.fixture
    def reports(self) -> MemoryReports:
        return MemoryReports()


class TestJetStreamReports(ReportStoreContract):
    @pytest.fixture
    def reports(self, broker: Broker) -> JetStreamReports:
        return JetStreamReports(broker)
