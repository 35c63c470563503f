"""Lay down the ledger: the events, and where each issue stands."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

SQLITE = (
    "CREATE TRIGGER events_are_append_only BEFORE UPDATE ON events "
    "BEGIN SELECT RAISE(ABORT, 'events are append-only'); END"
)
FUNCTION = (
    "CREATE FUNCTION refuse_to_change_events() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "RAISE EXCEPTION 'events are append-only' USING ERRCODE = 'integrity_constraint_violation'; "
    "END $$"
)
POSTGRES = (
    "CREATE TRIGGER events_are_append_only BEFORE UPDATE ON events "
    "FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_events()"
)
APPEND_ONLY = {"sqlite": [SQLITE], "postgresql": [FUNCTION, POSTGRES]}


def upgrade() -> None:
    """Make both tables, and refuse to change what has happened."""
    op.create_table(
        "events",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("repository", sa.String(140), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("schema_version", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("events_of_issue", "events", ["repository", "number", "seq"])
    op.create_table(
        "issues",
        sa.Column(
            "repository",
            sa.String(140).with_variant(sa.String(140, collation="C"), "postgresql"),
            primary_key=True,
        ),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("stage", sa.String(16), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.Column("due", sa.String(32)),
        sa.Column("status", sa.Text, nullable=False),
    )
    for statement in APPEND_ONLY[op.get_bind().dialect.name]:
        op.execute(statement)
