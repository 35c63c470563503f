"""The tables of the ledger, as the newest migration leaves them. Pure."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    text,
)

WRITES = "writes"
"""The execution option of a transaction that writes; its value is one of the two that follow."""

ALONE = "alone"
"""The one writer of the whole database; others wait for their turn."""

ROWS = "rows"
"""A writer that waits only for writers of the same rows; on SQLite, the same as ALONE."""

METADATA = MetaData()

BASELINES = text("kind = 'baseline_recorded'")
"""Which events the index of the baselines holds."""

LEARNINGS = text("kind IN ('learnings_accepted', 'learnings_dropped')")
"""Which events the index of the learnings holds."""

# AUTOINCREMENT, so that a number is never given twice, whatever retention deletes.
EVENTS_TABLE = Table(
    "events",
    METADATA,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at", String(32), nullable=False),
    Column("repository", String(140), nullable=False),
    Column("number", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("attempt", Integer),
    Column("kind", String(64), nullable=False),
    Column("schema_version", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("checksum", String(16)),
    Index("events_of_issue", "repository", "number", "seq"),
    # On PostgreSQL too: the migration says so, since every start would load its dialect for that.
    Index("baselines_of_repository", "repository", "seq", sqlite_where=BASELINES),
    Index("learnings_of_repository", "repository", "seq", sqlite_where=LEARNINGS),
    sqlite_autoincrement=True,
)
"""The events, append-only: a trigger refuses to change a row. Old rows have no checksum."""

ISSUES_TABLE = Table(
    "issues",
    METADATA,
    # Sorted by its characters everywhere, and not as people of some country sort words.
    Column(
        "repository",
        String(140).with_variant(String(140, collation="C"), "postgresql"),
        primary_key=True,
    ),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("stage", String(16), nullable=False),
    Column("phase", String(16), nullable=False),
    Column("due", String(32)),
    Column("status", Text, nullable=False),
)
"""The status of each issue: folded from the events, and written with them in one transaction."""

LEASES_TABLE = Table(
    "leases",
    METADATA,
    Column("repository", String(140), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("fence", Integer, nullable=False),
    Column("worker", String(200)),
    Column("expires", String(32)),
)
"""Who works on each issue. A row stays when the lease ends, so that its fence only grows."""

RUNS_TABLE = Table(
    "runs",
    METADATA,
    Column("repository", String(140), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("fix_round", Integer, primary_key=True, autoincrement=False),
    Column("day", String(10), nullable=False),
    Column("microdollars", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("usage", Text, nullable=False),
    Column("agent", String(100), nullable=False),
    Column("began", String(32), nullable=False),
    Column("denied", Boolean, nullable=False),
    Index("runs_by_agent", "agent", "began", "denied"),
    Index("runs_by_day", "day", "repository", "microdollars", "tokens"),
)
"""The usage of each agent run, as last reported; `attempt` is over all epochs.

`denied` is set if the agent rests after the run; the reason is in `usage`.
"""

FILES_TABLE = Table(
    "files",
    METADATA,
    Column("repository", String(140), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("name", String(200), primary_key=True),
    Column("at", String(32), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
)
"""Files that the workers of a fleet share; `attempt` is over all epochs, `size` in bytes."""

WORKERS_TABLE = Table(
    "workers",
    METADATA,
    Column("worker", String(200), primary_key=True),
    Column("expires", String(32), nullable=False),
)
"""The workers that share this ledger, and when the registration of each one expires."""

REPOSITORIES_TABLE = Table(
    "repositories",
    METADATA,
    Column("repository", String(140), primary_key=True),
    Column("comments_read_to", BigInteger, nullable=False),
)
"""Up to which id the comments of each repository were read, as the events say."""

PAUSES_TABLE = Table(
    "pauses",
    METADATA,
    Column("repository", String(140), primary_key=True),
    Column("since", String(32), nullable=False),
)
"""The pauses by an operator: of a repository, or of everything under an empty name."""

INSTALLATION_TABLE = Table("installation", METADATA, Column("id", String(40), primary_key=True))
"""The one row that identifies this installation among others on the same repositories."""

RENEWALS_TABLE = Table(
    "renewals",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("repository", String(140), nullable=False, index=True),
    Column("version", String(80), nullable=False),
)
"""The last records that this installation wrote as an owner; a copy of its disk knows no later."""

OWNERS_TABLE = Table(
    "owners",
    METADATA,
    Column("repository", String(140), primary_key=True),
    Column("ready_label", String(100), nullable=False),
    Column("owner", String(40), nullable=False),
    Column("since", String(32), nullable=False),
    Column("version", String(80), nullable=False),
    Column("seen", String(32), nullable=False),
)
"""The installations that this one stands back for, with the time when each renewal was first seen.
"""

POLLERS_TABLE = Table(
    "pollers",
    METADATA,
    Column("account", String(200), primary_key=True),
    Column("fence", BigInteger, nullable=False),
    Column("worker", String(200)),
    Column("expires", String(32)),
)
"""Who polls GitHub for a fleet, one for each account there; the fence only grows."""

WAITING_TABLE = Table(
    "waiting",
    METADATA,
    Column("repository", String(140), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("priority", Integer, nullable=False),
    Column("since", String(32), nullable=False),
)
"""The issues of a fleet that are due and wait for a slot; there is no job for them yet."""

EVENT = EVENTS_TABLE.c
ISSUE = ISSUES_TABLE.c
REPOSITORY = REPOSITORIES_TABLE.c

COMPLETED = "attempt_completed"
"""The kind of the event that ends an attempt."""
