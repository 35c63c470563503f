"""Find the facts that a repository's issues taught without reading every event."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

RECORDED = sa.text("kind IN ('learnings_accepted', 'learnings_dropped')")


def upgrade() -> None:
    """Index the events that accept and drop facts; there are few of them."""
    op.create_index(
        "learnings_of_repository",
        "events",
        ["repository", "seq"],
        sqlite_where=RECORDED,
        postgresql_where=RECORDED,
    )
