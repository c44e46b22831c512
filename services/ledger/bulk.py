"""Many rows at once, as each of the two databases takes them fastest."""

import json
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError
from sqlalchemy.ext.asyncio import AsyncConnection

T = TypeVar("T")
_POSTGRESQL: Final = postgresql.dialect()  # type: ignore[no-untyped-call]


async def insert_rows(connection: AsyncConnection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert many rows as the database takes them fastest: COPY in PostgreSQL, one statement in SQLite.

    Args:
        connection: in a transaction.
        table: the table.
        rows: values in the order of the table's columns, without one that the database numbers itself.

    Raises:
        IntegrityError: a row that cannot be.
    """
    if not rows:
        return
    columns = [column.name for column in table.columns if column.autoincrement is not True]
    if connection.dialect.name == "postgresql":
        raw = await connection.get_raw_connection()
        driver: Any = raw.driver_connection
        try:
            await driver.copy_records_to_table(table.name, records=rows, columns=columns)
        except Exception as error:
            raise _told_as_sqlalchemy_does(error) from error
        return
    marks = ", ".join("?" * len(columns))
    statement = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})"
    await connection.exec_driver_sql(statement, list(rows))


async def run_many(connection: AsyncConnection, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Run one statement for many rows.

    Args:
        connection: in a transaction.
        statement: SQL that both databases understand, with ``:1``, ``:2``, … for the values.
        rows: the values.
    """
    if rows:
        mark = "$" if connection.dialect.name == "postgresql" else "?"
        await connection.exec_driver_sql(statement.replace(":", mark), list(rows))


def _told_as_sqlalchemy_does(error: Exception) -> Exception:
    """An error of asyncpg's own as SQLAlchemy would have raised it."""
    state = getattr(error, "sqlstate", None)
    if state is None and not isinstance(error, OSError):
        return error
    kind = IntegrityError if str(state).startswith("23") else InterfaceError if state is None else DBAPIError
    return kind("COPY", None, error, connection_invalidated=state is None)


def chunks(items: Iterable[T], size: int = 500) -> list[list[T]]:
    """Items in lists short enough for the parameters of one statement."""
    listed = list(items)
    return [listed[at : at + size] for at in range(0, len(listed), size)]


async def rows_among(
    connection: AsyncConnection, statement: str, values: Collection[str], *, lock: bool = False
) -> Sequence[Any]:
    """The rows of a statement for many values of one column.

    Args:
        connection: in a transaction.
        statement: SQL that both databases understand, with ``{among}`` after the column.
        values: texts.
        lock: lock the rows to the end of the transaction; SQLite's transactions are alone anyhow.
    """
    if not values:
        return ()
    if connection.dialect.name == "postgresql":
        sql = statement.format(among="= ANY($1::text[])") + (" FOR UPDATE" if lock else "")
        return (await connection.exec_driver_sql(sql, (list(values),))).all()
    sql = statement.format(among="IN (SELECT value FROM json_each(?))")
    return (await connection.exec_driver_sql(sql, (json.dumps(list(values)),))).all()


async def delete_among(
    connection: AsyncConnection, table: Table, column: str, values: Collection[str]
) -> None:
    """Delete the rows of a table that have one of these values in a column."""
    if not values:
        return
    statement = f"DELETE FROM {table.name} WHERE {column} "
    if connection.dialect.name == "postgresql":
        await connection.exec_driver_sql(statement + "= ANY($1::text[])", (list(values),))
    else:
        among = "IN (SELECT value FROM json_each(?))"
        await connection.exec_driver_sql(statement + among, (json.dumps(list(values)),))


async def upsert_rows(
    connection: AsyncConnection, table: Table, rows: Sequence[tuple[Any, ...]], *, add: bool = False
) -> None:
    """Insert rows, or change those that have their keys.

    Args:
        connection: in a transaction.
        table: the table.
        rows: values in the order of the table's columns, no key twice.
        add: add the values to those that are there rather than replace them.
    """
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        columns = tuple(list(column) for column in zip(*rows, strict=True))
        await connection.exec_driver_sql(_upsert(table, "postgresql", add), columns)
    else:
        await connection.exec_driver_sql(_upsert(table, "sqlite", add), list(rows))


@lru_cache(maxsize=64)
def _upsert(table: Table, dialect: str, add: bool) -> str:
    names = [column.name for column in table.columns]
    keys = [column.name for column in table.primary_key]
    if dialect == "postgresql":
        kinds = [column.type.compile(_POSTGRESQL) for column in table.columns]
        arrays = ", ".join(f"${number}::{kind}[]" for number, kind in enumerate(kinds, 1))
        source = f"SELECT * FROM unnest({arrays})"
    else:
        source = f"VALUES ({', '.join('?' * len(names))})"
    old = f"{table.name}." if add else ""
    changes = ", ".join(
        f"{name} = {old}{name} + excluded.{name}" if add else f"{name} = excluded.{name}"
        for name in names
        if name not in keys
    )
    return (
        f"INSERT INTO {table.name} ({', '.join(names)}) {source}"
        f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"
    )
