"""Add the leases: who works on which issue."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table; nobody works on anything yet."""
    op.create_table(
        "leases",
        sa.Column("repository", sa.String(140), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("fence", sa.Integer, nullable=False),
        sa.Column("worker", sa.String(200)),
        sa.Column("expires", sa.String(32)),
    )
