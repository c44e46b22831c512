"""The history of the ledger's tables, as Alembic runs it at every start."""
