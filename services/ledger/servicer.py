"""The calls of LedgerService: who may ask, what is asked, and the answer.

A player sees its own chips and matches; who has the scope ``admin`` sees everybody's, or its operator's
players' if it belongs to one; services see everything. Of another operator's players nobody learns that they
exist.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar, cast

from sqlalchemy.ext.asyncio import AsyncConnection

from services.game.ids import SERVICE_PREFIX, is_id
from services.ledger import queries
from services.ledger.archive import Archive, ArchiveDamaged
from services.ledger.books import BOT_PREFIX
from services.ledger.database import Database, DatabaseAway
from services.ledger.pages import MOST, bad, place_of, size_of, token_of
from services.ledger.queries import Known, end_of
from services.ledger.ratings import Standing, season_of, standings_before
from services.pb.ledger.v1 import ledger_service_pb2 as pb
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.limits import Buckets
from services.shell.rpc import Call, Write
from services.shell.tokens import is_player_id

T = TypeVar("T")

ADMIN: Final = "admin"
STATEMENT_ROWS: Final = 50
ROWS: Final = 20
STAKE_MOST: Final = 1_000_000_000
CHUNK: Final = 256 * 1024
"""Bytes of commits in one message of GetLog, about."""
BURST_S: Final = 5.0
"""Questions that may be saved up, in seconds of the rate."""
_LATEST_MS: Final = 1 << 50
_SEASON: Final = re.compile(r"\d{4}-(0[1-9]|1[0-2])")
_EVER_US: Final = 1 << 62


class Holds(Protocol):
    """What calls may change."""

    async def meet(self, player_id: str) -> None:
        """Open a player's account with the opening grant, unless there is one."""

    async def check(self, table_id: str, stake: int, player_ids: Sequence[str]) -> None:
        """Refuse what ``hold`` would refuse."""

    async def hold(self, table_id: str, stake: int, player_ids: Sequence[str]) -> None:
        """Hold eight base stakes of each player, or nothing."""

    async def release(self, table_id: str) -> None:
        """Give back what is held for a table that was not founded."""


class Caller(NamedTuple):
    """What a caller may see."""

    player_id: str
    operator: str
    admin: bool
    """Of its operator's players, or of everybody when it has none."""

    @classmethod
    def of(cls, call: Call) -> "Caller":
        """Who calls."""
        service = call.player_id.startswith(SERVICE_PREFIX)
        return cls(call.player_id, call.operator, service or ADMIN in call.scope.split())

    @property
    def sees_everybody(self) -> bool:
        """No operator's bounds."""
        return self.admin and not self.operator


