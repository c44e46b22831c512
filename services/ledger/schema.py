"""The ledger's tables. Types are those that SQLite and PostgreSQL share; times are microseconds of Unix time.

Money first: ``accounts`` have balances, ``transfers`` say why chips moved, ``postings`` from and to where.
Transfers and postings are never changed: triggers refuse it. All the rest can be made again from the logs.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
)

metadata: Final = MetaData()

_SERIAL: Final = BigInteger().with_variant(Integer, "sqlite")
"""A number that the database gives; SQLite numbers only columns called INTEGER."""

accounts: Final = Table(
    "accounts",
    metadata,
    # "available:<player>", "held:<player>", "house:grants", "house:fees", "house:bots", "operator:<name>"
    Column("name", Text, primary_key=True),
    Column("asset", Text, nullable=False, server_default="chips"),
    # Whose; null for the house's and operators'.
    Column("player_id", Text),
    Column("balance", BigInteger, nullable=False),
    CheckConstraint("balance >= 0 OR player_id IS NULL", name="never_negative"),
    sqlite_with_rowid=False,
)
"""Who owns what. A player's accounts never fall below zero, under any concurrency."""

transfers: Final = Table(
    "transfers",
    metadata,
    # UUIDv5 of (table, deal, purpose, …), 16 bytes: made by settling.transfer_id
    Column("id", LargeBinary(16), primary_key=True),
    # ledger.v1.Purpose
    Column("purpose", SmallInteger, nullable=False),
    # Empty for what happened at no table.
    Column("table_id", Text, nullable=False),
    Column("deal", Integer, nullable=False),
    # The version of the table's commit that it follows from; 0 for none.
    Column("version", BigInteger, nullable=False),
    # When it happened at the table (or here, at no table).
    Column("at_us", BigInteger, nullable=False),
    # The transfer that this one takes back.
    Column("reverses", LargeBinary(16)),
    sqlite_with_rowid=False,
)
"""Why chips moved; the postings of each sum to zero."""

