"""Keep what each run of an agent has used, while it runs."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the table of the runs; its index alone answers what a day has cost."""
    op.create_table(
        "runs",
        sa.Column("repository", sa.String(140), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("fix_round", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("microdollars", sa.BigInteger, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("usage", sa.Text, nullable=False),
    )
    op.create_index("runs_by_day", "runs", ["day", "repository", "microdollars", "tokens"])
