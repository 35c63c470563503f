"""Keep this installation's id, the others that it stands back for, and checksums of events."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Make both tables, and the column; events that are there keep no checksum."""
    op.add_column("events", sa.Column("checksum", sa.String(16)))
    op.create_table("installation", sa.Column("id", sa.String(40), primary_key=True))
    op.create_table(
        "owners",
        sa.Column("repository", sa.String(140), primary_key=True),
        sa.Column("ready_label", sa.String(100), nullable=False),
        sa.Column("owner", sa.String(40), nullable=False),
        sa.Column("since", sa.String(32), nullable=False),
        sa.Column("version", sa.String(80), nullable=False),
        sa.Column("seen", sa.String(32), nullable=False),
    )
