"""Fold the statuses again: each effect is a record with fields of its own."""

revision = "0020"
down_revision = "0016"


def upgrade() -> None:
    """Change no table; events of earlier versions are upgraded when they are read."""