postings: Final = Table(
    "postings",
    metadata,
    Column("seq", _SERIAL, primary_key=True, autoincrement=True),
    Column("transfer_id", LargeBinary(16), nullable=False),
    Column("account", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    # The account's balance after it, in the order of `seq`.
    Column("balance_after", BigInteger, nullable=False),
    # The account's player, so that a statement is one range of the index; null for the house's.
    Column("player_id", Text),
    # The transfer's.
    Column("at_us", BigInteger, nullable=False),
    CheckConstraint("amount <> 0", name="moves_something"),
)
"""What each transfer added to each account."""
_PLAYERS: Final = postings.c.player_id.is_not(None)
Index(
    "postings_of_player",
    postings.c.player_id,
    postings.c.seq,
    sqlite_where=_PLAYERS,
    postgresql_where=_PLAYERS,
)

holds: Final = Table(
    "holds",
    metadata,
    # The key: a player is bound to one table at most, whoever asks at once.
    Column("player_id", Text, primary_key=True),
    Column("table_id", Text, nullable=False),
    Column("made_at_us", BigInteger, nullable=False),
    Index("holds_of_table", "table_id"),
    sqlite_with_rowid=False,
)
"""The table that each player's chips are held for; what is held is the balance of "held:<player>"."""

matches: Final = Table(
    "matches",
    metadata,
    Column("table_id", Text, primary_key=True),
    # settling.TableBook as books.encode writes it: people, rules of money, how it stands
    Column("book", Text, nullable=False),
    # ledger.v1.MatchState, PARKED never: that is in `parked`
    Column("state", SmallInteger, nullable=False),
    # The base stake's seat cannot be covered: the table is to be ended.
    Column("unfunded", Boolean, nullable=False),
    Column("opened_at_us", BigInteger, nullable=False),
    # 0 while it is open.
    Column("ended_at_us", BigInteger, nullable=False),
    # It counts for ratings.
    Column("rated", Boolean, nullable=False),
    Index("matches_to_rate", "rated", "ended_at_us", "table_id"),
    sqlite_with_rowid=False,
)
"""One row a table: its book, as far as its commits have been applied."""
Index(
    "matches_unfunded",
    matches.c.table_id,
    sqlite_where=matches.c.unfunded,
    postgresql_where=matches.c.unfunded,
)

match_players: Final = Table(
    "match_players",
    metadata,
    Column("player_id", Text, nullable=False),
    Column("opened_at_us", BigInteger, nullable=False),
    Column("table_id", Text, nullable=False),
    Column("seat", SmallInteger, nullable=False),
    PrimaryKeyConstraint("player_id", "opened_at_us", "table_id"),
    Index("match_players_of_table", "table_id"),
    sqlite_with_rowid=False,
)
"""Who sat where, bots left out, in the order in which a player's matches are listed."""

deals: Final = Table(
    "deals",
    metadata,
    Column("table_id", Text, nullable=False),
    Column("deal", Integer, nullable=False),
    Column("attackers_points", Integer, nullable=False),
    Column("winning_side", SmallInteger, nullable=False),
    Column("nominal_levels", Integer, nullable=False),
    # What seats 0 to 3 won with it, negative when lost, fines and escapes included.
    Column("won_0", BigInteger, nullable=False),
    Column("won_1", BigInteger, nullable=False),
    Column("won_2", BigInteger, nullable=False),
    Column("won_3", BigInteger, nullable=False),
    Column("scored_at_us", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    PrimaryKeyConstraint("table_id", "deal"),
    sqlite_with_rowid=False,
)
"""The scored deals."""

stats: Final = Table(
    "stats",
    metadata,
    Column("player_id", Text, nullable=False),
    Column("preset", Text, nullable=False),
    Column("deals", BigInteger, nullable=False),
    Column("deals_won", BigInteger, nullable=False),
    Column("matches", BigInteger, nullable=False),
    Column("matches_won", BigInteger, nullable=False),
    Column("levels", BigInteger, nullable=False),
    Column("escapes", BigInteger, nullable=False),
    Column("won", BigInteger, nullable=False),
    PrimaryKeyConstraint("player_id", "preset"),
    sqlite_with_rowid=False,
)
"""Sums of what players did, by preset; bots left out."""

rating_history: Final = Table(
    "rating_history",
    metadata,
    Column("player_id", Text, nullable=False),
    Column("ended_at_us", BigInteger, nullable=False),
    Column("table_id", Text, nullable=False),
    # After the match.
    Column("mu", Double, nullable=False),
    Column("sigma", Double, nullable=False),
    Column("matches", Integer, nullable=False),
    # The calendar month (UTC) that the match ended in, such as "2026-11".
    Column("season", Text, nullable=False),
    # Rated matches of the season so far.
    Column("season_matches", Integer, nullable=False),
    PrimaryKeyConstraint("player_id", "ended_at_us", "table_id"),
    Index("rating_history_in_order", "ended_at_us", "table_id"),
    sqlite_with_rowid=False,
)
"""Players' ratings after each rated match: the fold of rated matches in the order (ended_at_us, table_id)."""

standings: Final = Table(
    "standings",
    metadata,
    Column("season", Text, nullable=False),
    # Whose players; empty for the house.
    Column("operator", Text, nullable=False),
    Column("player_id", Text, nullable=False),
    # 1500 + 40 (mu - 25) - 2 · 40 sigma, after the player's last match of the season
    Column("score", Double, nullable=False),
    Column("mu", Double, nullable=False),
    Column("sigma", Double, nullable=False),
    # Rated matches so far, and those of the season.
    Column("matches", Integer, nullable=False),
    Column("season_matches", Integer, nullable=False),
    PrimaryKeyConstraint("season", "operator", "player_id"),
    sqlite_with_rowid=False,
)
"""The leaderboards: one for each operator's players and season."""
Index(
    "standings_in_order",
    standings.c.season,
    standings.c.operator,
    standings.c.score.desc(),
    standings.c.player_id,
)

archives: Final = Table(
    "archives",
    metadata,
    Column("table_id", Text, primary_key=True),
    # SHA-256 of the log's last commit; empty while there is no archive.
    Column("head", LargeBinary, nullable=False),
    Column("commits", Integer, nullable=False),
    Column("size", BigInteger, nullable=False),
    # The file, below the folder of archives.
    Column("place", Text, nullable=False),
    # When it was archived or refused; 0 while that is still to be done.
    Column("archived_at_us", BigInteger, nullable=False),
    # Why the log was refused; empty for a good one.
    Column("fault", Text, nullable=False),
    sqlite_with_rowid=False,
)
"""Logs of closed tables: those that were verified and stored apart, were refused, or wait for it."""
_WAITING: Final = archives.c.archived_at_us == 0
Index("archives_to_make", archives.c.table_id, sqlite_where=_WAITING, postgresql_where=_WAITING)

applied: Final = Table(
    "applied",
    metadata,
    Column("table_id", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    # SHA-256 of the commit's stored bytes.
    Column("hash", LargeBinary(32), nullable=False),
    PrimaryKeyConstraint("table_id", "version"),
    sqlite_with_rowid=False,
)
"""Every commit that had its effect, so that none has it twice."""

parked: Final = Table(
    "parked",
    metadata,
    Column("table_id", Text, primary_key=True),
    # folding.Why
    Column("why", Text, nullable=False),
    # The table that it waits for; empty for other reasons.
    Column("waits_for", Text, nullable=False),
    Column("since_us", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""Tables whose commits are kept aside, and why."""

unapplied: Final = Table(
    "unapplied",
    metadata,
    Column("table_id", Text, nullable=False),
    # 0 for bytes that are no commit.
    Column("version", BigInteger, nullable=False),
    Column("stored", LargeBinary, nullable=False),
    PrimaryKeyConstraint("table_id", "version"),
    sqlite_with_rowid=False,
)
"""Commits of parked tables, to be applied when what they lack has come."""

positions: Final = Table(
    "positions",
    metadata,
    Column("stream", SmallInteger, primary_key=True, autoincrement=False),
    # When the stream was made: sequences of another one mean nothing.
    Column("created", Text, nullable=False),
    # Everything up to it had its effect or is in `unapplied`.
    Column("sequence", BigInteger, nullable=False),
)
"""How far each log stream was read."""

_IMMUTABLE: Final = (transfers, postings)


def immutability(dialect: str) -> list[str]:
    """The statements that make transfers and postings unchangeable.

    Args:
        dialect: "sqlite" or "postgresql".
    """
    names = [table.name for table in _IMMUTABLE]
    if dialect == "sqlite":
        return [
            f"CREATE TRIGGER {name}_no_{verb} BEFORE {verb.upper()} ON {name} "
            f"BEGIN SELECT RAISE(ABORT, '{name} are never changed'); END"
            for name in names
            for verb in ("update", "delete")
        ]
    return [
        "CREATE FUNCTION never_changed() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION '% are never changed', TG_TABLE_NAME USING ERRCODE = 'restrict_violation'; "
        "END $$",
        *(
            f"CREATE TRIGGER {name}_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} "
            "FOR EACH STATEMENT EXECUTE FUNCTION never_changed()"
            for name in names
        ),
    ]
