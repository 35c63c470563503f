"""Stores the ledger, leases and files: SQLite, PostgreSQL, the disk, or a git ref."""

HEAD = "0015"
"""The newest revision in migrations/versions/; revisions count up."""

VERSION_TABLE = "mulligan_version"
"""Where the revision of a database stands; a name that no other program uses."""
