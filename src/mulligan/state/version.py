"""Which layout of the tables this Mulligan reads and writes, and where a database says so. Pure."""

HEAD = "0008"
"""The newest revision in migrations/versions/; revisions count up."""

VERSION_TABLE = "mulligan_version"
"""Where the revision of a database stands; a name that no other program uses."""
