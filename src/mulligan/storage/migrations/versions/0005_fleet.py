"""Keep what workers of a fleet have to know of each other: files of attempts, and who is there."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the tables; on a ledger that one worker has to itself they stay empty."""
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
    op.create_table(
        "workers",
        sa.Column("worker", sa.String(200), primary_key=True),
        sa.Column("expires", sa.String(32), nullable=False),
    )
