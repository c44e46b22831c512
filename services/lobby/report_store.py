"""Where reports are filed: each once, kept in order, listed by operator."""

import base64
import re
from itertools import count
from typing import Final, Protocol

from services.pb.lobby.v1.presence_service_pb2 import FiledReport
from services.shell.broker import API_TIMEOUT_S, REPORT_STREAM, Broker
from services.shell.js_api import EXPECTED, IN_FLIGHT, WRONG_LAST, ask, get_message, refusal
from services.shell.log_store import Unavailable, Why

_SUBJECT: Final = "sj.v1.reports"
_HOUSE: Final = "_house"
"""Stands for the house; no operator's name has a ``_``."""
_OPERATOR: Final = re.compile(r"[a-z0-9-]{2,32}", re.ASCII)
_REPORT: Final = re.compile(r"rep_[0-9a-f]{32}", re.ASCII)


class ReportStore(Protocol):
    """Reports. Every method raises ``Unavailable`` when they cannot be read or written now."""

    async def file(self, report: FiledReport) -> bool:
        """File a report; False when one of its id and operator is filed already, which stays as it is.

        After ``Unavailable`` it may be filed; filing it again is safe.

        Raises:
            ValueError: its operator or its id has not the form of one.
        """

    async def list(self, operator: str, after: int, most: int) -> list[tuple[int, FiledReport]]:
        """Reports of an operator, oldest first, each with its place, which rises.

        Args:
            operator: whose, empty for the house's.
            after: only those with a greater place.
            most: how many at most.

        Raises:
            ValueError: no operator's name.
        """


class MemoryReports:
    """``ReportStore`` in memory, for tests."""

    def __init__(self) -> None:
        self._filed: dict[str, tuple[int, FiledReport]] = {}
        self._places = count(1)

    async def file(self, report: FiledReport) -> bool:
        """See ``ReportStore.file``."""
        subject = _subject(report)
        if subject in self._filed:
            return False
        self._filed[subject] = next(self._places), FiledReport.FromString(report.SerializeToString())
        return True

    async def list(self, operator: str, after: int, most: int) -> list[tuple[int, FiledReport]]:
        """See ``ReportStore.list``."""
        prefix = _folder(operator) + "."
        found = [filed for subject, filed in self._filed.items() if subject.startswith(prefix)]
        return [filed for filed in found if filed[0] > after][:most]


class JetStreamReports:
    """``ReportStore`` on the stream of reports: a report is the first and only message of its subject."""

    def __init__(self, broker: Broker) -> None:
        self._inbox = broker.inbox

    async def file(self, report: FiledReport) -> bool:
        """See ``ReportStore.file``."""
        answer = await ask(
            self._inbox, _subject(report), report.SerializeToString(), API_TIMEOUT_S, {EXPECTED: "0"}
        )
        error = answer.get("error")
        if error is None:
            return True
        if error.get("err_code") == WRONG_LAST:
            return False
        if error.get("err_code") in IN_FLIGHT:
            raise Unavailable(Why.BUSY, "the same report is being filed", outcome_unknown=True)
        raise refusal(error)

    async def list(self, operator: str, after: int, most: int) -> list[tuple[int, FiledReport]]:
        """See ``ReportStore.list``."""
        wanted = _folder(operator) + ".*"
        found: list[tuple[int, FiledReport]] = []
        while len(found) < most:
            request = {"seq": after + 1, "next_by_subj": wanted}
            message = await get_message(self._inbox, REPORT_STREAM, request, API_TIMEOUT_S)
            if message is None:
                break
            after = int(message["seq"])
            found.append((after, FiledReport.FromString(base64.b64decode(message["data"]))))
        return found


def _folder(operator: str) -> str:
    if operator and not _OPERATOR.fullmatch(operator):
        raise ValueError(f"{operator!r} is no operator's name")
    return f"{_SUBJECT}.{operator or _HOUSE}"


def _subject(report: FiledReport) -> str:
    if not _REPORT.fullmatch(report.report_id):
        raise ValueError(f"{report.report_id!r} is no report's id")
    return f"{_folder(report.operator)}.{report.report_id}"