class LedgerServicer:
    """LedgerService; ``shell.rpc.Guard`` stands before it and answers what it raises."""

    def __init__(
        self, database: Database, archive: Archive, holds: Holds, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._archive = archive
        self._holds = holds
        self._clock = clock

    # ----------------------------------------------------------------------------------------------- chips

    async def get_balance(self, request: pb.GetBalanceRequest, call: Call) -> pb.GetBalanceResponse:
        """See the proto."""
        player = await self._own(request.player_id, call)
        at_ms = _time(request.at_ms)
        if at_ms:
            return await self._read(lambda connection: queries.balance_at(connection, player, at_ms))
        if player == call.player_id and not player.startswith((BOT_PREFIX, SERVICE_PREFIX)):
            await self._change(self._holds.meet(player))
        return await self._read(lambda connection: queries.balance(connection, player))

    async def list_statement(self, request: pb.ListStatementRequest, call: Call) -> pb.ListStatementResponse:
        """See the proto."""
        player = await self._own(request.player_id, call)
        size, question = size_of(request.page_size, STATEMENT_ROWS), f"statement {player}"
        place = place_of(question, request.page_token, (int,))
        before = None if place is None else cast(int, place[0])
        entries, last = await self._read(
            lambda connection: queries.statement(connection, player, before, size)
        )
        token = "" if last is None else token_of(question, [last])
        return pb.ListStatementResponse(entries=entries, next_page_token=token)

    async def hold_stakes(self, request: pb.HoldStakesRequest, call: Call) -> pb.HoldStakesResponse:
        """See the proto."""
        _for_services(call)
        players = list(request.player_ids)
        if not 1 <= request.stake <= STAKE_MOST:
            raise bad("stake", f"must be from 1 to {STAKE_MOST}")
        if not 1 <= len(players) <= 4 or len(set(players)) != len(players):
            raise bad("player_ids", "must be one to four, each once")
        for player in players:
            if player.startswith(BOT_PREFIX):
                raise bad("player_ids", "must be people")
            _player_id(player)
        # Who only asks may not have a table yet.
        table_id = _table_id(request.table_id) if request.hold or request.table_id else ""
        do = self._holds.hold if request.hold else self._holds.check
        await self._change(do(table_id, request.stake, players))
        return pb.HoldStakesResponse()

    async def release_stakes(self, request: pb.ReleaseStakesRequest, call: Call) -> pb.ReleaseStakesResponse:
        """See the proto."""
        _for_services(call)
        await self._change(self._holds.release(_table_id(request.table_id)))
        return pb.ReleaseStakesResponse()

    # --------------------------------------------------------------------------------------------- matches

    async def list_matches(self, request: pb.ListMatchesRequest, call: Call) -> pb.ListMatchesResponse:
        """See the proto."""
        player = await self._own(request.player_id, call)
        size, question = size_of(request.page_size, ROWS), f"matches {player}"
        place = place_of(question, request.page_token, (int, str))
        before = None if place is None else (cast(int, place[0]), cast(str, place[1]))
        found, last = await self._read(
            lambda connection: queries.list_matches(connection, player, before, size)
        )
        token = "" if last is None else token_of(question, last)
        return pb.ListMatchesResponse(matches=found, next_page_token=token)

    async def get_match(self, request: pb.GetMatchRequest, call: Call) -> pb.GetMatchResponse:
        """See the proto."""
        table_id = _table_id(request.table_id)

        async def work(connection: AsyncConnection) -> pb.GetMatchResponse:
            known = _visible(await queries.match(connection, table_id), call)
            return pb.GetMatchResponse(
                match=known.message(), deals=await queries.deals_of(connection, table_id)
            )

        return await self._read(work)

    async def get_log(self, request: pb.GetLogRequest, call: Call, write: Write) -> None:
        """See the proto."""
        table_id = _table_id(request.table_id)
        known = _visible(await self._read(lambda connection: queries.match(connection, table_id)), call)
        if known.fault:
            raise RefusedError(Reason.ARCHIVE_DAMAGED)
        if not known.place:
            raise RefusedError(Reason.NOT_ARCHIVED)
        try:
            commits = await asyncio.to_thread(self._archive.read, known.place)
        except ArchiveDamaged:
            raise RefusedError(Reason.ARCHIVE_DAMAGED) from None
        chunk, size = pb.GetLogResponse(), 0
        for stored in commits:
            if size and size + len(stored) > CHUNK:
                await write(chunk.SerializeToString())
                chunk, size = pb.GetLogResponse(), 0
            chunk.commits.append(stored)
            size += len(stored)
        await write(chunk.SerializeToString())

    # --------------------------------------------------------------------------------------------- players

    async def get_stats(self, request: pb.GetStatsRequest, call: Call) -> pb.GetStatsResponse:
        """See the proto."""
        player = request.player_id or call.player_id
        await self._public([player], call)
        return await self._read(lambda connection: queries.stats_of(connection, player, request.preset))

    async def get_ratings(self, request: pb.GetRatingsRequest, call: Call) -> pb.GetRatingsResponse:
        """See the proto."""
        players = list(request.player_ids) or [call.player_id]
        if len(players) > MOST:
            raise bad("player_ids", f"must be at most {MOST}")
        at_ms = _time(request.at_ms)
        before_us = end_of(at_ms) if at_ms else _EVER_US
        await self._public(players, call)
        found = await self._read(
            lambda connection: standings_before(connection, sorted(set(players)), before_us)
        )
        return pb.GetRatingsResponse(
            ratings=[queries.rating(player, found.get(player, Standing())) for player in players]
        )

    async def get_leaderboard(
        self, request: pb.GetLeaderboardRequest, call: Call
    ) -> pb.GetLeaderboardResponse:
        """See the proto."""
        present = season_of(int(self._clock() * 1e6))
        season, size = request.season or present, size_of(request.page_size, ROWS)
        if not _SEASON.fullmatch(season):
            raise bad("season", "must be a month such as 2026-11")
        around = request.around_player_id
        if around and request.page_token:
            raise bad("page_token", "does not go with around_player_id")
        question = f"leaderboard {season} {call.operator}"
        place = place_of(question, request.page_token, (float, str, int))

        async def work(connection: AsyncConnection) -> list[queries.Ranked]:
            after = cast("tuple[float, str, int] | None", place and tuple(place))
            if season != present and not await queries.has_season(connection, season):
                raise RefusedError(Reason.UNKNOWN_SEASON)
            if around:
                there, after = await queries.place_before(
                    connection, season, call.operator, _player_id(around), (size - 1) // 2
                )
                if not there:
                    raise RefusedError(Reason.UNKNOWN_PLAYER)
            return await queries.leaderboard(connection, season, call.operator, after, size + 1)

        found = await self._read(work)
        shown, token = found[:size], ""
        if len(found) > size:
            last = shown[-1]
            token = token_of(question, [last.score, last.player, last.rank])
        return pb.GetLeaderboardResponse(
            season=season, ranks=[row.message for row in shown], next_page_token=token
        )

    # ----------------------------------------------------------------------------------------- who may see

    async def _own(self, asked: str, call: Call) -> str:
        """Whose private matters are asked for, if the caller may see them.

        Raises:
            RefusedError: NOT_YOURS, UNKNOWN_PLAYER.
        """
        player, caller = _player_id(asked or call.player_id), Caller.of(call)
        if player == caller.player_id:
            return player
        await self._public([player], call)
        if not caller.admin:
            raise RefusedError(Reason.NOT_YOURS)
        if caller.sees_everybody:
            known = await self._read(lambda connection: queries.operators(connection, [player]))
            if player not in known:
                raise RefusedError(Reason.UNKNOWN_PLAYER)
        return player

    async def _public(self, players: Sequence[str], call: Call) -> None:
        """Nothing, when the caller may know that these players exist.

        Raises:
            RefusedError: UNKNOWN_PLAYER.
        """
        caller = Caller.of(call)
        others = [_player_id(player) for player in players if player != caller.player_id]
        if not others or caller.sees_everybody:
            return
        whose = await self._read(lambda connection: queries.operators(connection, others))
        if any(whose.get(player) != caller.operator for player in others):
            raise RefusedError(Reason.UNKNOWN_PLAYER)

    # ------------------------------------------------------------------------------------------ the database

    async def _read(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        try:
            return await self._database.read(work)
        except DatabaseAway:
            raise RefusedError(Reason.UNAVAILABLE) from None

    async def _change(self, doing: Awaitable[None]) -> None:
        try:
            await doing
        except DatabaseAway:
            raise RefusedError(Reason.UNAVAILABLE) from None


def _visible(known: Known | None, call: Call) -> Known:
    """A match that the caller may see.

    Raises:
        RefusedError: UNKNOWN_TABLE, or NOT_SEATED for who did not sit there.
    """
    caller = Caller.of(call)
    if known is None:
        raise RefusedError(Reason.UNKNOWN_TABLE)
    if caller.sees_everybody or (caller.player_id and caller.player_id in known.book.players):
        return known
    if known.book.operator != caller.operator:
        raise RefusedError(Reason.UNKNOWN_TABLE)
    if not caller.admin:
        raise RefusedError(Reason.NOT_SEATED)
    return known


def _for_services(call: Call) -> None:
    if not call.player_id.startswith(SERVICE_PREFIX):
        raise RefusedError(Reason.NOT_YOURS)


def _player_id(text: str) -> str:
    if not is_player_id(text):
        raise RefusedError(Reason.BAD_ID, {"id": text})
    return text


def _table_id(text: str) -> str:
    if not is_id("tbl", text):
        raise RefusedError(Reason.BAD_ID, {"id": text})
    return text


def _time(at_ms: int) -> int:
    if not 0 <= at_ms <= _LATEST_MS:
        raise bad("at_ms", "must be milliseconds of Unix time")
    return at_ms


def limits(rate: float) -> Mapping[str, Buckets]:
    """The buckets of every method: one rate for each."""
    methods = pb.DESCRIPTOR.services_by_name["LedgerService"].methods_by_name
    return {name: Buckets(rate, max(1.0, rate * BURST_S)) for name in methods}
