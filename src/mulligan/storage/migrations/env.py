"""Run by Alembic: apply the migrations on the connection, and in the transaction, it was given."""

from alembic import context

from mulligan.storage import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()
