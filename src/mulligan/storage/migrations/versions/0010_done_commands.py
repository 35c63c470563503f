"""Change no table: a pending command tells whether it is done; all statuses are folded anew."""

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Leave the tables as they are."""
