"""Fold the statuses again: a new request ends the note on what the work missed."""

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Change no table."""
