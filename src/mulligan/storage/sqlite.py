"""SQLite: set up for durability, and its errors in words."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import ConnectionPoolEntry
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from mulligan.domain.errors import ConfigError, MulliganError, UnavailableError
from mulligan.storage import VERSION_TABLE
from mulligan.storage.schema import WRITES

NAMES = frozenset({"sqlite", "sqlite+pysqlite"})
BUSY_SECONDS = 20.0
WAL_RETRY_SECONDS = 0.01
INDEX_BYTES = 32 * 1024
"""The smallest file that a reader in WAL mode needs space for (sqlite.org/walformat.html)."""
BUG_CODES = frozenset(
    {
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_MISUSE,
    }
)
"""Result codes for an invalid statement, which is a bug."""


def path_of(url: URL) -> Path:
    """Return the file of a URL; ConfigError if it is not a plain one."""
    named = url.database or ":memory:"
    if named.startswith((":memory:", "file:")) or url.query:
        raise ConfigError(
            "state.url does not name a plain file; write it like sqlite:////PATH/mulligan.db."
        )
    return Path(named).expanduser().absolute()


def set_up(path: Path) -> Engine:
    """Return an engine for a file that leaves each BEGIN to us, as SQLAlchemy documents.

    Create the directory, and a file that no other user can read.
    """
    _make_directory(path.parent)
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS}, max_overflow=-1)

    def prepare(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
        _make_private(path)
        _prepare(connection)

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", _begin)
    return engine


def watched(path: Path) -> Callable[[], bool]:
    """Return a function that tells whether the file of now is still the one at `path`."""
    known = _identity(path)
    return lambda: _identity(path) == known


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def translate_error(where: str, error: DatabaseError) -> MulliganError | None:
    """Return the error in words; None for an invalid statement, which is a bug."""
    code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return None if code in BUG_CODES else translate_code(code, where, str(error.orig))


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UnavailableError(
            f"The directory {directory} could not be created ({error.strerror}); fix state.url."
        ) from error


def _make_private(path: Path) -> None:
    """Hide a ledger from other users; SQLite copies the permissions to its further files."""
    with suppress(OSError):
        found = path.stat()
        if found.st_uid == os.geteuid() and found.st_mode & 0o077:
            path.chmod(0o600)


def _prepare(connection: sqlite3.Connection) -> None:
    connection.isolation_level = None
    _switch_to_wal(connection)
    for setting in ("synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}").close()


def _is_busy(error: BaseException) -> bool:
    is_sqlite = isinstance(error, sqlite3.OperationalError)
    return is_sqlite and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


@retry(
    retry=retry_if_exception(_is_busy),
    wait=wait_fixed(WAL_RETRY_SECONDS),
    stop=stop_after_delay(BUSY_SECONDS),
    reraise=True,
)
def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Set the journal mode; if several processes create a database, all but one must wait.

    SQLite does not apply its busy timeout to that switch. Later calls change nothing.
    """
    if not _is_another_programs(connection):
        connection.execute("PRAGMA journal_mode = WAL").close()


def _is_another_programs(connection: sqlite3.Connection) -> bool:
    """Return whether there are tables, but none of ours; such a file must not be changed."""
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return bool(found) and (VERSION_TABLE,) not in found


def _begin(connection: Connection) -> None:
    # A transaction that reads first and then writes fails at once, despite the busy timeout.
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _is_full(where: str) -> bool:
    """Return whether SQLite has no space for its files, which it calls an I/O error."""
    try:
        disk = os.statvfs(Path(where).parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < INDEX_BYTES


def translate_code(code: int, where: str, message: str) -> ConfigError | UnavailableError:
    """Return the error for SQLite's primary result code (sqlite.org/rescode.html)."""
    match code:
        case sqlite3.SQLITE_NOTADB:
            return ConfigError(f"{where} is not a database; name another file in state.url.")
        case sqlite3.SQLITE_CORRUPT:
            return ConfigError(f"{where} is damaged; restore a backup.")
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR if code == sqlite3.SQLITE_FULL or _is_full(
            where
        ):
            return UnavailableError(f"The disk is full, so {where} cannot grow; free some space.")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            advice = "give Mulligan write access to it and its directory"
            return UnavailableError(f"{where} cannot be opened for writing ({message}); {advice}.")
        case sqlite3.SQLITE_BUSY:
            return UnavailableError(f"{where} is locked by another process; try again.")
        case _:
            return UnavailableError(f"{where} cannot be used: {message}.")
