"""Keep the files of attempts that every worker of a fleet has to find."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the table; on a ledger that one worker has to itself it stays empty."""
    op.create_table(
        "files",
        sa.Column("repository", sa.String(140), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
