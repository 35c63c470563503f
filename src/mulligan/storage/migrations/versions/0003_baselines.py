"""Find what checks say of a start tree without reading every event."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

RECORDED = sa.text("kind = 'baseline_recorded'")


def upgrade() -> None:
    """Index the baselines alone; there are few of them."""
    op.create_index(
        "baselines_of_repository",
        "events",
        ["repository", "seq"],
        sqlite_where=RECORDED,
        postgresql_where=RECORDED,
    )
