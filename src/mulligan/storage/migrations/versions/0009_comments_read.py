"""Keep for each repository, and no more on an issue, up to where its comments were read."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Make the table; it is filled, and all statuses are folded, from the events."""
    op.create_table(
        "repositories",
        sa.Column("repository", sa.String(140), primary_key=True),
        sa.Column("comments_read_to", sa.BigInteger, nullable=False),
    )
