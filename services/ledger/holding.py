"""Stakes held before a table is founded, and an account for everybody who is seen: what calls change.

Everything else in the ledger follows from the logs. A hold only moves a player's own chips from one pocket
into the other, so balances stay a function of the logs.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import delete, exists, select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.ledger.books import GRANTS, Transfer, available, held, release, transfer_id
from services.ledger.bulk import insert_rows
from services.ledger.database import Database
from services.ledger.moving import HOLD_STAKES
from services.ledger.posting import Journal, load_balances
from services.ledger.schema import holds, matches, parked, transfers, unapplied
from services.pb.ledger.v1.ledger_service_pb2 import MatchState, Purpose
from services.rules.reasons import Reason
from services.shell.errors import RefusedError

EXPIRES_US: Final = 600 * 1_000_000
"""Chips held for a table that never appears in the log are given back after so long."""


def clock_us() -> int:
    """Microseconds of Unix time."""
    return time.time_ns() // 1000


class Holding:
    """Holds and grants, on any replica of the service."""

    def __init__(self, database: Database, grant: int) -> None:
        self._database = database
        self._grant = grant

    async def meet(self, player_id: str) -> None:
        """Open a player's account, with the opening grant, unless there is one.

        Raises:
            DatabaseAway: not now.
        """

        async def work(connection: AsyncConnection) -> None:
            journal = Journal(await load_balances(connection, [player_id], (GRANTS,)))
            _meet(journal, [player_id], self._grant)
            await journal.save(connection)

        await self._database.write(work)

    async def check(self, table_id: str, stake: int, player_ids: Sequence[str]) -> None:
        """Nothing, when each of the players could sit at a table with such a stake now.

        Raises:
            RefusedError: INSUFFICIENT_FUNDS or ELSEWHERE, with the player's id.
            DatabaseAway: not now.
        """

        async def work(connection: AsyncConnection) -> None:
            balances = await load_balances(connection, player_ids, lock=False)
            bound = await _bound(connection, player_ids)
            for player in player_ids:
                balances.setdefault(available(player), self._grant)
            _missing(balances, bound, table_id, stake, player_ids)

        await self._database.read(work)

    async def hold(self, table_id: str, stake: int, player_ids: Sequence[str]) -> None:
        """Hold eight base stakes of each of the players for a table, of all or of none; once a table.

        Raises:
            RefusedError: as ``check``; TABLE_CLOSED or WRONG_PHASE for a table that is in the log already.
            DatabaseAway: not now; the same may be asked again.
        """
        now_us = clock_us()

        async def work(connection: AsyncConnection) -> None:
            journal = Journal(await load_balances(connection, player_ids, (GRANTS,)))
            bound = await _bound(connection, player_ids)
            new = [player for player in player_ids if bound.get(player) != table_id]
            if not new:
                return
            await _refuse_founded(connection, table_id)
            _meet(journal, player_ids, self._grant)
            missing = _missing(journal.balances, bound, table_id, stake, player_ids)
            for player in player_ids:
                amount = missing[player]
                if amount:
                    moved = ((available(player), -amount), (held(player), amount))
                    identity = await _unused(connection, f"{table_id}/0/hold/{player}")
                    journal.post(Transfer(identity, Purpose.PURPOSE_HOLD, table_id, 0, 0, now_us, moved))
            await journal.save(connection)
            await insert_rows(connection, holds, [(player, table_id, now_us) for player in sorted(new)])

        await self._database.write(work)

    async def release(self, table_id: str) -> None:
        """Give back what is held for a table that was never founded; nothing, where nothing is held.

        Raises:
            RefusedError: WRONG_PHASE: the table was founded, and its log says when its chips are released.
            DatabaseAway: not now.
        """
        await self._database.write(lambda connection: _release(connection, table_id))

    async def expire(self, before_us: int) -> int:
        """Give back what was held before a time for tables that are not in the log, which was read beyond.

        Returns:
            For how many tables.

        Raises:
            DatabaseAway: not now.
        """
        founded = exists().where(matches.c.table_id == holds.c.table_id)
        seen = exists().where(unapplied.c.table_id == holds.c.table_id)
        old = select(holds.c.table_id).where(holds.c.made_at_us < before_us, ~founded, ~seen).distinct()

        async def find(connection: AsyncConnection) -> list[str]:
            return list((await connection.execute(old)).scalars())

        stale = await self._database.read(find)
        for table_id in stale:
            await self.release(table_id)
        return len(stale)


async def _release(connection: AsyncConnection, table_id: str) -> None:
    named = select(holds.c.player_id).where(holds.c.table_id == table_id)
    players = list((await connection.execute(named)).scalars())
    if not players:
        return
    journal = Journal(await load_balances(connection, players))
    # Whoever applies the log locks the same accounts first, so what is read from here on is how it stays.
    players = sorted((await connection.execute(named)).scalars())
    await _refuse_founded(connection, table_id)
    given_back = release("", table_id, 0, clock_us(), {p: journal.balances.get(held(p), 0) for p in players})
    if given_back is not None:
        identity = await _unused(connection, f"{table_id}/0/release")
        journal.post(given_back._replace(id=identity))
    await journal.save(connection)
    await connection.execute(delete(holds).where(holds.c.table_id == table_id))


async def _refuse_founded(connection: AsyncConnection, table_id: str) -> None:
    """A table that the log knows takes its holds from there."""
    state = await connection.scalar(select(matches.c.state).where(matches.c.table_id == table_id))
    if state is not None and state != MatchState.MATCH_STATE_OPEN:
        raise RefusedError(Reason.TABLE_CLOSED)
    aside = await connection.scalar(select(parked.c.table_id).where(parked.c.table_id == table_id))
    if state is not None or aside is not None:
        raise RefusedError(Reason.WRONG_PHASE)


def _meet(journal: Journal, player_ids: Iterable[str], grant: int) -> None:
    for player in player_ids:
        account = available(player)
        if account in journal.balances:
            continue
        journal.balances[account] = 0
        if grant:
            moved = ((GRANTS, -grant), (account, grant))
            identity = transfer_id(f"grant/{player}")
            journal.post(Transfer(identity, Purpose.PURPOSE_GRANT, "", 0, 0, clock_us(), moved))


def _missing(
    balances: dict[str, int], bound: dict[str, str], table_id: str, stake: int, player_ids: Sequence[str]
) -> dict[str, int]:
    """What is to be held of each player beside what is.

    Raises:
        RefusedError: INSUFFICIENT_FUNDS or ELSEWHERE.
    """
    missing = {}
    for player in player_ids:
        if bound.get(player, table_id) != table_id:
            raise RefusedError(Reason.ELSEWHERE, {"player_id": player})
        kept = balances.get(held(player), 0)
        missing[player] = max(0, HOLD_STAKES * stake - kept)
        if balances.get(available(player), 0) < missing[player]:
            raise RefusedError(
                Reason.INSUFFICIENT_FUNDS, {"player_id": player, "amount": HOLD_STAKES * stake}
            )
    return missing


async def _bound(connection: AsyncConnection, player_ids: Sequence[str]) -> dict[str, str]:
    rows = await connection.execute(
        select(holds.c.player_id, holds.c.table_id).where(holds.c.player_id.in_(player_ids))
    )
    return dict(rows.all())


async def _unused(connection: AsyncConnection, name: str) -> bytes:
    """The id of a transfer that may happen several times at a table: the first that no transfer has."""
    number = 1
    while True:
        identity = transfer_id(f"{name}/{number}")
        if await connection.scalar(select(transfers.c.id).where(transfers.c.id == identity)) is None:
            return identity
        number += 1
