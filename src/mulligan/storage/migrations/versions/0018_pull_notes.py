"""Fold the statuses again: an issue shows notes about its pull request."""

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Change no table."""
