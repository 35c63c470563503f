"""Keep what an operator has paused."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Make the table of the pauses."""
    op.create_table(
        "pauses",
        sa.Column("repository", sa.String(140), primary_key=True),
        sa.Column("since", sa.String(32), nullable=False),
    )
