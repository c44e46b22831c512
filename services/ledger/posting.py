"""Transfers on their way into the database: balances, rows, and the one place that writes them."""

from collections.abc import Collection, Iterable
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.ledger.books import Transfer, available, held, player_of
from services.ledger.bulk import insert_rows, rows_among, upsert_rows
from services.ledger.schema import accounts, postings, transfers

_BALANCES: Final = "SELECT name, balance FROM accounts WHERE name {among} ORDER BY name"


class Journal:
    """Balances, and what was posted on top of them since they were loaded.

    Attributes:
        balances: of every account that was loaded or came into being.
        transfers: rows to be inserted.
        postings: rows to be inserted, without their numbers.
        posted: the transfers, as they were given.
    """

    def __init__(self, balances: dict[str, int] | None = None) -> None:
        self.balances = balances if balances is not None else {}
        self.transfers: list[tuple[Any, ...]] = []
        self.postings: list[tuple[Any, ...]] = []
        self.posted: list[Transfer] = []
        self._loaded = dict(self.balances)

    def post(self, transfer: Transfer) -> None:
        """Apply a transfer whose postings sum to zero."""
        identity, purpose, table_id, deal, version, at_us, moved = transfer
        balances, rows = self.balances, self.postings
        self.posted.append(transfer)
        self.transfers.append((identity, purpose, table_id, deal, version, at_us, None))
        for account, amount in moved:
            after = balances.get(account, 0) + amount
            balances[account] = after
            rows.append((identity, account, amount, after, player_of(account), at_us))

    async def save(self, connection: AsyncConnection) -> None:
        """Write everything that was posted, in a transaction that loaded the balances.

        Raises:
            IntegrityError: a transfer was posted before, or an account appeared meanwhile.
        """
        loaded = self._loaded
        new = [name for name in self.balances if name not in loaded]
        changed = [
            (name, "chips", player_of(name), balance)
            for name, balance in self.balances.items()
            if name in loaded and loaded[name] != balance
        ]
        rows = [(name, "chips", player_of(name), self.balances[name]) for name in sorted(new)]
        await insert_rows(connection, accounts, rows)
        await upsert_rows(connection, accounts, changed)
        await insert_rows(connection, transfers, self.transfers)
        await insert_rows(connection, postings, self.postings)


async def load_transfers(
    connection: AsyncConnection, wanted: Iterable[Transfer]
) -> dict[bytes, Transfer | None]:
    """Which of some transfers are there already, and what they moved; None for other postings of players.

    A transfer's postings are found by its players and its time, for which there is an index.
    """
    found: dict[bytes, Transfer | None] = {}
    for transfer in wanted:
        row = (await connection.execute(select(transfers).where(transfers.c.id == transfer.id))).one_or_none()
        if row is None:
            continue
        there = transfer._replace(
            purpose=row.purpose, table_id=row.table_id, deal=row.deal, version=row.version, at_us=row.at_us
        )
        ours = {(account, amount) for account, amount in transfer.postings if player_of(account) is not None}
        rows = await connection.execute(
            select(postings.c.account, postings.c.amount).where(
                postings.c.player_id.in_({player_of(account) for account, _ in ours}),
                postings.c.at_us == row.at_us,
                postings.c.transfer_id == transfer.id,
            )
        )
        found[transfer.id] = there if {(account, amount) for account, amount in rows} == ours else None
    return found


async def load_balances(
    connection: AsyncConnection, players: Iterable[str], others: Collection[str] = (), *, lock: bool = True
) -> dict[str, int]:
    """The balances of players' accounts and of others, locked to the end of the transaction.

    Accounts are locked in the order of their names, so that two transactions never wait for each other.
    """
    names = sorted({*others, *(name for player in players for name in (available(player), held(player)))})
    rows = await rows_among(connection, _BALANCES, names, lock=lock)
    return dict(list(rows))
