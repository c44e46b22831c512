"""What Alembic runs: the migrations, on the connection that it was given."""

from alembic import context
from sqlalchemy import Connection

from services.ledger.schema import metadata

connection: Connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, transaction_per_migration=False)
context.run_migrations()
