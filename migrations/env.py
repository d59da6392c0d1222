"""How Alembic reaches the database: over the connection, and in the transaction, that `migrate` opened."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
