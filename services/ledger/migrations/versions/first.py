"""The first tables."""

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

from services.ledger.schema import immutability

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make them, and make transfers and postings unchangeable."""
    _chips()
    _reading()
    _matches()
    _players()
    _archives()
    op.execute(
        "INSERT INTO positions (stream, created, sequence) VALUES (0,'',0), (1,'',0), (2,'',0), (3,'',0)"
    )
    for statement in immutability(op.get_bind().dialect.name):
        op.execute(statement)


def _chips() -> None:
    """Accounts, what moved between them, and what tables hold."""
    op.create_table(
        "accounts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("asset", sa.Text(), server_default="chips", nullable=False),
        sa.Column("player_id", sa.Text(), nullable=True),
        sa.Column("balance", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("balance >= 0 OR player_id IS NULL", name="never_negative"),
        sa.PrimaryKeyConstraint("name"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "transfers",
        sa.Column("id", sa.LargeBinary(length=16), nullable=False),
        sa.Column("purpose", sa.SmallInteger(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("deal", sa.Integer(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("reverses", sa.LargeBinary(length=16), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "postings",
        sa.Column(
            "seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("transfer_id", sa.LargeBinary(length=16), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("balance_after", sa.BigInteger(), nullable=False),
        sa.Column("player_id", sa.Text(), nullable=True),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("amount <> 0", name="moves_something"),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index(
        "postings_of_player",
        "postings",
        ["player_id", "seq"],
        unique=False,
        sqlite_where=sa.text("player_id IS NOT NULL"),
        postgresql_where=sa.text("player_id IS NOT NULL"),
    )
    op.create_table(
        "holds",
        sa.Column("player_id", sa.Text(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("made_at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("player_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("holds_of_table", "holds", ["table_id"], unique=False)


def _reading() -> None:
    """How far the log has been read, and what could not be applied."""
    op.create_table(
        "positions",
        sa.Column("stream", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("created", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("stream"),
    )
    op.create_table(
        "applied",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.LargeBinary(length=32), nullable=False),
        sa.PrimaryKeyConstraint("table_id", "version"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "unapplied",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("stored", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("table_id", "version"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "parked",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("waits_for", sa.Text(), nullable=False),
        sa.Column("since_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("table_id"),
        sqlite_with_rowid=False,
    )


def _matches() -> None:
    """Matches, their people and their deals."""
    op.create_table(
        "matches",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("book", sa.Text(), nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("unfunded", sa.Boolean(), nullable=False),
        sa.Column("opened_at_us", sa.BigInteger(), nullable=False),
        sa.Column("ended_at_us", sa.BigInteger(), nullable=False),
        sa.Column("rated", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("table_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("matches_to_rate", "matches", ["rated", "ended_at_us", "table_id"], unique=False)
    op.create_index(
        "matches_unfunded",
        "matches",
        ["table_id"],
        unique=False,
        sqlite_where=sa.text("unfunded"),
        postgresql_where=sa.text("unfunded"),
    )
    op.create_table(
        "match_players",
        sa.Column("player_id", sa.Text(), nullable=False),
        sa.Column("opened_at_us", sa.BigInteger(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("seat", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("player_id", "opened_at_us", "table_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("match_players_of_table", "match_players", ["table_id"], unique=False)
    op.create_table(
        "deals",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("deal", sa.Integer(), nullable=False),
        sa.Column("attackers_points", sa.Integer(), nullable=False),
        sa.Column("winning_side", sa.SmallInteger(), nullable=False),
        sa.Column("nominal_levels", sa.Integer(), nullable=False),
        sa.Column("won_0", sa.BigInteger(), nullable=False),
        sa.Column("won_1", sa.BigInteger(), nullable=False),
        sa.Column("won_2", sa.BigInteger(), nullable=False),
        sa.Column("won_3", sa.BigInteger(), nullable=False),
        sa.Column("scored_at_us", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("table_id", "deal"),
        sqlite_with_rowid=False,
    )


def _players() -> None:
    """What players have done, and how good they are."""
    op.create_table(
        "stats",
        sa.Column("player_id", sa.Text(), nullable=False),
        sa.Column("preset", sa.Text(), nullable=False),
        sa.Column("deals", sa.BigInteger(), nullable=False),
        sa.Column("deals_won", sa.BigInteger(), nullable=False),
        sa.Column("matches", sa.BigInteger(), nullable=False),
        sa.Column("matches_won", sa.BigInteger(), nullable=False),
        sa.Column("levels", sa.BigInteger(), nullable=False),
        sa.Column("escapes", sa.BigInteger(), nullable=False),
        sa.Column("won", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("player_id", "preset"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rating_history",
        sa.Column("player_id", sa.Text(), nullable=False),
        sa.Column("ended_at_us", sa.BigInteger(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("mu", sa.Double(), nullable=False),
        sa.Column("sigma", sa.Double(), nullable=False),
        sa.Column("matches", sa.Integer(), nullable=False),
        sa.Column("season", sa.Text(), nullable=False),
        sa.Column("season_matches", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("player_id", "ended_at_us", "table_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("rating_history_in_order", "rating_history", ["ended_at_us", "table_id"], unique=False)
    op.create_table(
        "standings",
        sa.Column("season", sa.Text(), nullable=False),
        sa.Column("operator", sa.Text(), nullable=False),
        sa.Column("player_id", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("mu", sa.Double(), nullable=False),
        sa.Column("sigma", sa.Double(), nullable=False),
        sa.Column("matches", sa.Integer(), nullable=False),
        sa.Column("season_matches", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("season", "operator", "player_id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "standings_in_order",
        "standings",
        ["season", "operator", sa.literal_column("score DESC"), "player_id"],
        unique=False,
    )


def _archives() -> None:
    """Logs of closed tables that are archived, or are to be."""
    op.create_table(
        "archives",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("head", sa.LargeBinary(), nullable=False),
        sa.Column("commits", sa.Integer(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("archived_at_us", sa.BigInteger(), nullable=False),
        sa.Column("fault", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("table_id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "archives_to_make",
        "archives",
        ["table_id"],
        unique=False,
        sqlite_where=sa.text("archived_at_us = 0"),
        postgresql_where=sa.text("archived_at_us = 0"),
    )


def downgrade() -> None:
    """There is nothing before.

    Raises:
        CommandError: always; a ledger's tables are never dropped by a migration.
    """
    raise CommandError("the first revision cannot be undone: it would delete the ledger")
