"""Keep what each run of an agent has used, while it runs."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the table of the runs; its indexes answer what a day cost, and who was refused."""
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
        sa.Column("agent", sa.String(100), nullable=False),
        sa.Column("began", sa.String(32), nullable=False),
        sa.Column("denied", sa.Boolean, nullable=False),
    )
    op.create_index("runs_by_agent", "runs", ["agent", "began", "denied"])
    op.create_index("runs_by_day", "runs", ["day", "repository", "microdollars", "tokens"])
