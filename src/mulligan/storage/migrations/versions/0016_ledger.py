"""Make the tables of the ledger, as `10b90f43` had them: the oldest version that is upgraded."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = None

BASELINES = sa.text("kind = 'baseline_recorded'")
LEARNINGS = sa.text("kind IN ('learnings_accepted', 'learnings_dropped')")

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
    """Make all tables, and refuse to change what has happened."""
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
        sa.Column("checksum", sa.String(16)),
        sqlite_autoincrement=True,
    )
    op.create_index("events_of_issue", "events", ["repository", "number", "seq"])
    for name, rows in (
        ("baselines_of_repository", BASELINES),
        ("learnings_of_repository", LEARNINGS),
    ):
        op.create_index(
            name, "events", ["repository", "seq"], sqlite_where=rows, postgresql_where=rows
        )
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
    op.create_table(
        "leases",
        sa.Column("repository", sa.String(140), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("fence", sa.Integer, nullable=False),
        sa.Column("worker", sa.String(200)),
        sa.Column("expires", sa.String(32)),
    )
    op.create_table(
        "runs",
        sa.Column("repository", sa.String(140), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("fix_round", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("microdollars", sa.BigInteger, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("usage", sa.Text, nullable=False),
        sa.Column("agent", sa.String(100), nullable=False),
        sa.Column("began", sa.String(32), nullable=False),
        sa.Column("denied", sa.Boolean, nullable=False),
    )
    op.create_index("runs_by_agent", "runs", ["agent", "began", "denied"])
    op.create_index("runs_by_day", "runs", ["day", "repository", "microdollars", "tokens"])
    op.create_table(
        "files",
        sa.Column("repository", sa.String(140), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "workers",
        sa.Column("worker", sa.String(200), primary_key=True),
        sa.Column("expires", sa.String(32), nullable=False),
    )
    op.create_table(
        "repositories",
        sa.Column("repository", sa.String(140), primary_key=True),
        sa.Column("comments_read_to", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "pauses",
        sa.Column("repository", sa.String(140), primary_key=True),
        sa.Column("since", sa.String(32), nullable=False),
    )
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
    op.create_table(
        "pollers",
        sa.Column("account", sa.String(200), primary_key=True),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("worker", sa.String(200)),
        sa.Column("expires", sa.String(32)),
    )
    op.create_table(
        "waiting",
        sa.Column("repository", sa.String(140), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("since", sa.String(32), nullable=False),
    )
    op.create_table(
        "renewals",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("repository", sa.String(140), nullable=False),
        sa.Column("version", sa.String(80), nullable=False),
    )
    op.create_index("ix_renewals_repository", "renewals", ["repository"])
    for statement in APPEND_ONLY[op.get_bind().dialect.name]:
        op.execute(statement)
