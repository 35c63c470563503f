"""Keep which records of an owner this installation wrote, since a copied disk has the same id."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "renewals",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("repository", sa.String(140), nullable=False),
        sa.Column("version", sa.String(80), nullable=False),
    )
    op.create_index("ix_renewals_repository", "renewals", ["repository"])
