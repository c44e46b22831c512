"""Reports of players: what was reported, by whom, and where in which table's log."""

import hashlib
from typing import Final, NamedTuple

from services.game.errors import BadId
from services.game.ids import CommandId, TableId
from services.lobby.deps import Deps
from services.lobby.records import Change, atomically, known_player, reporter_key
from services.lobby.report_store import ReportStore
from services.lobby.table_log import TableLog
from services.pb.lobby.v1.presence_service_pb2 import FiledReport, ReportKind, ReportRequest
from services.pb.lobby.v1.stored_pb2 import FiledLately, ReporterRecord
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.rpc import Call

TEXT_MOST: Final = 500
DAILY_MOST: Final = 20
DAY_MS: Final = 24 * 3600 * 1000
PAGE: Final = 50
PAGE_MOST: Final = 100
_KINDS: Final = frozenset(ReportKind.values()) - {0}


class ReportPage(NamedTuple):
    """Some reports."""

    reports: list[FiledReport]
    """Oldest first."""
    next_page_token: str
    """Where to go on, now or later."""


class Reports:
    """Takes reports, and lists them to operators."""

    def __init__(self, deps: Deps, store: ReportStore, log: TableLog) -> None:
        """Take reports.

        Args:
            deps: the records and the clock.
            store: where reports are filed.
            log: what is known of tables.
        """
        self._deps = deps
        self._store = store
        self._log = log

    async def file(self, request: ReportRequest, call: Call) -> str:
        """File a report once, however often the same is sent; its id.

        Raises:
            RefusedError: BAD_ID, BAD_INPUT, TOO_LARGE; UNKNOWN_TABLE; NOT_YOURS when the caller never sat
                there; UNKNOWN_PLAYER; RATE_LIMITED beyond 20 a day.
            Unavailable: something cannot be read or written now.
        """
        report_id = report_id_of(call.player_id, _checked(request, call.player_id))
        await self._check_table(request, call.player_id)
        operator = await self._count(report_id, request, call.player_id)
        filed = FiledReport(
            report_id=report_id,
            reporter_id=call.player_id,
            report=request,
            filed_at_ms=self._deps.now_ms(),
            operator=operator,
        )
        filed.DiscardUnknownFields()  # whatever else was sent would be kept and shown, at any length
        if await self._store.file(filed):
            self._deps.metrics.reports.inc()
        return report_id

    async def _check_table(self, request: ReportRequest, player_id: str) -> None:
        newest = await self._log.version_of(request.table_id)
        if not newest:
            raise RefusedError(Reason.UNKNOWN_TABLE)
        if player_id not in await self._log.seated(request.table_id):
            raise RefusedError(Reason.NOT_YOURS)
        if not 1 <= request.version <= newest:
            raise _bad("version", f"must be from 1 to {newest}")

    async def _count(self, report_id: str, request: ReportRequest, player_id: str) -> str:
        """Count a report against the day's limit, once; the reporter's operator."""
        now = self._deps.now_ms()

        async def work(change: Change) -> str:
            operator = (await known_player(change, player_id)).operator
            await known_player(change, request.player_id, operator)
            record = await change.get(reporter_key(player_id), ReporterRecord) or ReporterRecord()
            lately = [report for report in record.reports if report.at_ms > now - DAY_MS]
            if any(report.report_id == report_id for report in lately):
                return operator
            if len(lately) >= DAILY_MOST:
                wait_ms = lately[0].at_ms + DAY_MS - now
                raise RefusedError(Reason.RATE_LIMITED, retry_after_s=wait_ms / 1000)
            lately.append(FiledLately(report_id=report_id, at_ms=now))
            await change.put(reporter_key(player_id), ReporterRecord(reports=lately), DAY_MS / 1000)
            return operator

        return await atomically(self._deps.store, work)

    async def list(self, operator: str, page_size: int, page_token: str) -> ReportPage:
        """What an operator's players have reported, oldest first.

        Args:
            operator: whose, empty for the house's.
            page_size: at most so many, 1 to 100; 0 means 50.
            page_token: ``next_page_token`` of the page before, empty for the first.

        Raises:
            RefusedError: BAD_INPUT.
            Unavailable: they cannot be read now.
        """
        if page_size > PAGE_MOST:
            raise _bad("page_size", f"must be from 1 to {PAGE_MOST}")
        after = _after(page_token) if page_token else 0
        found = await self._store.list(operator, after, page_size or PAGE)
        return ReportPage([report for _, report in found], f"r{found[-1][0] if found else after}")


def report_id_of(player_id: str, request_id: bytes) -> str:
    """``rep_`` and 32 hexadecimal digits, the same whenever a player sends a request again."""
    return "rep_" + hashlib.sha256(request_id + player_id.encode()).hexdigest()[:32]


def _checked(request: ReportRequest, player_id: str) -> CommandId:
    """The request's id, when everything that can be seen in it alone is right."""
    try:
        request_id = CommandId.parse(request.request_id)
        TableId.parse(request.table_id)
    except BadId as error:
        raise RefusedError(Reason.BAD_ID, {"id": error.text}) from None
    if request.kind not in _KINDS:
        raise _bad("kind", "must say why")
    if request.player_id == player_id:
        raise _bad("player_id", "is your own")
    if len(request.text) > TEXT_MOST:
        raise RefusedError(Reason.TOO_LARGE)
    return request_id


def _after(page_token: str) -> int:
    digits = page_token.removeprefix("r")
    if digits == page_token or len(digits) > 18 or not (digits.isascii() and digits.isdigit()):
        raise _bad("page_token", "is none of these pages")
    return int(digits)


def _bad(field: str, detail: str) -> RefusedError:
    return RefusedError(Reason.BAD_INPUT, {"field": field, "detail": detail})
