"""Stores the ledger, leases and files: SQLite, PostgreSQL, the disk, or a git ref."""

HEAD = "0020"
"""The newest revision in migrations/versions/; revisions count up."""

OLDEST = "0016"
"""The oldest revision that is upgraded; what was between the two was never released."""

VERSION_TABLE = "mulligan_version"
"""The table with the revision of a database; no other program uses the name."""
