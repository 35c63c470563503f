"""Keep who polls for a fleet, and which issues wait there for a slot."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Make both tables."""
    op.create_table(
        "pollers",
        sa.Column("account", sa.String(200), primary_key=True),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("worker", sa.String(200)),
        sa.Column("expires", sa.String(32)),
    )
    op.create_table(
        "waiting",
        sa.Column("repository", sa.String(140), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("since", sa.String(32), nullable=False),
    )
